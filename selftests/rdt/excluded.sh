#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine with 2 CPUs: the cpumask excludes CPU 1, on which a process moves
# memory. Argument: "beside", CPU 0 ticks and has the same L3 cache; or "alone", CPU 1 has
# an L3 cache of its own.
set -u
. /lab/lib.sh

# In how many tenths of a second a CPU reads counters, as the machine logged it
times_read_on() {
	awk -v cpu="$1" '$2 == cpu && $3 == "r" && $4 == "c8e" { print int($1 / 1e8) }' \
		/out/rdt.msr | sort -u | wc -l
}

plan
rdtctl guest && rdtctl track on
load
memwatchctl config cpumask=0
begin_record
rdtctl snapshot begin
taskset 2 memload read 5 8192 &
loads=$!
taskset 1 memload read 5 64 &
sleep 1
rdtctl log on
sleep 3
rdtctl log off
wait $loads $!
sleep 0.8
: > /out/expected
rdtctl snapshot end
end_record
export_csv run
echo "# tenths of 3 s with reads of counters: $(times_read_on 0) on CPU 0, $(times_read_on 1) on CPU 1"
if [ "$1" = beside ]; then
	# It is asked twelve times. If the host stops the machine, CPU 0 seems not to tick.
	[ "$(times_read_on 1)" -le 2 ]
	ok $? "an excluded CPU leaves reading to the one that ticks: it read $(times_read_on 1) times"
else
	[ "$(times_read_on 1)" -ge 4 ]
	ok $? "an excluded CPU reads if no other one has its cache: it read $(times_read_on 1) times"
fi
# The times in ms between two readings of the load in the domain of CPU 1
awk -F, -v tgid=$loads -v domain="$([ "$1" = alone ] && echo 1 || echo 0)" '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$at["type"] == "rmid_alloc" && $at["tgid"] == tgid { rmid = $at["rmid"]; g = $at["generation"] }
	$at["type"] == "rdt" && $at["domain"] == domain && $at["rmid"] == rmid &&
		$at["generation"] == g {
		t = $at["time_ns"]
		if (last) printf "%.0f\n", (t - last) / 1e6
		last = t
	}' "$TMP/run.csv" | sort -n > "$TMP/gaps"
echo "# at most $(tail -1 "$TMP/gaps") ms between two readings"
readings=$(wc -l < "$TMP/gaps")
[ "$readings" -ge 4 ]
ok $? "what runs on the excluded CPU is read: $readings times in 5 s"
# Not the longest time: the host may stop the machine for a second.
gap=$(sed -n "$((readings / 2 + 1))p" "$TMP/gaps")
[ "$gap" -le 500 ]
ok $? "it is read some times a second: mostly after $gap ms"
rmmod memwatch
ok $? "the module unloads"
tap_end
