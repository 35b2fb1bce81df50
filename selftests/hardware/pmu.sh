#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# The counters of the PMU beside those of "perf stat", which counts the same process at the same
# time. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "${0%/*}/lib.sh"

# perf_value EVENT: what perf has counted; nothing if it was not counted the whole time
perf_value() { awk -F, -v e="$1" '$3 ~ "^" e && $5 == "100.00" { print $1 }' "$TMP/perf.csv"; }

# compare EVENT KEY PERCENT
compare() {
	wanted=$(perf_value "$1")
	case $wanted in
	"" | *[!0-9]*)
		skip "$2 is that of perf stat" "perf stat could not count $1 the whole time" ;;
	*) within_percent "$2 is that of perf stat" "$(recorded memload "$2")" "$wanted" "$3" ;;
	esac
}

# count EVENTS ARGUMENT...: memload with these arguments, counted by both
count() {
	events=$1
	shift
	record_load taskset -c "$CPU" perf stat -x, -o "$TMP/perf.csv" -e "$events" memload "$@"
	ok $? "memload $1 is recorded while perf stat counts $events"
}

command -v perf >/dev/null || skip_all "perf is not installed"
perf stat -x, -o "$TMP/perf.csv" -e instructions true >/dev/null 2>&1
case $(perf_value instructions) in
"" | *[!0-9]*) skip_all "this machine has no PMU that perf can use" ;;
esac
need_module

plan
insmod "$KO"
ok $? "the module loads"
count cycles,instructions read 2 64
compare instructions instructions 2
compare cycles cycles 5
cache_kib=$(sed 's/K$//' "/sys/devices/system/cpu/cpu$CPU/cache/index3/size" 2>/dev/null)
count cache-references,cache-misses random 2 $((${cache_kib:-16384} * 4))
compare cache-references llc_references 5
compare cache-misses llc_misses 5
rmmod memwatch
ok $? "the module unloads"
tap_end
