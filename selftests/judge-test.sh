#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Tests of judge-tap: a good log passes, each kind of bad log fails for the
# reason that is expected. Speaks TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=SCRIPTDIR/tap.sh
. "$here/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# verdict OPTION...: the judge's output on the log from standard input, on one line
verdict() {
	cat >"$work/log"
	"$here/judge-tap" "$@" "$work/log" | paste -sd ';'
}

# A log with one result for each argument.
log() {
	echo "TAP version 13"
	echo "1..$#"
	printf '%s\n' "$@"
}

# totals PASSED FAILED SKIPPED: the last line of a log
totals() { echo "# Totals: pass:$1 fail:$2 xfail:0 xpass:0 skip:$3 error:0"; }

# The first kernel of the matrix with that feature missing, and one that lacks nothing.
lacking=$(awk '!/^#/ && $6 == "cgroup-v1" { print $1; exit }' "$here/lab/matrix")
complete=$(awk '!/^#/ && NF == 6 && $6 !~ /cgroup-v1/ { print $1; exit }' "$here/lab/matrix")

plan
is "a good log passes" "$(log 'ok 1 - a' 'ok 2 - b' | verdict)" \
	"2 passed, 0 failed, 0 skipped"
is "a failed test fails the suite" "$(log 'ok 1 - a' 'not ok 2 - b' | verdict)" \
	"1 passed, 1 failed, 0 skipped;not ok 2 - b"
is "a failed test is reported with its diagnostics" \
	"$( (echo "TAP version 13"; echo "# before"; echo "not ok 1 - a"; echo "# got 1, wanted 2"
		echo "ok 2 - b"; echo "# after"; totals 1 1 0) | verdict)" \
	"1 passed, 1 failed, 0 skipped;not ok 1 - a: got 1, wanted 2"
is "a missing result fails the suite" "$(log 'ok 1 - a' | sed 's/^1\.\.1/1..2/' | verdict)" \
	"1 passed, 1 failed, 0 skipped;results: 1 of 2"
is "a surplus result fails the suite" \
	"$(log 'ok 1 - a' 'ok 2 - b' | sed 's/^1\.\.2/1..1/' | verdict)" \
	"2 passed, 1 failed, 0 skipped;results: 2 of 1"
is "a missing plan fails the suite" "$(log 'ok 1 - a' | grep -v '^1\.\.' | verdict)" \
	"1 passed, 1 failed, 0 skipped;both the TAP plan and the totals are missing"
is "totals stand in for a plan that is not known at the beginning" \
	"$( (log 'ok 1 - a' | grep -v '^1\.\.'; totals 1 0 0) | verdict)" \
	"1 passed, 0 failed, 0 skipped"
is "totals that do not agree with the results fail the suite" \
	"$( (log 'ok 1 - a'; totals 2 0 0) | verdict)" \
	"1 passed, 1 failed, 0 skipped;the totals are wrong: $(totals 2 0 0)"
is "totals without results fail the suite" "$( (echo "TAP version 13"; totals 0 0 0) | verdict)" \
	"0 passed, 1 failed, 0 skipped;there are no results"
is "a plan behind the results fails the suite" \
	"$( (log 'ok 1 - a' | grep -v '^1\.\.'; echo 1..1) | verdict)" \
	"1 passed, 1 failed, 0 skipped;the plan is behind the results"
is "a title with a # fails the suite" "$(log 'ok 1 - case #3' | verdict)" \
	"1 passed, 1 failed, 0 skipped;a title with a #: ok 1 - case #3"
is "a second plan fails the suite" "$( (log 'ok 1 - a'; echo 1..1) | verdict)" \
	"1 passed, 1 failed, 0 skipped;the plan is behind the results;there are 2 TAP plans"
is "an empty plan fails the suite" "$(log | verdict)" \
	"0 passed, 1 failed, 0 skipped;the plan is empty"
is "an empty log fails the suite" "$(verdict </dev/null)" \
	"0 passed, 1 failed, 0 skipped;the TAP version line is missing;both the TAP plan and the totals are missing"
is "a wrong number fails the suite" "$(log 'ok 1 - a' 'ok 3 - b' | verdict)" \
	"2 passed, 1 failed, 0 skipped;test 2 is numbered 3"
is "a bail-out fails the suite" "$( (log 'ok 1 - a'; echo 'Bail out! no disk') | verdict)" \
	"1 passed, 1 failed, 0 skipped;Bail out! no disk"
is "an exit status other than 0 fails the suite" "$(log 'ok 1 - a' | verdict --status 3)" \
	"1 passed, 1 failed, 0 skipped;exit status 3"
is "a skip that is not listed fails the suite" "$(log 'ok 1 - a # SKIP no reason' | verdict)" \
	"0 passed, 1 failed, 1 skipped;unexpected skip: a (no reason)"
is "a suite that skips all its tests fails" \
	"$(log | sed 's/^1\.\.0/& # SKIP no root/' | verdict)" \
	"0 passed, 1 failed, 1 skipped;unexpected skip: all tests (no root)"
is "the exit status of a suite that skips all its tests is that of kselftest" \
	"$(log | sed 's/^1\.\.0/& # SKIP no root/' | verdict --expect-skip 'no root' --status 4)" \
	"0 passed, 0 failed, 1 skipped"
is "the exit status of a skip fails a suite with results" \
	"$(log 'ok 1 - a' | verdict --status 4)" "1 passed, 1 failed, 0 skipped;exit status 4"
is "a skip that the caller expects passes" \
	"$(log 'ok 1 - a # SKIP as agreed' | verdict --expect-skip 'as*')" \
	"0 passed, 0 failed, 1 skipped"
is "a skip on the host is allowed for the suite that is listed" \
	"$(log 'ok 1 - pages in swap # SKIP no swap' | verdict --suite growth-native)" \
	"0 passed, 0 failed, 1 skipped"
is "a skip on the host is not allowed for another suite" \
	"$(log 'ok 1 - pages in swap # SKIP no swap' | verdict --suite relay-native)" \
	"0 passed, 1 failed, 1 skipped;unexpected skip: pages in swap (no swap)"
is "a skip on the host is not allowed in a guest" \
	"$(log 'ok 1 - pages in swap # SKIP no swap' | verdict --suite growth-native --kernel "$complete")" \
	"0 passed, 1 failed, 1 skipped;unexpected skip: pages in swap (no swap)"
is "a test may be skipped on a kernel that lacks the feature" \
	"$(log 'ok 1 - a # SKIP cgroup v1' | verdict --suite "growth-version1-$lacking")" \
	"0 passed, 0 failed, 1 skipped"
is "a test may not be skipped on a kernel that has the feature" \
	"$(log 'ok 1 - a # SKIP cgroup v1' | verdict --suite "growth-version1-$complete")" \
	"0 passed, 1 failed, 1 skipped;unexpected skip: a (cgroup v1)"
tap_end
