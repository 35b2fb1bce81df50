#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Who is measured when there are fewer RMIDs than processes: with the default policy,
# no user and no crowd of processes keeps others from being measured. The share of a
# process is the part of its own CPU time in which its CPU was charged to an RMID of its
# own; it is computed from the trace of all context switches. Runs in the lab beside
# memwatch.ko, mwctl, herd and shares. POLICY names another policy, with which the test must
# fail. Speaks TAP. Arguments select tests.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
KO=${KO:-/lab/memwatch.ko}
RMIDS=24
ATTACKER=1001
VICTIM=1002

# start_herd UID N KIND [MS]: its pid in $herd, the pids of its processes in the file $TMP/$herd
start_herd() {
	in_background "$TMP/herd" herd "$@"
	herd=$!
	within 20 grep -q ready "$TMP/herd" || echo "# herd $* did not get ready"
	grep -v ready "$TMP/herd" >"$TMP/$herd"
	herds="$herds $herd"
}

# read_shares: of the trace so far, per process its CPU time in ms and its share in percent
read_shares() {
	echo 0 >$TRACING/tracing_on
	shares <$TRACING/trace >"$TMP/shares"
}

share_of() {
	awk -v p="$1" '$1 == p { s = $3; found = 1 } END { print found ? s : 0 }' "$TMP/shares"
}

# least_share HERD: of its processes that ran
least_share() {
	awk 'NR == FNR { member[$1] = 1; next }
		$1 in member && $2 > 0 && (least == "" || $3 < least) { least = $3 }
		END { print least == "" ? 0 : least }' "$TMP/$1" "$TMP/shares"
}

at_least() {
	[ "$2" -ge "$3" ]
	ok $? "$1"
	echo "# $2 percent, at least $3 wanted"
}

end_herds() {
	# shellcheck disable=SC2086
	end_processes $herds
	herds=
}

begin() {
	insmod "$KO" rmids=$RMIDS ${POLICY:+policy=$POLICY}
	mount_tracing
	echo 30000 >$TRACING/buffer_size_kb
	herds=
}

finish() {
	release_session
	end_herds
	rmmod memwatch
}

start_victim() {
	start_herd "$1" 1 spin
	victim=$(head -1 "$TMP/$herd")
}

switches_of() {
	awk '/ctxt_switches/ { n += $2 } END { print n + 0 }' "/proc/$1/status"
}

has_switched() { [ "$(switches_of "$1")" -ge "$2" ]; }

# wait_for_turns SECONDS N: waits so long at least, and until the victim has run and been switched
# out N times. Among hundreds of processes its next turn may be seconds away.
wait_for_turns() {
	turns_begin=$(switches_of "$victim")
	sleep "$1"
	within 30 has_switched "$victim" $((turns_begin + $2)) || echo "# process $victim hardly runs"
}

# The victim is queued at its first turn and should have an RMID soon afterwards. Of a single turn
# in the trace, its share would be all or nothing.
judge_victim() {
	wait_for_turns "$1" 2
	trace_start switch tick
	wait_for_turns 4 5
	read_shares
	at_least "$title" "$(share_of "$victim")" "$bound"
}

# attack TITLE BOUND VICTIM_UID ARGUMENT_OF_HERD...: the share of one process that runs
attack() {
	title=$1 bound=$2 uid=$3
	shift 3
	begin
	start_herd "$@"
	start_victim "$uid"
	hold_session
	judge_victim 2
	finish
}

# late_attack, with the arguments of attack: the process begins when the others hold all RMIDs that
# they can get. What the session finds has not run yet, and would lose an RMID to one that runs.
late_attack() {
	title=$1 bound=$2 uid=$3
	shift 3
	begin
	hold_session
	start_herd "$@"
	sleep 1
	start_victim "$uid"
	judge_victim 1
	finish
}

test_sleepers() {
	attack "60 processes that sleep do not keep one that runs from being measured" \
		90 $ATTACKER $ATTACKER 60 sleep
}

test_wakers() {
	late_attack "60 processes that wake every 50 ms do not keep one of another user from being measured" \
		90 $VICTIM $ATTACKER 60 wake 50
	# An equal part for each of 61 processes of 24 RMIDs, less the 3 that are left free and
	# up to 5 of the processes of root.
	attack "60 processes that wake every 50 ms leave one of the same user its share" \
		25 $ATTACKER $ATTACKER 60 wake 50
	# An equal part would be 39 percent.
	late_attack "40 processes that wake every 50 ms leave one of the same user its share" \
		25 $ATTACKER $ATTACKER 40 wake 50
	late_attack "60 processes that wake every 900 ms leave one of the same user its share" \
		25 $ATTACKER $ATTACKER 60 wake 900
}

test_spinners() {
	attack "60 processes that run do not keep one of another user from being measured" \
		90 $VICTIM $ATTACKER 60 spin
	attack "600 processes that run do not keep one of another user from being measured" \
		80 $VICTIM $ATTACKER 600 spin
}

test_namespace() {
	[ -e /proc/self/ns/user ] || {
		skip "the users of a user namespace count as one" "no user namespaces"
		return
	}
	attack "the users of a user namespace do not keep another user from being measured" \
		90 $VICTIM $ATTACKER 60 strangers
}

test_storm() {
	attack "a fork storm does not keep a process of another user from being measured" \
		90 $VICTIM $ATTACKER 40 storm 5
}

test_turns() {
	begin
	start_herd $ATTACKER 60 spin
	hold_session
	sleep 1
	trace_start switch tick
	sleep 12
	read_shares
	at_least "of 60 processes of one user that run, each is measured for a part of its time" \
		"$(least_share "$herd")" 5
	finish
}

# Between two allocations of an RMID to a process, as the records and as all switches say.
test_said() {
	begin
	start_herd $ATTACKER 60 spin
	hold_session
	sleep 2
	trace_start switch tick rmid_alloc
	sleep 12
	read_shares
	# shellcheck disable=SC2046 # two numbers
	set -- $(awk 'NR == FNR { member[$1] = 1; next }
		$1 in member { said += $4; ran += $5 }
		END { printf "%d %d\n", said, ran }' "$TMP/$herd" "$TMP/shares")
	[ "$2" -gt 1000 ] && [ "$1" -ge $(($2 * 85 / 100)) ] && [ "$1" -le $(($2 * 115 / 100)) ]
	ok $? "records say for how long processes ran without an RMID, within 15 %"
	echo "# records say $1 ms, the trace of all switches $2 ms"
	finish
}

test_jobs() {
	begin
	start_herd $ATTACKER 60 spin
	crowd=$herd
	hold_session
	sleep 1
	start_herd $VICTIM 2 jobs 20
	trace_start rmid_alloc
	sleep 4
	echo 0 >$TRACING/tracing_on
	forked=$(grep -c "reason=1 .*comm=herd" $TRACING/trace)
	late=$(grep "reason=3 .*comm=herd" $TRACING/trace |
		sed 's/.* tgid=\([0-9]*\) .*/\1/' | sort -u |
		grep -cvxF -f "$TMP/$crowd" -f "$TMP/$herd")
	echo "# $forked at fork, $late later"
	[ "$forked" -ge 5 ] && [ "$late" -le $((forked / 4)) ]
	ok $? "new processes of a user below its share have an RMID from their start"
	finish
}

plan
for test in ${*:-sleepers wakers spinners namespace storm turns said jobs}; do
	test_"$test"
done
rm -rf "$TMP"
tap_end
