#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: models that are known to count wrongly. Argument:
# refused (their values are of no use) or corrected.
set -u
. /lab/lib.sh

refused() {
	load
	is "a model that counts wrongly: RMIDs are numbers" "$(status backend)" emulated
	matches "status says why" "$(status backend_reason)" "errata SKZ4, SKZ14 and SKZ15"
	begin_record
	matches "and so does the command" "$(memwatchctl status)" "errata SKZ4"
	end_record
	rmmod memwatch
}

corrected() {
	rdtctl guest && rdtctl track on
	load
	matches "a model that can be corrected: RDT is used" "$(status backend)" "intel-rdt"
	begin_record
	# RMIDs are given out in turn: the first loads are below the threshold of 15,
	# those after ten sleepers above.
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
