#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: sockets that know different numbers of RMIDs.
set -u
. /lab/lib.sh

small=$(($(nproc) - 1))
plan
load
is "the smaller number counts" "$(status rmids_total)" 31
rmmod memwatch

# The smaller socket comes later: RDT ends, that CPU never runs with our RMIDs.
echo 0 > /sys/devices/system/cpu/cpu$small/online
rdtctl guest && rdtctl track on
load
is "without it the larger one" "$(status rmids_total)" 63
begin_record
for _ in $(seq 50); do memload idle 6 64 & done
sleep 1
[ "$(awk -F '\t' '!/^#/ { print $1 }' /proc/memwatch/rmids | sort -n | tail -1)" -gt 31 ]
ok $? "RMIDs are in use that the other socket does not know"
echo 1 > /sys/devices/system/cpu/cpu$small/online
soon sh -c 'grep -q "^backend: emulated" /proc/memwatch/status'
ok $? "it comes online, and RDT ends"
matches "status says why" "$(status backend_reason)" "fewer RMIDs"
sleep 0.5
grep -q "^cpu $small: ticks=[1-9]" /proc/memwatch/overhead
ok $? "and that CPU ticks"
end_record
memwatchctl export /out/run.mwr --to csv -o "$TMP/run.csv" --quiet
is "the stream has the notice" "$(grep -c 'notice.*fewer_rmids' "$TMP/run.csv")" 1
rdtctl snapshot end
is "no access faulted" "$(sed -n 's/^cpu .*faults=//p' /out/rdt.truth | sort -u)" 0
rmmod memwatch
ok $? "the module unloads"
tap_end
