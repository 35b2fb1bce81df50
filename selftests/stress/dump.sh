#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# dump.sh [LIFETIMES]
#
# In a guest: dumps the state repeatedly while short-lived processes run, and
# captures all records into /out/dump. dump-check judges them on the host. Many
# processes sleep, so that a dump is long and much happens before its end. Speaks
# TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
cd /lab || exit 1
lifetimes=${1:-4000}
OUT=${OUT:-/out}
mount_tracing
mkdir -p "$OUT/dump"
sleepers=200
plan 6
check "the module loads" insmod ./memwatch.ko rmids=512
: > "$TMP/herd"
./herd 0 $sleepers sleep > "$TMP/herd" &
herd=$!
within 60 grep -q ready "$TMP/herd"
ok $? "$sleepers processes sleep"
: > "$TMP/capture"
./tracecap -o "$OUT/dump" memwatch/memwatch_rmid_alloc memwatch/memwatch_rmid_free \
	memwatch/memwatch_rmid_exec memwatch/memwatch_rmid_existing \
	memwatch/memwatch_dump_begin memwatch/memwatch_dump_end > "$TMP/capture" &
capture=$!
within 10 grep -q ready "$TMP/capture"
ok $? "the capture starts"
# One session lasts as long as the storm; others come and go, and dump.
./mwctl start "run=./storm -n $lifetimes -c 3 -t ./tiny >&2" stop sleep=100 >&2 &
storm=$!
dumps=0
while kill -0 "$storm" 2> /dev/null; do
	./mwctl start dump dump sleep=7 dump > /dev/null 2>> "$TMP/dump.log" && dumps=$((dumps + 3))
done
wait "$storm"
[ "$dumps" -gt 0 ]
ok $? "dumps are made during a storm of $lifetimes lifetimes: $dumps"
kill "$capture"
wait "$capture"
ok $? "the capture is complete"
kill "$herd"
check "the module unloads" rmmod memwatch
tap_end
