#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# identity.sh RMIDS:POLICY:LIFETIMES:WORKERS[:MODULE]...
#
# In a guest: runs one storm of short-lived processes for each argument and captures
# the trace into /out/RMIDS-POLICY[-MODULE]. model-check judges the captures on the
# host. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
cd /lab || exit 1

OUT=${OUT:-/out}
SEED=${SEED:-1}
PERIOD=${PERIOD:-1000000}
KPROBES=/sys/kernel/tracing/kprobe_events
mount_tracing

# capture_decided LOG PID: the capture is ready or has ended
capture_decided() { grep -q ready "$1" || not kill -0 "$2" 2>/dev/null; }

# The policy chooses in a pass who loses an RMID, and the records follow after a grace period.
# The probes tell the model when that was.
begin_probes() {
	{
		echo "p:memwatch_pass/begin memwatch:mw_revoke_pass"
		echo "r:memwatch_pass/end memwatch:mw_revoke_pass"
	} > $KPROBES
}

run_storm() {
	rmids=$1 policy=$2 lifetimes=$3 workers=$4 module=${5:-}
	name=$rmids-$policy${module:+-$module}
	log=$(mktemp)
	mkdir -p "$OUT/$name"

	insmod "./${module:-memwatch}.ko" assume_rdt="$rmids" rmids="$rmids" policy="$policy" >&2
	ok $? "$name: the module loads"
	is "$name: the module simulates RDT" "$(status backend)" simulated
	is "$name: the module has $rmids RMIDs" "$(status rmids_total)" "$rmids"
	is "$name: the module uses policy $policy" "$(status policy)" "$policy"
	begin_probes
	ok $? "$name: probes of the policy's passes are set"

	: > "$log"
	./tracecap -b "${BUFFER_KB:-32768}" -o "$OUT/$name" > "$log" &
	capture=$!
	within 30 capture_decided "$log" "$capture" && grep -q ready "$log"
	ok $? "$name: the capture starts"

	# The session ends before the capture, because the model judges its end too.
	./mwctl "period=$PERIOD" set start sleep=200 \
		"run=./storm -n $lifetimes -c $workers -s $SEED -t ./tiny >&2" \
		sleep=50 stop sleep=300 >&2
	ok $? "$name: the storm of $lifetimes lifetimes ends well"
	kill "$capture"
	wait "$capture"
	ok $? "$name: the capture is complete"
	cp /proc/memwatch/status "$OUT/$name/status" 2>/dev/null
	cp /proc/memwatch/overhead "$OUT/$name/overhead" 2>/dev/null
	is "$name: no session is left" "$(status sessions)" 0
	is "$name: no RMID is in use after the session" "$(status rmids_used)" 0
	: > $KPROBES
	rmmod memwatch >&2
	ok $? "$name: the module unloads"
}

plan $((11 * $#))
for run; do
	IFS=: read -r rmids policy lifetimes workers module <<END
$run
END
	run_storm "$rmids" "$policy" "$lifetimes" "$workers" "$module"
done
tap_end
