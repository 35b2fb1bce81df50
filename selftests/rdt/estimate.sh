#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: a model whose RDT is not used but which has a PMU. The
# bandwidth is then estimated from the misses of the last-level cache.
set -u
. /lab/lib.sh

plan
rdtctl guest && rdtctl track on
load
is "RDT is not used" "$(status backend)" emulated
begin_record
memload read 3 12288
memload random 3 12288
memload write 3 12288
sleep 0.2
end_record
rdtctl snapshot end
rmmod memwatch
ok $? "the module unloads"
memwatchctl report /out/run.mwr > /out/report.txt
matches "the table of report marks the bandwidth as an estimate" \
	"$(grep load-read /out/report.txt)" "~"
tap_end
