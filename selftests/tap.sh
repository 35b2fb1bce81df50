# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# TAP for shell tests: "plan N", then "ok_if STATUS WHAT" or "check WHAT COMMAND"
# for each test, and "tap_end". Sourced, never executed.
# shellcheck shell=sh

tap_count=0
tap_failed=0
tap_planned=0

plan() {
	tap_planned=$1
	echo "TAP version 13"
	echo "1..$1"
}

# ok_if STATUS WHAT
ok_if() {
	tap_count=$((tap_count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tap_count - $2"
	else
		echo "not ok $tap_count - $2"
		tap_failed=$((tap_failed + 1))
	fi
}

# check WHAT COMMAND...: the command's output goes to the log, not into the TAP.
check() {
	tap_what=$1
	shift
	"$@" >&2
	ok_if $? "$tap_what"
}

# skip WHAT REASON
skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

tap_end() {
	[ "$tap_failed" -eq 0 ] && [ "$tap_count" -eq "$tap_planned" ]
}
