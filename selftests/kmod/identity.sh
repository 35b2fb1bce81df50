#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# identity.sh RMIDS:POLICY:LIFETIMES:WORKERS[:MODULE]...: inside the virtual
# machine, one storm for each argument, captured into /out/RMIDS-POLICY[-MODULE].
# It only produces the captures; model-check judges them on the host.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=SCRIPTDIR/../tap.sh
. ./tap.sh

OUT=${OUT:-/out}
SEED=${SEED:-1}
tracing=/sys/kernel/tracing
[ -e "$tracing/trace_clock" ] || mount -t tracefs tracefs "$tracing"

wait_for_capture() {
	tries=0
	while ! grep -q ready "$1"; do
		tries=$((tries + 1))
		if [ "$tries" -gt 300 ] || ! kill -0 "$2" 2>/dev/null; then
			return 1
		fi
		sleep 0.1
	done
}

status() {
	sed -n "s/^$1:[[:space:]]*//p" /proc/memwatch/status
}

one() {
	rmids=$1 policy=$2 lifetimes=$3 workers=$4 module=${5:-}
	name=$rmids-$policy${module:+-$module}
	log=$(mktemp)
	mkdir -p "$OUT/$name"

	insmod "./${module:-memwatch}.ko" assume_rdt="$rmids" rmids="$rmids" policy="$policy" >&2
	ok $? "$name: the module loads"
	[ "$(status backend)" = simulated ] && [ "$(status rmids_total)" = "$rmids" ] &&
		[ "$(status policy)" = "$policy" ]
	ok $? "$name: it simulates $rmids RMIDs"

	: > "$log"
	./tracecap -b "${BUFFER_KB:-32768}" -o "$OUT/$name" > "$log" &
	capture=$!
	wait_for_capture "$log" "$capture"
	ok $? "$name: the capture runs"

	# The session ends before the capture does: its end is judged too.
	./mwctl start sleep=200 \
		"run=./storm -n $lifetimes -c $workers -s $SEED -t ./tiny >&2" \
		sleep=50 stop sleep=300 >&2
	ok $? "$name: storm of $lifetimes lifetimes"
	kill "$capture"
	wait "$capture"
	ok $? "$name: the capture is complete"
	cp /proc/memwatch/status "$OUT/$name/status" 2>/dev/null
	cp /proc/memwatch/overhead "$OUT/$name/overhead" 2>/dev/null
	[ "$(status sessions)" = 0 ] && [ "$(status rmids_used)" = 0 ]
	ok $? "$name: nothing is in use after the session"
	rmmod memwatch >&2
	ok $? "$name: the module unloads"
}

plan $((7 * $#))
for run; do
	IFS=: read -r rmids policy lifetimes workers module <<END
$run
END
	one "$rmids" "$policy" "$lifetimes" "$workers" "$module"
done
tap_end
