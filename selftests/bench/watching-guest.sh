#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: instructions of both CPUs while CPU 0 switches between two processes, and while it
# runs one, without a session, with the module only, with the recorder on CPU 1, with one that does
# not use the module, and with perf there. The snapshots of rdtctl count them.
set -eu
messages=15000 seconds=3
T=$(mktemp -d)

# pass_messages N: two processes of CPU 0 send each other N messages through pipes, one after the
# other, so that each of them ends in a switch to the other process
pass_messages() { taskset 1 perf bench sched pipe -l "$1" >/dev/null; }

# phase NAME: CPU 0 switches, then runs one process, then nothing
phase() {
	pass_messages 1000
	ticks "$1-switch-begin"
	pass_messages $messages
	ticks "$1-switch-end"
	taskset 1 sh -c 'while :; do :; done' &
	busy=$!
	sleep 0.5
	ticks "$1-tick-begin"
	taskset 2 sleep $seconds
	ticks "$1-tick-end"
	kill $busy
	wait $busy 2>/dev/null || :
}

# ticks NAME: a snapshot, how often the module's timer ran on each CPU, the context switches, and the
# time
ticks() {
	rdtctl snapshot "$1"
	# shellcheck disable=SC2046 # a number for each CPU
	echo "$1" $(sed -n 's/^cpu [01]: ticks=\([0-9]*\).*/\1/p' /proc/memwatch/overhead) \
		"$(sed -n 's/^ctxt //p' /proc/stat)" "$(cut -d ' ' -f 1 /proc/uptime)" >>/out/ticks
}

if [ "${1:-}" = phase ]; then
	phase "$2"
	exit
fi
insmod /lab/memwatch.ko
phase none
/lab/mwctl start run="sh $0 phase module"
# record_phase NAME BACKEND: with the recorder; also exports what it has recorded
record_phase() {
	taskset 2 memwatchctl --quiet record --backend "$2" --force -o "$T/$1.mwr" 2>>/out/record.err &
	recorder=$!
	until [ -s "$T/$1.mwr" ] || ! kill -0 $recorder 2>/dev/null; do sleep 0.1; done
	phase "$1"
	kill -INT $recorder
	wait $recorder
	memwatchctl export --to csv -o "$T/$1.csv" "$T/$1.mwr"
	echo "$1" "$(($(wc -l <"$T/$1.csv") - 1))" "$(wc -c <"$T/$1.mwr")" >>/out/records
}

record_phase record module
record_phase bpf bpf
# Without the module, the recording says how often each CPU has ticked until each time.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$at["type"] == "tick" { printf "%.6f %d\n", $at["time_ns"] / 1e9, $at["cpu"] }' "$T"/bpf.csv >"$T"/due
awk 'FNR == NR { due[NR] = $1; cpu[NR] = $2; n = NR; next }
	$1 ~ /^bpf-/ {
		count[0] = count[1] = 0
		for (i = 1; i <= n && due[i] <= $5; i++)
			count[cpu[i]]++
		$2 = count[0]
		$3 = count[1]
	}
	{ print }' "$T"/due /out/ticks >"$T"/ticks
cp "$T"/ticks /out/ticks
taskset 2 perf record -q -e sched:sched_switch -a -o "$T"/perf.data 2>/out/perf.err &
recorder=$!
sleep 2
phase perf
kill -INT $recorder
wait $recorder 2>/dev/null || :
# Both CPUs are idle, except for the recorder. A record of CPU 1 that is more than a millisecond
# after its IDLE record and before its next BUSY record was sent while it was stopped; all others
# are sent because something in the guest has woken it.
taskset 1 memwatchctl --quiet record --force -o "$T"/idle.mwr -d 10 2>>/out/record.err
memwatchctl export --to csv -o "$T"/idle.csv "$T"/idle.mwr
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$at["cpu"] != 1 { next }
	{ count[$at["type"]]++; all++; now = $at["time_ns"] / 1e6 }
	$at["type"] == "cpu_state" {
		if ($at["state"] == "busy") {
			wakes++
			for (i = 1; i <= held; i++)
				stopped += time[i] > idle + 1 && time[i] < now - 1
		}
		held = 0
		idle = now
		next
	}
	{ time[++held] = now }
	END {
		for (t in count)
			print "#", t, count[t]
		print "idle", stopped / 10, wakes / 10, wakes ? (all - stopped) / wakes : 0
	}' "$T"/idle.csv >/out/idle
