#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# torture.sh [SECONDS]: everything at once, in the virtual machine: CPUs go and
# come, sessions start and stop, the module is loaded and unloaded, processes
# storm, states are dumped and read. The kernel's log is the judge; here it is
# only checked that each loop made progress and that all of it ends.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=SCRIPTDIR/../tap.sh
. ./tap.sh

seconds=${1:-60}
now=$(cut -d. -f1 /proc/uptime)
end=$((now + seconds))
work=$(mktemp -d)

running() {
	[ "$(cut -d. -f1 /proc/uptime)" -lt "$end" ]
}

# loop NAME COMMAND...: until the time is over; counts successes in a file.
loop() {
	name=$1
	shift
	good=0
	while running; do
		"$@" > /dev/null 2>> "$work/$name.log" && good=$((good + 1))
	done
	echo "$good" > "$work/$name"
}

hotplug() {
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		echo 0 > "$cpu" && sleep 0.2 && echo 1 > "$cpu" && sleep 0.3
	done
}

# Sessions make way for an unload from time to time, but nobody waits for them.
make_way() {
	while [ -e "$work/unloading" ] && running; do
		sleep 0.05
	done
}

session() {
	make_way
	./mwctl policy=active set start sleep=150 dump policy=fifo force set sleep=150 stop
}

# Fails whenever a session is open, and that is as it should be.
unload() {
	sleep 0.5
	touch "$work/unloading"
	tries=0
	until rmmod memwatch || [ "$tries" -gt 100 ]; do
		tries=$((tries + 1))
		sleep 0.02
	done
	rm -f "$work/unloading"
	[ "$tries" -le 100 ] && insmod ./memwatch.ko assume_rdt=16 rmids=16
}

dump() {
	make_way
	./mwctl start dump sleep=20 dump
}

read_all() {
	cat /proc/memwatch/status /proc/memwatch/rmids /proc/memwatch/overhead
	sleep 0.05
}

storm() {
	./storm -n 0 -d 3 -c 2 -s "$(cut -d. -f1 /proc/uptime)" -t ./tiny
}

ls /sys/devices/system/cpu/cpu[1-9]*/online > /dev/null 2>&1
hot=$?
plan 9
check "the module loads" insmod ./memwatch.ko assume_rdt=16 rmids=16
loops="session unload dump read_all storm"
[ "$hot" -ne 0 ] || loops="$loops hotplug"
jobs=
for name in $loops; do
	loop "$name" "$name" &
	jobs="$jobs $!"
done
# shellcheck disable=SC2086
wait $jobs
for name in session unload dump read_all storm hotplug; do
	if [ "$name" = hotplug ] && [ "$hot" -ne 0 ]; then
		skip "hotplug made progress" "this machine has one CPU"
		continue
	fi
	count=$(cat "$work/$name")
	[ "${count:-0}" -gt 0 ]
	ok $? "$name made progress ($count)"
done
[ -d /sys/module/memwatch ] || insmod ./memwatch.ko assume_rdt=16 rmids=16
./mwctl start sleep=100 stop >&2
ok $? "a session still works"
check "the module unloads" rmmod memwatch
tap_end
