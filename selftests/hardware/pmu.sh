#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# The counters of the PMU beside those of "perf stat". Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. "${0%/*}/lib.sh"

need_pmu
need_module
plan
insmod "$KO"
ok $? "the module loads"
compare_all_counters
rmmod memwatch
ok $? "the module unloads"
tap_end
