#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Which CPUs are interrupted when RMIDs change hands: only those that run the process.
# Here CPU 1 is isolated with nohz_full=. The interrupts that one CPU sends to another to
# call a function are counted in /proc/interrupts. Runs in the lab beside memwatch.ko,
# mwctl, mwproc and herd. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
KO=${KO:-/lab/memwatch.ko}

calls_on_cpu1() { awk '$1 == "CAL:" { print $3 }' /proc/interrupts; }

# at_most TITLE BOUND COMMAND...: interrupts of CPU 1 while COMMAND runs
at_most() {
	title=$1 bound=$2
	shift 2
	before=$(calls_on_cpu1)
	"$@"
	calls=$(($(calls_on_cpu1) - before))
	[ "$calls" -le "$bound" ]
	ok $? "$title"
	echo "# $calls interrupts, at most $bound wanted"
}

# Each child is forked with the name of this script, which the filter wants, and then
# executes a program that it does not want.
exec_programs() {
	i=0
	while [ $((i += 1)) -le 300 ]; do /bin/busybox true; done
}

# Without a child process, which would itself have an RMID for a moment.
excluded_have_rmids() {
	while read -r number _ _ _ _ _ _ _ comm; do
		[ "$number" -gt 0 ] 2>/dev/null && [ "$comm" != "$wanted" ] && return 0
	done <$PROC/rmids
	return 1
}

start_spin() {
	in_background "$TMP/spin" taskset 2 mwproc spin
	spin=$!
	within 10 grep -q ready "$TMP/spin"
}

test_exec() {
	insmod "$KO"
	wanted=$(cat /proc/$$/comm)
	hold_session "comm=$wanted"
	at_most "execve() of 300 processes that a filter then excludes" 15 exec_programs
	within 10 not excluded_have_rmids
	ok $? "the excluded processes lose their RMIDs"
	release_session
	rmmod memwatch
}

# Ten processes that run take turns with four RMIDs. The process on CPU 1 is excluded.
test_rotation() {
	insmod "$KO" rmids=4
	in_background "$TMP/herd" taskset 1 herd 1001 10 spin
	herd=$!
	within 20 grep -q ready "$TMP/herd"
	hold_session uid=1001
	sleep 1
	taken=$(status revocations)
	at_most "3 s in which processes on the other CPU take turns" 15 sleep 3
	taken=$(($(status revocations) - taken))
	[ "$taken" -gt 20 ]
	ok $? "RMIDs were taken away meanwhile: $taken"
	release_session
	end_processes $herd
	rmmod memwatch
}

# The process runs all the time, so no switch programs its RMID.
test_promotion() {
	insmod "$KO"
	hold_session uid=1001
	mwctl config | grep -q 'cpus 0$'
	ok $? "a CPU of nohz_full= does not tick by default: $(mwctl config)"
	has_rmid $spin
	[ $? -eq 1 ]
	ok $? "a process that a filter excludes has no RMID"
	trace_start switch
	mwctl force clear
	within 10 has_rmid $spin
	sleep 0.5
	[ "$(trace_count "\[001\].*next_rmid=$(rmid_of $spin) ")" -gt 0 ]
	ok $? "its CPU is charged to it as soon as the filter is gone, without a switch"
	trace_start switch
	mwctl force uid=1001
	within 10 not has_rmid $spin
	sleep 0.5
	[ "$(trace_count "\[001\].*next_rmid=0 ")" -gt 0 ]
	ok $? "its CPU is charged to nobody when the filter is back"
	release_session
	rmmod memwatch
}

mount_tracing
plan
if ! grep -q '^1$' /sys/devices/system/cpu/nohz_full; then
	skip "isolated CPUs are not interrupted" "this kernel has no nohz_full="
	tap_end
	exit
fi
start_spin
test_exec
test_rotation
test_promotion
end_processes $spin
tap_end
