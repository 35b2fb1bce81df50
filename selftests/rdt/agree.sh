#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: the same loads, read by the kernel's resctrl (a
# group for each process), by pqos and by memwatch, each against the truth of
# its own run. /out/agree has a line for each: READER LOAD PID BYTES.
set -u
. /lab/lib.sh

R=/sys/fs/resctrl
loads="read write random"

total() { cat "$1"/mon_data/mon_L3_*/mbm_total_bytes | awk '{ s += $1 } END { print s }'; }

plan
rdtctl guest && rdtctl track on
: > /out/agree

mount -t resctrl resctrl $R
ok $? "resctrl mounts"
for load in $loads; do
	group=$R/mon_groups/$load
	mkdir "$group"
	before=$(total "$group")
	sh -c "echo \$\$ > $group/tasks; exec memload $load 3 8192" &
	pid=$!
	wait $pid
	echo "resctrl $load $pid $(($(total "$group") - before))" >> /out/agree
	rmdir "$group"
done
umount $R
rdtctl snapshot resctrl

modprobe msr 2> /dev/null
mkdir -p /run/lock /var/lock
rdtctl snapshot pqos-begin
memload read 6 8192 &
pqos --iface=msr -m all:0-$(($(nproc) - 1)) -t 3 -i 10 -u csv > /out/pqos.csv 2> /out/pqos.err
rdtctl snapshot pqos-end
wait
[ "$(wc -l < /out/pqos.csv)" -gt 2 ]
ok $? "pqos measures"
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
tap_end
