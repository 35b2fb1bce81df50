#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# memwatchctl on a running kernel, from the module to the report, and what
# others do to it: kill -9, a reader that is stopped, rmmod, two at once, nobody's
# permissions. Runs in the lab with memwatchctl and yield beside it; the commands
# one by one are in live.sh. Speaks TAP.
set -u

HERE=$(cd "$(dirname "$0")" && pwd)
PATH=$HERE:$PATH
# shellcheck source=SCRIPTDIR/../tap.sh
. "$HERE/tap.sh"
T=$(mktemp -d)

plan

# The first number behind "KEY": in the JSON of $T/json; a value's own.
json() {
	tr -d '\n' <"$T/json" | sed -n "s/.*\"$1\": *\({ *\"value\": *\)\{0,1\}\([0-9]*\).*/\2/p"
}

# The same in the object of that name.
json_in() {
	tr -d '\n' <"$T/json" |
		sed -n "s/.*\"$1\": *{\(.*\)/\1/p" |
		sed -n "s/[^}]*\"$2\": *\({ *\"value\": *\)\{0,1\}\([0-9]*\).*/\2/p"
}

report() { # report FILE ARGUMENT...
	memwatchctl --format json report "$@" >"$T/json" 2>"$T/err"
}

# A slow machine takes its time to begin; a test that kills must not come first.
writes() { # writes FILE: true as soon as something is in it, within 60 s
	tries=0
	while [ ! -s "$1" ]; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || return 1
		sleep 0.1
	done
}

status() { sed -n "s/^$1: //p" /proc/memwatch/status; }

# ------------------------------------------------------- without the module

memwatchctl status >"$T/out" 2>"$T/err"
is "without the module: exit status 3" $? 3
grep -q '^hint: ' "$T/err"
ok $? "without the module: a hint"

insmod "$HERE/memwatch.ko" rmids=64
ok $? "the module loads"
memwatchctl doctor >"$T/out"
is "doctor says that the main job can be done" $? 0

# ------------------------------------------------------------ the main job

memwatchctl record -o "$T/main.mwr" -- sh -c '
	dd if=/dev/zero of=/dev/null bs=64k count=20000 2>/dev/null
	sleep 0.3
	for i in 1 2 3 4 5; do /bin/true; done
	gzip </proc/kallsyms >/dev/null' 2>"$T/err"
is "record runs a command" $? 0
report "$T/main.mwr"
is "report reads the recording" $? 0
grep -q '"comm": *"dd"' "$T/json" && grep -q '"comm": *"gzip"' "$T/json" &&
	grep -q '"comm": *"sleep"' "$T/json"
ok $? "every program of the command is in the report"
! grep -q '"status": *"ok", *"value": *0[^-9]*"llc' "$T/json"
ok $? "what is not measured is not a 0"
is "nothing is of an unknown process" "$(json unknown)" 0

memwatchctl export "$T/main.mwr" --to csv -o "$T/main.csv" && [ "$(wc -l <"$T/main.csv")" -gt 100 ]
ok $? "export writes CSV"

# The samples of a CPU, those of RMID 0 included, partition its time: what ran
# adds up to wall time, to 0.1 %.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$at["type"] == "sample" {
		cpu = $at["cpu"]; run[cpu] += $at["run_ns"]
		if (!(cpu in begin) || $at["begin_ns"] < begin[cpu]) begin[cpu] = $at["begin_ns"]
		if ($at["time_ns"] > end[cpu]) end[cpu] = $at["time_ns"]
	}
	END {
		for (cpu in run) {
			n++; wall = end[cpu] - begin[cpu]; off = run[cpu] - wall
			printf "# cpu %s: %.0f ns of %.0f ns\n", cpu, run[cpu], wall
			if (off * off * 1e6 > wall * wall) bad = 1
		}
		exit bad || !n
	}' "$T/main.csv"
ok $? "time is conserved on every CPU"
report "$T/main.mwr"
[ "$(json_in unassigned cpu_time_ns)" -gt 0 ]
ok $? "RMID 0 is measured"

memwatchctl export "$T/main.mwr" --to json -o "$T/main.json" && [ -s "$T/main.json" ]
ok $? "export writes JSON"

sleep 60 &
sleeper=$!
memwatchctl dump >"$T/out" 2>&1 && grep -qw "$sleeper" "$T/out"
ok $? "dump shows a process although nobody records"
kill $sleeper
memwatchctl top --batch -n 2 -d 1 >"$T/out" 2>&1
is "top in batch mode" $? 0
is "no session is left behind" "$(status sessions)" 0

# ------------------------------------------------------ a reader that stops

memwatchctl record -o "$T/stopped.mwr" --mode switch 2>"$T/err" &
recorder=$!
writes "$T/stopped.mwr"
kill -STOP $recorder
yield threads 60000
kill -CONT $recorder
sleep 1
kill -INT $recorder
wait $recorder
is "a recorder that was stopped goes on" $? 0
report "$T/stopped.mwr"
is "and its file is whole" $? 0
lost=$(json lost)
[ "${lost:-0}" -gt 0 ]
ok $? "what it missed is counted: $lost records"

# ----------------------------------------------------------------- kill -9

bad=0 empty=0
for i in 1 2 3 4 5 6; do
	memwatchctl record -o "$T/kill.mwr" 2>/dev/null &
	recorder=$!
	writes "$T/kill.mwr"
	sleep "$(awk -v i=$i 'BEGIN { srand(i); printf "%.3f", 2 * rand() }')"
	kill -9 $recorder
	wait $recorder 2>/dev/null
	if [ ! -s "$T/kill.mwr" ]; then
		empty=$((empty + 1))
	else
		report "$T/kill.mwr"
		case $? in 0 | 4) ;; *) bad=$((bad + 1)); cat "$T/err" >&2 ;; esac
		grep -q '"truncated": *true' "$T/json" || [ ! -s "$T/json" ] || bad=$((bad + 1))
	fi
	rm -f "$T/kill.mwr"
done
is "kill -9: the file reads up to its last block" "$bad" 0
[ $empty -lt 6 ]
ok $? "kill -9: something was written before"
is "kill -9 leaves no session" "$(status sessions)" 0
is "kill -9 leaves no RMID in use" "$(status rmids_used)" 0

# ------------------------------------------------------- others in the way

memwatchctl record -o "$T/one.mwr" 2>/dev/null &
one=$!
writes "$T/one.mwr"
memwatchctl record -o "$T/two.mwr" -d 1 2>"$T/err"
is "two can record at once" $? 0
rmmod memwatch 2>/dev/null
[ $? -ne 0 ]
ok $? "rmmod is refused while somebody records"
memwatchctl status >"$T/out"
grep -qw "$one" "$T/out"
ok $? "status says who holds the module"
kill -INT $one
wait $one
is "and the first one was not disturbed" $? 0
report "$T/two.mwr" && [ "$(json_in totals cpu_time_ns)" -gt 0 ]
ok $? "the second recording is a recording"

busybox su -s /bin/sh nobody -c "$HERE/memwatchctl status" >"$T/out" 2>"$T/err"
is "nobody may not look: exit status 3" $? 3
grep -qi 'permi' "$T/err"
ok $? "and is told so"

memwatchctl record -o "$T/main.mwr" -d 1 2>"$T/err"
is "an existing recording is not overwritten" $? 1
memwatchctl report /etc/passwd >"$T/out" 2>"$T/err"
is "a file that is no recording" $? 1
memwatchctl config period=5ms >/dev/null 2>"$T/err" && memwatchctl config >"$T/out" && grep -q 5 "$T/out"
ok $? "config sets the period"
memwatchctl config period=1us >/dev/null 2>"$T/err"
is "config refuses a period out of range" $? 2

rmmod memwatch
ok $? "the module unloads"
rm -rf "$T"
tap_end
