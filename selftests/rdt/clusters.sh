#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: two NUMA nodes share an L3 cache. This model does
# not know how to share RMIDs between them, so nothing may be guessed.
set -u
. /lab/lib.sh

echo "TAP version 13"
load
is "sub-NUMA clustering: RMIDs are numbers" "$(status backend)" emulated
matches "and status says why" "$(status backend_reason)" "sub-NUMA clustering"
begin_record
memload read 1 4096
end_record
is "no value is made up" "$(memwatchctl --format json report /out/run.mwr |
	grep -c '"mbm_total_bytes":{"value":[0-9]')" 0
rmmod memwatch
ok $? "the module unloads"
finish
