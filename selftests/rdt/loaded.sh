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

# json KEY: the number after "KEY"
json() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$T/json"; }
# all, idle: time of all CPUs, in ticks of /proc/stat; what they waited for no disk counts as idle
all() { awk '$1 == "cpu" { print $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9; exit }' /proc/stat; }
idle() { awk '$1 == "cpu" { print $5 + $6; exit }' /proc/stat; }

plan
load
cpus=$(nproc)
mkfifo "$T/spin" "$T/wake"
herd 0 $((cpus * $1)) spin > "$T/spin" &
spin=$!
herd 0 $((cpus * $2)) wake 1 > "$T/wake" &
wake=$!
# Nothing here waits by time: a second takes a minute.
for kind in spin wake; do
	until read -r line && [ "$line" = ready ]; do :; done < "$T/$kind"
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
[ "$(json records)" -gt $((cpus * 2000 * $2 / 2)) ]
ok $? "most wake-ups of the processes are recorded: $(json records) records"
is "no record is lost at full load" "$(json lost)" 0
kill $spin $wake
memwatchctl --format json report "$T/run.mwr" > "$T/json" 2> "$T/err"
is "the recording is complete" $? 0
rmmod memwatch
ok $? "the module unloads"
tap_end
