#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# In a guest: a module that is in use is not unloaded, and each step of loading and
# of starting a session, when it is made to fail, undoes all steps before it. Speaks
# TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
cd /lab || exit 1

loaded() {
	[ -d /sys/module/memwatch ]
}

# Nothing of the module is left in the kernel's files.
is_gone() {
	! loaded && [ ! -e /dev/memwatch ] && [ ! -e /proc/memwatch ] &&
		[ ! -e /sys/class/misc/memwatch ] && [ ! -e /sys/class/memwatch ] &&
		! grep -qi memwatch /sys/devices/system/cpu/hotplug/states &&
		! grep -q memwatch /proc/misc && ! grep -q memwatch /proc/devices &&
		[ ! -d /sys/kernel/tracing/events/memwatch ] &&
		! grep -q '\[memwatch\]' /proc/kallsyms
}

mount_tracing
insmod ./memwatch.ko >&2 || { echo "Bail out! the module does not load"; exit 1; }
steps=$(cat $PARAMETERS/fail_steps)
rmmod memwatch
plan $((11 + 3 * steps + 3))

is_gone
ok $? "nothing of the module is left after a load and an unload"

check "the module loads" insmod ./memwatch.ko
hold_session
sleep 1
! rmmod memwatch 2> "$TMP/why"
ok $? "a module with an open session is not unloaded"
grep -qiE 'in use|busy|unavailable' "$TMP/why"
ok $? "rmmod says that the module is in use"
is "the session continues after rmmod was refused" "$(status sessions_started)" 1
release_session
ok $? "the session ends without an error"
check "the module unloads after the session" rmmod memwatch
is_gone
ok $? "nothing of the module is left after a session"

insmod ./memwatch.ko >&2
./mwctl start sleep=100000 >&2 &
holder=$!
sleep 1
kill -9 "$holder"
wait "$holder" 2> /dev/null
is "a session that was killed is gone" "$(status sessions)" 0
is "a session that was killed leaves no RMID in use" "$(status rmids_used)" 0
check "the module unloads after a session that was killed" rmmod memwatch

step=1
load_failures=0 start_failures=0
while [ "$step" -le "$steps" ]; do
	# Without RDT the step that allocates the L3 domains would not be executed.
	if insmod ./memwatch.ko assume_rdt=16 fail_step="$step" 2> "$TMP/why"; then
		# The load succeeded, so the step belongs to the start of a session.
		check "step $step: the start of a session fails" ./mwctl '!start'
		start_failures=$((start_failures + 1))
		status_is sessions_started 0 && status_is rmids_used 0
		ok $? "step $step: no session and no RMID is left"
		rmmod memwatch >&2
		is_gone
		ok $? "step $step: nothing of the module is left after unloading"
	else
		cat "$TMP/why" >&2
		load_failures=$((load_failures + 1))
		ok 0 "step $step: the load fails"
		is_gone
		ok $? "step $step: nothing of the module is left after the failed load"
		insmod ./memwatch.ko >&2 && ./mwctl start stop >&2 && rmmod memwatch >&2
		ok $? "step $step: the next load works"
	fi
	step=$((step + 1))
done
[ "$load_failures" -gt 0 ]
ok $? "some of the steps belong to loading: $load_failures"
[ "$start_failures" -gt 0 ]
ok $? "some of the steps belong to the start of a session: $start_failures"
insmod ./memwatch.ko >&2 && ./mwctl start sleep=100 stop >&2 && rmmod memwatch >&2 && is_gone
ok $? "after all failed steps the module loads, runs a session and unloads"
tap_end
