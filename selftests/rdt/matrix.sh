#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: every kind of load, recorded, with the truth at each
# reading of a counter in the machine's log. Snapshots tie the log's clock to the
# guest's. The oracle compares on the host.
set -u
. /lab/lib.sh

plan
rdtctl present
ok $? "this is the simulated machine"
rdtctl guest && rdtctl track on && rdtctl log truth
load "$@"
matches "RDT is used" "$(status backend)" "intel-rdt\|amd-qos"
begin_record
sleep 0.2
rdtctl snapshot begin
rdtctl every 100 200 slice &
slices=$!

# One at a time first, then together.
memload read 2 12288
memload write 2 12288
memload random 2 16384
(memload read 4 1024) &
memload idle 4
wait $!
memload children 2 2048
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
matches "it is read within a budget" "$(sed -n 's/^rdt_budget: //p' /out/status)" "^[1-9]"
rmmod memwatch
ok $? "and the module unloads"
rdtctl snapshot unloaded
tap_end
