# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# KTAP for shell tests, as kselftest prints it. A test calls "plan N", or "plan" if the number
# of results is known only at the end; then "ok STATUS WHAT", "is WHAT GOT WANTED", "matches
# WHAT GOT PATTERN", "check WHAT COMMAND" or "skip WHAT REASON" for each result; then "tap_end",
# which prints the totals. Without totals, and with fewer results than planned, the test has
# failed. WHAT is a sentence that can be understood without the results before it. Sourced.
# shellcheck shell=sh

tap_count=0
tap_failed=0
tap_skipped=0
tap_planned=

plan() {
	tap_planned=${1:-}
	echo "TAP version 13"
	[ -z "$tap_planned" ] || echo "1..$tap_planned"
}

# skip_all REASON: the whole test cannot run on this machine. Called in place of plan.
skip_all() {
	echo "TAP version 13"
	echo "1..0 # SKIP $1"
	exit 4
}

# ok STATUS WHAT
ok() {
	tap_count=$((tap_count + 1))
	tap_result=ok
	if [ "$1" -ne 0 ]; then
		tap_result="not ok"
		tap_failed=$((tap_failed + 1))
	fi
	# In KTAP, the title ends where "#" begins a directive.
	case $2 in
	*"#"*) echo "$tap_result $tap_count - $(echo "$2" | tr '#' '_')" ;;
	*) echo "$tap_result $tap_count - $2" ;;
	esac
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
	tap_skipped=$((tap_skipped + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# tap_promised FILE: the number of results that another test has planned, or that its totals
# add up to; nothing if it has neither
tap_promised() {
	awk '/^1\.\.[0-9]/ { n = substr($1, 4) + 0; found = 1 }
		/^# Totals:/ && !found {
			for (i = 3; i <= NF; i++) { split($i, part, ":"); n += part[2] }
			found = 1
		}
		END { if (found) print n + 0 }' "$1"
}

# tap_include PREFIX FILE: results of another test, which are repeated as results of this
# one. A file with neither plan nor totals is one more result, which has failed.
tap_include() {
	while IFS= read -r tap_line; do
		tap_title=${tap_line#*ok [0-9]* }
		tap_title="$1: ${tap_title#- }"
		case $tap_line in
		"ok "*"# SKIP "*) skip "${tap_title%%" # SKIP "*}" "${tap_title#*"# SKIP "}" ;;
		"ok "*) ok 0 "$tap_title" ;;
		"not ok "*) ok 1 "$tap_title" ;;
		"# Totals:"*) ;;
		"#"*) echo "# $1: ${tap_line#\# }" ;;
		esac
	done <"$2"
	[ -n "$(tap_promised "$2")" ] || ok 1 "$1: the test runs to its end"
}

# tap_run PREFIX LOG COMMAND...: runs another test, whose output goes to the file LOG, and
# repeats its results. An exit status other than 0, or other results than it promised, are one
# more result, which has failed.
tap_run() {
	tap_name=$1 tap_log=$2
	tap_before=$tap_count
	shift 2
	"$@" >"$tap_log" 2>&1
	tap_status=$?
	tap_include "$tap_name" "$tap_log"
	tap_got=$((tap_count - tap_before))
	tap_wanted=$(tap_promised "$tap_log")
	if [ $tap_status -ne 0 ] || [ "$tap_got" != "${tap_wanted:-none}" ]; then
		ok 1 "$tap_name: exit status $tap_status, $tap_got results, plan ${tap_wanted:-missing}"
		grep -vE '^(not )?ok |^TAP|^1\.\.' "$tap_log" | tail -20 | sed 's/^/# /'
	fi
}

tap_end() {
	echo "# Totals: pass:$((tap_count - tap_failed - tap_skipped)) fail:$tap_failed xfail:0" \
		"xpass:0 skip:$tap_skipped error:0"
	[ "$tap_failed" -eq 0 ] && [ "$tap_count" -eq "${tap_planned:-$tap_count}" ]
}
