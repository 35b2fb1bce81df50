#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: many CPUs share one L3 cache and read its counters. Argument:
# the vendor. How long something takes depends on the host, so times are only compared
# with each other.
set -u
. /lab/lib.sh

vendor=$1

# field NAME: its value for each CPU that has ticks
field() { sed -n "/ticks=0 /d; s/^cpu .* $1=\([0-9]*\).*/\1/p" /out/overhead; }
sum() { field "$1" | awk '{ n += $1 } END { printf "%.0f\n", n }'; }
largest() { field "$1" | sort -n | tail -1; }
smallest() { field "$1" | sort -n | head -1; }
at_most() { [ "$1" -le "$2" ]; }

plan
load rdt_time_ns=30000
begin_record
loads=
for _ in $(seq 60); do
	memload idle 1000 64 &
	loads="$loads $!"
done
within 10 status_at_least rmids_used 60
ok $? "many processes have an RMID: $(status rmids_used)"
sleep 2
cp $PROC/overhead /out/overhead
before=$(sum ticks)
rdtctl log on
sleep 2
rdtctl log off
cp $PROC/overhead /out/overhead
ticks=$(($(sum ticks) - before))
end_record
# shellcheck disable=SC2086 # words
kill $loads
rmmod memwatch
ok $? "the module unloads"

is "every CPU ticks" "$(field ticks | wc -l)" 16
at_most 1 "$(smallest rdt_reads)"
ok $? "every CPU reads RMIDs: at least $(smallest rdt_reads)"
at_most "$(largest rdt_reads)" $(($(sum rdt_reads) / 4))
ok $? "no CPU reads more than a quarter: $(largest rdt_reads) of $(sum rdt_reads)"
at_most "$(largest rdt_ops_max)" 48
ok $? "no CPU does more than 48 operations in one go: $(largest rdt_ops_max)"
at_most $(($(sum rdt_sync_ns) * 2)) "$(sum rdt_ns)"
ok $? "CPUs read for longer than they agree on what to read: $(sum rdt_sync_ns) of $(sum rdt_ns) ns"
echo "# oldest run read after $(largest rdt_age_max_ns) ns, interrupts off for" \
	"$(largest irqs_off_max_ns) ns, found busy $(sum rdt_busy) times"

# CPUs that share EVTSEL must not come between the two accesses of another one.
awk -v shared="$([ "$vendor" = amd ] && echo 1)" '
	$3 == "w" && $4 == "c8d" { last[shared ? 0 : $2] = $2 }
	$3 == "r" && $4 == "c8e" { n++; bad += last[shared ? 0 : $2] != $2 }
	END { print n, bad + 0 }' /out/rdt.msr > "$TMP/pairs"
read -r pairs bad < "$TMP/pairs"
at_most 1000 "$pairs"
ok $? "the registers were read many times: $pairs"
is "no CPU comes between a write of EVTSEL and the read of QM_CTR" "$bad" 0

# Where one CPU of 16 reads in each slot, the registers pass to another CPU once in 16 ticks; a few
# more times, because a CPU that is late reads after the next one has begun.
if [ "$vendor" = amd ]; then
	turns=$(awk '$3 == "r" && $4 == "c8e" { n += $2 != last; last = $2 } END { print n + 0 }' /out/rdt.msr)
	at_most "$turns" $((ticks / 4))
	ok $? "one CPU reads for all in a slot: the registers change hands $turns times in $ticks ticks"
fi
tap_end
