#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# growth watch, record and replay on this machine, with a program that leaks until
# its RLIMIT_DATA stops it. Needs root and a kernel with BTF, but not the module.
# Takes a minute. Speaks TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=SCRIPTDIR/../tap.sh
. "$here/../tap.sh"
ctl=${CTL:-$here/../../${BUILD:-build}/cli/memwatchctl}
case $ctl in /*) ;; *) ctl=$PWD/$ctl ;; esac
if [ "$(id -u)" -ne 0 ] || [ ! -r /sys/kernel/btf/vmlinux ]; then
	skip_all "needs root and a kernel with BTF"
fi
work=$(mktemp -d)
leak='' watch='' record='' top='' grown='' deep=''
trap 'kill $leak $watch $record $top $deep 2>/dev/null; rm -rf "$work" "$grown"' EXIT
cd "$work" || exit 1

plan

"$ctl" top --growth --backend bpf -n 2 -d 1s >top 2>warnings
rc=$?
[ $rc -eq 0 ] && grep -q VERDICT top && ! grep -q 'reading the rings' warnings
ok $? "what top needs to begin, with the growth monitor, is not taken for reading the rings"

# A file in memory, which is in no process, grows until top and watch have told it.
grown=$(mktemp -p /dev/shm)
"$ctl" --format json top --growth --backend bpf -n 2 -d 1s >top.json 2>/dev/null
python3 "$here/../../cli/tests/schema.py" top-growth top.json >schema
ok $? "top with the growth monitor has the documented members"
"$ctl" top --growth --backend bpf --batch -d 1s >top 2>/dev/null &
top=$!
"$ctl" --quiet --format json growth watch --interval 1s >watched &
watch=$!
told=1
for _ in $(seq 120); do
	head -c 2M /dev/zero >>"$grown"
	sleep 1
	grep -q '^notice .*: tmpfs and shared memory grew by ' top && told=0 &&
		grep -m 1 '"class": "shmem"' watched >group && break
done
kill $top $watch
wait $top $watch
rm -f "$grown"
ok $told "top shows growth that is in no process, above the table"
python3 "$here/../../cli/tests/schema.py" growth-group group >schema
ok $? "a notice about a cgroup has the documented members"

# Has 120 MiB, and after 20 s at rest allocates a MiB every 0.1 s. Growth that begins sooner, or
# from less than a fifth of the limit, is taken for a start-up, and the alert waits until the limit
# is so near that the process can reach it between two rounds, which are some seconds apart on a
# busy machine.
(
	ulimit -d 400000
	exec awk 'BEGIN {
		for (block = "x"; length(block) < 65536;)
			block = block block
		for (i = -120; i < 800; i++) {
			for (j = 0; j < 16; j++)
				x[i, j] = block i
			if (i >= 0)
				system("sleep 0.1")
			else if (i == -1)
				system("sleep 20")
		}
	}' 2>/dev/null
) &
leak=$!
for _ in $(seq 100); do
	[ "$(awk '/^RssAnon/ { print $2 }' /proc/$leak/status)" -gt 122880 ] && break
	sleep 0.1
done
"$ctl" growth record -o trace.csv --interval 1s --duration 120s --pid $leak 2>recorder &
record=$!
"$ctl" --format json growth watch --interval 1s --duration 120s --state state --pid $leak \
	--exec 'echo "$MEMWATCH_EVENT $MEMWATCH_PID $MEMWATCH_REASON $MEMWATCH_SENTENCE" >>hook' >alerts 2>errors &
watch=$!
"$ctl" --quiet growth watch --interval 1s --duration 120s --pid $leak --notices --exec-on notice \
	--exec 'echo "$MEMWATCH_EVENT $MEMWATCH_PID $MEMWATCH_REASON $MEMWATCH_SENTENCE" >>noticed' \
	--no-where >lines &
lines=$!
# On a busy machine the event program exceeds its budget, and status says so.
knows_both() {
	"$ctl" --format json status >status 2>&1
	grep -q "\"pid\": $watch, \"command\": \"growth watch\".*\"budget_rest_ppm\": 1000, .*\"event_program\": \"\(attached\|detached\", \"event_program_reason\": \"over its budget\)" status &&
		grep -q "\"pid\": $record, \"command\": \"growth record\".*\"event_program_reason\": \"not wanted\"" status
}
# Monitors are listed when they have loaded their programs.
while ! knows_both && kill -0 $leak 2>/dev/null; do
	sleep 1
done
knows_both
knows=$?
ok $knows "status lists both growth monitors"
[ $knows -eq 0 ] || sed 's/^/# /' status
wait $lines
wait $watch
ok $? "growth watch ends when the watched process has ended"
grep -q "process $leak has ended" errors
ok $? "growth watch says that the watched process has ended"
head -1 alerts | grep -q "\"event\": \"notice\".*\"pid\": $leak, .*\"verdict\": \"growing\""
ok $? "a notice is one line of JSON, and comes first"
grep -m 1 '"event": "alert"' alerts >alert
grep -q "\"pid\": $leak, .*\"verdict\": \"leak\"" alert
ok $? "an alert is one line of JSON"
head -1 alerts >notice
python3 "$here/../../cli/tests/schema.py" growth-notice notice >schema
ok $? "a notice has the documented members"
python3 "$here/../../cli/tests/schema.py" growth-alert alert >schema
ok $? "an alert has the documented members"
python3 -c 'import json; w = json.load(open("alert"))["where"]["touched"]
assert w["share"] > 0.5 and any("awk" in (f["module"] or "") for f in w["stack"])' 2>/dev/null
named=$?
case $(uname -m) in
x86_64) ok $named "an alert says where the process takes its memory" ;;
*) skip "an alert says where the process takes its memory" "stacks are sampled on x86-64 only" ;;
esac
grep -q '; what it keeps is first touched by .* samples)' hook
ok $? "the sentence says so too"
grep -q "\"sentence\": \"process [a-z]* ($leak): memory grew by .* at this rate it reaches RLIMIT_DATA in " alert
ok $? "an alert says how much memory grew, how fast, and when it reaches which limit"
grep -q "^alert $leak limit process [a-z]* ($leak): memory grew" hook
ok $? "the hook of --exec gets event, process, reason and sentence of the alert"
! grep -q '^\(notice\|settle\)' hook
ok $? "the hook of --exec is for alerts only"
grep -q "^notice $leak none process [a-z]* ($leak): memory grew" noticed &&
	grep -q "^alert $leak limit " noticed
ok $? "with --exec-on notice, the hook is for notices and alerts"
grep -q "^notice process [a-z]* ($leak): memory grew" lines && grep -q '^ALERT ' lines
ok $? "growth watch --notices prints notices and alerts"
! grep -q 'first touched' lines
ok $? "with --no-where, nothing is said about where"
[ "$(grep -c '"pid": ' alerts)" -eq "$(grep -c "\"pid\": $leak," alerts)" ]
ok $? "--pid shows no other process"
"$ctl" --verbose growth watch --duration 1s --state state --alerts 2>&1 | grep -q 'state: loaded [1-9][0-9]* histories'
ok $? "growth watch continues with the histories of the state file"
# The cost is known after two rounds, which the default budget may put far apart.
"$ctl" --verbose --format json growth watch --interval 100ms --budget 100000 --duration 5s >objects 2>notes
! grep -qv '^{' objects && grep -q ' rounds, .*; CPU ' notes
ok $? "with --verbose, growth watch prints its cost on standard error, and only JSON otherwise"
echo "precious text that is longer than the header of a state file; nothing may replace it" >text
"$ctl" --quiet growth watch --duration 1s --state text --alerts 2>refused
[ $? -eq 1 ] && grep -q 'text: is not a state file' refused && grep -q '^hint:' refused
ok $? "growth watch refuses a state file that is another file"
grep -q precious text
ok $? "growth watch does not replace a file that is not a state file"
"$ctl" --format json growth watch --duration 3s --max-processes 1 --alerts 2>/dev/null |
	grep -m 1 '"event": "full"' >full
python3 "$here/../../cli/tests/schema.py" growth-room full >schema
ok $? "growth watch reports as documented that processes wait for room"
wait $record
ok $? "growth record ends when the recorded process has ended"
grep -q "process $leak has ended" recorder
ok $? "growth record says that the recorded process has ended"
"$ctl" growth watch --pid $leak 2>&1 | grep -q "there is no process $leak"
ok $? "growth watch --pid refuses a process that does not exist"
# There is room for the header of this trace, and not for a round.
(
	trap '' XFSZ
	ulimit -f 1
	"$ctl" growth watch --no-events --interval 1s --budget 100000 --duration 10s --trace cut.csv 2>&1
	echo "exit $?"
) | cat >shown
[ "$(grep -c '^ *PID' shown)" -gt 1 ]
ok $? "growth watch goes on when its trace cannot be written"
[ "$(grep '^memwatchctl: ' shown)" = "memwatchctl: cut.csv: File too large; the monitor goes on without a trace" ]
ok $? "growth watch says once why its trace ends"
grep -q '^exit 1$' shown
ok $? "growth watch fails if its trace could not be written"
# A process in a cgroup below one with a long path. Where version 2 is mounted elsewhere, it is
# mounted at the usual place for the command.
v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
long=memwatch-$(printf '%0190d' 1)/$(printf '%0190d' 2)
if [ -n "$v2" ] && mkdir -p "$v2/$long/below"; then
	sleep 600 &
	deep=$!
	echo $deep >"$v2/$long/below/cgroup.procs"
	unshare -m sh -c 'mount --bind "$1" /sys/fs/cgroup && exec "$2" --quiet growth record \
		-o long.csv --interval 1s --duration 2s --cgroup "/$3"' sh "$v2" "$ctl" "$long"
	is "growth record finds the process below a cgroup with a long path" \
		"$(sed 1d long.csv | cut -d, -f2 | grep -vx 0 | sort -u)" $deep
	kill $deep
	wait $deep
	rmdir "$v2/$long/below" "$v2/$long" "$v2/${long%/*}"
else
	skip "growth record finds the process below a cgroup with a long path" \
		"there is no cgroup v2"
fi
sleep 3 &
"$ctl" growth watch --alerts --pid $! --duration 18446744073s 2>&1 | grep -q "process $! has ended"
ok $? "growth watch does not take a duration of centuries for one that is over"
start=$SECONDS
"$ctl" --quiet growth record -o short.csv --interval 1s --duration 2s --pid $$
is "growth record --duration exits with 0" $? 0
[ $((SECONDS - start)) -le 10 ]
ok $? "growth record --duration ends in time"
[ -s short.csv ]
ok $? "growth record --duration writes a trace"
"$ctl" growth record -o short.csv --pid $$ 2>&1 | grep -q 'hint: --force'
ok $? "growth record does not overwrite an existing trace"
! "$ctl" --format json status 2>/dev/null | grep -q "\"pid\": \($watch\|$record\),"
ok $? "status does not list monitors that have ended"
"$ctl" --quiet growth watch --alerts &
watch=$!
for _ in $(seq 300); do [ -e /run/memwatch/growth.$watch ] && break; sleep 0.1; done
[ -e /run/memwatch/growth.$watch ]
ok $? "a monitor has a file in /run/memwatch"
kill -KILL $watch
wait $watch 2>/dev/null
echo 'start_ticks: 1' >/run/memwatch/growth.$$
"$ctl" --quiet growth watch --alerts --duration 1s
! ls /run/memwatch/growth.$watch /run/memwatch/growth.$$ 2>/dev/null
ok $? "the next monitor removes the files of monitors that were killed"
"$ctl" --format json growth replay trace.csv >replay
grep -q "\"pid\": $leak, .*\"reason\": \"limit\"\|\"first_alert_s\": [0-9]" replay
ok $? "replaying the recorded trace gives an alert too"
python3 - $leak <<'END'
import json, sys
p = next(p for p in json.load(open("replay"))["processes"] if p["pid"] == int(sys.argv[1]))
spans = p["notices"] + p["alerts"]
sys.exit(not (p["notices"] and p["alerts"] and p["notices"][0]["start_s"] == p["first_notice_s"]
              and p["alerts"][0]["start_s"] == p["first_alert_s"]
              and p["first_notice_s"] <= p["first_alert_s"]
              and all(s["end_s"] is None or s["end_s"] > s["start_s"] for s in spans)))
END
ok $? "replaying lists all notices and alerts with their times"
is "the trace begins with its header" "$(head -1 trace.csv)" \
	time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb,cgroup,kernel_kb,slab_kb,sock_kb,pagetables_kb,gained_kb,cold_kb,cold_low_kb,cold_high_kb,untouched_s
is "the trace has one process" "$(sed 1d trace.csv | cut -d, -f2 | sort -u | wc -l)" 1
tap_end
