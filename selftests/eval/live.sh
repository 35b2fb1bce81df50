#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in a virtual machine: does `growth watch` raise an alert before the kernel kills?
# Real programs leak under memory.max until they are killed, and twins of them do not leak,
# while the monitor runs. Prints TAP.
set -u
# shellcheck source=SCRIPTDIR/../tap.sh
. /lab/tap.sh
dir=$(mktemp -d)
cd "$dir" || exit 1
uptime_s() { cut -d' ' -f1 /proc/uptime; }

# Mapped files can only be dropped if they are on a disk file system.
modprobe zram num_devices=1 && echo 256M >/sys/block/zram0/disksize && /lab/mke2fs -q /dev/zram0 &&
	mkdir disk && mount -t ext4 /dev/zram0 disk
mkdir -p disk

# NAME "RECORD OPTIONS" COMMAND
run() {
	mkdir -p "$1"
	uptime_s >"$1/start"
	# shellcheck disable=SC2086 # a list of words
	(cd "$1" && /lab/record $2 -k program -n "$1" -o . -- sh -c "$3") >"$1.log" 2>&1 &
}

# The hook writes one line for each event: the event, the process, and the time. A round of the
# emulated machine takes some fifty times as long as one of a real machine: with the default budget
# there would be one in ten seconds.
# shellcheck disable=SC2016 # the shell of the hook expands this
memwatchctl growth watch --alerts --interval 1s --budget 50000 --duration 700s --format json \
	--exec 'echo "$MEMWATCH_EVENT $MEMWATCH_PID $(cut -d" " -f1 /proc/uptime)" >>alerts' >watch.json 2>watch.err &
watch=$!
files_of() { for f in /proc/"$1"/fd/*; do readlink "$f"; done; }
# Verifying the programs takes a while on an emulated machine.
while [ -d "/proc/$watch" ] && ! files_of "$watch" | grep -q bpf_link; do
	sleep 1
done
sleep 2
python='import time
kept = []
while True:
    kept.extend(str(n) * 50 for n in range(1000))
    time.sleep(0.4)'
printf '%s\n' "$python" >list.py
preload='LD_PRELOAD=/lab/drop-free.so EVAL_LEAK_PERMILLE=1000 EVAL_LEAK_RATE=150000 EVAL_LEAK_AFTER=20'

run heap "-l 60000 -t 600 -r 30" 'exec /lab/leak heap 400 30'
run shmem "-l 60000 -t 600 -r 30" 'exec /lab/leak shmem 400 30'
run nasm "-l 20000 -t 600 -r 0 -q 400" 'exec nasm --limit-rep 100000000 -E -o /dev/null /lab/leak.asm'
run python "-l 60000 -t 600 -r 0" "exec python3 -S -E $dir/list.py"
run redis "-l 32000 -t 600 -r 20" \
	"$preload exec redis-server --port 0 --unixsocket $dir/socket --save '' --appendonly no --maxmemory 8mb --maxmemory-policy allkeys-lru"
run file "-l 60000 -t 150" "cd $dir/disk; exec /lab/leak file 400 30 200000"
run bound "-l 100000 -t 150" 'exec /lab/leak heap 400 30 30000'
(while [ -d "/proc/$watch" ]; do
	redis-benchmark -q -s "$dir/socket" -t set -r 20000 -d 500 -n 2000 -P 16 -c 2
	sleep 0.5
done) >load.log 2>&1 &
load=$!
await() {
	while [ ! -e "$1/$1.json" ] && [ -d "/proc/$watch" ]; do
		sleep 1
	done
}
# As a service that is restarted.
await heap
run again "-l 60000 -t 600 -r 30" 'exec /lab/leak heap 400 30'
for name in shmem nasm python redis file bound again; do
	await "$name"
done
kill "$load" 2>/dev/null
kill -INT "$watch"
wait "$watch"
watched=$?
echo "growth watch ended at $(uptime_s) s with $watched" >watch.log

key() { sed -n "s/.*\"$2\": \([^,}]*\).*/\1/p" "$1/$1.json" 2>/dev/null; }
plan
touch alerts
again=0
ok "$watched" "growth watch ends without an error"
for name in heap shmem nasm python redis again; do
	killed=$(key "$name" oom_s) alert=$(awk -v pid="$(key "$name" leaker_pid)" \
		'$1 == "alert" && $2 == pid { print $3; exit }' alerts)
	[ -n "$killed" ] && [ "$killed" != null ]
	ok $? "$name is killed by the kernel because its memory limit is reached: at ${killed:-?} s"
	lead=$(awk -v start="$(cat "$name/start")" -v killed="${killed:-0}" -v alert="${alert:-9999999}" \
		'BEGIN { printf "%.1f", start + killed - alert }')
	awk -v lead="$lead" 'BEGIN { exit !(lead > 0) }'
	ok $? "an alert for $name is raised before the kill: $lead s"
	[ "$name" != again ] || again=$lead
done
# It leaks evenly for 108 s, and 42 % of the memory below the limit are used then.
awk -v lead="$again" 'BEGIN { exit !(lead > 50) }'
ok $? "a program that is started again has its alert when half of the time is left: $again s"
for name in file bound; do
	pid=$(awk -F, 'NR == 2 { print $2 }' "$name/$name.csv")
	[ "$(key "$name" oom_s)" = null ] && [ -n "$pid" ] && ! grep -q "^alert $pid " alerts
	ok $? "$name is not killed, and raises no alert"
done
tap_end
tail -n 5 ./*.log watch.err | sed 's/^/# /'
for f in alerts watch.json ./*/*.csv ./*/*.json; do
	[ -e "$f" ] && cp "$f" /out/
done
exit 0
