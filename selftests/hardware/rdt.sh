#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# The values of RDT beside those of resctrl: the kernel's own reader measures a steady load in a
# group of its own, then memwatch does, then resctrl again. The two cannot measure at the same
# time. The two values of resctrl say how steady the load is on this machine. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "${0%/*}/lib.sh"
RESCTRL=/sys/fs/resctrl

# sum_of GROUP FILE: over all L3 caches
sum_of() { cat "$1"/mon_data/mon_L3_*/"$2" | awk '{ s += $1 } END { printf "%.0f\n", s }'; }

# measure_resctrl SHAPE KIB: sets $bytes, the traffic of $passes passes, and $held, the largest
# occupancy
measure_resctrl() {
	group=$RESCTRL/mon_groups/memwatch-test
	mount -t resctrl resctrl $RESCTRL || return 1
	mounted=yes
	mkdir $group || return 1
	before=$(sum_of $group mbm_total_bytes)
	held=0
	taskset -c "$CPU" sh -c "echo \$\$ >$group/tasks && exec memload $1 $passes $2" &
	load=$!
	while kill -0 $load 2>/dev/null; do
		now=$(sum_of $group llc_occupancy)
		[ "$now" -le "$held" ] || held=$now
		sleep 0.1
	done
	wait $load
	bytes=$(($(sum_of $group mbm_total_bytes) - before))
	rmdir $group
	umount $RESCTRL
	mounted=
}

# mounted is set while the test itself has resctrl mounted.
mounted=
undo() {
	[ -n "$mounted" ] || return
	rmdir $RESCTRL/mon_groups/memwatch-test 2>/dev/null
	umount $RESCTRL
}

# compare SHAPE KIB: one load
compare() {
	what="$1, $2 KiB"
	passes=$(passes_for "$1" "$2")
	measure_resctrl "$1" "$2" || { ok 1 "$what: resctrl measures the load"; return; }
	bytes1=$bytes held1=$held
	insmod "$KO"
	matches "$what: memwatch uses RDT" "$(status backend)" "intel-rdt\|amd-qos"
	record_load 1ms taskset -c "$CPU" memload "$1" "$passes" "$2"
	ok $? "$what: the load is recorded"
	rmmod memwatch
	measure_resctrl "$1" "$2"
	agrees "$what: the traffic is that of resctrl" mbm_total_bytes "load-$1" "$bytes1" "$bytes" 5
	# memwatch reads a hundred times as often, so that it sees a larger maximum.
	agrees "$what: the largest occupancy is that of resctrl" llc_occupancy_max_bytes "load-$1" \
		"$held1" "$held" 15
}

for flag in cqm_occup_llc cqm_mbm_total; do
	grep -qw $flag /proc/cpuinfo || skip_all "this CPU has no RDT monitoring ($flag)"
done
grep -qw resctrl /proc/filesystems || skip_all "this kernel has no resctrl (CONFIG_X86_CPU_RESCTRL)"
! grep -qw resctrl /proc/mounts || skip_all "resctrl is mounted and may be in use"
need_module
insmod "$KO"
backend=$(status backend) reason=$(status backend_reason)
rmmod memwatch
case $backend in
intel-rdt | amd-qos) ;;
*) skip_all "memwatch does not use RDT here: $reason" ;;
esac

plan
cache_kib=$(sed 's/K$//' "/sys/devices/system/cpu/cpu$CPU/cache/index3/size")
# Twice the cache streams through it. What fits into the cache is no good load: a line keeps the
# RMID of who loaded it, so memory that an earlier load has left there causes no traffic.
for shape in read write random; do
	compare $shape $((cache_kib * 2))
done
tap_end
