# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Functions for the "cmd" files. Each prints the command and its exit status.

# ctl ARGUMENT...: runs memwatchctl and prints both outputs in order
ctl() {
	local rc
	echo "\$ memwatchctl $*"
	timeout -k 1 60 "$CTL" "$@" 2>&1
	rc=$?
	[ $rc -eq 0 ] || echo "exit $rc"
	return 0
}

# json SCHEMA ARGUMENT...: the same with JSON, which must parse and have the keys of the
# schema
json() {
	local schema=$1
	shift
	echo "\$ memwatchctl --format json $* | $schema"
	timeout -k 1 60 "$CTL" --format json "$@" >answer.json
	echo "exit $?"
	python3 "$TESTS/schema.py" "$schema" answer.json
}

# ask EXPRESSION: a Python expression over the answer of the last json(), named d
ask() {
	python3 -c 'import json, sys; d = json.load(open("answer.json")); print(eval(sys.argv[1]))' "$1" 2>&1 |
		tail -1
}
