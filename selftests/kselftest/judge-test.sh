#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Tests of judge: a good log of kselftest's runner passes, and each kind of bad log fails. The
# parser is that of the newest kernel of "make check". Speaks TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=selftests/tap.sh
. selftests/tap.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kernel=$(selftests/lab/kernel names check | awk '{ print $NF }')
KSRC=$(selftests/kselftest/sources --kernel "$kernel") || exit 1

# log RESULT LINE...: what the runner prints for one test with these lines and this result
log() {
	result=$1
	shift
	echo "TAP version 13"
	echo "1..1"
	echo "# selftests: memwatch/x: y.sh"
	[ $# -eq 0 ] || printf '# %s\n' "$@"
	[ -z "$result" ] || echo "${result%%|*} 1 selftests: memwatch/x: y.sh${result#*|}"
}

# verdict: the titles of the results that failed, on one line
verdict() {
	cat > "$work/log"
	selftests/kselftest/judge "$KSRC" "$work/log" > "$work/tap" 2> "$work/err"
	echo "$?$(sed -n 's/^not ok [0-9]* - \(memwatch.x: y.sh: \)*/;/p' "$work/tap" | cut -d: -f1 | tr -d '\n')"
}

head="TAP version 13"
totals() { echo "# Totals: pass:$1 fail:$2 xfail:0 xpass:0 skip:$3 error:0"; }
runner="the kernel's parser accepts what the runner says"
parser="the kernel's parser accepts the results"

plan
is "a good log passes" "$(log 'ok|' "$head" 'ok 1 - a' "$(totals 1 0 0)" | verdict)" 0
is "a good log with a plan passes" "$(log 'ok|' "$head" 1..1 'ok 1 - a' | verdict)" 0
is "a failed result fails" \
	"$(log 'not ok| # exit=1' "$head" 'not ok 1 - a' "$(totals 0 1 0)" | verdict)" \
	"1;$runner;not ok exit=1;$parser;every skip is expected"
is "a test that ran out of time fails" \
	"$(log 'not ok| # TIMEOUT 45 seconds' "$head" 'ok 1 - a' | verdict)" \
	"1;$runner;not ok TIMEOUT 45 seconds;every skip is expected"
is "a test without a result of the runner fails" \
	"$(log '' "$head" 'ok 1 - a' "$(totals 1 0 0)" | verdict)" "1;$runner;no result"
is "a result that the parser does not see fails" \
	"$(log 'ok|' "$head" 1..2 'ok 1 - a' 'ok 2 - case #3' | verdict)" \
	"1;$parser;every skip is expected"
is "a plan behind the results fails" "$(log 'ok|' "$head" 'ok 1 - a' 1..1 | verdict)" \
	"1;$parser;every skip is expected"
is "results that end too early fail" "$(log 'ok|' "$head" 1..2 'ok 1 - a' | verdict)" \
	"1;$parser;every skip is expected"
is "a skip that is not listed fails" \
	"$(log 'ok|' "$head" 'ok 1 - a # SKIP no reason' "$(totals 0 0 1)" | verdict)" \
	"1;every skip is expected"
is "a test that is skipped as a whole passes if that is listed" \
	"$(log 'ok| # SKIP' "$head" '1..0 # SKIP this CPU has no RDT monitoring' | verdict)" 0
is "a test that is skipped as a whole fails if that is not listed" \
	"$(log 'ok| # SKIP' "$head" '1..0 # SKIP no reason' | verdict)" "1;1..0 SKIP no reason"
is "an empty log fails" "$(verdict < /dev/null)" "1;the runner has started tests"
tap_end
