# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# TAP for shell tests. A test calls "plan N", or "plan" if the number of results is
# known only at the end; then "ok STATUS WHAT", "is WHAT GOT WANTED", "matches WHAT GOT
# PATTERN", "check WHAT COMMAND" or "skip WHAT REASON" for each result; then "tap_end".
# WHAT is a sentence that can be understood without the results before it. Sourced.
# shellcheck shell=sh

tap_count=0
tap_failed=0
tap_planned=

plan() {
	tap_planned=${1:-}
	echo "TAP version 13"
	[ -z "$tap_planned" ] || echo "1..$tap_planned"
}

# ok STATUS WHAT
ok() {
	tap_count=$((tap_count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tap_count - $2"
	else
		echo "not ok $tap_count - $2"
		tap_failed=$((tap_failed + 1))
	fi
}

# is WHAT GOT WANTED
is() {
	[ "$2" = "$3" ]
	ok $? "$1"
	[ "$2" = "$3" ] || echo "# got '$2', wanted '$3'"
}

# matches WHAT GOT PATTERN
matches() {
	echo "$2" | grep -q "$3"
	ok $? "$1"
	echo "$2" | grep -q "$3" || echo "# got '$2', wanted '$3'"
}

# check WHAT COMMAND...: the command's output goes to standard error
check() {
	tap_what=$1
	shift
	"$@" >&2
	ok $? "$tap_what"
}

# skip WHAT REASON
skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# tap_include PREFIX FILE: results of another test, which are repeated as results of this
# one. A file without a plan is one more result, which has failed.
tap_include() {
	while IFS= read -r tap_line; do
		tap_title=${tap_line#*ok [0-9]* }
		tap_title="$1: ${tap_title#- }"
		case $tap_line in
		"ok "*) ok 0 "$tap_title" ;;
		"not ok "*) ok 1 "$tap_title" ;;
		"#"*) echo "# $1: ${tap_line#\# }" ;;
		esac
	done <"$2"
	grep -q '^1\.\.' "$2" || ok 1 "$1: the test runs to its end"
}

tap_end() {
	[ -n "$tap_planned" ] || echo "1..$tap_count"
	[ "$tap_failed" -eq 0 ] && [ "$tap_count" -eq "${tap_planned:-$tap_count}" ]
}
