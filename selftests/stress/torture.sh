#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# torture.sh [SECONDS]
#
# In a guest, all at the same time: CPUs go offline and online, sessions start and
# stop, the module is loaded and unloaded, short-lived processes run, the state is
# dumped and read. The test checks that each loop made progress; the lab then
# searches the kernel's log for defects. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
cd /lab || exit 1

seconds=${1:-60}
now=$(cut -d. -f1 /proc/uptime)
end=$((now + seconds))

running() {
	[ "$(cut -d. -f1 /proc/uptime)" -lt "$end" ]
}

# loop NAME COMMAND...: repeats COMMAND until the time is over and counts its
# successes in a file
loop() {
	name=$1
	shift
	good=0
	while running; do
		"$@" > /dev/null 2>> "$TMP/$name.log" && good=$((good + 1))
	done
	echo "$good" > "$TMP/$name"
}

hotplug() {
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		echo 0 > "$cpu" && sleep 0.2 && echo 1 > "$cpu" && sleep 0.3
	done
}

# No session starts while an unload is tried, so that some of the unloads succeed.
wait_for_unload() {
	while [ -e "$TMP/unloading" ] && running; do
		sleep 0.05
	done
}

session() {
	wait_for_unload
	./mwctl policy=active set start sleep=150 dump policy=fifo force set sleep=150 stop
}

# rmmod must fail while a session is open; the loop counts the unloads that succeed.
unload() {
	sleep 0.5
	touch "$TMP/unloading"
	tries=0
	until rmmod memwatch || [ "$tries" -gt 100 ]; do
		tries=$((tries + 1))
		sleep 0.02
	done
	rm -f "$TMP/unloading"
	[ "$tries" -le 100 ] && insmod ./memwatch.ko assume_rdt=16 rmids=16
}

dump() {
	wait_for_unload
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
		skip "the loop hotplug made progress" "this machine has one CPU"
		continue
	fi
	count=$(cat "$TMP/$name")
	[ "${count:-0}" -gt 0 ]
	ok $? "the loop $name made progress: $count times"
done
[ -d /sys/module/memwatch ] || insmod ./memwatch.ko assume_rdt=16 rmids=16
./mwctl start sleep=100 stop >&2
ok $? "a session works after the torture"
check "the module unloads" rmmod memwatch
tap_end
