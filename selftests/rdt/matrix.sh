#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: records every kind of load while the machine logs the true
# value at each read of a counter. Snapshots relate the clock of that log to the
# guest's. The oracle compares both on the host.
set -u
. /lab/lib.sh

plan
rdtctl present
ok $? "the guest runs in the simulated machine"
rdtctl guest && rdtctl track on && rdtctl log truth
load "$@"
matches "RDT is used" "$(status backend)" "intel-rdt\|amd-qos"
begin_record
sleep 0.2
rdtctl snapshot begin
rdtctl every 100 10000 slice &
slices=$!

# First one load at a time, then several together.
memload read 2 12288
memload write 2 12288
memload random 2 16384
(memload read 4 1024) &
memload idle 4
wait $!
# More than the cache holds: otherwise a child moves little but what its start and end move.
memload children "$((4 * SLOW))" 6144
memload threads 2 16384
memload migrate 3 12288
memload read 2 8192 &
memload write 2 8192 &
sleep 2.5
kill $slices 2> /dev/null
sleep 0.3
rdtctl snapshot live
end_record
rdtctl snapshot end
rdtctl log off
matches "status gives the budget of register accesses" \
	"$(sed -n 's/^rdt_budget: //p' /out/status)" "^[1-9]"
rmmod memwatch
ok $? "the module unloads"
rdtctl snapshot unloaded
tap_end
