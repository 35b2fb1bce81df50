#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine with 2 CPUs that share an L3 cache: CPU 0 switches between processes, so
# that there is always an RMID to be read, and CPU 1 is idle but for this script, and for processes that
# sleep. They have hardly any time for reading.
set -u
. /lab/lib.sh

# Of the ticks that found CPU 1 idle, in slots that CPU 0 had begun: how many there were, and after
# how many CPU 1 did not stop.
count_followers() {
	awk '{ match($0, /\[[0-9]+\]/); cpu = substr($0, RSTART + 1, 3) + 0 }
		/memwatch_tick:/ {
			match($0, /expected=[0-9]+/)
			slot = substr($0, RSTART + 9, RLENGTH - 9) + 0
			first = slot > newest
			if (first)
				newest = slot
			if (cpu == 1) {
				went_on += follows
				n += follows = !first && /<idle>-0/
			}
		}
		/memwatch_cpu_state:/ && cpu == 1 && / state=3 / { follows = 0 }
		END { print n + 0, went_on + 0 }' $TRACING/trace
}

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

# The queue is never empty: so many RMIDs run in each slot, and so few of them can be read.
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
	yield processes 1000000000 9>&- &
done
# CPU 1 wakes up many times.
for _ in 1 2 3 4 5; do
	memload idle 1000 64 9>&- &
done
sleep 1
mount_tracing
echo mono >$TRACING/trace_clock
trace_start tick cpu_state
sleep 4
echo 0 >$TRACING/tracing_on
end_all yield
end_all load-idle
count_followers >"$TMP/followers"
read -r found went_on <"$TMP/followers"
# The ticks of two CPUs may overlap.
[ "$found" -ge 20 ] && [ "$went_on" -le $((found / 10)) ]
ok $? "an idle CPU stops in a slot that another CPU began: not after $went_on of $found ticks"
release_session
rmmod memwatch
tap_end
