#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Two domains of two CPUs: do the kernel's resctrl, perf and pqos, which know
# nothing of us, read what really went on?
cd /lab || exit 1
. ./tap.sh
. ./lib.sh

fs=/sys/fs/resctrl
MIB=1048576

plan 17
modprobe msr
# pages shall stay where they are
echo 0 > /proc/sys/kernel/numa_balancing

check "the kernel detects L3 monitoring" sh -c 'dmesg | grep -q "resctrl: L3 monitoring detected"'
check "two L3 caches, shared as the machine says" \
	same "shared" "$(cat /sys/devices/system/cpu/cpu[13]/cache/index3/shared_cpu_list | xargs)" "0-1 2-3"
check "the kernel's PMU driver takes the PMU" \
	sh -c 'dmesg | grep -q "generic architected perfmon"'
check "resctrl mounts" mount -t resctrl resctrl $fs
check "the machine finds the guest's processes" rdtctl guest
rdtctl track on
mkdir $fs/mon_groups/busy $fs/mon_groups/idle

# resctrl GROUP DOMAIN FILE
resctrl() { cat "$fs/mon_groups/$1/mon_data/mon_L3_0$2/$3"; }

# A process on CPU 3 reads 24 MiB three times, in a group of its own.
start_work 3 read 24 3
echo "$work" > $fs/mon_groups/busy/tasks
snapshot before
before=$(resctrl busy 1 mbm_total_bytes)
go_on
snapshot mid
after=$(resctrl busy 1 mbm_total_bytes)
occupancy=$(resctrl busy 1 llc_occupancy)
snapshot after
bytes=$((after - before))
rmid=$(awk '$1 == "rmid" && $2 == 1 && $3 > 0 { print $3; exit }' /lab/after)

check "a reader of 72 MiB is charged that much" near "bytes" "$bytes" $((72 * MIB)) 3
check "an idle group is charged nothing" \
	near "bytes" "$(resctrl idle 1 mbm_total_bytes)" 0 0 65536
check "resctrl's total is the truth" \
	between "bytes" "$(value mid "rmid 1 $rmid" total)" "$after" \
	"$(value after "rmid 1 $rmid" total)"
check "resctrl's occupancy is the truth" \
	between "bytes" "$(value after "rmid 1 $rmid" occupancy)" "$occupancy" \
	"$(value mid "rmid 1 $rmid" occupancy)"
check "the process is charged like its group, without any RMID" \
	near "bytes" $(($(process after "$work" total) - $(process before "$work" total))) \
	"$bytes" 1
check "RMIDs and processes add up to the machine's total" sums_agree after

# The same memory, which is at home in domain 1, read from domain 0.
end_work
start_work 3 read 24 1
taskset -p 1 "$work" >/dev/null
snapshot before
go_on
snapshot after
check "memory of the other domain is not local" \
	near "local bytes" $(($(process after "$work" local) - $(process before "$work" local))) \
	0 0 $((MIB / 4))
check "and is in the total" \
	near "bytes" $(($(process after "$work" total) - $(process before "$work" total))) \
	$((24 * MIB)) 5
end_work
umount $fs

# perf, on everything that CPU 2 does
count() { awk -F, -v e="$1" '$3 ~ e { print $1 }' /lab/perf.csv; }
taskset 4 perf stat -x, -o /lab/perf.csv -e instructions:u ./work spin 20000000
check "perf counts 40 million instructions" near "instructions" "$(count instructions)" 40000000 5
start_work 2 read 24 4
snapshot before
perf stat -x, -o /lab/perf.csv -C 2 -e cache-misses sh -c "
	kill -CONT $work; sleep 0.1
	until grep -q '^State:.T' /proc/$work/status; do sleep 0.05; done"
snapshot after
check "perf counts the LLC misses of a CPU" between "misses" $((4 * 24 * MIB / 64)) \
	"$(count cache-misses)" $(($(value after "cpu 2" misses) - $(value before "cpu 2" misses)))
end_work

# pqos, through the MSRs
mkdir -p /var/lock
pqos --iface=msr -r -m 'llc:0,1,3;mbl:0,1,3;mbr:0,1,3' -i 10 -t 6 -u csv -o /lab/pqos.csv \
	> /lab/pqos.log 2>&1 &
pqos=$!
until [ -s /lab/pqos.csv ]; do
	sleep 0.1
	kill -0 $pqos 2>/dev/null || break
done
snapshot before
start_work 3 read 24 4
go_on
snapshot mid
wait $pqos
snapshot after
cat /lab/pqos.log /lab/pqos.csv >&2
rmid=$(value mid "cpu 3" rmid)
mb=$(awk -F, '$2 == "\"3\"" { n += $(NF - 1) + $NF } END { print n }' /lab/pqos.csv)
end_work
check "pqos gives core 3 an RMID" between "RMID" 1 "$rmid" 31
check "pqos sees the bytes of core 3" near "MB" "$mb" \
	$((($(value after "rmid 1 $rmid" total) - $(value before "rmid 1 $rmid" total)) / MIB)) 5
tap_end
