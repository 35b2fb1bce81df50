#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Three ways into a process that no fork hook sees: workers of io_uring and vhost, which
# the kernel creates without the fork event, and forks for which the object cache is
# empty because the worker that fills it cannot run. Runs in the lab beside
# memwatch.ko, mwctl, mwproc and chrt. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. "${0%/*}/guest.sh"

worker_of() {
	grep -ls '^iou-wrk' "/proc/$1"/task/*/comm | sed -n "s,.*/task/\([0-9]*\)/comm,\1,p"
}

has_worker() { [ -n "$(worker_of "$1")" ]; }

# An io_uring worker is charged to its process and does not keep the RMID alive.
test_worker() {
	runs="an io_uring worker runs with the RMID of its process"
	ends="a process with an io_uring worker loses its RMID at its end"
	mwproc uring > "$TMP/shape" &
	pid=$!
	within 10 grep -q -e ready -e 'no io_uring' "$TMP/shape"
	if ! within 10 has_worker "$pid"; then
		skip "$runs" "this kernel creates no io_uring worker threads"
		skip "$ends" "this kernel creates no io_uring worker threads"
		end_processes "$pid"
		return
	fi
	worker=$(worker_of "$pid")
	echo 1 > $TRACING/events/memwatch/memwatch_switch/enable
	# Whatever moves or wakes the worker makes it run.
	taskset -p 1 "$worker" >&2
	taskset -p 2 "$worker" >&2
	kill -STOP "$pid"
	sleep 0.1
	kill -CONT "$pid"
	sleep 0.3
	echo 0 > $TRACING/events/memwatch/memwatch_switch/enable
	grep "next_rmid=$(rmid_of "$pid") .*next_pid=$worker\$" $TRACING/trace >&2
	ok $? "$runs"
	end_processes "$pid"
	within 10 not has_rmid "$pid"
	ok $? "$ends"
}

# A vhost worker is a thread of its process, and keeps the RMID while it is the last one.
test_vhost() {
	keeps="a process of which only a vhost worker is left keeps its RMID"
	ends="it loses its RMID at the end of the worker"
	modprobe vhost_net
	mwproc vhost > "$TMP/vhost" &
	pid=$!
	within 10 grep -q -e ready -e 'no vhost' "$TMP/vhost"
	if grep -q 'no vhost' "$TMP/vhost"; then
		skip "$keeps" "workers of vhost are no threads of the process before 6.4"
		skip "$ends" "workers of vhost are no threads of the process before 6.4"
		return
	fi
	within 10 grep -q 'State:.Z' "/proc/$pid/status"
	# Whatever wakes the worker makes it run.
	for worker in /proc/$pid/task/*; do taskset -p 1 "${worker##*/}" >&2; done
	sleep 0.2
	has_rmid "$pid"
	ok $? "$keeps"
	end_processes "$pid"
	within 10 not has_rmid "$pid"
	ok $? "$ends"
}

# Real-time tasks occupy both CPUs, so that nothing else runs until the last fork or
# until the spinning task has used its 2 s of CPU time. The limit is for PREEMPT_RT,
# where the two tasks also starve the threads that fork() waits for.
test_starved() {
	before=$(status processes)
	# From 6.12 on the scheduler's fair server lets other tasks run for a while.
	[ -d /sys/kernel/debug/sched ] || mount -t debugfs debugfs /sys/kernel/debug
	for server in /sys/kernel/debug/sched/fair_server/cpu*/runtime; do
		[ ! -e "$server" ] || echo 0 > "$server"
	done
	# shellcheck disable=SC3045 # the guest's shell is busybox, which has it
	(ulimit -t 2; exec chrt -f 50 mwproc spin) > "$TMP/spin" &
	spin=$!
	chrt -f 50 mwproc many 1500 > "$TMP/many" &
	many=$!
	within 10 grep -q ready "$TMP/many"
	end_processes "$spin"
	echo "untracked: $(status untracked)" >&2
	status_at_least untracked 1
	ok $? "forks that find the object cache empty are counted"
	within 10 status_at_least processes $((before + 1501))
	ok $? "the scan finds the processes that the fork hook could not track"
	end_processes "$many"
	end_all mwproc
	within 10 status_at_most processes "$before"
	ok $? "the processes are no longer tracked after their last thread has ended"
	status_at_most rmids_used "$before"
	ok $? "the RMIDs of the processes are no longer in use"
}

need_module
may_disrupt || skip_all "occupies every CPU with real-time tasks: $disruptive"
mount_tracing
plan 10
check "the module loads" insmod "$KO"
hold_session
within 10 status_is sessions_started 1
test_worker
test_vhost
test_starved
release_session
check "the module unloads" rmmod memwatch
tap_end
