#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Two L3 domains of two CPUs: the kernel's resctrl, perf and pqos, which do not know of
# memwatch, must read what the machine itself counted. Speaks TAP.
cd /lab || exit 1
. ./tap.sh
. ./lib.sh

fs=/sys/fs/resctrl

plan 17
modprobe msr
# Pages must stay in the domain where they were allocated.
echo 0 > /proc/sys/kernel/numa_balancing

check "the kernel detects L3 monitoring" sh -c 'dmesg | grep -q "resctrl: L3 monitoring detected"'
check "there are two L3 caches with two CPUs each" \
	same "shared" "$(cat /sys/devices/system/cpu/cpu[13]/cache/index3/shared_cpu_list | xargs)" "0-1 2-3"
check "the kernel uses the PMU" \
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

check "resctrl charges a process that reads 72 MiB with as much" \
	near "bytes" "$bytes" $((72 * MIB)) 3
check "resctrl charges an idle group with nothing" \
	near "bytes" "$(resctrl idle 1 mbm_total_bytes)" 0 0 65536
check "the total bytes of resctrl are the true value" \
	between "bytes" "$(value mid "rmid 1 $rmid" total)" "$after" \
	"$(value after "rmid 1 $rmid" total)"
check "the occupancy of resctrl is the true value" \
	between "bytes" "$(value after "rmid 1 $rmid" occupancy)" "$occupancy" \
	"$(value mid "rmid 1 $rmid" occupancy)"
check "the machine charges the process with the bytes of its group" \
	near "bytes" $(($(process after "$work" total) - $(process before "$work" total))) \
	"$bytes" 1
check "the traffic of RMIDs and of processes adds up to that of the domain" sums_agree after

# The memory of a process is allocated in domain 1 and then read from domain 0.
end_work
start_work 3 read 24 1
taskset -p 1 "$work" >/dev/null
snapshot before
go_on
snapshot after
check "bytes from the memory of the other domain are not local" \
	near "local bytes" $(($(process after "$work" local) - $(process before "$work" local))) \
	0 0 $((MIB / 4))
check "bytes from the memory of the other domain are in the total" \
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
: > /lab/pqos.csv
pqos --iface=msr -r -m 'llc:0,1,3;mbl:0,1,3;mbr:0,1,3' -i 10 -t inf -u csv > /lab/pqos.csv \
	2> /lab/pqos.log &
pqos=$!
# wait_for_rows N: until pqos has printed N more rows for core 3, for at most a minute
wait_for_rows() {
	rows=$(($(grep -c '"3"' /lab/pqos.csv) + $1))
	for _ in $(seq 600); do
		[ "$(grep -c '"3"' /lab/pqos.csv)" -lt $rows ] || return 0
		sleep 0.1
	done
}
wait_for_rows 1
snapshot before
start_work 3 read 24 4
go_on
snapshot mid
wait_for_rows 2
kill -INT $pqos
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
