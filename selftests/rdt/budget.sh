#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: as many processes as there are RMIDs, nearly, that
# all run all the time. Arguments: how many, then module parameters.
set -u
. /lab/lib.sh

n=$1
shift
echo "TAP version 13"
rdtctl guest && rdtctl track on && rdtctl log on
load "$@"
begin_record
for _ in $(seq "$n"); do memload idle 12 64 & done
(for _ in $(seq 40); do /bin/true; done; memload children 4 64) &
sleep 1
rdtctl snapshot begin
sleep 6
rdtctl snapshot end
end_record
rdtctl log off
echo "# $(status rmids_used) RMIDs in use of $(status rmids_total)"
rmmod memwatch
ok $? "the module unloads"
finish
