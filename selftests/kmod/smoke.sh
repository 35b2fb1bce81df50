#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The module on a running kernel, from insmod to rmmod: what every other test
# may take for granted. Needs root, tracefs, and mwctl and mwproc beside it.
# KO names the module. Speaks TAP; run it in the lab. Arguments select tests:
# load identity records config hotplug scarcity filters unwinding.
set -u

HERE=$(cd "$(dirname "$0")" && pwd)
PATH=$HERE:$PATH
# shellcheck source=SCRIPTDIR/../tap.sh
. "$HERE/tap.sh"
KO=${KO:-$HERE/memwatch.ko}
T=/sys/kernel/tracing
TMP=$(mktemp -d)
session=

status() { sed -n "s/^$1: //p" /proc/memwatch/status; }
rmid_of() { awk -v p="$1" '$3 == p { print $1 }' /proc/memwatch/rmids; }
comm_of() { awk -F '\t' -v p="$1" '$3 == p { print $9 }' /proc/memwatch/rmids; }

load() {
	insmod "$KO" "$@" || return 1
	[ -d $T/events/memwatch ] || mount -t tracefs tracefs $T
}

# A session in the background, until finish.
begin() { # begin COMMAND...
	mkfifo "$TMP/hold"
	mwctl "$@" start hold < "$TMP/hold" > "$TMP/session" 2>&1 &
	session=$!
	exec 9> "$TMP/hold"
	for _ in $(seq 100); do
		[ "$(status sessions_started)" != 0 ] && break
		sleep 0.05
	done
}

finish() {
	exec 9>&-
	wait $session
	rm -f "$TMP/hold"
}

# One of mwproc's shapes in the background; its pid in $pid.
shape() { # shape ARGUMENTS...
	: > "$TMP/shape"
	mwproc "$@" > "$TMP/shape" 9>&- &
	pid=$!
	for _ in $(seq 100); do
		grep -q ready "$TMP/shape" && return
		sleep 0.05
	done
	echo "# mwproc $* did not get ready"
}

end() { # end PID...
	kill -9 "$@" 2> /dev/null
	for one; do wait "$one" 2> /dev/null; done
}

record() { # record EVENT...: start the trace afresh
	echo 0 > $T/tracing_on
	echo > $T/trace
	echo > $T/set_event
	for event; do echo 1 > $T/events/memwatch/memwatch_$event/enable; done
	echo 1 > $T/tracing_on
}

# Occurrences of a pattern in the trace
seen() { echo 0 > $T/tracing_on; grep -c "$1" $T/trace; }

soon() { # soon COMMAND...: true within 3 s
	for _ in $(seq 60); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
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
	is "32 RMIDs as asked for" "$(status rmids_total)" 32
	sums_up
	ok $? "status adds up"
	before=$(grep -o 'switches=[0-9]*' /proc/memwatch/overhead)
	mwproc storm 20 2
	is "without a session no switch is seen" \
		"$(grep -o 'switches=[0-9]*' /proc/memwatch/overhead)" "$before"
	is "without a session no process is tracked" "$(status processes)" 0
	mwctl info '!stop' '!dump' config filters > "$TMP/out"
	ok $? "ioctls without a session"
	begin
	rmmod memwatch 2> /dev/null
	is "rmmod is refused during a session" $? 1
	mwctl '!stop' start '!start' stop > "$TMP/out"
	ok $? "a second session starts and stops"
	is "the first goes on" "$(status sessions_started)" 1
	finish
	is "and ends with its file" "$(status sessions_started)" 0
}

# ------------------------------------------------------------------ identity

test_identity() {
	shape sleep
	old=$pid
	begin
	[ -n "$(rmid_of "$old")" ]
	ok $? "a process that existed before has an RMID"
	is "and its name" "$(comm_of "$old")" mwproc
	end "$old"
	soon sh -c "! grep -q '	$old	' /proc/memwatch/rmids"
	ok $? "and loses it at its end"

	record rmid_alloc rmid_exec rmid_free
	(exec mwproc) 2> /dev/null &
	pid=$!
	wait $pid
	is "fork gives one RMID" "$(seen "rmid_alloc.*tgid=$pid .*reason=1")" 1
	is "execve tells once" "$(seen "rmid_exec.*tgid=$pid .*reason=7 comm=mwproc")" 1
	is "and not as a rename" "$(seen "rmid_exec.*tgid=$pid .*reason=8")" 0
	is "exit frees once" "$(seen "rmid_free.*tgid=$pid .*reason=4")" 1
	is "all with one generation" "$(grep "tgid=$pid " $T/trace |
		sed 's/.* \(rmid=[0-9]* generation=[0-9]*\).*/\1/' | sort -u | wc -l)" 1

	record rmid_alloc rmid_free
	shape threads 5
	is "threads share their process's RMID" "$(seen "rmid_alloc.*tgid=$pid ")" 1
	end $pid
	echo 1 > $T/tracing_on

	shape leader
	[ -n "$(rmid_of $pid)" ]
	ok $? "a process whose leader is dead keeps its RMID"
	end $pid
	soon sh -c "! grep -q '	$pid	' /proc/memwatch/rmids"
	ok $? "until its last thread ends"

	shape zombie
	zombie=$(head -1 "$TMP/shape")
	[ -d "/proc/$zombie" ]
	ok $? "there is a zombie"
	is "it holds nothing" "$(rmid_of "$zombie")" ""
	end $pid

	record rmid_alloc rmid_exec rmid_free
	mwproc exec mwproc sleep > "$TMP/shape" 9>&- &
	pid=$!
	soon grep -q ready "$TMP/shape"
	is "execve by another thread than the leader: no new RMID" \
		"$(seen "rmid_alloc.*tgid=$pid ")" 1
	is "none is lost" "$(seen "rmid_free.*tgid=$pid ")" 0
	is "and it is told twice, with the first program" \
		"$(seen "rmid_exec.*tgid=$pid .*reason=7")" 2
	end $pid

	record rmid_exec
	shape rename 'new name'
	is "a rename is told" "$(seen "rmid_exec.*tgid=$pid .*reason=8 comm=new name")" 1
	is "and listed" "$(comm_of $pid)" "new name"
	end $pid
	record rmid_exec
	shape thread-rename other
	is "that of another thread than the leader is not" \
		"$(seen "rmid_exec.*tgid=$pid .*reason=8")" 0
	end $pid
	shape rename 'a\b	c'
	is "odd names are escaped" "$(comm_of $pid)" 'a\134b\011c'
	end $pid
	is "the list ends with its count" "$(tail -1 /proc/memwatch/rmids)" \
		"# end $(grep -vc '^#' /proc/memwatch/rmids)"
	finish
	sums_up
	ok $? "status adds up afterwards"
	is "every RMID is back" "$(status allocs)" "$(status frees)"
}

# ------------------------------------------------------------------- records

test_records() {
	begin
	record dump_begin dump_end rmid_existing cpu_state tick
	mwctl start dump > "$TMP/out"
	existing=$(seen rmid_existing)
	is "a dump has its markers" "$(seen dump_begin)$(seen dump_end)" 11
	is "and counts its records" \
		"$(sed 's/.*count \([0-9]*\) .*/\1/' "$TMP/out")" "$existing"
	record tick
	sleep 1
	ticks=$(seen memwatch_tick)
	[ "$ticks" -gt 100 ]
	ok $? "it ticks"
	echo "# $ticks ticks in a second"
	is "every tick is due at a multiple of the period" "$(grep -c \
		'memwatch_tick.*expected=[0-9]*000000 ' $T/trace)" "$ticks"
	record cpu_state
	finish
	is "at the end every CPU stops" "$(seen 'cpu_state.*state=5')" "$(nproc)"
}

test_config() {
	is "set without flags changes nothing" "$(mwctl set config)" "$(mwctl config)"
	mwctl period=99999 '!set' period=1000000001 '!set' limbo=1000000001 '!set' > "$TMP/out"
	is "values out of range are refused" "$(sort -u "$TMP/out")" "set: EINVAL"
	begin
	is "another session's configuration is respected" \
		"$(mwctl period=2000000 '!set')" "set: EBUSY"
	mwctl period=2000000 force set
	is "unless forced" "$(status period_ns)" 2000000
	record tick
	sleep 0.3
	[ "$(seen 'period=2000000')" -gt 0 ] && [ "$(seen 'period=1000000 ')" = 0 ]
	ok $? "and is in force at once"
	record tick cpu_state
	mwctl cpus=0 force set
	sleep 0.3
	is "a CPU can be excluded" "$(seen '\[001\].*cpu_state.*state=5')" 1
	is "and does not tick" "$(sed '/cpu_state/,$!d' $T/trace | grep -c '\[001\].*memwatch_tick')" 0
	record cpu_state
	mwctl cpus=0-1 idle_stop=1 period=1000000 force set
	sleep 1
	[ "$(seen '\[001\].*cpu_state.*state=1')" = 1 ]
	ok $? "and be included again"
	[ "$(seen 'cpu_state.*state=3')" -gt 0 ] && [ "$(seen 'cpu_state.*state=4')" -gt 0 ]
	ok $? "idle CPUs stop their tick and start it again"
	mwctl idle_stop=0 force set
	record tick
	sleep 0.5
	[ "$(seen '\[000\].*memwatch_tick')" -gt 50 ] && [ "$(seen '\[001\].*memwatch_tick')" -gt 50 ]
	ok $? "or go on, if told so"
	finish
}

test_hotplug() {
	cpu=/sys/devices/system/cpu/cpu1/online
	[ -e $cpu ] || { ok 0 "CPU hotplug # SKIP no second CPU that can go"; return; }
	begin
	record cpu_state
	echo 0 > $cpu
	echo 1 > $cpu
	sleep 0.2
	is "a CPU goes and comes" "$(seen '\[001\].*state=2')$(seen '\[001\].*state=1')" 11
	record tick
	sleep 0.3
	[ "$(seen '\[001\].*memwatch_tick')" -gt 10 ]
	ok $? "and ticks again"
	echo 0 > $cpu
	finish
	begin
	record cpu_state
	echo 1 > $cpu
	sleep 0.2
	is "a CPU comes that was not there at the start" "$(seen '\[001\].*state=1')" 1
	finish
}

# ------------------------------------------------------------------ scarcity

test_scarcity() {
	rmmod memwatch
	load rmids=8
	begin
	pids=
	for _ in $(seq 20); do
		mwproc sleep > /dev/null 9>&- &
		pids="$pids $!"
	done
	soon sh -c '[ $(sed -n "s/^processes_waiting: //p" /proc/memwatch/status) -ge 12 ]'
	ok $? "with 8 RMIDs, 20 processes wait"
	is "all RMIDs are in use" "$(status rmids_used)" 8
	cat /proc/memwatch/status > "$TMP/status"
	is "those that wait are listed" "$(grep -c ^waiting: "$TMP/status")" \
		"$(sed -n 's/^processes_waiting: //p' "$TMP/status")"
	[ "$(status exhausted)" -ge 12 ]
	ok $? "and counted"
	sums_up
	ok $? "status adds up"
	record rmid_alloc
	promotions=$(status promotions)
	victim=$(awk '$9 == "mwproc" { print $3; exit }' /proc/memwatch/rmids)
	kill -9 "$victim"
	soon sh -c "[ \$(sed -n 's/^promotions: //p' /proc/memwatch/status) -gt $promotions ]"
	ok $? "a freed RMID goes to one that waits"
	[ "$(seen 'rmid_alloc.*reason=3')" -ge 1 ]
	ok $? "and that is told"

	mwctl policy=active force set
	shape spin
	soon sh -c "grep -q '	$pid	' /proc/memwatch/rmids"
	ok $? "policy active: one that runs gets the RMID of one that is idle"
	[ "$(status revocations)" -gt 0 ]
	ok $? "which is revoked"
	end $pid
	mwctl policy=fifo force set
	end $pids
	soon sh -c '[ "$(sed -n "s/^processes_waiting: //p" /proc/memwatch/status)" = 0 ]'
	ok $? "when they are gone nobody waits"
	mwproc storm 400 4
	sums_up
	ok $? "status adds up after a storm"
	finish
	is "every RMID is back" "$(status allocs)" "$(status frees)"
	rmmod memwatch
	load rmids=32
}

# ------------------------------------------------------------------- filters

test_filters() {
	begin
	shape rename chosen
	chosen=$pid
	shape sleep
	record rmid_free
	mwctl comm=chosen '!comm=chosen' filters > "$TMP/out"
	is "a filter exists once" "$(head -1 "$TMP/out")" "comm: EEXIST"
	soon sh -c '[ "$(sed -n "s/^processes_measured: //p" /proc/memwatch/status)" = 1 ]'
	ok $? "only the one chosen is measured"
	[ -n "$(rmid_of $chosen)" ]
	ok $? "and it is the right one"
	is "the others were told so" "$(seen "rmid_free.*tgid=$pid .*reason=6")" 1
	end $pid
	sums_up
	ok $? "status adds up"
	shape rename chosen
	[ -n "$(rmid_of $pid)" ]
	ok $? "who takes the name is measured"
	end $pid
	mwctl clear
	soon sh -c '[ "$(sed -n "s/^processes_filtered: //p" /proc/memwatch/status)" = 0 ]'
	ok $? "without filters everybody is measured again"
	end $chosen

	mwctl uid=4242
	shape uid 4242
	soon sh -c "grep -q '	$pid	' /proc/memwatch/rmids"
	ok $? "who becomes the user is found"
	end $pid
	mwctl clear
	if mkdir -p /sys/fs/cgroup/mwtest 2> /dev/null && [ -e /sys/fs/cgroup/cgroup.procs ]; then
		id=$(stat -c %i /sys/fs/cgroup/mwtest)
		mwctl cgroup="$id"
		shape sleep
		echo $pid > /sys/fs/cgroup/mwtest/cgroup.procs
		soon sh -c "grep -q '	$pid	' /proc/memwatch/rmids"
		ok $? "who enters the cgroup is found"
		is "with the id of the folder" \
			"$(awk -v p=$pid '$3 == p { print $7 }' /proc/memwatch/rmids)" "$id"
		end $pid
		mwctl clear
		rmdir /sys/fs/cgroup/mwtest
	else
		ok 0 "cgroup filter # SKIP no unified hierarchy"
		ok 0 "cgroup id # SKIP no unified hierarchy"
	fi
	finish
}

# --------------------------------------------------------------------- undo

test_unwinding() {
	rmmod memwatch
	load
	steps=$(cat /sys/module/memwatch/parameters/fail_steps)
	rmmod memwatch
	bad=
	for step in $(seq "$steps"); do
		if insmod "$KO" fail_step="$step" rmids=16 assume_rdt=16 2> /dev/null; then
			mwctl '!start' '!start' > /dev/null || bad="$bad $step"
			[ "$(status rmids_used)$(status processes)" = 00 ] || bad="$bad $step:left"
			echo 0 > /sys/module/memwatch/parameters/fail_step
			mwctl start stop || bad="$bad $step:again"
			rmmod memwatch || bad="$bad $step:rmmod"
		elif [ -e /proc/memwatch ] || [ -e /dev/memwatch ]; then
			bad="$bad $step:load"
		fi
	done
	is "each of $steps steps fails and is undone" "$bad" ""

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
	is "20 times in and out during a storm" "$bad" ""
}

plan
for test in ${*:-load identity records config hotplug scarcity filters unwinding}; do
	[ -e /proc/memwatch ] || [ "$test" = load ] || load rmids=32
	test_$test
done
rm -rf "$TMP"
tap_end
