# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
# shellcheck shell=sh
#
# Functions for the tests that need RDT or a PMU: recording a load, and comparing two values of
# it. BACKEND names what measures, if it is not the module. Sourced; it sources guest.sh.

# shellcheck source=SCRIPTDIR/../guest.sh
. "${0%/*}/guest.sh"
LD_LIBRARY_PATH=$HERE
export LD_LIBRARY_PATH LC_ALL=C

# The last CPU, so that the load keeps away from interrupts, most of which go to the first.
CPU=$(sed 's/.*[-,]//' /sys/devices/system/cpu/online)

# uptime_seconds: with two digits after the point
uptime_seconds() { cut -d ' ' -f 1 /proc/uptime; }

# passes_for SHAPE KIB: how many passes memload makes in about two seconds, as an argument for it
passes_for() {
	for_passes=10 for_spent=0
	until awk -v t="$for_spent" 'BEGIN { exit !(t > 0.3) }'; do
		for_passes=$((for_passes * 4))
		for_begin=$(uptime_seconds)
		taskset -c "$CPU" memload "$1" ${for_passes}x "$2"
		for_spent=$(awk -v t="$(uptime_seconds)" -v t0="$for_begin" 'BEGIN { print t - t0 }')
	done
	awk -v n=$for_passes -v t="$for_spent" 'BEGIN { printf "%dx\n", 2 * n / t + 1 }'
}

# bound_of REFERENCE REFERENCE LEAST: by how many percent a value may differ from the mean of
# two references: what separates these two may separate it from them, too. Nothing if the load
# is not steady.
bound_of() {
	awk -v a="$1" -v b="$2" -v least="$3" 'BEGIN {
		apart = a + b ? 200 * (a > b ? a - b : b - a) / (a + b) : 200
		if (apart <= 10)
			printf "%.1f\n", least + apart
	}'
}

# agrees WHAT KEY COMM REFERENCE REFERENCE LEAST: one result; the value of the recording is that of
# the references, which another reader has measured before and after
agrees() {
	got=$(recorded "$3" "$2") bound=$(bound_of "$4" "$5" "$6")
	echo "# $2: memwatch $got ($(recorded "$3" "$2_status")), references $4 and $5, least bound $6 %"
	if [ -z "$bound" ]; then
		skip "$1" "other work disturbs the load: two references differ by more than 10 %"
		return
	fi
	awk -v x="$got" -v a="$4" -v b="$5" -v p="$bound" 'BEGIN {
		d = x - (a + b) / 2
		exit !(x != "" && (d < 0 ? -d : d) <= (a + b) / 2 * p / 100)
	}'
	ok $? "$1"
}

# record_load PERIOD COMMAND...: a recording of it in $TMP/load.mwr
record_load() {
	record_period=$1
	shift
	rm -f "$TMP/load.mwr"
	memwatchctl -q record --backend "${BACKEND:-module}" -o "$TMP/load.mwr" \
		--period "$record_period" -- "$@" \
		>"$TMP/record.log" 2>&1 ||
		sed 's/^/# /' "$TMP/record.log"
	memwatchctl -q --format csv report "$TMP/load.mwr" >"$TMP/load.csv" || return 1
}

# recorded COMM KEY: the value of a program in the recording; nothing if it was not measured
recorded() {
	awk -F, -v comm="$1" -v key="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["comm"] == comm { print $at[key]; exit }' "$TMP/load.csv"
}

# ------------------------------------------------------------------ perf stat

# perf_count EVENTS COMMAND...
perf_count() {
	perf_events=$1
	shift
	taskset -c "$CPU" perf stat -x, -o "$TMP/perf.csv" -e "$perf_events" "$@" >/dev/null 2>&1
}

# perf_value EVENT: what perf has counted; nothing if it could not count the whole time
perf_value() { awk -F, -v e="$1" '$3 ~ "^" e && $5 == "100.00" && $1 ~ /^[0-9]+$/ { print $1 }' "$TMP/perf.csv"; }

# need_pmu: skips the whole test where perf has no counters. Called before plan.
need_pmu() {
	command -v perf >/dev/null || skip_all "perf is not installed"
	perf_count instructions true
	[ -n "$(perf_value instructions)" ] || skip_all "this machine has no PMU that perf can use"
}

# compare_counters SHAPE KIB EVENT KEY EVENT KEY: two counters of one load. perf counts the same
# work before and after: at the same time, the two could need more counters than the PMU has.
compare_counters() {
	passes=$(passes_for "$1" "$2")
	perf_count "$3,$5" memload "$1" "$passes" "$2"
	first=$(perf_value "$3") second=$(perf_value "$5")
	# What a tick costs is counted for the process in which it ticks.
	record_load 20ms taskset -c "$CPU" memload "$1" "$passes" "$2"
	ok $? "memload $1 is recorded"
	perf_count "$3,$5" memload "$1" "$passes" "$2"
	agrees "$4 is that of perf stat" "$4" "load-$1" "$first" "$(perf_value "$3")" 3
	agrees "$6 is that of perf stat" "$6" "load-$1" "$second" "$(perf_value "$5")" 3
}

# compare_all_counters: those that memwatch has
compare_all_counters() {
	cache_kib=$(sed 's/K$//' "/sys/devices/system/cpu/cpu$CPU/cache/index3/size" 2>/dev/null)
	compare_counters read 64 instructions instructions cycles cycles
	compare_counters random $((${cache_kib:-16384} * 4)) cache-references llc_references \
		cache-misses llc_misses
}
