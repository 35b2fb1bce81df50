#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: many processes that all run all the time. Arguments: the
# number of processes, then module parameters.
set -u
. /lab/lib.sh

n=$1
shift
plan
rdtctl guest && rdtctl track on && rdtctl log on
load "$@"
begin_record
# They run until they are killed, because a busy host takes long to start them.
loads=
for _ in $(seq "$n"); do
	memload idle 1000 64 &
	loads="$loads $!"
done
memload children 1000 64 &
loads="$loads $!"
sleep 1
rdtctl snapshot begin
rdtctl every 250 24 slice
rdtctl snapshot end
rdtctl log off
echo "# $(status rmids_used) RMIDs in use of $(status rmids_total)"
# shellcheck disable=SC2086 # words
kill $loads
end_record
rmmod memwatch
ok $? "the module unloads"
tap_end
