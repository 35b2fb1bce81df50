#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The module on a running kernel, from insmod to rmmod: the properties that every
# other test relies on. Runs beside memwatch.ko, mwctl and mwproc; KO names another
# module file. Speaks TAP. Arguments select tests: load identity records config
# hotplug scarcity filters unwinding.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. "${0%/*}/guest.sh"

load() { insmod "$KO" "$@" && mount_tracing; }

# Each process of the machine gets an RMID, and those that the tests start as well.
processes=$(count_processes)
RMIDS=$((processes < 16 ? 32 : processes * 2))

# shape ARGUMENT...: one of mwproc's processes in the background; its pid in $pid
shape() {
	in_background "$TMP/shape" mwproc "$@"
	pid=$!
	within 5 grep -q ready "$TMP/shape" || echo "# mwproc $* did not get ready"
}

sums_up() {
	[ $(($(status rmids_used) + $(status rmids_limbo) + $(status rmids_free))) = \
		"$(status rmids_total)" ] &&
	[ $(($(status processes_measured) + $(status processes_waiting) +
		$(status processes_filtered))) = "$(status processes)" ]
}

# ------------------------------------------------------------------- loading

test_load() {
	load rmids=32
	ok $? "the module loads"
	is "rmids=32 gives 32 RMIDs" "$(status rmids_total)" 32
	sums_up
	ok $? "the numbers of status add up without a session"
	before=$(grep -o 'switches=[0-9]*' /proc/memwatch/overhead)
	mwproc storm 20 2
	is "without a session the module sees no context switch" \
		"$(grep -o 'switches=[0-9]*' /proc/memwatch/overhead)" "$before"
	is "without a session no process is tracked" "$(status processes)" 0
	mwctl info '!stop' '!dump' config filters > "$TMP/out"
	ok $? "ioctls that need a session fail without one, the others work"
	hold_session
	rmmod memwatch 2> /dev/null
	is "rmmod is refused during a session" $? 1
	mwctl '!stop' start '!start' stop > "$TMP/out"
	ok $? "a second session starts and stops"
	is "the first session continues after the second has stopped" "$(status sessions_started)" 1
	release_session
	is "a session ends when its file is closed" "$(status sessions_started)" 0
	# The other tests may need more RMIDs.
	rmmod memwatch
}

# ------------------------------------------------------------------ identity

test_identity() {
	shape sleep
	old=$pid
	hold_session
	has_rmid "$old"
	ok $? "a process that existed before the session has an RMID"
	is "a process that existed before the session is listed with its name" "$(comm_of "$old")" mwproc
	end_processes "$old"
	within 3 not has_rmid "$old"
	ok $? "a process that ends loses its RMID"

	trace_start rmid_alloc rmid_exec rmid_free
	(exec mwproc) 2> /dev/null &
	pid=$!
	wait $pid
	# The parent may go on before the last switch of the child.
	within 3 trace_has "rmid_free.*tgid=$pid "
	is "fork() allocates one RMID" "$(trace_count "rmid_alloc.*tgid=$pid .*reason=1")" 1
	is "execve() sends one rmid_exec record" \
		"$(trace_count "rmid_exec.*tgid=$pid .*reason=7 .*comm=mwproc")" 1
	is "execve() sends no record for a rename" "$(trace_count "rmid_exec.*tgid=$pid .*reason=8")" 0
	is "exit frees the RMID once" "$(trace_count "rmid_free.*tgid=$pid .*reason=4")" 1
	is "the records of one process have one RMID and one generation" \
		"$(grep "tgid=$pid " $TRACING/trace |
		sed 's/.* \(rmid=[0-9]* generation=[0-9]*\).*/\1/' | sort -u | wc -l)" 1

	trace_start rmid_alloc rmid_free
	shape threads 5
	is "threads share the RMID of their process" "$(trace_count "rmid_alloc.*tgid=$pid ")" 1
	end_processes $pid
	echo 1 > $TRACING/tracing_on

	shape leader
	has_rmid $pid
	ok $? "a process whose leader is dead keeps its RMID"
	end_processes $pid
	within 3 not has_rmid $pid
	ok $? "a process whose leader is dead loses its RMID with its last thread"

	shape zombie
	zombie=$(head -1 "$TMP/shape")
	[ -d "/proc/$zombie" ]
	ok $? "mwproc leaves a zombie"
	within 3 not has_rmid "$zombie"
	ok $? "a zombie has no RMID"
	end_processes $pid

	trace_start rmid_alloc rmid_exec rmid_free
	in_background "$TMP/shape" mwproc exec mwproc sleep
	pid=$!
	within 3 grep -q ready "$TMP/shape"
	is "execve() by another thread than the leader allocates no new RMID" \
		"$(trace_count "rmid_alloc.*tgid=$pid ")" 1
	is "execve() by another thread than the leader frees no RMID" \
		"$(trace_count "rmid_free.*tgid=$pid ")" 0
	is "each of two execve() calls sends one rmid_exec record" \
		"$(trace_count "rmid_exec.*tgid=$pid .*reason=7")" 2
	end_processes $pid

	trace_start rmid_exec
	shape rename 'new name'
	is "a rename sends one rmid_exec record with the new name" \
		"$(trace_count "rmid_exec.*tgid=$pid .*reason=8 .*comm=new name")" 1
	is "the list of RMIDs has the new name" "$(comm_of $pid)" "new name"
	end_processes $pid
	trace_start rmid_exec
	shape thread-rename other
	is "a rename of another thread than the leader sends no record" \
		"$(trace_count "rmid_exec.*tgid=$pid .*reason=8")" 0
	end_processes $pid
	shape rename 'a\b	c'
	is "backslash and tab in a name are escaped" "$(comm_of $pid)" 'a\134b\011c'
	end_processes $pid
	is "the list of RMIDs ends with its number of lines" "$(tail -1 /proc/memwatch/rmids)" \
		"# end $(grep -vc '^#' /proc/memwatch/rmids)"
	release_session
	sums_up
	ok $? "the numbers of status add up after the session"
	is "every RMID that was allocated has been freed" "$(status allocs)" "$(status frees)"
}

# ------------------------------------------------------------------- records

test_records() {
	hold_session idle_stop=0 set
	trace_start dump_begin dump_end rmid_existing cpu_state tick
	mwctl start dump > "$TMP/out"
	existing=$(trace_count rmid_existing)
	is "a dump sends one begin and one end marker" \
		"$(trace_count dump_begin)$(trace_count dump_end)" 11
	is "a dump returns the number of records that it sent" \
		"$(sed 's/.*count \([0-9]*\) .*/\1/' "$TMP/out")" "$existing"
	trace_start tick
	sleep 1
	ticks=$(trace_count memwatch_tick)
	[ "$ticks" -gt 100 ]
	ok $? "there are more than 100 ticks in a second"
	echo "# $ticks ticks in a second"
	is "every tick is due at a multiple of the period" "$(grep -c \
		'memwatch_tick.*expected=[0-9]*000000 ' $TRACING/trace)" "$ticks"
	trace_start cpu_state
	release_session
	is "every CPU reports its stop at the end of the session" \
		"$(trace_count 'cpu_state.*state=5')" "$(nproc)"
}

test_config() {
	[ -e /sys/devices/system/cpu/cpu1 ] || { skip "the configuration can be changed" "needs two CPUs"; return; }
	is "set without flags changes nothing" "$(mwctl set config)" "$(mwctl config)"
	mwctl period=99999 '!set' period=1000000001 '!set' limbo=1000000001 '!set' > "$TMP/out"
	is "values out of range are refused" "$(sort -u "$TMP/out")" "set: EINVAL"
	hold_session
	is "a running session refuses changes of the configuration by others" \
		"$(mwctl period=2000000 '!set')" "set: EBUSY"
	mwctl period=2000000 force set
	is "force changes the configuration of a running session" "$(status period_ns)" 2000000
	trace_start tick
	sleep 0.3
	[ "$(trace_count 'period=2000000')" -gt 0 ] && [ "$(trace_count 'period=1000000 ')" = 0 ]
	ok $? "a changed period takes effect at once"
	trace_start tick cpu_state
	mwctl cpus=0 force set
	sleep 0.3
	is "a CPU that is excluded reports its stop" "$(trace_count '\[001\].*cpu_state.*state=5')" 1
	is "a CPU that is excluded does not tick" \
		"$(sed '/\[001\].*cpu_state.*state=5/,$!d' $TRACING/trace | grep -c '\[001\].*memwatch_tick')" 0
	trace_start cpu_state
	mwctl cpus=0-1 idle_stop=1 period=1000000 force set
	sleep 1
	[ "$(trace_count '\[001\].*cpu_state.*state=1')" = 1 ]
	ok $? "a CPU that is included again reports its start"
	[ "$(trace_count 'cpu_state.*state=3')" -gt 0 ] && [ "$(trace_count 'cpu_state.*state=4')" -gt 0 ]
	ok $? "with idle_stop=1 idle CPUs stop their tick and start it again"
	mwctl idle_stop=0 force set
	trace_start tick
	sleep 0.5
	[ "$(trace_count '\[000\].*memwatch_tick')" -gt 50 ] && [ "$(trace_count '\[001\].*memwatch_tick')" -gt 50 ]
	ok $? "with idle_stop=0 idle CPUs continue to tick"
	release_session
}

test_hotplug() {
	cpu=/sys/devices/system/cpu/cpu1/online
	undo() { echo 1 > $cpu; }
	[ -e $cpu ] || { skip "a CPU that goes offline and comes back reports both" "no second CPU that can go offline"; return; }
	may_disrupt || { skip "a CPU that goes offline and comes back reports both" "$disruptive"; return; }
	hold_session idle_stop=0 set
	trace_start cpu_state
	echo 0 > $cpu
	echo 1 > $cpu
	sleep 0.2
	is "a CPU that goes offline and comes back reports both" \
		"$(trace_count '\[001\].*state=2')$(trace_count '\[001\].*state=1')" 11
	trace_start tick
	sleep 0.3
	[ "$(trace_count '\[001\].*memwatch_tick')" -gt 10 ]
	ok $? "a CPU that came back ticks"
	echo 0 > $cpu
	release_session
	hold_session
	trace_start cpu_state
	echo 1 > $cpu
	sleep 0.2
	is "a CPU that was offline at the start reports that it came" \
		"$(trace_count '\[001\].*state=1')" 1
	release_session
	undo() { :; }
}

# ------------------------------------------------------------------ scarcity

test_scarcity() {
	if [ "$processes" -ge 8 ]; then
		skip "processes wait when there are too few RMIDs" \
			"$processes other processes would wait, too"
		return
	fi
	rmmod memwatch
	load rmids=8 policy=fifo
	hold_session
	pids=
	for _ in $(seq 20); do
		mwproc sleep > /dev/null 9>&- &
		pids="$pids $!"
	done
	within 3 status_at_least processes_waiting 12
	ok $? "with 8 RMIDs and 20 processes at least 12 processes wait"
	is "all RMIDs are in use while processes wait" "$(status rmids_used)" 8
	cat /proc/memwatch/status > "$TMP/status"
	is "status lists every waiting process" "$(grep -c ^waiting: "$TMP/status")" \
		"$(sed -n 's/^processes_waiting: //p' "$TMP/status")"
	[ "$(status exhausted)" -ge 12 ]
	ok $? "status counts the allocations that found no RMID"
	sums_up
	ok $? "the numbers of status add up while processes wait"
	trace_start rmid_alloc
	promotions=$(status promotions)
	victim=$(awk '$9 == "mwproc" { print $3; exit }' /proc/memwatch/rmids)
	kill -9 "$victim"
	within 3 status_at_least promotions $((promotions + 1))
	ok $? "a freed RMID goes to a waiting process"
	[ "$(trace_count 'rmid_alloc.*reason=3')" -ge 1 ]
	ok $? "a promotion sends an rmid_alloc record"

	mwctl policy=active force set
	shape spin
	within 3 has_rmid $pid
	ok $? "with policy active a running process gets the RMID of an idle one"
	[ "$(status revocations)" -gt 0 ]
	ok $? "with policy active status counts the RMID that was revoked"
	end_processes $pid
	mwctl policy=fifo force set
	end_processes $pids
	within 3 status_is processes_waiting 0
	ok $? "no process waits after the others have ended"
	mwproc storm 400 4
	sums_up
	ok $? "the numbers of status add up after a storm"
	release_session
	is "every RMID that was allocated has been freed" "$(status allocs)" "$(status frees)"
	rmmod memwatch
	load rmids=32
}

# ------------------------------------------------------------------- filters

test_filters() {
	hold_session
	shape rename chosen
	chosen=$pid
	shape sleep
	trace_start rmid_free
	mwctl force comm=chosen force '!comm=chosen' filters > "$TMP/out"
	is "adding a filter twice fails with EEXIST" "$(head -1 "$TMP/out")" "comm: EEXIST"
	within 3 status_is processes_measured 1
	ok $? "with a filter by name one process is measured"
	has_rmid $chosen
	ok $? "the measured process is the one with that name"
	# The process is not measured any more before its RMID is free.
	within 3 trace_has "rmid_free.*tgid=$pid "
	is "a process that the filter excludes loses its RMID with that reason" \
		"$(trace_count "rmid_free.*tgid=$pid .*reason=6")" 1
	end_processes $pid
	sums_up
	ok $? "the numbers of status add up with a filter"
	shape rename chosen
	has_rmid $pid
	ok $? "a process that takes the name is measured"
	end_processes $pid
	mwctl force clear
	within 3 status_is processes_filtered 0
	ok $? "without filters every process is measured again"
	end_processes $chosen

	mwctl force uid=4242
	shape uid 4242
	within 3 has_rmid $pid
	ok $? "with a filter by user a process that becomes the user is measured"
	end_processes $pid
	mwctl force clear
	if [ -e /sys/fs/cgroup/cgroup.procs ] && mkdir -p /sys/fs/cgroup/mwtest; then
		undo() { rmdir /sys/fs/cgroup/mwtest; }
		id=$(stat -c %i /sys/fs/cgroup/mwtest)
		mwctl force cgroup="$id"
		shape sleep
		echo $pid > /sys/fs/cgroup/mwtest/cgroup.procs
		within 3 has_rmid $pid
		ok $? "with a filter by cgroup a process that enters it is measured"
		is "the list of RMIDs has the id of the cgroup" \
			"$(awk -v p=$pid '$3 == p { print $7 }' /proc/memwatch/rmids)" "$id"
		end_processes $pid
		mwctl force clear
		undo
		undo() { :; }
	else
		skip "with a filter by cgroup a process that enters it is measured" "no unified cgroup hierarchy"
		skip "the list of RMIDs has the id of the cgroup" "no unified cgroup hierarchy"
	fi
	release_session
}

# --------------------------------------------------------------------- undo

test_unwinding() {
	rmmod memwatch
	load
	steps=$(cat $PARAMETERS/fail_steps 2> /dev/null)
	rmmod memwatch
	[ -n "$steps" ] || skip "each step can fail and is undone" \
		"the module was not built with MEMWATCH_TEST=1"
	bad=
	for step in $(seq "${steps:-0}"); do
		if insmod "$KO" fail_step="$step" rmids=16 assume_rdt=16 2> /dev/null; then
			trace_start cpu_state
			mwctl '!start' '!start' > /dev/null || bad="$bad $step"
			[ "$(trace_count state=2)" = 0 ] || bad="$bad $step:offline"
			[ "$(status rmids_used)$(status processes)" = 00 ] || bad="$bad $step:left"
			echo 0 > $PARAMETERS/fail_step
			mwctl start stop || bad="$bad $step:again"
			rmmod memwatch || bad="$bad $step:rmmod"
		elif [ -e /proc/memwatch ] || [ -e /dev/memwatch ]; then
			bad="$bad $step:load"
		fi
	done
	[ -z "$steps" ] || is "each of $steps steps can fail and is undone" "$bad" ""

	mwproc storm 100000 2 &
	storm=$!
	bad=
	for i in $(seq 20); do
		load rmids=16 assume_rdt=16 || bad="$bad $i"
		mwctl start dump stop start > /dev/null || bad="$bad $i"
		rmmod memwatch || bad="$bad $i"
	done
	kill -9 $storm
	wait $storm 2> /dev/null
	end_all mwproc
	is "the module loads and unloads 20 times during a storm" "$bad" ""
}

need_module
plan
for test in ${*:-load identity records config hotplug scarcity filters unwinding}; do
	[ -e /proc/memwatch ] || [ "$test" = load ] || load rmids=$RMIDS
	case $test in
	identity | records | filters)
		[ "$test" = records ] || [ "$(status rmids_total)" -ge $((processes + 10)) ] || {
			skip "the tests of $test" "$processes processes, but only $(status rmids_total) RMIDs"
			continue
		} ;;
	esac
	test_$test
done
tap_end
