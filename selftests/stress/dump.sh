#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# dump.sh [LIFETIMES]: in the virtual machine, dumps the state again and again
# while processes storm, and captures all records into /out/dump. dump-check
# judges them on the host.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=SCRIPTDIR/../tap.sh
. ./tap.sh
work=$(mktemp -d)

lifetimes=${1:-4000}
OUT=${OUT:-/out}
work=$(mktemp -d)
[ -e /sys/kernel/tracing/trace_clock ] || mount -t tracefs tracefs /sys/kernel/tracing
mkdir -p "$OUT/dump"
plan 5
check "the module loads" insmod ./memwatch.ko assume_rdt=32 rmids=32
: > "$work/capture"
./tracecap -o "$OUT/dump" memwatch/memwatch_rmid_alloc memwatch/memwatch_rmid_free \
	memwatch/memwatch_rmid_exec memwatch/memwatch_rmid_existing \
	memwatch/memwatch_dump_begin memwatch/memwatch_dump_end > "$work/capture" &
capture=$!
tries=0
while ! grep -q ready "$work/capture" && [ "$tries" -lt 100 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
grep -q ready "$work/capture"
ok $? "the capture runs"
# One session for the storm, another one that comes and goes and dumps.
./mwctl start "run=./storm -n $lifetimes -c 3 -t ./tiny >&2" stop sleep=100 >&2 &
storm=$!
dumps=0
while kill -0 "$storm" 2> /dev/null; do
	./mwctl start dump dump sleep=7 dump > /dev/null 2>> "$work/dump.log" && dumps=$((dumps + 3))
done
wait "$storm"
[ "$dumps" -gt 0 ]
ok $? "$dumps dumps during a storm of $lifetimes lifetimes"
kill "$capture"
wait "$capture"
ok $? "the capture is complete"
check "the module unloads" rmmod memwatch
tap_end
