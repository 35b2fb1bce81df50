#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The recorder beside processes that use the only CPU. The guest's clock counts instructions, so it
# is a slow machine whatever the host does: it executes 250 000 in a period of the tick. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
T=$TMP

plan

insmod /lab/memwatch.ko rmids=64
ok $? "the module loads"

# Seven pairs of processes that run in each slot. Their priority is higher than that of the
# thread that writes, which hardly gets the CPU. If the thread that reads the rings waited for it,
# records would be lost.
busy=
renice -n -5 -p $$
for _ in 1 2 3 4 5 6 7; do
	yield processes 100000000 &
	busy="$busy $!"
done
renice -n 5 -p $$

memwatchctl --format json record -o "$T/busy.mwr" -d 3 >"$T/json" 2>"$T/err"
is "record beside busy processes exits with 0" $? 0
sed 's/^/# /' "$T/err"
[ "$(json_number records "$T/json")" -gt 5000 ]
ok $? "records of many processes are recorded: $(json_number records "$T/json")"
is "no record is lost beside busy processes" "$(json_number lost "$T/json")" 0

# shellcheck disable=SC2086 # a list of numbers
end_processes $busy
memwatchctl --format json report "$T/busy.mwr" >"$T/json" 2>"$T/err"
is "the recording is complete" $? 0
rmmod memwatch
ok $? "the module unloads"
tap_end
