#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: models that are known to count wrongly. Argument: refused
# (their values cannot be corrected) or corrected.
set -u
. /lab/lib.sh

refused() {
	load
	is "RDT is not used on a model that counts wrongly" "$(status backend)" emulated
	matches "status names the errata" "$(status backend_reason)" "errata SKZ4, SKZ14 and SKZ15"
	begin_record
	matches "memwatchctl status names the errata" "$(memwatchctl status)" "errata SKZ4"
	end_record
	rmmod memwatch
}

corrected() {
	rdtctl guest && rdtctl track on
	load
	matches "RDT is used on a model whose counts can be corrected" "$(status backend)" "intel-rdt"
	begin_record
	# RMIDs are allocated in ascending order: the first load gets one below the
	# threshold of 15, the loads after ten sleepers get RMIDs above it.
	memload read 2 8192
	for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 30 & done
	memload read 2 8192
	memload random 2 8192
	sleep 0.2
	rdtctl snapshot end
	end_record
	rmmod memwatch
}

plan
"$1"
ok $? "the module unloads"
tap_end
