#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine with slow time (lab/rdt-machine/README.md, "Slow time"): many CPUs
# share an L3 cache, and 300 processes run in each slot. What reading their counters takes is
# measured by the module itself, on all these CPUs, with registers that take half a microsecond.
# Arguments: the period in ms, and what is wanted: RMIDs read in a slot at least, slots until a run
# is read at most, and millionths of a CPU for reading at most.
set -u
. /lab/lib.sh

period=$1 reads=$2 slots=$3 share=$4

# field NAME: its value for each CPU that has ticks
field() { sed -n "/ticks=0 /d; s/^cpu .* $1=\([0-9]*\).*/\1/p" /out/overhead; }
sum() { field "$1" | awk '{ n += $1 } END { printf "%.0f\n", n }'; }
largest() { field "$1" | sort -n | tail -1; }
at_most() { [ "$1" -le "$2" ]; }

plan
load rdt_time_ns=30000
rdtctl slow 2560
ok $? "time passes slowly"
# Nothing here waits: a second takes 43 minutes.
mkfifo "$TMP/herd" "$TMP/hold"
herd 0 300 wake "$period" > "$TMP/herd" &
herd=$!
until read -r line && [ "$line" = ready ]; do :; done < "$TMP/herd"
mwctl period=${period}000000 start hold < "$TMP/hold" > "$TMP/session" 2>&1 &
session=$!
exec 9> "$TMP/hold"
sleep 0.05
cp $PROC/overhead /out/overhead
cp $PROC/status /out/status
rdtctl slow 1
exec 9>&-
wait $session
is "the session succeeds" $? 0
kill $herd
rmmod memwatch
ok $? "the module unloads"

ticks=$(sum ticks)
is "every CPU ticks" "$(field ticks | wc -l)" "$(nproc)"
echo "# $ticks ticks, $(sum rdt_reads) RMIDs read, longest tick $(largest irqs_off_max_ns) ns"
at_most "$reads" $(($(sum rdt_reads) * $(nproc) / ticks))
ok $? "at least $reads RMIDs are read in a slot: $(($(sum rdt_reads) * $(nproc) / ticks))"
at_most "$(largest irqs_off_max_ns)" 50000
ok $? "interrupts are off for at most 50 us: $(largest irqs_off_max_ns) ns"
at_most "$(largest rdt_age_max_ns)" $((slots * period * 1000000))
ok $? "a run is read within $slots slots: $(largest rdt_age_max_ns) ns"
at_most $(($(sum rdt_ns) / period / ticks)) "$share"
ok $? "reading takes at most $share millionths of a CPU: $(($(sum rdt_ns) / period / ticks))"
tap_end
