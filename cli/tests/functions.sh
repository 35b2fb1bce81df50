# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a "cmd" can use. Every call says how it ended.

# memwatchctl, both outputs in order, and the exit status.
ctl() {
	local rc
	echo "\$ memwatchctl $*"
	"$CTL" "$@" 2>&1
	rc=$?
	[ $rc -eq 0 ] || echo "exit $rc"
	return 0
}

# The same, judged by a script: the JSON must parse and have the keys named.
json() {
	local schema=$1
	shift
	echo "\$ memwatchctl --format json $* | $schema"
	"$CTL" --format json "$@" >answer.json
	echo "exit $?"
	python3 "$TESTS/schema.py" "$schema" answer.json
}

# One expression of Python over the answer of the last json(), as d.
ask() {
	python3 -c 'import json, sys; d = json.load(open("answer.json")); print(eval(sys.argv[1]))' "$1" 2>&1 |
		tail -1
}
