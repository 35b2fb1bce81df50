#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Notices through netlink: each one is provoked and read back, who may read them, how many
# come when very much happens, and unloading. Runs in the lab beside memwatch.ko, mwctl,
# mwproc, attack and nlnotices, which knows nothing but linux/memwatch.h. Those that need RDT
# are in selftests/rdt/notices.sh. Prints TAP. Arguments select tests: family readers rate
# provoked unload.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
KO=${KO:-/lab/memwatch.ko}
USER=1000 GROUP=990 # the group memwatch of the guest

load() { insmod "$KO" "$@"; }

member() { attack as user=$USER group=$GROUP -- "$@"; }
stranger() { attack as user=$USER group=$USER -- "$@"; }

# tried subscribe|group IDENTITY...: the errno of who is refused. Who is not refused would
# read for ever.
tried() {
	tried_what=$1
	shift
	attack as "$@" -- timeout 5 nlnotices "$tried_what"
}

# begin_reader NAME COMMAND...: a reader in the background, whose lines are in $TMP/NAME
readers=
begin_reader() {
	reader_name=$1
	shift
	: > "$TMP/$reader_name"
	"$@" > "$TMP/$reader_name" 2>&1 9>&- &
	readers="$readers $!"
	within 5 grep -q ready "$TMP/$reader_name" ||
		echo "# $reader_name: $(cat "$TMP/$reader_name")"
}

end_readers() {
	# shellcheck disable=SC2086 # words
	end_processes $readers
	readers=
}

# told NAME PATTERN: a reader has a notice that matches
told() { grep -q "$2" "$TMP/$1"; }

# count_of NAME, sum_of NAME ATTRIBUTE: over all notices of a reader
count_of() { grep -c sequence= "$TMP/$1"; }
sum_of() { sed -n "s/.* $2=\([0-9]*\) .*/\1/p" "$TMP/$1" | awk '{ n += $1 } END { print n + 0 }'; }

# ------------------------------------------------------------------- family

test_family() {
	is "without the module there is no family" "$(nlnotices family)" ENOENT
	load gid=$GROUP
	is "the family has its version and its multicast group" "$(nlnotices family)" \
		"version 1 group notices"
	matches "genl of iproute2 lists the family" "$(genl ctrl list)" "Name: memwatch"
	matches "genl of iproute2 lists the multicast group" \
		"$(genl ctrl get name memwatch)" "name: notices"
	rmmod memwatch
	is "after unloading there is no family" "$(nlnotices family)" ENOENT
}

# ------------------------------------------------------------------ readers

test_readers() {
	load gid=$GROUP
	id=$(nlnotices id)
	is "a stranger is refused by the command" "$(tried subscribe user=$USER group=$USER)" EPERM
	is "a stranger is refused by the multicast group" "$(tried group user=$USER group=$USER)" EPERM
	is "a member of the group cannot join the multicast group" \
		"$(tried group user=$USER group=$GROUP)" EPERM
	is "root without a capability is refused by the command" \
		"$(tried subscribe bare)" EPERM
	is "root without a capability is refused by the multicast group" \
		"$(tried group bare)" EPERM
	is "root in a user namespace is refused by the command" \
		"$(tried subscribe new=user)" EPERM
	is "root in a user namespace is refused by the multicast group" \
		"$(tried group new=user)" EPERM
	is "root in a pid namespace is refused by the command" \
		"$(tried subscribe new=pid)" EPERM
	is "in a network namespace there is no family" "$(attack as new=net -- nlnotices family)" ENOENT
	is "in a user and network namespace there is no family" \
		"$(attack as new=user,net -- nlnotices family)" ENOENT
	is "a stranger cannot subscribe the socket of root" \
		"$(nlnotices inherited attack as user=$USER group=$USER -- nlnotices descriptor)" EPERM
	cp nlnotices by-root && chmod 4755 by-root # /tmp is mounted with nosuid
	is "a program that runs as root does not subscribe the socket of a stranger" \
		"$(stranger nlnotices inherited ./by-root descriptor)" EPERM
	is "such a program subscribes a socket of its own" \
		"$(stranger ./by-root many 1)" "1 "
	is "a socket subscribes once only" "$(nlnotices twice)" EALREADY
	is "a user has 16 subscribers at most" "$(member nlnotices many 20)" "16 ENOSPC"
	is "sockets that were closed have no subscription any more" \
		"$(member nlnotices many 16)" "16 "

	begin_reader command nlnotices subscribe
	begin_reader multicast nlnotices group
	begin_reader member member nlnotices subscribe
	begin_reader perfmon attack as user=$USER group=$USER keep -- nlnotices subscribe
	begin_reader container attack as new=user,net -- nlnotices member "$id"
	echo 1 > $PARAMETERS/notices
	for reader in command multicast member perfmon; do
		within 5 told $reader "kind=1 "
		ok $? "who may read gets a notice: $reader"
	done
	is "each of them gets it once" \
		"$(count_of command) $(count_of multicast) $(count_of member) $(count_of perfmon)" \
		"1 1 1 1"
	! told container sequence=
	ok $? "a container that joins the number of the group sees nothing"
	end_readers
	rmmod memwatch

	load
	is "without gid a member of group 0 is refused" \
		"$(tried subscribe user=$USER group=0)" EPERM
	rmmod memwatch
}

# --------------------------------------------------------------------- rate

# adds_up READER COUNT: whether messages and suppressed notices are as many
adds_up() { [ $(($(count_of "$1") + $(sum_of "$1" suppressed))) -eq "$2" ]; }

test_rate() {
	load
	begin_reader command nlnotices subscribe
	begin_reader multicast nlnotices group
	begin=$(date +%s)
	echo 10000 > $PARAMETERS/notices
	within 5 told command "count=10000 "
	ok $? "the last one of 10000 notices arrives"
	# The first ones are sent at once, and what comes after them a second later.
	[ "$(count_of command)" -le 16 ]
	ok $? "10000 notices at once are 16 messages at most: $(count_of command)"
	is "messages and suppressed notices add up" \
		"$(($(count_of command) + $(sum_of command suppressed)))" 10000
	for i in 1 2 3 4 5 6 7 8 9 10; do
		echo 2000 > $PARAMETERS/notices
		sleep 0.2
	done
	within 10 adds_up command 30000
	within 10 adds_up multicast 30000
	seconds=$(($(date +%s) - begin + 1))
	[ "$(count_of command)" -le $((8 * seconds)) ]
	ok $? "10000 notices a second for seconds: $(count_of command) messages in $seconds s"
	is "after that, messages and suppressed notices add up" \
		"$(($(count_of command) + $(sum_of command suppressed)))" 30000
	is "the multicast group gets the same" \
		"$(grep sequence= "$TMP/multicast")" "$(grep sequence= "$TMP/command")"
	is "sequence numbers have no gap" "$(sed -n 's/sequence=\([0-9]*\) .*/\1/p' "$TMP/command")" \
		"$(seq "$(count_of command)")"
	end_readers
	rmmod memwatch
}

# ----------------------------------------------------------------- provoked

test_provoked() {
	load rmids=4 tick_max_percent=1
	begin_reader command nlnotices subscribe
	begin_reader multicast nlnotices group
	hold_session
	mwproc storm 50 2
	within 5 told command "kind=5 "
	ok $? "RMIDs are exhausted: readers are told"
	matches "the notice counts the processes" "$(grep 'kind=5 ' "$TMP/command")" " count=[1-9]"
	sleep 1.2
	mwproc storm 50 2
	within 5 told command "kind=5 .*count=$(status exhausted) \|kind=5 .*count=[0-9][0-9]"
	ok $? "it is said again when it happens again, and the count has grown"
	echo 0 > /sys/devices/system/cpu/cpu1/online
	within 5 told command "kind=7 cpu=1 count=1 "
	ok $? "a CPU goes offline: readers are told"
	echo 1 > /sys/devices/system/cpu/cpu1/online
	within 5 told command "kind=8 cpu=1 count=1 "
	ok $? "a CPU comes online: readers are told"
	release_session
	echo 0 > /sys/devices/system/cpu/cpu1/online
	echo 1 > /sys/devices/system/cpu/cpu1/online

	# Ticks of a tenth of a millisecond that each take a stack trace take more than 1 % of the
	# time of an emulated CPU.
	tick=/sys/kernel/tracing/events/memwatch/memwatch_tick/trigger
	mount_tracing
	echo stacktrace > $tick
	hold_session period=100000 idle_stop=0 set
	within 30 told command "kind=4 .*value=200000 .*text=the period is now 200 us"
	ok $? "the period becomes longer: readers are told"
	echo '!stacktrace' > $tick
	release_session
	within 5 sh -c "dmesg | grep -q 'the period is now 200 us'"
	ok $? "the text of the notice is in the log"
	is "the beginning and the end of a session, and CPUs without one, are no notice" \
		"$(grep -c 'kind=[78] ' "$TMP/command")" 2
	is "the multicast group has told the same" \
		"$(grep sequence= "$TMP/multicast")" "$(grep sequence= "$TMP/command")"
	end_readers
	rmmod memwatch
}

# ------------------------------------------------------------------- unload

test_unload() {
	load
	begin_reader command nlnotices subscribe
	begin_reader multicast nlnotices group
	echo 10000 > $PARAMETERS/notices
	echo 500 > $PARAMETERS/notices
	rmmod memwatch
	is "a module with readers unloads" $? 0
	within 5 told command "count=500 "
	ok $? "what waited is sent when the module is unloaded"
	is "nothing is lost by unloading" \
		"$(($(count_of command) + $(sum_of command suppressed)))" 10500
	load
	echo 1 > $PARAMETERS/notices
	sleep 0.5
	! told command "sequence=1 .*count=1 value=1 "
	ok $? "a reader has to subscribe again after the module was loaded again"
	rmmod memwatch
	end_readers

	bad=
	for i in $(seq 20); do
		load || bad="$bad $i:load"
		begin_reader "r$i" nlnotices subscribe
		begin_reader "g$i" nlnotices group
		(while echo 3000 > $PARAMETERS/notices; do :; done) 2> /dev/null &
		writer=$!
		sleep 0.2
		kill -9 $writer
		wait $writer 2> /dev/null
		rmmod memwatch || bad="$bad $i:rmmod"
		end_readers
	done
	is "the module unloads 20 times under readers and notices" "$bad" ""
}

plan
for test in ${*:-family readers rate provoked unload}; do
	test_$test
done
rm -rf "$TMP"
tap_end
