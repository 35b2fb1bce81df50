#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The commands of memwatchctl one by one, on a running kernel with the module, as
# root in the lab. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
export LC_ALL=C
cd "$TMP" || exit 1

# ends STATUS PATTERN COMMAND...: the command's exit status and a pattern in its output
ends() {
	want=$1 pattern=$2
	shift 2
	"$@" >answer 2>&1
	got=$?
	cat answer
	[ $got -eq "$want" ] || { echo "exit $got, not $want"; return 1; }
	grep -qE -- "$pattern" answer
}

# No started session and no RMID is left behind.
no_session_left() { status_is sessions_started 0 && status_is rmids_used 0; }

# has PATTERN FILE
has() { grep -qE -- "$1" "$2"; }

# writes FILE [BYTES]: waits until the file is longer than that. A test that kills
# the recorder must not do so before.
is_longer() { [ "$(wc -c 2>/dev/null <"$1" || echo 0)" -gt "$2" ]; }
writes() { within 60 is_longer "$1" "${2:-0}"; }

# interrupted SIGNAL: the recording is complete and the exit status is 0
interrupted() {
	rm -f int.mwr
	memwatchctl record -o int.mwr 2>int.log &
	pid=$!
	writes int.mwr
	kill -"$1" $pid
	wait $pid || { cat int.log; return 1; }
	memwatchctl report int.mwr --format json >int.json && has '"truncated": false' int.json
}

# After kill -9 the written blocks can be read, and the module is idle again.
killed() {
	rm -f kill.mwr
	memwatchctl record -o kill.mwr 2>/dev/null &
	pid=$!
	writes kill.mwr
	writes kill.mwr "$(wc -c <kill.mwr)" # the first block has no samples
	kill -9 $pid
	wait $pid
	within 5 no_session_left || { cat /proc/memwatch/status; return 1; }
	memwatchctl report kill.mwr >kill.txt 2>kill.err
	rc=$?
	cat kill.txt kill.err
	[ $rc -eq 0 ] && has 'is incomplete' kill.err
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

# top must show the growth of a process whose memory triples every 0.2 s.
growth() {
	sh -c 'x=; i=0; while [ $i -lt 16 ]; do x=x$x$x; i=$((i + 1)); sleep 0.2; done; sleep 2' &
	pid=$!
	memwatchctl top -b -n 3 -d 1 --format json >top.json
	rc=$?
	kill $pid
	wait $pid
	[ $rc -eq 0 ] && has '"rss_growth_bytes_per_second": \{"value": [1-9]' top.json
}

# Each interval of top has the time of both CPUs, of which one runs a process all the time, although
# records wait for periods before they are delivered. When the first began is known less exactly.
top_is_whole() {
	memwatchctl config period="$1" || return 1
	sh -c 'while :; do :; done' &
	pid=$!
	memwatchctl top -b -n 3 -d "$2" --format json >whole.json
	rc=$?
	kill $pid
	wait $pid
	memwatchctl config period=1ms
	grep -oE '"end_ns"|cpu_percent": \{"value": [0-9.e+-]+' whole.json | awk -v rc=$rc '
		/end_ns/ { n++; next }
		{ percent[n] += $3 }
		END {
			for (i = 1; i <= n; i++) {
				print "interval " i ": " percent[i] " % of a CPU"
				if (percent[i] < (i == 1 ? 180 : 198) || percent[i] > (i == 1 ? 220 : 202))
					rc = 1
			}
			exit rc || n != 3
		}'
}

# With the growth monitor beside the stream, every process has a verdict.
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
	[ $rc -eq 0 ] && has '"growth_verdict": "insufficient", "growth_bytes_per_second": null' top.json &&
		has '"comm": "memwatchctl".*"growth_verdict": "insufficient"' g.json &&
		has '"command": "top", .*"event_program": "attached"' status.json &&
		has 'VERDICT +RATE' g.txt
}

dump_shows() { memwatchctl dump >h.dump 2>&1 && grep -qF -- "$1" h.dump; }

# Every command that meets a name that attacks the terminal shows it escaped.
hostile_name() {
	escape=$(printf '\033') name=$(printf '\033]0;x\007') shown='\x1b]0;x\x07' rc=0
	# top lists a process only if it runs in the interval.
	echo '#!/bin/sh' >"./$name"
	echo 'i=0; while [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done; exit 3' >>"./$name"
	chmod +x "./$name" || return 1
	mkdir -p "/sys/fs/cgroup/$name" || return 1
	memwatchctl record -o "$name.mwr" -- "./$name" 2>h.record &
	pid=$!
	within 30 dump_shows "$shown" || { cat h.dump; return 1; }
	memwatchctl top -b -n 1 -d 1 >h.top
	wait $pid
	memwatchctl report "$name.mwr" >h.report
	memwatchctl record -o "$name.mwr" -d 1 2>h.exists
	# The path cannot be an argument as it is printed, so its number is shown.
	memwatchctl config filter=none "filter=cgroup:/$name" && memwatchctl config filter >h.cgroup
	memwatchctl config filter=none "$(cat h.cgroup)" && memwatchctl config filter | cmp - h.cgroup || rc=1
	grep -qx "filter=cgroup:$(stat -c %i "/sys/fs/cgroup/$name")" h.cgroup || rc=1
	memwatchctl config filter=none "filter=comm:$name" && memwatchctl config filter >h.comm
	memwatchctl config filter=none
	rmdir "/sys/fs/cgroup/$name"
	for answer in h.dump h.record h.top h.report h.exists h.comm; do
		grep -qF -- "$shown" $answer && ! grep -q "$escape" $answer ||
			{ echo "$answer:"; cat -v $answer; rc=1; }
	done
	grep -qF "$shown.mwr: " h.record && grep -qF "$shown exited with status 3" h.record || rc=1
	return $rc
}

plan 35
check "without the module status prints the backend" ends 0 'backend +bpf' memwatchctl status
check "without the module doctor says that BPF can measure" \
	ends 0 'backend +bpf: BPF programs measure' memwatchctl doctor
check "the module loads" insmod /lab/memwatch.ko
check "with the module loaded doctor says that live measurement is possible" \
	ends 0 'measurement is possible' memwatchctl doctor
check "status prints the backend" ends 0 'backend +emulated' memwatchctl status
check "dump without a session starts one of its own" ends 0 'starting one' memwatchctl -v dump
check "dump lists the process init" ends 0 '"comm": "init"' memwatchctl dump --format json
check "dump leaves no session behind" no_session_left
check "config prints the configuration" ends 0 '^period=1ms$' memwatchctl config
check "config sets several keys at once" \
	memwatchctl config period=2ms limbo=5ms policy=active idle-stop=on cpumask=0
check "config prints the keys that were set" \
	ends 0 '"period_ns": 2000000' memwatchctl --format json config
check "config prints one key" ends 0 '^policy=active$' memwatchctl config policy
check "config adds filters" memwatchctl config filter=comm:sleep filter=uid:0
check "config prints the filters" ends 0 '^filter=comm:sleep$' memwatchctl config
check "adding a filter twice is no error" memwatchctl config filter=uid:0
check "a filter by an unknown cgroup exits with 4" \
	ends 4 'No such file' memwatchctl config filter=cgroup:/no/such
check "a filter by the path of a cgroup is accepted" memwatchctl config filter=none filter=cgroup:/
check "config removes all filters" ends 0 '^filter=none$' memwatchctl config filter=none filter
check "config sets the defaults again" \
	memwatchctl config period=1ms limbo=2ms policy=fifo idle-stop=off cpumask=all
check "record records a command without losses" \
	ends 0 ' records, .* 0 lost' memwatchctl record -o a.mwr -- sh -c 'sleep 1; expr 1 + 1'
check "report shows the recorded command" ends 0 ' expr ' memwatchctl report a.mwr
check "record says that the command failed and exits with 0" \
	ends 0 'false exited with status 1' memwatchctl record -o b.mwr -- false
check "record exits with 1 when the command does not exist" \
	ends 1 'no-such-program: No such file' memwatchctl record -o c.mwr -- no-such-program
check "record leaves no file when the command does not exist" test ! -e c.mwr
check "record --duration records without a command" \
	ends 0 '"command_exit_status": null' memwatchctl -q record -o d.mwr -d 1 --format json
check "after SIGINT the recording is complete" interrupted INT
check "after kill -9 the written blocks can be read" killed
check "a full disk is reported as one error" full_disk
check "top shows the growth of a process" growth
check "top shows the time of all CPUs with a period of 1 ms" top_is_whole 1ms 1s
check "top shows the time of all CPUs with a period of 100 ms" top_is_whole 100ms 1s
check "top shows the time of all CPUs with a period of 1 s" top_is_whole 1s 2s
check "top and record run with a growth monitor" growth_monitor
check "a name that attacks the terminal is shown escaped" hostile_name
check "the module unloads" rmmod memwatch
