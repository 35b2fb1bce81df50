#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# The counters of the PMU beside those of "perf stat", measured without the module: of one
# process, and of two that take turns on a CPU. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "${0%/*}/lib.sh"
BACKEND=bpf

# alone SHAPE PASSES: the instructions of a load, as perf counts them while it runs alone
alone() {
	perf_count instructions memload "$1" "$2" 64
	perf_value instructions
}

# What two processes execute does not depend on it that they take turns.
compare_two() {
	reads=$(passes_for read 64) writes=$(passes_for write 64)
	read1=$(alone read "$reads") write1=$(alone write "$writes")
	record_load 20ms sh -c "taskset -c $CPU memload read $reads 64 & taskset -c $CPU memload write $writes 64; wait"
	ok $? "two processes on one CPU are recorded"
	agrees "the first of two processes has its own instructions" instructions load-read \
		"$read1" "$(alone read "$reads")" 3
	agrees "the second of two processes has its own instructions" instructions load-write \
		"$write1" "$(alone write "$writes")" 3
}

[ "$(id -u)" -eq 0 ] || skip_all "needs root"
[ -r /sys/kernel/btf/vmlinux ] || skip_all "this kernel has no BTF"
need_pmu
plan
compare_all_counters
compare_two
tap_end
