#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# growth watch, record and replay on this machine, on a program that leaks until
# its RLIMIT_DATA stops it. Needs root and BTF, not the module. 40 seconds.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=SCRIPTDIR/../tap.sh
. "$here/../tap.sh"
ctl=${CTL:-$here/../../${BUILD:-build}/cli/memwatchctl}
case $ctl in /*) ;; *) ctl=$PWD/$ctl ;; esac
if [ "$(id -u)" -ne 0 ] || [ ! -r /sys/kernel/btf/vmlinux ]; then
	echo "1..0 # SKIP needs root and a kernel with BTF"
	exit 4
fi
work=$(mktemp -d)
leak='' watch='' record=''
trap 'kill $leak $watch $record 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1

plan 15

# 2 MiB every 0.1 s after a start of 12 s.
(
	ulimit -d 400000
	exec awk 'BEGIN {
		for (block = "x"; length(block) < 65536;)
			block = block block
		system("sleep 12")
		for (i = 0; i < 400; i++) {
			for (j = 0; j < 32; j++)
				x[i, j] = block i
			system("sleep 0.1")
		}
	}' 2>/dev/null
) &
leak=$!
"$ctl" growth record -o trace.csv --interval 1s --duration 60s --pid $leak 2>recorder &
record=$!
"$ctl" --format json growth watch --interval 1s --duration 60s --state state --pid $leak \
	--exec 'echo "$MEMWATCH_EVENT $MEMWATCH_PID $MEMWATCH_REASON $MEMWATCH_SENTENCE" >>hook' >alerts 2>errors &
watch=$!
sleep 8
"$ctl" --format json status >status 2>&1
# Beside a compiler the events cost more than they may: that is said, too.
grep -q "\"pid\": $watch, \"command\": \"growth watch\".*\"budget_rest_ppm\": 1000, .*\"event_program\": \"\(attached\|detached\", \"event_program_reason\": \"over its budget\)" status &&
	grep -q "\"pid\": $record, \"command\": \"growth record\".*\"event_program_reason\": \"not wanted\"" status
knows=$?
ok $knows "status knows of both monitors"
[ $knows -eq 0 ] || sed 's/^/# /' status
wait $watch
ok $? "growth watch ends with its process"
grep -q "process $leak has ended" errors
ok $? "and says so"
head -1 alerts | grep -q "\"event\": \"alert\".*\"pid\": $leak, .*\"verdict\": \"leak\""
ok $? "an alert is one line of JSON"
head -1 alerts | grep -q "\"sentence\": \"[a-z]* ($leak): memory grew by .* at this pace it reaches RLIMIT_DATA in "
ok $? "and says what grew, since when, how fast, and which limit it hits when"
grep -q "^alert $leak limit [a-z]* ($leak): memory grew" hook
ok $? "the hook of --exec knows the same"
[ "$(grep -c '"pid": ' alerts)" -eq "$(grep -c "\"pid\": $leak," alerts)" ]
ok $? "--pid hides the others"
"$ctl" --verbose growth watch --duration 1s --state state --alerts 2>&1 | grep -q 'state: [1-9][0-9]* histories taken up again'
ok $? "the state file is taken up again"
wait $record && grep -q "process $leak has ended" recorder
ok $? "growth record ends with its process too"
"$ctl" growth watch --pid $leak 2>&1 | grep -q "there is no process $leak"
ok $? "growth watch --pid of no process says so"
start=$SECONDS
"$ctl" --quiet growth record -o short.csv --interval 1s --duration 2s --pid $$
[ $? -eq 0 ] && [ $((SECONDS - start)) -le 10 ] && [ -s short.csv ]
ok $? "growth record ends when told to"
"$ctl" growth record -o short.csv --pid $$ 2>&1 | grep -q 'hint: --force'
ok $? "and does not replace what is there"
! "$ctl" --format json status 2>/dev/null | grep -q "\"pid\": \($watch\|$record\),"
ok $? "and status does not know of them any more"
"$ctl" --format json growth replay trace.csv >replay
grep -q "\"pid\": $leak, .*\"reason\": \"limit\"\|\"first_alert_s\": [0-9]" replay
ok $? "a replay of what was recorded alarms too"
[ "$(head -1 trace.csv)" = time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb ] &&
	[ "$(cut -d, -f2 trace.csv | sort -u | wc -l)" -eq 2 ]
ok $? "the trace has its head and one process"
