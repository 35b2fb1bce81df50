#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: two NUMA nodes share an L3 cache (sub-NUMA clustering).
# Argument: unknown (a model that is not known to share RMIDs between nodes), legacy
# (register 0xCA0 is not set to share them) or shared (it is).
set -u
. /lab/lib.sh

# refused REASON: memwatch must not use RDT where an RMID does not follow its process
# from node to node.
refused() {
	load
	is "RDT is not used" "$(status backend)" emulated
	matches "status gives the reason why RDT is not used" "$(status backend_reason)" "$1"
	begin_record
	memload read 1 4096
	end_record
	is "the report has no bandwidth that was not measured" \
		"$(memwatchctl --format json report /out/run.mwr |
		grep -c '"mbm_total_bytes":{"value":[0-9]')" 0
	rmmod memwatch
	ok $? "the module unloads"
}

shared() {
	modprobe msr
	wrmsr 0xca0 0
	is "register 0xCA0 is set to share the RMIDs between the nodes" "$(rdmsr 0xca0)" 0
	rdtctl guest && rdtctl track on && rdtctl log truth
	load
	matches "RDT is used" "$(status backend)" "intel-rdt"
	is "each node has half of the RMIDs" "$(status rmids_total)" 31
	begin_record
	is "each node is a domain" "$(status rdt_domains)" 2
	rdtctl every 100 100 slice &
	taskset 1 memload read 3 8192 &
	first=$!
	taskset 2 memload write 3 8192
	wait $first
	memload migrate 3 8192
	sleep 0.2
	rdtctl snapshot end
	end_record
	rmmod memwatch
	ok $? "the module unloads"
	rdtctl snapshot unloaded
	is "no access to a register faulted" "$(sed -n 's/^cpu .*faults=//p' /out/rdt.truth | sort -u)" 0
}

plan
case $1 in
unknown) refused "sub-NUMA clustering on a model" ;;
legacy) refused "sub-NUMA clustering with RMIDs in legacy mode" ;;
shared) shared ;;
esac
tap_end
