#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated AMD machine, which counts the bandwidth of some RMIDs only: which RMIDs
# processes get.
set -u
. /lab/lib.sh

# How many loads have an RMID that is not counted for. The processes of the session's beginning do
# not matter: they get their RMIDs before anything was read.
uncounted_loads() { awk '!/^#/ && $1 <= 10 && $NF ~ /^load-/' $PROC/rmids | wc -l; }

at_least() { [ "$2" -ge "$1" ]; }

plan
rdtctl guest && rdtctl track on
load policy=fifo
rmids="1 2 3 4 5 6 7 8 9 10"
for rmid in $rmids; do
	rdtctl inject unavailable '*' "$rmid" total
	rdtctl inject unavailable '*' "$rmid" local
done
hold_session
loads=
for _ in 1 2 3 4 5 6; do
	memload idle 1000 64 9>&- &
	loads="$loads $!"
done
within 10 status_at_least rmids_used 6
ok $? "processes have RMIDs: $(status rmids_used)"
is "no load has one that the hardware does not count for" "$(uncounted_loads)" 0
for _ in $(seq 60); do
	memload idle 1000 64 9>&- &
	loads="$loads $!"
done
within 10 status_at_least rmids_used 63
ok $? "all RMIDs are given out when they are needed: $(status rmids_used)"
at_least 6 "$(uncounted_loads)"
ok $? "those that are not counted for, too: $(uncounted_loads) loads have one"
# shellcheck disable=SC2086 # process ids
kill $loads
release_session
rmmod memwatch
ok $? "the module unloads"
tap_end
