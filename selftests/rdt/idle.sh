#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine with 2 CPUs that share an L3 cache: CPU 0 switches between processes, so
# that there is always an RMID to be read, and CPU 1 is idle but for this script. They have hardly any
# time for reading.
set -u
. /lab/lib.sh

ticks_of() { sed -n "s/^cpu $1: ticks=\([0-9]*\).*/\1/p" $PROC/overhead; }

plan
rdtctl guest && rdtctl track on
# So little time for reading that the queue is never empty in the emulator.
load rdt_time_ns=1000
matches "RDT is used" "$(status backend)" "intel-rdt\|amd-qos"
hold_session
loads=
for _ in 1 2 3 4 5 6 7 8; do
	taskset 1 memload read 6 64 9>&- &
	loads="$loads $!"
done
taskset -p 2 $$ >/dev/null
sleep 1
busy=$(ticks_of 0) idle=$(ticks_of 1)
sleep 4
busy=$(($(ticks_of 0) - busy)) idle=$(($(ticks_of 1) - idle))
[ "$busy" -ge 200 ] && [ "$idle" -le $((busy / 10)) ]
ok $? "an idle CPU stops its tick while another one of its domain has RMIDs to read"
echo "# in 4 s, CPU 0 ticks $busy times, and CPU 1 $idle times"
# An RMID has three events of two operations each. The first one is read however long that takes.
is "a CPU whose time for reading is over reads no other RMID: operations in one go" \
	"$(sed -n 's/^cpu .* rdt_ops_max=\([0-9]*\).*/\1/p' $PROC/overhead | sort -n | tail -1)" 6
# shellcheck disable=SC2086 # process ids
wait $loads
release_session
rmmod memwatch
tap_end
