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

# With a long period a CPU may read more in a slot, but not in one go.
loads=
for _ in $(seq 40); do
	memload idle 1000 64 &
	loads="$loads $!"
done
hold_session period=100000000 set
sleep 3
grep '^cpu ' $PROC/overhead > "$TMP/long"
release_session
# shellcheck disable=SC2086 # words
kill $loads
reads=$(sed 's/.* rdt_reads=\([0-9]*\).*/\1/' "$TMP/long" | awk '{ n += $1 } END { print n }')
[ "$reads" -gt 200 ]
ok $? "with a period of 100 ms many RMIDs are read: $reads times"
most=$(sed 's/.* rdt_ops_max=\([0-9]*\).*/\1/' "$TMP/long" | sort -n | tail -1)
[ "$most" -gt 0 ] && [ "$most" -le 48 ]
ok $? "with a period of 100 ms a CPU does no more than 48 operations in one go: $most"
rmmod memwatch
ok $? "the module unloads"
tap_end
