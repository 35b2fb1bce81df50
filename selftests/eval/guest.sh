#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a virtual machine: records leaks under memory.max of cgroup version 2, and one
# that is swapped out while it leaks. The traces go to /out. Prints TAP.
set -u
dir=$(mktemp -d)
swapon_zram() {
	modprobe zram 2>/dev/null
	echo 64M >/sys/block/zram0/disksize && mkswap /dev/zram0 >/dev/null && swapon /dev/zram0
}

# NAME "RECORD OPTIONS" KIND RATE AFTER [BOUND]
run() {
	name=$1 options=$2
	shift 2
	mkdir -p "$dir/$name"
	# shellcheck disable=SC2086 # a list of words
	(cd "$dir/$name" && /lab/record $options -k program -n "$name" -o . -- /lab/leak "$@") >"$dir/$name.log" 2>&1 &
}

echo "TAP version 13"
echo "1..4"
swapon_zram >"$dir/swap.log" 2>&1 || sed 's/^/# /' "$dir/swap.log"
run guest-heap "-l 60000 -t 200 -r 40" heap 500 40
run guest-shmem "-l 80000 -t 200 -r 40" shmem 800 40
run guest-bound "-l 100000 -t 200" heap 800 40 30000
run guest-swapped "-s -l 40000 -t 300 -r 20" heap 400 20
wait
n=0
for name in guest-heap guest-shmem guest-bound guest-swapped; do
	n=$((n + 1))
	if [ -s "$dir/$name/$name.json" ]; then
		cp "$dir/$name/$name.csv" "$dir/$name/$name.json" /out/
		echo "ok $n $name is recorded"
	else
		echo "not ok $n $name is recorded"
		sed 's/^/# /' "$dir/$name.log"
	fi
done
