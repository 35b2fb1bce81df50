#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: sockets with different numbers of RMIDs.
set -u
. /lab/lib.sh

small=$(($(nproc) - 1))
plan
load
is "the smaller number of RMIDs is used" "$(status rmids_total)" 31
rmmod memwatch

# The smaller socket comes online during a session. RDT must end, because its CPU does
# not have all RMIDs that are in use.
echo 0 > /sys/devices/system/cpu/cpu$small/online
rdtctl guest && rdtctl track on
load
is "the larger number of RMIDs is used while the smaller socket is offline" \
	"$(status rmids_total)" 63
begin_record
for _ in $(seq 50); do memload idle 6 64 & done
sleep 1
[ "$(awk -F '\t' '!/^#/ { print $1 }' /proc/memwatch/rmids | sort -n | tail -1)" -gt 31 ]
ok $? "RMIDs are in use that the smaller socket does not have"
echo 1 > /sys/devices/system/cpu/cpu$small/online
within 5 status_is backend emulated
ok $? "the use of RDT ends when the smaller socket comes online"
matches "status gives the reason why RDT ended" "$(status backend_reason)" "fewer RMIDs"
sleep 0.5
grep -q "^cpu $small: ticks=[1-9]" /proc/memwatch/overhead
ok $? "the CPU of the smaller socket ticks"
end_record
export_csv run
is "the stream has the notice fewer_rmids" "$(grep -c 'notice.*fewer_rmids' "$TMP/run.csv")" 1
rdtctl snapshot end
is "no access to a register faulted" "$(sed -n 's/^cpu .*faults=//p' /out/rdt.truth | sort -u)" 0
rmmod memwatch
ok $? "the module unloads"
tap_end
