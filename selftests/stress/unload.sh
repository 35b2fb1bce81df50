#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Loading and unloading, in the virtual machine: a module in use stays, and each
# step of loading and of starting a session that is made to fail undoes all the
# steps before it.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=SCRIPTDIR/../tap.sh
. ./tap.sh
work=$(mktemp -d)

work=$(mktemp -d)

loaded() {
	[ -d /sys/module/memwatch ]
}

# Nothing of the module is left where the kernel keeps such things.
residue() {
	! loaded && [ ! -e /dev/memwatch ] && [ ! -e /proc/memwatch ] &&
		[ ! -e /sys/class/misc/memwatch ] && [ ! -e /sys/class/memwatch ] &&
		! grep -qi memwatch /sys/devices/system/cpu/hotplug/states &&
		! grep -q memwatch /proc/misc && ! grep -q memwatch /proc/devices &&
		[ ! -d /sys/kernel/tracing/events/memwatch ] &&
		! grep -q '\[memwatch\]' /proc/kallsyms
}

[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
insmod ./memwatch.ko >&2 || { echo "Bail out! the module does not load"; exit 1; }
steps=$(cat /sys/module/memwatch/parameters/fail_steps)
rmmod memwatch
plan $((10 + 2 * steps + 2))

residue
ok $? "nothing is left after a load and an unload"

check "the module loads" insmod ./memwatch.ko
mkfifo "$work/hold"
./mwctl start hold < "$work/hold" >&2 &
holder=$!
exec 3> "$work/hold"
sleep 1
! rmmod memwatch 2> "$work/why"
ok $? "a module with an open session is not unloaded"
grep -qiE 'in use|busy|unavailable' "$work/why"
ok $? "and the reason is that it is in use"
grep -q '^sessions_started:[[:space:]]*1$' /proc/memwatch/status
ok $? "the session goes on"
exec 3>&-
wait "$holder"
ok $? "the session ends"
check "then the module unloads" rmmod memwatch
residue
ok $? "and nothing is left"

# A session that is killed leaves nothing either.
insmod ./memwatch.ko >&2
./mwctl start sleep=100000 >&2 &
holder=$!
sleep 1
kill -9 "$holder"
wait "$holder" 2> /dev/null
grep -q '^sessions:[[:space:]]*0$' /proc/memwatch/status &&
	grep -q '^rmids_used:[[:space:]]*0$' /proc/memwatch/status
ok $? "a killed session is gone, with its RMIDs"
check "and the module unloads" rmmod memwatch

step=1
load_failures=0 start_failures=0
while [ "$step" -le "$steps" ]; do
	# Without RDT one step would not come: the L3 domains.
	if insmod ./memwatch.ko assume_rdt=16 fail_step="$step" 2> "$work/why"; then
		# The step belongs to the start of a session then.
		./mwctl '!start' > "$work/answer" 2>&1
		answer=$?
		cat "$work/answer" >&2
		start_failures=$((start_failures + 1))
		grep -q '^sessions_started:[[:space:]]*0$' /proc/memwatch/status &&
			grep -q '^rmids_used:[[:space:]]*0$' /proc/memwatch/status
		ok $((answer + $?)) "step $step: the start fails, no session and no RMID is left"
		rmmod memwatch >&2
		residue
		ok $? "step $step: the module unloads without a trace"
	else
		cat "$work/why" >&2
		load_failures=$((load_failures + 1))
		residue
		ok $? "step $step: the load fails and leaves nothing"
		insmod ./memwatch.ko >&2 && ./mwctl start stop >&2 && rmmod memwatch >&2
		ok $? "step $step: the next load works"
	fi
	step=$((step + 1))
done
[ "$load_failures" -gt 0 ] && [ "$start_failures" -gt 0 ]
ok $? "steps of loading ($load_failures) and of starting ($start_failures) were failed"
insmod ./memwatch.ko >&2 && ./mwctl start sleep=100 stop >&2 && rmmod memwatch >&2 && residue
ok $? "after all that it still works"
tap_end
