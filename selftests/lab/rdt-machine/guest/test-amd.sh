#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An AMD machine with two L3 domains of two CPUs, the second with fewer RMIDs. Speaks
# TAP.
cd /lab || exit 1
. ./tap.sh
. ./lib.sh

fs=/sys/fs/resctrl

plan 11
modprobe msr
modprobe cpuid
check "the kernel detects L3 monitoring" sh -c 'dmesg | grep -q "resctrl: L3 monitoring detected"'
check "the CPU says that it is from AMD" grep -q AuthenticAMD /proc/cpuinfo
check "CPUID 0xF.1 EAX is 0, which means 44 bits" same "EAX" \
	"$(dd if=/dev/cpu/0/cpuid bs=16 count=1 iflag=skip_bytes skip=$((15 | 1 << 32)) 2>/dev/null |
		od -An -tx4 | awk '{ print $1 }')" 00000000
# Before resctrl is mounted: for a while after it was, its workers write EVTSEL.
rdtctl guest
wrmsr -p 0 0xc8d 0x100000002
wrmsr -p 2 0xc8d 0x300000001
check "the CPUs of an L3 domain share the register EVTSEL" same "EVTSEL" \
	"$(rdmsr -p 1 0xc8d) $(rdmsr -p 3 0xc8d)" "100000002 300000001"
rdtctl inject foreign 0 5 total 1
wrmsr -p 0 0xc8d 0x500000002
changed=$(rdmsr -p 0 0xc8d)
wrmsr -p 0 0xc8d 0x500000002
check "an injected foreign write changes EVTSEL once" same "EVTSEL" \
	"$changed $(rdmsr -p 0 0xc8d)" "2 500000002"
check "resctrl mounts" mount -t resctrl resctrl $fs
check "resctrl has a directory for each of two L3 caches" same "domains" "$(echo $fs/mon_data/*)" \
	"$fs/mon_data/mon_L3_00 $fs/mon_data/mon_L3_01"
rdtctl track on
check_group_on_cpu3
umount $fs
wrmsr -p 1 0xc8f 31
check "the first domain accepts its highest RMID" same "PQR" "$(rdmsr -p 1 0xc8f)" 1f
wrmsr -p 1 0xc8f 0
check "the second domain refuses an RMID above its own number" \
	sh -c '! wrmsr -p 3 0xc8f 24 2>/dev/null && wrmsr -p 3 0xc8f 0'
tap_end
