# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Functions for the "cmd" files. They print the exit status of each call.

# Run memwatchctl: print both outputs in order, and the exit status unless it is 0.
ctl() {
	local rc
	echo "\$ memwatchctl $*"
	timeout -k 1 60 "$CTL" "$@" 2>&1
	rc=$?
	[ $rc -eq 0 ] || echo "exit $rc"
	return 0
}

# json SCHEMA ARGUMENT...: run memwatchctl, and check its JSON with schema.py.
json() {
	local schema=$1
	shift
	echo "\$ memwatchctl --format json $* | $schema"
	timeout -k 1 60 "$CTL" --format json "$@" >answer.json
	echo "exit $?"
	python3 "$TESTS/schema.py" "$schema" answer.json
}

# Evaluate a Python expression in which d is the JSON of the last json().
ask() {
	python3 -c 'import json, sys; d = json.load(open("answer.json")); print(eval(sys.argv[1]))' "$1" 2>&1 |
		tail -1
}
