#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# memwatchctl on a running kernel, from loading the module to the report, and under
# disturbance: kill -9, a stopped recorder, rmmod, two recorders, an unprivileged
# user. Runs in the lab beside memwatchctl and yield; live.sh tests the commands one
# by one. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
T=$TMP

plan

# json KEY: the first number after "KEY": in $T/json, also when it is in an object
# with the key "value"
json() {
	tr -d '\n' <"$T/json" | sed -n "s/.*\"$1\": *\({ *\"value\": *\)\{0,1\}\([0-9]*\).*/\2/p"
}

# json_in OBJECT KEY: the same for the object of that name
json_in() {
	tr -d '\n' <"$T/json" |
		sed -n "s/.*\"$1\": *{\(.*\)/\1/p" |
		sed -n "s/[^}]*\"$2\": *\({ *\"value\": *\)\{0,1\}\([0-9]*\).*/\2/p"
}

report() { # report FILE ARGUMENT...
	memwatchctl --format json report "$@" >"$T/json" 2>"$T/err"
}

# writes FILE: waits until the recorder has written something. A test that kills the
# recorder must not do so before.
writes() { within 60 test -s "$1"; }

# ------------------------------------------------------- without the module

memwatchctl status >"$T/out"
is "without the module memwatchctl status exits with 0" $? 0
grep -q '^backend  *bpf$' "$T/out" && grep -q 'module is not loaded; it would add' "$T/out"
ok $? "without the module memwatchctl status says what measures, and what the module would add"
memwatchctl dump >"$T/out" 2>"$T/err"
is "without the module memwatchctl dump exits with 3" $? 3
grep -q '^hint: ' "$T/err"
ok $? "without the module memwatchctl dump prints a hint"

insmod /lab/memwatch.ko rmids=64
ok $? "the module loads"
memwatchctl doctor >"$T/out"
is "with the module loaded memwatchctl doctor exits with 0" $? 0

# ------------------------------------------------------------ the main job

memwatchctl record -o "$T/main.mwr" -- sh -c '
	dd if=/dev/zero of=/dev/null bs=64k count=20000 2>/dev/null
	sleep 0.3
	for i in 1 2 3 4 5; do /bin/true; done
	gzip </proc/kallsyms >/dev/null' 2>"$T/err"
is "record runs a command and exits with 0" $? 0
report "$T/main.mwr"
is "report reads the recording" $? 0
for program in dd gzip sleep; do
	grep -q "\"comm\": *\"$program\"" "$T/json"
	ok $? "program $program of the recorded command is in the report"
done
! grep -q '"status": *"ok", *"value": *0[^-9]*"llc' "$T/json"
ok $? "a value that was not measured is not printed as 0"
is "no sample belongs to an unknown process" "$(json unknown)" 0

memwatchctl export "$T/main.mwr" --to csv -o "$T/main.csv" && [ "$(wc -l <"$T/main.csv")" -gt 100 ]
ok $? "export writes more than 100 lines of CSV"

# The samples of a CPU, those of RMID 0 included, partition its time: their run times
# add up to the wall time, within 0.1 %.
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
ok $? "the run times on every CPU add up to the wall time"
report "$T/main.mwr"
[ "$(json_in unassigned cpu_time_ns)" -gt 0 ]
ok $? "the CPU time of RMID 0 is measured"

memwatchctl export "$T/main.mwr" --to json -o "$T/main.json" && [ -s "$T/main.json" ]
ok $? "export writes JSON"

sleep 60 &
sleeper=$!
memwatchctl dump >"$T/out" 2>&1 && grep -qw "$sleeper" "$T/out"
ok $? "dump shows a process although no recorder runs"
kill $sleeper
memwatchctl top --batch -n 2 -d 1 >"$T/out" 2>&1
is "top in batch mode exits with 0" $? 0
is "no session is left after record, dump and top" "$(status sessions)" 0

# ------------------------------------------------------ a reader that stops

# cpu_time_status PROGRAM: the status of the CPU time of the processes of that name
cpu_time_status() {
	sed -n "s/.*\"comm\": *\"$1\".*\"cpu_time_ns\": *{[^}]*\"status\": *\"\([a-z]*\)\".*/\1/p" \
		"$T/json" | sort -u
}

memwatchctl record -o "$T/stopped.mwr" --mode switch 2>"$T/err" &
recorder=$!
writes "$T/stopped.mwr"
dd if=/dev/zero of=/dev/null bs=64k count=2000 2>/dev/null
# What is still in the rings when it is stopped is not read before what is lost.
sleep 3
kill -STOP $recorder
yield threads 60000
kill -CONT $recorder
sleep 1
kill -INT $recorder
wait $recorder
is "a recorder that was stopped continues and exits with 0" $? 0
report "$T/stopped.mwr"
is "the recording of a recorder that was stopped is complete" $? 0
lost=$(json lost)
[ "${lost:-0}" -gt 0 ]
ok $? "records that the stopped recorder missed are counted: $lost"
is "the CPU time of what ran while the recorder was stopped is a lower bound" \
	"$(cpu_time_status yield)" estimated
is "the CPU time of what ended before is exact" "$(cpu_time_status dd)" ok

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
is "after kill -9 the recording reads up to its last block" "$bad" 0
[ $empty -lt 6 ]
ok $? "at least one recorder wrote something before kill -9"
is "after kill -9 no session is left" "$(status sessions)" 0
is "after kill -9 no RMID is in use" "$(status rmids_used)" 0

# ------------------------------------------------------- others in the way

memwatchctl record -o "$T/one.mwr" 2>/dev/null &
one=$!
writes "$T/one.mwr"
memwatchctl record -o "$T/two.mwr" -d 1 2>"$T/err"
is "two recorders run at the same time" $? 0
rmmod memwatch 2>/dev/null
[ $? -ne 0 ]
ok $? "rmmod is refused while a recorder runs"
memwatchctl status >"$T/out"
grep -qw "$one" "$T/out"
ok $? "status names the process that holds the module"
kill -INT $one
wait $one
is "the first recorder ends well beside the second" $? 0
report "$T/two.mwr" && [ "$(json_in totals cpu_time_ns)" -gt 0 ]
ok $? "the recording of the second recorder has CPU time"

busybox su -s /bin/sh nobody -c "/lab/memwatchctl status" >"$T/out" 2>"$T/err"
is "an unprivileged user gets exit status 3" $? 3
grep -qi 'permi' "$T/err"
ok $? "an unprivileged user is told about the permission"

memwatchctl record -o "$T/main.mwr" -d 1 2>"$T/err"
is "an existing recording is not overwritten" $? 1
memwatchctl report /etc/passwd >"$T/out" 2>"$T/err"
is "report refuses a file that is no recording" $? 1
memwatchctl config period=5ms >/dev/null 2>"$T/err" && memwatchctl config >"$T/out" && grep -q 5 "$T/out"
ok $? "config sets the period"
memwatchctl config period=1us >/dev/null 2>"$T/err"
is "config refuses a period out of range" $? 2

rmmod memwatch
ok $? "the module unloads"
tap_end
