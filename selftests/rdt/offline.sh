#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: CPUs, and a whole L3 domain, go offline and come back while
# processes move memory.
set -u
. /lab/lib.sh

cpu=/sys/devices/system/cpu/cpu
plan
rdtctl guest && rdtctl track on
load
begin_record
rdtctl snapshot begin
loads=
for load in read write migrate; do
	memload $load 9 8192 &
	loads="$loads $!"
done
sleep 1
is "two L3 domains are read" "$(status rdt_domains)" 2
echo 0 > ${cpu}2/online
sleep 0.5
is "two L3 domains are read with one CPU offline" "$(status rdt_domains)" 2
echo 0 > ${cpu}3/online
sleep 1
is "one L3 domain is read when all CPUs of the other are offline" "$(status rdt_domains)" 1
echo 1 > ${cpu}2/online
sleep 1
is "two L3 domains are read when a CPU of the second is back" "$(status rdt_domains)" 2
echo 1 > ${cpu}3/online
# shellcheck disable=SC2086 # words
wait $loads
sleep 0.3
: > /out/expected
rdtctl snapshot end
end_record
rmmod memwatch
ok $? "the module unloads"
rdtctl snapshot unloaded
is "no CPU has an RMID after unloading" \
	"$(sed -n '/label=unloaded/,$s/^cpu .* rmid=\([0-9]*\) .*/\1/p' /out/rdt.truth | sort -u)" 0
tap_end
