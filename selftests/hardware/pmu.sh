#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# The counters of the PMU beside those of "perf stat", which counts the same work before and
# after: at the same time, the two could need more counters than the PMU has. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "${0%/*}/lib.sh"

# perf_count EVENTS COMMAND...
perf_count() {
	perf_events=$1
	shift
	taskset -c "$CPU" perf stat -x, -o "$TMP/perf.csv" -e "$perf_events" "$@" >/dev/null 2>&1
}

# perf_value EVENT: what perf has counted; nothing if it could not count the whole time
perf_value() { awk -F, -v e="$1" '$3 ~ "^" e && $5 == "100.00" && $1 ~ /^[0-9]+$/ { print $1 }' "$TMP/perf.csv"; }

# compare SHAPE KIB EVENT KEY EVENT KEY: two counters of one load
compare() {
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

command -v perf >/dev/null || skip_all "perf is not installed"
perf_count instructions true
[ -n "$(perf_value instructions)" ] || skip_all "this machine has no PMU that perf can use"
need_module

plan
insmod "$KO"
ok $? "the module loads"
cache_kib=$(sed 's/K$//' "/sys/devices/system/cpu/cpu$CPU/cache/index3/size" 2>/dev/null)
compare read 64 instructions instructions cycles cycles
compare random $((${cache_kib:-16384} * 4)) cache-references llc_references cache-misses llc_misses
rmmod memwatch
ok $? "the module unloads"
tap_end
