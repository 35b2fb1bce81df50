#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Two ways into a process that no fork hook sees: io_uring workers, which are
# made without the event, and forks for which no object is at hand, because the
# worker that fetches them cannot run. Runs in the lab beside memwatch.ko, mwctl,
# mwproc and chrt. Speaks TAP.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=SCRIPTDIR/../tap.sh
. ./tap.sh
PATH=$PWD:$PATH
trace=/sys/kernel/tracing
work=$(mktemp -d)

status() { sed -n "s/^$1: //p" /proc/memwatch/status; }

soon() { # soon COMMAND...: true within 10 s
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || return 1
		sleep 0.05
	done
}

ends() { # ends PID...
	kill -9 "$@"
	for one; do wait "$one"; done 2>/dev/null
}

worker_of() {
	grep -ls '^iou-wrk' "/proc/$1"/task/*/comm | sed -n "s,.*/task/\([0-9]*\)/comm,\1,p"
}

has_worker() { [ -n "$(worker_of "$1")" ]; }

# One that is charged to the process, and one that outlives it in no way.
test_worker() {
	mwproc uring > "$work/shape" &
	pid=$!
	soon grep -q -e ready -e 'no io_uring' "$work/shape"
	if ! soon has_worker "$pid"; then
		skip "an io_uring worker runs with its process's RMID" "no io_uring worker threads here"
		skip "and holds nothing afterwards" "no io_uring worker threads here"
		ends "$pid"
		return
	fi
	worker=$(worker_of "$pid")
	echo 1 > $trace/events/memwatch/memwatch_switch/enable
	# Anything that moves or wakes it brings it to a CPU.
	taskset -p 1 "$worker" >&2
	taskset -p 2 "$worker" >&2
	kill -STOP "$pid"
	sleep 0.1
	kill -CONT "$pid"
	sleep 0.3
	echo 0 > $trace/events/memwatch/memwatch_switch/enable
	rmid=$(awk -v p="$pid" '$3 == p { print $1 }' /proc/memwatch/rmids)
	grep "next_rmid=$rmid .*next_pid=$worker\$" $trace/trace >&2
	ok $? "an io_uring worker runs with its process's RMID"
	ends "$pid"
	soon sh -c "! grep -q '	$pid	' /proc/memwatch/rmids"
	ok $? "and holds nothing afterwards"
}

all_tracked() { [ "$(status processes)" -ge "$1" ]; }
back_to() { [ "$(status processes)" -le "$1" ]; }

# Real-time tasks on both CPUs: nothing else runs until the last fork, or until the
# one that only spins has used its 2 s; for PREEMPT_RT starves what fork waits for.
test_starved() {
	before=$(status processes)
	# From 6.12 on the scheduler has a server for those who starve.
	[ -d /sys/kernel/debug/sched ] || mount -t debugfs debugfs /sys/kernel/debug
	for server in /sys/kernel/debug/sched/fair_server/cpu*/runtime; do
		[ ! -e "$server" ] || echo 0 > "$server"
	done
	# shellcheck disable=SC3045 # the guest's shell is busybox, which has it
	(ulimit -t 2; exec chrt -f 50 mwproc spin) > "$work/spin" &
	spin=$!
	chrt -f 50 mwproc many 1500 > "$work/many" &
	many=$!
	soon grep -q ready "$work/many"
	ends "$spin" 2>/dev/null
	echo "untracked: $(status untracked)" >&2
	[ "$(status untracked)" -gt 0 ]
	ok $? "forks without an object at hand are counted"
	soon all_tracked $((before + 1501))
	ok $? "and found by the scan"
	ends "$many"
	killall -9 mwproc
	soon back_to "$before"
	ok $? "all of them are gone with their last thread"
	[ "$(status rmids_used)" -le "$before" ]
	ok $? "and so are their RMIDs"
}

[ -e $trace/trace_clock ] || mount -t tracefs tracefs $trace
plan 8
check "the module loads" insmod ./memwatch.ko
mkfifo "$work/hold"
mwctl start hold < "$work/hold" >&2 &
session=$!
exec 9> "$work/hold"
soon sh -c "grep -q '^sessions_started: 1' /proc/memwatch/status"
test_worker
test_starved
exec 9>&-
wait "$session"
check "the module unloads" rmmod memwatch
tap_end
