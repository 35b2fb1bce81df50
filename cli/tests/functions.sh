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

# Write profiles of jemalloc and gperftools, whose sums can be done by hand.
heap_profiles() {
	cat >je.heap <<'END'
heap_v2/1000
  t*: 4: 100300 [0: 0]
  t0: 4: 100300 [0: 0]
@ 0x401010 0x401110 0x7f0000001010
  t*: 1: 100000 [0: 0]
  t0: 1: 100000 [0: 0]
@ 0x401020 0x401110 0x7f0000001010
  t*: 3: 300 [0: 0]
  t0: 3: 300 [0: 0]

MAPPED_LIBRARIES:
00400000-00401000 r--p 00000000 08:01 1 /nowhere/prog
00401000-00402000 r-xp 00001000 08:01 1 /nowhere/prog
7f0000001000-7f0000002000 r-xp 00001000 08:01 2 /nowhere/libc.so.6
END
	cat >gp.heap <<'END'
heap profile:      3:     3000 [     9:     9000] @ heapprofile
     1:     2000 [     2:     4000] @ 0x00401010 0x00401110 0x7f0000001010
     2:     1000 [     7:     5000] @ 0x00401020 0x00401110 0x7f0000001010

MAPPED_LIBRARIES:
00400000-00401000 r--p 00000000 08:01 1 /nowhere/prog
00401000-00402000 r-xp 00001000 08:01 1 /nowhere/prog
7f0000001000-7f0000002000 r-xp 00001000 08:01 2 /nowhere/libc.so.6
END
}
