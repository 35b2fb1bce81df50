#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: the counters of a process fail. Arguments: the faults to
# inject (words), then -- and module parameters.
set -u
. /lab/lib.sh

faults=
while [ $# -gt 0 ] && [ "$1" != -- ]; do faults="$faults $1"; shift; done
[ $# -gt 0 ] && shift
# Reads of counters since the module was loaded.
reads() { grep -o 'rdt_reads=[0-9]*' /proc/memwatch/overhead | awk -F= '{ n += $2 } END { print n }'; }
reads_at_least() { [ "$(reads)" -ge "$1" ]; }
# Waits until the counters were read 300 times, however slow the machine is.
let_time_pass() { sleep 0.5 && within 5 reads_at_least $(($(reads) + 300)); }

plan
modprobe msr 2> /dev/null
rdtctl guest && rdtctl track on
load "$@"
begin_record
rdtctl snapshot begin
memload read 1000 12288 &
victim=$!
within 5 has_rmid $victim
rmid=$(rmid_of $victim)
[ -n "$rmid" ]
ok $? "the process whose counters will fail has an RMID: $rmid"
let_time_pass
: > /out/expected
for fault in $faults; do
	case $fault in
	error) rdtctl inject error '*' "$rmid" total 20 && echo total:error >> /out/expected ;;
	unavailable) rdtctl inject unavailable '*' "$rmid" total 20 && echo total:unavailable >> /out/expected ;;
	restart) rdtctl inject restart '*' "$rmid" total && echo total:unavailable >> /out/expected ;;
	# Six readings are disturbed three times each, and one twice, which then succeeds. No other
	# fault gives the event local this status.
	foreign)
		wrmsr -p 0 0xc8d 1
		rdtctl inject foreign '*' "$rmid" total 20 &&
			rdtctl inject foreign '*' "$rmid" local 20 && echo local:error >> /out/expected ;;
	occupancy) rdtctl inject error '*' "$rmid" occupancy 20 && echo occupancy:error >> /out/expected ;;
	esac
	ok $? "the fault $fault is injected"
	let_time_pass
	rdtctl inject clear
	let_time_pass
done
kill $victim
wait $victim
sleep 0.2
rdtctl snapshot end
end_record
rmmod memwatch
ok $? "the module unloads"
tap_end
