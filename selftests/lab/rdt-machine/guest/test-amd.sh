#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# AMD, two domains of two CPUs, the second with fewer RMIDs.
cd /lab || exit 1
. ./tap.sh
. ./lib.sh

fs=/sys/fs/resctrl
MIB=1048576

plan 10
modprobe msr
modprobe cpuid
check "the kernel detects L3 monitoring" sh -c 'dmesg | grep -q "resctrl: L3 monitoring detected"'
check "of AMD" grep -q AuthenticAMD /proc/cpuinfo
check "CPUID 0xF.1 EAX is 0, which stands for 44 bits" same "EAX" \
	"$(dd if=/dev/cpu/0/cpuid bs=16 count=1 iflag=skip_bytes skip=$((15 | 1 << 32)) 2>/dev/null |
		od -An -tx4 | awk '{ print $1 }')" 00000000
check "resctrl mounts" mount -t resctrl resctrl $fs
check "two L3 caches" same "domains" "$(echo $fs/mon_data/*)" \
	"$fs/mon_data/mon_L3_00 $fs/mon_data/mon_L3_01"
rdtctl guest && rdtctl track on
mkdir $fs/mon_groups/busy
start_work 3 read 24 3
echo "$work" > $fs/mon_groups/busy/tasks
file=$fs/mon_groups/busy/mon_data/mon_L3_01/mbm_total_bytes
before=$(cat $file)
go_on
after=$(cat $file)
snapshot a
end_work
check "a reader of 72 MiB is charged that much" near "bytes" $((after - before)) $((72 * MIB)) 3
check "RMIDs and processes add up to the machine's total" sums_agree a
umount $fs
wrmsr -p 0 0xc8d 0x100000002
wrmsr -p 2 0xc8d 0x300000001
check "the CPUs of a domain share EVTSEL" same "EVTSEL" \
	"$(rdmsr -p 1 0xc8d) $(rdmsr -p 3 0xc8d)" "100000002 300000001"
wrmsr -p 1 0xc8f 31
check "a domain has its RMIDs" same "PQR" "$(rdmsr -p 1 0xc8f)" 1f
wrmsr -p 1 0xc8f 0
check "the other has fewer" sh -c '! wrmsr -p 3 0xc8f 24 2>/dev/null && wrmsr -p 3 0xc8f 0'
tap_end
