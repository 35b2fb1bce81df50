#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Three ways into a process that no fork hook sees: workers of io_uring and vhost, which
# the kernel creates without the fork event, and forks for which the object cache is
# empty because the worker that fills it cannot run. And what seldom happens: a scan of
# very many threads, many promotions at once, processes that were idle for weeks, and a
# probe that cannot be removed. Runs in the lab beside memwatch.ko, mwctl, mwproc and
# chrt. Speaks TAP.
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
	in_background "$TMP/shape" mwproc uring
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
	in_background "$TMP/vhost" mwproc vhost
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
# until the spinning task has used its 15 s of CPU time, which a slow guest needs. The limit is
# for PREEMPT_RT, where the two tasks also starve the threads that fork() waits for.
test_starved() {
	before=$(status processes)
	# From 6.12 on the scheduler's fair server lets other tasks run for a while.
	[ -d /sys/kernel/debug/sched ] || mount -t debugfs debugfs /sys/kernel/debug
	for server in /sys/kernel/debug/sched/fair_server/cpu*/runtime; do
		[ ! -e "$server" ] || echo 0 > "$server"
	done
	throttle=$(cat /proc/sys/kernel/sched_rt_runtime_us)
	echo -1 > /proc/sys/kernel/sched_rt_runtime_us
	# shellcheck disable=SC3045 # the guest's shell is busybox, which has it
	(ulimit -t 15; exec chrt -f 50 mwproc spin) > "$TMP/spin" &
	spin=$!
	in_background "$TMP/many" chrt -f 50 mwproc many 1500
	many=$!
	within 30 grep -q ready "$TMP/many"
	end_processes "$spin"
	echo "$throttle" > /proc/sys/kernel/sched_rt_runtime_us
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

# ------------------------------------------------------------------- scan

# A machine with very many threads: the walk must let others run, and still find all of them.
test_scan() {
	in_background "$TMP/many" mwproc many 1500
	many=$!
	within 60 grep -q ready "$TMP/many"
	mwproc storm 100000 2 &
	storm=$!
	echo 1 >$PARAMETERS/delay_ms
	pauses=$(dmesg | grep -c "a walk of all threads waits")
	hold_session
	# The session starts when it has found all processes, which takes long in a slow guest.
	within 60 not status_is sessions_started 0
	echo 0 >$PARAMETERS/delay_ms
	pauses=$(($(dmesg | grep -c "a walk of all threads waits") - pauses))
	# Four walks at least, and a pause after each 512 threads.
	[ "$pauses" -ge 4 ]
	ok $? "the scan pauses again and again among 1500 processes: $pauses times"
	end_processes $storm
	status_at_least processes 1501
	ok $? "it finds all of them beside a storm of forks: $(status processes)"
	release_session
	end_processes $many
	end_all mwproc
}

# -------------------------------------------------------------- promotions

# hold_scarce RMIDS POLICY PROCESSES: a session in which processes of mwproc ($many) wait for RMIDs,
# and RMIDs that are freed rest for a second
hold_scarce() {
	rmmod memwatch
	insmod "$KO" rmids="$1"
	hold_session policy="$2" limbo=1000000000 set
	in_background "$TMP/many" mwproc many "$3"
	many=$!
	within 20 grep -q ready "$TMP/many"
	within 10 status_is rmids_free 0
}

# kill_holders COUNT|+FIRST: kills the last processes of mwproc that have RMIDs, or all from one on
kill_holders() {
	for victim in $(awk -F '\t' '$9 == "mwproc" { print $3 }' $PROC/rmids | tail -n "$1"); do
		kill -9 "$victim"
	done
}

# promoted_at_once: the largest number of RMIDs that one interrupt gave to waiting processes
promoted_at_once() {
	awk 'match($0, /\[[0-9]+\]/) { cpu = substr($0, RSTART, RLENGTH) }
		/hrtimer_expire_entry:/ { inside[cpu] = /function=policy_promote/; n[cpu] = 0 }
		/hrtimer_expire_exit:/ { inside[cpu] = 0 }
		/memwatch_rmid_alloc:.* reason=3 / && inside[cpu] && ++n[cpu] > most { most = n[cpu] }
		END { print most + 0 }' $TRACING/trace
}

# While one interrupt promotes, its CPU does nothing else, and others may wait for the lock.
test_promotions() {
	hold_scarce 64 fifo 200
	promotions=$(status promotions)
	trace_start rmid_alloc
	echo 1 >$TRACING/events/timer/hrtimer_expire_entry/enable
	echo 1 >$TRACING/events/timer/hrtimer_expire_exit/enable
	# They rest for a second, in which the rest is made shorter.
	kill_holders +2
	within 5 status_at_least rmids_limbo 40
	freed=$(status rmids_limbo)
	mwctl limbo=1000000 force set
	within 10 status_is rmids_limbo 0
	echo 0 >$TRACING/tracing_on
	promotions=$(($(status promotions) - promotions))
	[ "$promotions" -ge "$freed" ] && [ "$freed" -ge 40 ]
	ok $? "RMIDs that are ready at the same time go to processes that wait: $promotions"
	most=$(promoted_at_once)
	[ "$most" -gt 0 ] && [ "$most" -le 16 ]
	ok $? "an interrupt gives at most 16 of them: $most"
	release_session
	end_processes $many
	end_all mwproc
}

# A worker may be about to start the timer of promotions when the session ends.
test_timer() {
	hold_scarce 8 fair 20
	echo 100 >$PARAMETERS/delay_ms
	kill_holders 3
	in_background "$TMP/spin" mwproc spin
	spin=$!
	within 5 worker_waits
	ok $? "a worker is about to start the timer of promotions"
	release_session
	echo 0 >$PARAMETERS/delay_ms
	not grep policy_promote /proc/timer_list
	ok $? "the session has ended, and the timer is not started any more"
	end_processes $spin $many
	end_all mwproc
}

worker_waits() { dmesg | grep -q "starts the timer of promotions waits"; }

# --------------------------------------------------------- long idle, hooks

# RMIDs that processes of mwproc hold, but for process $1
held_by_mwproc() {
	awk -F '\t' -v but="$1" '$9 == "mwproc" && $3 != but { n++ } END { print n + 0 }' $PROC/rmids
}

held_by_fewer() { [ "$(held_by_mwproc "$1")" -lt "$2" ]; }

# check_long_idle POLICY: RMIDs of processes that ran 2^31 jiffies ago, which is 25 days with
# HZ=1000, are taken for one that runs. The test's own processes have RMIDs, too, and are idle
# now and then.
check_long_idle() {
	rmmod memwatch
	insmod "$KO" rmids=8
	hold_session policy="$1" set
	echo 3000000000 >$PARAMETERS/idle_jiffies
	in_background "$TMP/many" mwproc many 20
	many=$!
	within 10 grep -q ready "$TMP/many"
	within 10 status_is rmids_free 0
	within 10 status_is rmids_limbo 0
	held=$(held_by_mwproc 0)
	echo 0 >$PARAMETERS/idle_jiffies
	in_background "$TMP/spin" mwproc spin
	spin=$!
	# It may be one that a process of the test left at its end.
	within 3 has_rmid $spin
	ok $? "$1: a process that runs gets an RMID"
	within 3 held_by_fewer $spin "$held" && within 3 status_at_least revocations 1
	ok $? "$1: RMIDs are taken from processes that were idle for 3000000000 jiffies: of $held, $(held_by_mwproc $spin) are left"
	end_processes $spin $many
	end_all mwproc
	release_session
}

# Linux 5.10 may be out of memory when a probe is removed. The module must not forget the probe.
test_unhook() {
	rmmod memwatch
	insmod "$KO"
	hold_session
	echo $(($(cat $PARAMETERS/fail_steps) + 1)) >$PARAMETERS/fail_step
	exec 9>&-
	sleep 1
	grep -q '^State:.[RSD]' /proc/$session_holder/status
	ok $? "a session does not end as long as a probe cannot be removed"
	echo 0 >$PARAMETERS/fail_step
	wait $session_holder
	is "it ends when the probe can be removed" $? 0
	rm -f "$TMP/hold"
	mwctl start stop
	ok $? "the probe can be registered again"
}

need_module
may_disrupt || skip_all "occupies every CPU with real-time tasks: $disruptive"
mount_tracing
plan
check "the module loads" insmod "$KO"
hold_session
within 10 status_is sessions_started 1
test_worker
test_vhost
test_starved
release_session
if [ -e $PARAMETERS/fail_steps ]; then
	test_scan
	test_promotions
	test_timer
	check_long_idle active
	check_long_idle fair
	test_unhook
else
	skip "what needs parameters for tests" "the module was not built with MEMWATCH_TEST=1"
fi
check "the module unloads" rmmod memwatch
tap_end
