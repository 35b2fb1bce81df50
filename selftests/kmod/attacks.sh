#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# What users, members of the group memwatch, containers and holders of CAP_PERFMON
# must not be able to do to the module, to its sessions, or to the host. Runs in the
# lab beside memwatch.ko, release/memwatch.ko, mwctl, mwproc, attack and memwatchctl,
# with the kernel's module fuse. Prints TAP. Arguments select tests: group container
# memory killed settings rates release.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
KO=${KO:-/lab/memwatch.ko}
USER=1000 GROUP=990 # the group memwatch of the guest

# attacker keep|- COMMAND...: runs COMMAND as a user of the group memwatch, with CAP_PERFMON
# ("keep") or without any capability ("-")
attacker() {
	attacker_keep=
	[ "$1" != keep ] || attacker_keep=keep
	shift
	# shellcheck disable=SC2086 # one word or none
	attack as user=$USER group=$GROUP $attacker_keep -- "$@"
}

# What the udev rule does.
give_device() { chgrp $GROUP /dev/memwatch && chmod 0660 /dev/memwatch; }

load() { insmod "$KO" "$@" && give_device; }

# readable COMMAND...: prints what opening each of the three files gives under COMMAND
readable() { for file in status rmids overhead; do "$@" attack open /proc/memwatch/$file; done; }

all_three() { printf '%s\n%s\n%s' "$1" "$1" "$1"; }

mode_of() { stat -c %a:%u:%g "$1"; }

# -------------------------------------------------------------------- group

test_group() {
	insmod "$KO"
	is "without a udev rule the device belongs to root alone" "$(mode_of /dev/memwatch)" 600:0:0
	is "without gid root alone may read status" "$(mode_of $PROC/status)" 400:0:0
	is "group 0 is not the group of the module if no gid is given" \
		"$(readable attack as user=$USER group=0 --)" "$(all_three EACCES)"
	give_device
	is "a member of the group without a capability cannot open the device" \
		"$(attacker - attack open /dev/memwatch)" EPERM
	is "a member of the group with CAP_PERFMON can open the device" \
		"$(attacker keep attack open /dev/memwatch)" opened
	is "root without a capability cannot open the device" \
		"$(attack as bare -- attack open /dev/memwatch)" EPERM
	rmmod memwatch
	load gid=$GROUP
	is "with gid the group may read status" "$(mode_of $PROC/status)" 440:0:$GROUP
	is "a member of the group can read the files" "$(readable attacker -)" "$(all_three opened)"
	is "a user outside of the group cannot read the files" \
		"$(readable attack as user=$USER group=$USER --)" "$(all_three EACCES)"
	is "root without a capability cannot read the files" \
		"$(readable attack as bare --)" "$(all_three EPERM)"
	rmmod memwatch
	insmod "$KO" gid=4294967294
	is "rmmod and insmod with the highest gid work" "$(mode_of $PROC/status)" 440:0:4294967294
	rmmod memwatch
}

# --------------------------------------------------------------- containers

test_container() {
	load gid=$GROUP
	is "root in a pid namespace cannot read the files" \
		"$(readable attack as new=pid,mnt --)" "$(all_three EPERM)"
	is "root in a user namespace cannot read the files" \
		"$(readable attack as new=user --)" "$(all_three EPERM)"
	is "root in a user, pid and mount namespace cannot read the files" \
		"$(readable attack as new=user,pid,mnt --)" "$(all_three EPERM)"
	is "root in a pid namespace without a capability cannot read the files" \
		"$(readable attack as bare new=pid,mnt --)" "$(all_three EPERM)"
	is "a member of the group in a pid namespace cannot read the files" \
		"$(readable attack as user=$USER group=$GROUP new=pid,mnt --)" "$(all_three EPERM)"
	is "root in a user namespace cannot open the device" \
		"$(attack as new=user -- attack open /dev/memwatch)" EPERM
	attack as new=user,pid,mnt -- memwatchctl status > "$TMP/out" 2>&1
	grep -q "only be read on the host, not in a container" "$TMP/out"
	ok $? "memwatchctl status says in a container that only the host can read the files"
	cat "$TMP/out" >&2
	rmmod memwatch
}

# -------------------------------------------------------------- user memory

# hangs WHAT: an attacker calls the module with memory whose page never arrives, see attack.c
hangs() {
	: > "$TMP/called"
	: > "$TMP/hang"
	attacker keep attack page "$TMP/fuse/page" "$1" > "$TMP/called" 2>&1 &
	victim=$!
	within 10 grep -q read "$TMP/hang"
	ok $? "the module accesses memory for '$1' and blocks"
	timeout 10 head -1 $PROC/status > "$TMP/out"
	is "status answers while '$1' is blocked" "$(cut -d: -f1 "$TMP/out")" version
	timeout 20 mwctl start dump stop > "$TMP/out"
	ok $? "a session runs while '$1' is blocked"
	kill -9 $victim
	timeout 20 mwctl start stop > "$TMP/out"
	ok $? "a session runs after the process that is blocked in '$1' was killed"
}

test_memory() {
	load
	mkdir -p "$TMP/fuse"
	chmod 755 "$TMP"
	for page in set get argument; do
		in_background "$TMP/hang" attack hang "$TMP/fuse"
		server=$!
		within 10 grep -q ready "$TMP/hang"
		hangs $page
		kill -9 $server # ends the file system, and with it every wait
		wait $server $victim 2> /dev/null
		umount "$TMP/fuse"
	done
	within 10 status_is sessions 0
	ok $? "no session is left after the FUSE servers were killed"
	rmmod memwatch
}

# ------------------------------------------------------------------- kills

has_ended() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"; }
is_blocked() { grep -q '^State:.D' "/proc/$1/status"; }

# kill_waiter WHAT PID: kills a process that waits for a session to start
kill_waiter() {
	within 2 is_blocked "$2"
	ok $? "$1 waits while a session starts"
	kill -9 "$2"
	within 2 has_ended "$2" && ! has_ended $starter
	ok $? "$1 ends when it is killed, although the session still starts"
}

# A session starts slowly, because each CPU waits when it joins. (What has an open session ends after
# it was killed only when it could stop the session, so no command is killed here.)
test_killed() {
	load
	dmesg -c >/dev/null
	echo 10000 >$PARAMETERS/delay_ms
	mwctl start stop >&2 &
	starter=$!
	within 10 eval 'dmesg | grep -q "a CPU that comes online waits"'
	ok $? "a session starts slowly"
	mwctl info >&2 &
	kill_waiter "a process that opens the device" $!
	for file in status overhead; do
		cat $PROC/$file >&2 &
		kill_waiter "a reader of $file" $!
	done
	echo 0 >$PARAMETERS/delay_ms
	wait $starter
	is "the session starts and ends" $? 0
	rmmod memwatch
}

# ----------------------------------------------------------------- settings

# Prints how many of the seven processes that sleep are measured.
measured() { awk -F '\t' '$9 == "mwproc"' $PROC/rmids | wc -l; }
all_measured() { [ "$(measured)" = 7 ]; }

test_settings() {
	load
	sleepers=
	for _ in $(seq 7); do
		mwproc sleep > /dev/null &
		sleepers="$sleepers $!"
	done
	hold_session
	within 10 all_measured
	ok $? "a session without filters measures seven processes that sleep"
	is "a filter of another session is refused while a session runs" \
		"$(attacker keep mwctl '!comm=nobody-has-it')" "comm: EBUSY"
	is "another session cannot remove the filters while a session runs" \
		"$(attacker keep mwctl '!clear')" "clear: EBUSY"
	is "another session cannot change the period while a session runs" \
		"$(attacker keep mwctl period=2000000 '!set')" "set: EBUSY"
	is "CAP_PERFMON is not enough to change a running session" \
		"$(attacker keep mwctl force '!comm=nobody-has-it' force '!clear' force period=2000000 '!set')" \
		"$(printf 'comm: EPERM\nclear: EPERM\nset: EPERM')"
	is "CAP_PERFMON is not enough to change the defaults" \
		"$(attacker keep mwctl default '!comm=nobody-has-it' default '!clear' default period=2000000 '!set')" \
		"$(printf 'comm: EPERM\nclear: EPERM\nset: EPERM')"
	sleep 1
	is "the running session still measures all of them" "$(measured)" 7
	mwctl default comm=mwproc default period=3000000 set
	status_is period_ns 1000000 && status_is filters 0
	ok $? "a change of the defaults does not change the running session"
	release_session
	status_is period_ns 3000000 && status_is filters 1
	ok $? "the defaults are in force after the session"
	mwctl default clear default period=1000000 set
	status_is period_ns 1000000 && status_is filters 0
	ok $? "the defaults can be set back"

	mwctl period=5000000 limbo=7000000 policy=active idle_stop=0 cpus=0 set comm=mwproc \
		start sleep=600000 &
	holder=$!
	within 10 status_is sessions_started 1
	status_is period_ns 5000000 && status_is filters 1 && status_is policy active
	ok $? "a session measures with its own settings"
	is "status says whose settings are in force" "$(status settings_by)" "$holder mwctl"
	mwctl start config > "$TMP/out"
	grep -q '^period_ns 5000000 ' "$TMP/out"
	ok $? "a session that joins sees the settings in force"
	kill -9 $holder
	wait $holder 2> /dev/null
	within 10 status_is sessions 0
	is "after kill -9 the settings are the defaults" \
		"$(status period_ns) $(status limbo_ns) $(status policy) $(status idle_stop) $(status filters) $(status settings_by)" \
		"1000000 2000000 fair 1 0 $(status defaults_by)"
	hold_session
	within 10 all_measured
	ok $? "a session that starts after kill -9 measures every process"
	release_session
	mwctl comm=nobody-has-it period=9000000 set config filters sleep=600000 > "$TMP/out" &
	holder=$!
	within 10 status_is sessions 1
	hold_session
	status_is period_ns 1000000 && status_is filters 0
	ok $? "the settings of a session that never starts change no other session"
	release_session
	kill -9 $holder
	# shellcheck disable=SC2086
	end_processes $sleepers
	rmmod memwatch
}

# -------------------------------------------------------------------- rates

# A recorder runs beside a loop of dumps; after it, sessions are started in a loop.
test_rates() {
	load
	pids=
	for _ in $(seq 100); do
		mwproc sleep > /dev/null &
		pids="$pids $!"
	done
	memwatchctl record -o "$TMP/dump.mwr" -d 6 > "$TMP/record" 2>&1 &
	recorder=$!
	within 20 status_is sessions_started 1
	attacker keep attack dump 5000 > "$TMP/out"
	wait $recorder
	echo "# $(cat "$TMP/out"); $(tail -1 "$TMP/record")"
	grep -q ' 0 lost' "$TMP/record"
	ok $? "a recorder loses no record during a loop of dumps"
	records=$(sed -n 's/.* records=//p' "$TMP/out")
	[ "${records:-0}" -gt 100 ] && [ "${records:-0}" -le 23000 ]
	ok $? "a loop of dumps is limited to 4000 records a second"
	# shellcheck disable=SC2086
	end_processes $pids

	begin=$(cut -d. -f1 /proc/uptime)
	failed=0
	for _ in $(seq 30); do mwctl start dump stop > /dev/null || failed=$((failed + 1)); done
	is "30 short sessions in a row work" "$failed" 0
	echo "# 30 short sessions took $(($(cut -d. -f1 /proc/uptime) - begin)) s"
	attacker keep attack start 11000 > "$TMP/out"
	took=$(($(cut -d. -f1 /proc/uptime) - begin + 1))
	echo "# $(cat "$TMP/out") in 11 s, after the 30; all in $took s"
	starts=$(sed -n 's/^starts=//p' "$TMP/out")
	# 33 in a row are allowed besides.
	[ "${starts:-0}" -ge 1 ] && [ $((starts + 30)) -le $((33 + 4 * took)) ]
	ok $? "a loop of sessions arms the module at most 4 times a second"
	rmmod memwatch
}

# ------------------------------------------------------------ release build

test_release() {
	insmod /lab/release/memwatch.ko
	is "a module that is not built for tests has no parameter for tests" \
		"$(cd $PARAMETERS &&
			ls -d assume_rdt delay_ms fail_step fail_steps idle_jiffies notices 2> /dev/null)" ""
	is "a module that is not built for tests limits what ticks cost" \
		"$(cat $PARAMETERS/tick_max_percent)" 5
	check "a module that is not built for tests runs a session" mwctl start dump stop
	rmmod memwatch
}

mount_tracing
plan
for test in ${*:-group container memory killed settings rates release}; do
	test_"$test"
	[ ! -d /sys/module/memwatch ] || rmmod memwatch
done
tap_end
