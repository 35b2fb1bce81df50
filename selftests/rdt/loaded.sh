#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The recorder on a machine whose CPUs all have more to do than they can: processes that use a CPU,
# and others that wake up each millisecond. In the simulated machine with slow time
# (lab/rdt-machine/README.md), in which each CPU executes some 3 000 million instructions a second.
# Arguments: the number of processes of each kind for a CPU.
set -u
. /lab/lib.sh
T=$TMP

# all, idle: time of all CPUs, in ticks of /proc/stat; waiting for a disk is idle, too
all() { awk '$1 == "cpu" { print $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9; exit }' /proc/stat; }
idle() { awk '$1 == "cpu" { print $5 + $6; exit }' /proc/stat; }

plan
load
cpus=$(nproc)
in_background "$T/spin" herd 0 $((cpus * $1)) spin
spin=$!
in_background "$T/wake" herd 0 $((cpus * $2)) wake 1
wake=$!
for kind in spin wake; do
	within 60 grep -q ready "$T/$kind"
	ok $? "the processes that $kind are there"
done
rdtctl slow 64
ok $? "time passes slowly"
all=$(all) idle=$(idle)
memwatchctl --format json record -o "$T/run.mwr" -d 2 > "$T/json" 2> "$T/err"
is "record on a machine at full load exits with 0" $? 0
all=$(($(all) - all)) idle=$(($(idle) - idle))
rdtctl slow 1
sed 's/^/# /' "$T/err"
echo "# idle for $idle of $all ticks"
[ $((idle * 50)) -lt "$all" ]
ok $? "all CPUs are busy for at least 98 % of the time"
[ "$(json_number records "$T/json")" -gt $((cpus * 2000 * $2 / 2)) ]
ok $? "most wake-ups of the processes are recorded: $(json_number records "$T/json") records"
is "no record is lost at full load" "$(json_number lost "$T/json")" 0
end_processes $spin $wake
memwatchctl --format json report "$T/run.mwr" > "$T/json" 2> "$T/err"
is "the recording is complete" $? 0
rmmod memwatch
ok $? "the module unloads"
tap_end
