#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated AMD machine: bandwidth counters that software assigns to RMIDs.
# Arguments: plenty (a set of counters for each load), scarce (more loads than sets) or
# off (they exist, but are not enabled), then module parameters.
set -u
. /lab/lib.sh

ABMC_CFG=0xc00003fd
ABMC_DSC=0xc00003fe
EXT_CFG=0xc00003ff

# assign_counters 0|1: kernels since 6.18 have enabled them on each CPU
assign_counters() {
	modprobe msr
	echo "# the kernel has set register $EXT_CFG to $(rdmsr -p 0 $EXT_CFG)"
	wrmsr -a $EXT_CFG "$1"
}

# How many counters are enabled: bit 62 of the description of each.
enabled_counters() {
	for id in $(seq 0 $(($1 - 1))); do
		wrmsr -p 0 $ABMC_CFG "$(printf '0x%x000000000000' "$id")"
		rdmsr -p 0 -f 62:62 $ABMC_DSC
	done | grep -c 1
}

# configure ID RMID: as another program would
configure() { wrmsr -p 0 $ABMC_CFG "$(printf '0xc0%02x%04x0000007f' "$1" "$2")"; }

run_scarce() {
	plan
	assign_counters 1
	configure 7 0
	rdtctl guest && rdtctl track on && rdtctl log truth
	load "$@"
	is "status gives the number of assignable counters" "$(status rdt_counters)" 8
	is "status gives how many RMIDs can have counters" "$(status rdt_counted_rmids)" 4
	begin_record
	sleep 0.2
	rdtctl snapshot begin
	rdtctl every 100 10000 slice &
	slices=$!
	loads=
	for _ in 1 2 3 4 5 6; do
		memload write 8 4096 &
		loads="$loads $!"
	done
	# shellcheck disable=SC2086 # words
	wait $loads
	memload children "$((2 * SLOW))" 2048
	kill $slices 2> /dev/null
	within 10 status_at_least rdt_counter_turns 10
	ok $? "counters were taken from RMIDs that run: $(status rdt_counter_turns) times"
	rdtctl snapshot live
	end_record
	rdtctl snapshot end
	rdtctl log off
	is "memwatch has given its counters back, and left one of another program alone" \
		"$(enabled_counters 8)" 1
	rmmod memwatch
	ok $? "the module unloads"
	rdtctl snapshot unloaded
	is "no access to a register faulted" "$(sed -n 's/^cpu .*faults=//p' /out/rdt.truth | sort -u)" 0
	tap_end
}

mode=$1
shift
case $mode in
plenty)
	assign_counters 1
	. /lab/matrix.sh
	;;
scarce) run_scarce "$@" ;;
off)
	assign_counters 0
	. /lab/matrix.sh
	;;
esac
