#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# One L3 domain of two NUMA nodes (sub-NUMA clustering), with counters of 24 bits that
# count single bytes and start at 16777000: overflows, injected faults and foreign
# writes, as msr-tools see them. Speaks TAP.
cd /lab || exit 1
. ./tap.sh
. ./lib.sh

WRAP=$((1 << 24))
START=16777000

plan 26
modprobe msr
modprobe cpuid
rdtctl guest && rdtctl track on

# counter CPU RMID EVENT
counter() {
	wrmsr -p "$1" 0xc8d "$(printf '0x%x%08x' "$2" "$3")"
	rdmsr -p "$1" -0 0xc8e
}
ERROR=8000000000000000
UNAVAILABLE=4000000000000000
decimal() { printf '%d\n' "0x$1"; }

# cpuid CPU LEAF SUBLEAF: eax ebx ecx edx
cpuid() {
	dd if="/dev/cpu/$1/cpuid" bs=16 count=1 iflag=skip_bytes \
		skip=$(($2 | $3 << 32)) 2>/dev/null | od -An -tx4 | xargs
}
check "CPUID 0xF.0 says that there are 32 RMIDs" \
	same "leaf" "$(cpuid 0 15 0)" "00000000 0000001f 00000000 00000002"
check "CPUID 0xF.1 says 24 bits, an overflow bit, a unit of 1 byte and 3 events" \
	same "leaf" "$(cpuid 0 15 1)" "00000100 00000001 0000001f 00000007"

check "a counter starts at the configured value" same "value" "$(counter 0 9 2)" \
	"$(printf %016x $START)"

# A process with RMID 3 reads 24 MiB, so that a counter of 16 MiB overflows.
start_work 0 read 24 1
wrmsr -p 0 0xc8f 3
go_on
wrmsr -p 0 0xc8f 0
snapshot a
read_back=$(counter 0 3 2)
snapshot b
end_work
low=$(((START + $(value a "rmid 0 3" total)) % WRAP))
high=$(((START + $(value b "rmid 0 3" total)) % WRAP))
check "the traffic is more than a counter can hold" [ "$(value b "rmid 0 3" total)" -gt $WRAP ]
check "bit 61 is set after an overflow" same "top" "$(echo "$read_back" | cut -c1)" 2
check "after an overflow a counter has the true value modulo 24 bits" \
	between "value" "$low" "$(($(decimal "$read_back") & ((1 << 61) - 1)))" "$high"
check "bit 61 is clear after it was read" same "top" "$(counter 0 3 2 | cut -c1)" 0
snapshot a
occupancy=$(decimal "$(counter 0 3 1)")
snapshot b
check "the occupancy is the true value" between "bytes" "$(value b "rmid 0 3" occupancy)" \
	"$occupancy" "$(value a "rmid 0 3" occupancy)"

rdtctl inject error 0 3 total 1
check "an injected error is read once" \
	same "values" "$(counter 0 3 2) $(counter 0 3 2 | cut -c1-10)" \
	"$ERROR 0000000000"
rdtctl inject unavailable 0 3 local
check "injected unavailability stays until it is cleared" \
	same "values" "$(counter 0 3 3) $(counter 0 3 3)" \
	"$UNAVAILABLE $UNAVAILABLE"
rdtctl inject clear
counter 0 3 3 >/dev/null	# the first read may report an overflow
check "after clearing a counter is available" same "top" "$(counter 0 3 3 | cut -c1)" 0
rdtctl inject restart 0 3 total
check "a restarted counter is unavailable once and then counts from 0" \
	same "values" "$(counter 0 3 2) $(counter 0 3 2 | cut -c1-11)" \
	"$UNAVAILABLE 00000000000"
check "reading an event that does not exist is an error" same "value" "$(counter 0 3 7)" $ERROR
check "reading an RMID that does not exist is an error" same "value" "$(counter 0 32 2)" $ERROR
check "writing an RMID that does not exist into PQR faults" \
	sh -c '! wrmsr -p 0 0xc8f 32 2>/dev/null'

rdtctl pqr 1 5 2
check "a foreign write of PQR can be read back" \
	same "PQR" "$(rdmsr -p 1 -0 0xc8f)" 0000000200000005
wrmsr -p 1 0xc8f 0

# A process in a class that may fill one of 16 ways of the cache.
wrmsr -p 0 0xc91 1
start_work 0 read 24 1
wrmsr -p 0 0xc8f 0x100000004
go_on
wrmsr -p 0 0xc8f 0
snapshot a
end_work
check "cache allocation limits the occupancy" between "bytes" $((MIB / 4)) \
	"$(value a "rmid 0 4" occupancy)" $((MIB / 2))

# When the nodes share the RMIDs, RMID 2 of CPU 3, in node 1, is number 18.
check "the nodes do not share the RMIDs at first" same "0xCA0" "$(rdmsr 0xca0)" 1
wrmsr 0xca0 0
start_work 3 read 24 1
wrmsr -p 3 0xc8f 2
go_on
wrmsr -p 3 0xc8f 0
snapshot a
end_work
check "when the nodes share the RMIDs, a node counts in its own part" \
	between "bytes" $((20 * MIB)) \
	"$(value a "rmid 0 18" total)" $((40 * MIB))

snapshot a
i=0
while [ $i -lt 10 ]; do counter 1 1 2 >/dev/null; i=$((i + 1)); done
snapshot b
check "the machine counts MSR operations" same "writes and reads" \
	"$(($(value b "cpu 1" wrmsr_evtsel) - $(value a "cpu 1" wrmsr_evtsel))) $(($(value b "cpu 1" rdmsr_ctr) - $(value a "cpu 1" rdmsr_ctr)))" \
	"10 10"
rdtctl log on
counter 1 1 2 >/dev/null
rdtctl log off
check "the machine logs MSR operations" \
	same "lines" "$(awk '{ print $2, $3, $4 }' /out/rdt.msr | xargs)" \
	"1 w c8d 1 r c8e"
rm -f $truth
rdtctl every 20 5 series
check "the machine takes a series of snapshots" \
	same "blocks" "$(grep -c '^truth label=series' $truth) $(grep -c '^end' $truth)" "5 5"

# The guest writes IA32_MCG_CTL as Linux does when it resumes.
rdtctl pqr 1 5 2
rdtctl sleep
wrmsr -p 0 0x17b 0xffffffffffffffff
check "after sleep a counter starts at the configured value" same "value" "$(counter 0 3 2)" \
	"$(printf %016x $START)"
check "after sleep an RMID holds no cache" same "bytes" "$(counter 0 3 1)" 0000000000000000
check "after sleep PQR is 0" same "PQR" "$(rdmsr -p 1 -0 0xc8f)" 0000000000000000

# elapsed CLOCK: between the snapshots a and b, in ns
elapsed() { echo $(($(value b truth "$1") - $(value a truth "$1"))); }
# The priority, which some hosts do not give, does not matter here.
rdtctl slow 20 2>/dev/null
snapshot a
sleep 0.3
snapshot b
rdtctl slow 1
check "after slow, time passes as much more slowly" \
	near "ns of the host" "$(elapsed host_ns)" "$(($(elapsed monotonic_ns) * 20))" 2
tap_end
