# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
# shellcheck shell=sh
#
# Functions for the tests that need RDT or a PMU: recording a load, and comparing two values of
# it. Sourced; it sources guest.sh.

# shellcheck source=SCRIPTDIR/../guest.sh
. "${0%/*}/guest.sh"
LD_LIBRARY_PATH=$HERE
export LD_LIBRARY_PATH LC_ALL=C

# The last CPU, so that the load keeps away from interrupts, most of which go to the first.
CPU=$(sed 's/.*[-,]//' /sys/devices/system/cpu/online)

# within_percent WHAT GOT WANTED PERCENT: one result
within_percent() {
	awk -v a="$2" -v b="$3" -v p="$4" 'BEGIN {
		d = a - b
		exit !(a != "" && b > 0 && (d < 0 ? -d : d) <= b * p / 100)
	}'
	ok $? "$1"
	echo "# memwatch: ${2:-no value}, reference: ${3:-no value}, allowed: $4 %"
}

# record_load COMMAND...: a recording of it in $TMP/load.mwr
record_load() {
	rm -f "$TMP/load.mwr"
	memwatchctl -q record -o "$TMP/load.mwr" -- "$@" >"$TMP/record.log" 2>&1 ||
		sed 's/^/# /' "$TMP/record.log"
	memwatchctl -q --format csv report "$TMP/load.mwr" >"$TMP/load.csv" || return 1
}

# recorded COMM KEY: the value of a program in the recording; nothing if it was not measured
recorded() {
	awk -F, -v comm="$1" -v key="$2" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["comm"] == comm { print $at[key]; exit }' "$TMP/load.csv"
}
