#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# memwatchctl against the module, in a virtual machine, as root: what cannot be
# tested on paper. Speaks TAP.
export LC_ALL=C
dir=$(mktemp -d)
cd "$dir" || exit 1
n=0

check() { # DESCRIPTION COMMAND...: passes if the command succeeds
	what=$1
	shift
	n=$((n + 1))
	if "$@" >log 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' log
	fi
}

# Exit status and a pattern in what is said.
ends() { # STATUS PATTERN COMMAND...
	want=$1 pattern=$2
	shift 2
	"$@" >answer 2>&1
	got=$?
	cat answer
	[ $got -eq "$want" ] || { echo "exit $got, not $want"; return 1; }
	grep -qE -- "$pattern" answer
}

# The status of the module says that nothing is left behind.
is_idle() { grep -q '^sessions_started: 0$' /proc/memwatch/status && grep -q '^rmids_used: 0$' /proc/memwatch/status; }

# The kernel closes the session of a process that was killed; give it time.
becomes_idle() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		is_idle && return
		sleep 0.5
	done
	cat /proc/memwatch/status
	return 1
}

# grep in one file, in a new shell.
has() { grep -qE -- "$1" "$2"; }

# A slow machine takes its time to begin; whoever kills must not come first.
writes() { # FILE [BYTES]: true as soon as it is longer than that, within 60 s
	tries=0
	until [ "$(wc -c <"$1" 2>/dev/null || echo 0)" -gt "${2:-0}" ]; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || return 1
		sleep 0.1
	done
}

interrupted() { # SIGNAL: the recording is whole, and the exit status is 0
	rm -f int.mwr
	memwatchctl record -o int.mwr 2>int.log &
	pid=$!
	writes int.mwr
	kill -"$1" $pid
	wait $pid || { cat int.log; return 1; }
	memwatchctl report int.mwr --format json >int.json && has '"truncated": false' int.json
}

killed() { # what was written can be read, and the module is idle again
	rm -f kill.mwr
	memwatchctl record -o kill.mwr 2>/dev/null &
	pid=$!
	writes kill.mwr
	writes kill.mwr "$(wc -c <kill.mwr)" # the first block holds no samples yet
	kill -9 $pid
	wait $pid
	becomes_idle || return 1
	memwatchctl report kill.mwr >kill.txt 2>kill.err
	rc=$?
	cat kill.txt kill.err
	[ $rc -eq 0 ] && has 'cut off' kill.err
}

full_disk() {
	mkdir -p small && mount -t tmpfs -o size=32k none small || return 1
	ends 1 'No space left' memwatchctl record -o small/r.mwr -m switch -d 20
	rc=$?
	memwatchctl report small/r.mwr >full.txt 2>&1 || rc=1
	cat full.txt
	umount small
	return $rc
}

# A process that takes 256 KiB every 20 ms must be seen to grow.
growth() {
	sh -c 'x=; i=0; while [ $i -lt 16 ]; do x=x$x$x; i=$((i + 1)); sleep 0.2; done; sleep 2' &
	pid=$!
	memwatchctl top -b -n 3 -d 1 --format json >top.json
	rc=$?
	kill $pid
	wait $pid
	[ $rc -eq 0 ] && has '"rss_growth_bytes_per_second": \{"value": [1-9]' top.json
}

# The monitor beside the stream: every process gets a verdict, in its own columns.
growth_monitor() {
	sleep 30 &
	pid=$!
	memwatchctl top -b -n 4 -d 1 --growth --format json >top.json &
	top=$!
	writes "/run/memwatch/growth.$top"
	memwatchctl --format json status >status.json
	wait $top
	rc=$?
	memwatchctl -q record -o g.mwr -d 2 --growth && memwatchctl report g.mwr --format json >g.json || rc=1
	memwatchctl report g.mwr -q >g.txt || rc=1
	kill $pid
	wait $pid
	cat g.txt status.json
	[ $rc -eq 0 ] && has '"growth_verdict": "insufficient", "growth_bytes_per_second": 0' top.json &&
		has '"comm": "memwatchctl".*"growth_verdict": "insufficient"' g.json &&
		has '"command": "top", .*"event_program": "attached"' status.json &&
		has 'VERDICT +RATE' g.txt
}

echo "TAP version 13"
echo "1..31"
check "without the module: exit 3" ends 3 'module memwatch is not loaded' memwatchctl status
check "doctor finds the main job impossible" ends 3 'cannot do its main job' memwatchctl doctor
check "the module loads" insmod /lab/memwatch.ko
check "doctor finds it possible" ends 0 'can do its main job' memwatchctl doctor
check "status" ends 0 'backend +emulated' memwatchctl status
check "dump starts a session of its own" ends 0 'starting one' memwatchctl -v dump
check "dump lists init" ends 0 '"comm": "init"' memwatchctl dump --format json
check "and leaves nothing behind" is_idle
check "config shows" ends 0 '^period=1ms$' memwatchctl config
check "config sets several" memwatchctl config period=2ms limbo=5ms policy=active idle-stop=on cpumask=0
check "and shows them" ends 0 '"period_ns": 2000000' memwatchctl --format json config
check "one key" ends 0 '^policy=active$' memwatchctl config policy
check "filters are added" memwatchctl config filter=comm:sleep filter=uid:0
check "and shown" ends 0 '^filter=comm:sleep$' memwatchctl config
check "a filter twice is no error" memwatchctl config filter=uid:0
check "an unknown cgroup: exit 4" ends 4 'No such file' memwatchctl config filter=cgroup:/no/such
check "a filter by path" memwatchctl config filter=none filter=cgroup:/
check "filters are removed" ends 0 '^filter=none$' memwatchctl config filter=none filter
check "all back" memwatchctl config period=1ms limbo=2ms policy=fifo idle-stop=off cpumask=all
check "record a command" ends 0 ' records, .* 0 lost' memwatchctl record -o a.mwr -- sh -c 'sleep 1; expr 1 + 1'
check "report it: the command is there" ends 0 ' expr ' memwatchctl report a.mwr
check "it failed: record says so, exit 0" ends 0 'false exited with status 1' memwatchctl record -o b.mwr -- false
check "it does not exist: exit 1, no file" ends 1 'no-such-program: No such file' memwatchctl record -o c.mwr -- no-such-program
check "no file is left" test ! -e c.mwr
check "record for a time" ends 0 '"command_exit_status": null' memwatchctl -q record -o d.mwr -d 1 --format json
check "Ctrl-C keeps what there is" interrupted INT
check "kill -9 keeps whole blocks" killed
check "a full disk is one clear error" full_disk
check "top sees growth" growth
check "a growth monitor beside top and record" growth_monitor
check "the module unloads" rmmod memwatch
