#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: the kernel's resctrl (one group for each process), pqos
# and memwatch read the traffic of the same loads; the oracle compares each with what
# the machine itself counted. /out/agree has the lines READER LOAD PID BYTES.
set -u
. /lab/lib.sh

loads="read write random"

# total_bytes GROUP: over all L3 domains
total_bytes() { cat "$1"/mon_data/mon_L3_*/mbm_total_bytes | awk '{ s += $1 } END { print s }'; }

# count_wild_totals N: of N values of mbm_total_bytes that resctrl gives, those that are less than
# the one before, or by more than a GiB more
count_wild_totals() {
	awk -v n="$1" -v file=$RESCTRL/mon_data/mon_L3_00/mbm_total_bytes 'BEGIN {
		while (n-- > 0 && (getline total < file) > 0) {
			close(file)
			if (last == "")
				first = last = total
			wild += total < last || total - last >= 1073741824
			last = total
		}
		if (n >= 0)
			print "a value cannot be read"
		else
			print(last > first ? wild + 0 : "the counter stands still")
	}'
}

plan
rdtctl guest && rdtctl track on
: > /out/agree

mount -t resctrl resctrl $RESCTRL
ok $? "resctrl mounts"
for load in $loads; do
	group=$RESCTRL/mon_groups/$load
	mkdir "$group"
	before=$(total_bytes "$group")
	sh -c "echo \$\$ > $group/tasks; exec memload $load 3 8192" &
	pid=$!
	wait $pid
	echo "resctrl $load $pid $(($(total_bytes "$group") - before))" >> /out/agree
	rmdir "$group"
done
# Beside resctrl, a session must leave the counters alone, whatever it was told.
load force=1
hold_session
memload read 600 8192 &
pid=$!
# Of 14300 values, 2 and 11 were wild when such a session read the counters on a kernel that lets
# interrupts come between the two accesses of resctrl: 7.2 does, 6.1 does not.
readings=$((14300 / SLOW))
is "values of mbm_total_bytes that a session with force has spoiled, of $readings" \
	"$(count_wild_totals $readings)" 0
kill $pid
wait $pid
release_session
rmmod memwatch
ok $? "the module unloads beside resctrl"
umount $RESCTRL
rdtctl snapshot resctrl

modprobe msr 2> /dev/null
mkdir -p /run/lock /var/lock
# wait_for_rows N: until pqos has printed N more rows for a CPU, for at most a minute
wait_for_rows() {
	rows=$(($(grep -c '"1"' /out/pqos.csv) + $1))
	for _ in $(seq 600); do
		[ "$(grep -c '"1"' /out/pqos.csv)" -lt $rows ] || return
		sleep 0.1
	done
}

# A slow machine needs seconds to start pqos, so the load runs between two of its rows.
pqos --iface=msr -m all:0-$(($(nproc) - 1)) -t inf -i 10 -u csv > /out/pqos.csv 2> /out/pqos.err &
pid=$!
wait_for_rows 1
rdtctl snapshot pqos-begin
memload read 3 8192
wait_for_rows 2
rdtctl snapshot pqos-end
kill -INT $pid
wait $pid
[ "$(wc -l < /out/pqos.csv)" -gt 2 ]
ok $? "pqos prints measurements"
pqos --iface=msr -r -m all:0 -t 1 > /dev/null 2>&1
for cpu in $(seq 0 $(($(nproc) - 1))); do rdtctl pqr "$cpu" 0 0; done

load
begin_record
for load in $loads; do
	memload "$load" 3 8192 &
	pid=$!
	wait $pid
	echo "memwatch $load $pid 0" >> /out/agree
done
sleep 0.3
rdtctl snapshot memwatch
end_record
rmmod memwatch
ok $? "the module unloads"

# One RMID, and one process after the other. What they left in the cache keeps the RMID in
# limbo for a second, but only as long as it is read.
load rmids=1 limbo_occupancy=1
memwatchctl config filter=comm:memload
hold_session
memload read 1 2048
sleep 2
mount -t resctrl resctrl $RESCTRL
within 5 status_is backend emulated
ok $? "RDT is given up when resctrl is mounted"
before=$(status allocs)
for _ in $(seq 10); do memload read 0.1 64; done
is "of 10 processes, so many get the RMID at once after RDT was given up" \
	$(($(status allocs) - before)) 10
release_session
umount $RESCTRL
rmmod memwatch
ok $? "the module unloads after RDT was given up"
tap_end
