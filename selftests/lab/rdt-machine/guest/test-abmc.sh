#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An AMD machine with assignable bandwidth counters, of two L3 domains of two CPUs. The
# resctrl of the kernel, which assigns such counters since 6.18, must read what the machine
# itself counted. Speaks TAP.
cd /lab || exit 1
. ./tap.sh
. ./lib.sh

fs=/sys/fs/resctrl

# enabled: how many of the 8 counters of the first domain count something
enabled() {
	for id in 0 1 2 3 4 5 6 7; do
		wrmsr -p 0 0xc00003fd "0x000${id}000000000000"
		rdmsr -p 0 -f 62:62 0xc00003fe
	done | grep -c 1
}

# highest_bits EVENT: bits 62 and 63 of what CPU 0 reads of an event. resctrl reads by the same
# registers once a second, so this counts only if the event is still selected afterwards.
highest_bits() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		wrmsr -p 0 0xc8d "$1"
		bits=$(rdmsr -p 0 -f 63:62 0xc8e)
		[ "$(rdmsr -p 0 -c 0xc8d)" != "$1" ] || break
	done
	echo "$bits"
}

plan 10
modprobe msr
check "the kernel has enabled them on every CPU" same "0xC00003FF" \
	"$(rdmsr -a 0xc00003ff | tr -d '\n')" 1111
check "no counter is in use before resctrl is mounted" same "counters" "$(enabled)" 0
check "resctrl mounts" mount -t resctrl resctrl $fs
check "resctrl assigns counters" grep -q '\[mbm_event\]' $fs/info/L3_MON/mbm_assign_mode
check "resctrl finds the number of counters" same "counters" "$(cat $fs/info/L3_MON/num_mbm_cntrs)" \
	"0=8;1=8"
rdtctl guest && rdtctl track on
check_group_on_cpu3
check "two groups use two counters each" same "counters" "$(enabled)" 4
check "an RMID without a counter reads as unavailable" \
	same "bits 62 and 63" "$(highest_bits 0x1f00000002)" 1
rmdir $fs/mon_groups/busy
umount $fs
check "resctrl gives its counters back" same "counters" "$(enabled)" 0
tap_end
