#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: a process that moves memory, and counters that
# fail. Argument: which faults (words), then -- and module parameters.
set -u
. /lab/lib.sh

faults=
while [ $# -gt 0 ] && [ "$1" != -- ]; do faults="$faults $1"; shift; done
[ $# -gt 0 ] && shift
reads() { grep -o 'rdt_reads=[0-9]*' /proc/memwatch/overhead | awk -F= '{ n += $2 } END { print n }'; }
enough() { [ "$(reads)" -ge "$1" ]; }
# So long that the victim is read many times, however slow the machine is.
pass() { sleep 0.5 && soon enough $(($(reads) + 300)); }

plan
rdtctl guest && rdtctl track on
load "$@"
begin_record
rdtctl snapshot begin
memload read 1000 12288 &
victim=$!
soon sh -c "grep -q '	$victim	' /proc/memwatch/rmids"
rmid=$(rmid_of $victim)
[ -n "$rmid" ]
ok $? "the victim has RMID $rmid"
pass
: > /out/expected
for fault in $faults; do
	case $fault in
	error) rdtctl inject error '*' "$rmid" total 20 && echo total:error >> /out/expected ;;
	unavailable) rdtctl inject unavailable '*' "$rmid" total 20 && echo total:unavailable >> /out/expected ;;
	restart) rdtctl inject restart '*' "$rmid" total && echo total:unavailable >> /out/expected ;;
	occupancy) rdtctl inject error '*' "$rmid" occupancy 20 && echo occupancy:error >> /out/expected ;;
	esac
	ok $? "inject $fault"
	pass
	rdtctl inject clear
	pass
done
kill $victim
wait $victim
sleep 0.2
rdtctl snapshot end
end_record
rmmod memwatch
ok $? "the module unloads"
tap_end
