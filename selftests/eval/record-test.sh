#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares the recorder, the leaking program and drop-free.so with what arithmetic says
# about them. Needs root, for the cgroups.
#
#	record-test.sh FOLDER     FOLDER has record, leak and drop-free.so
set -u
here=$(realpath "$(dirname "$0")")
bin=$(realpath "$1")
. "$here/../tap.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

# truth TRACE KEY: prints a value of the truth.
truth() { sed -n "s/.*\"$2\": \([^,}]*\).*/\1/p" "$1.json"; }
# near A B PERCENT: is A within PERCENT of B?
near() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(d <= b * p / 100) }'; }
# leaked_by_frees PERMILLE RATE: drops frees for two seconds and prints the bytes that leaked in a second
leaked_by_frees() {
	rm -f counter
	LD_PRELOAD=$bin/drop-free.so EVAL_COUNTER=counter EVAL_LEAK_PERMILLE=$1 EVAL_LEAK_RATE=$2 \
		/usr/bin/python3 -c '
import os, time
def leaked():
    with open("counter", "rb") as file:
        return int.from_bytes(file.read(8), "little")
def free_for(seconds):
    now = begin = time.monotonic()
    while now < begin + seconds:
        bytearray(1000)
        now = time.monotonic()
    return now - begin
free_for(0.3)  # what the start of Python did not leak, leaks at once
before = leaked()
took = free_for(2)
print("%.0f" % ((leaked() - before) / took), flush=True)
os._exit(0)'
}

if [ "$(id -u)" -ne 0 ]; then
	skip_all "needs root for cgroups"
fi
plan 12

"$bin/record" -l 60000 -t 40 -r 3 -k program -n leak -o . -- "$bin/leak" heap 4096 3 2>log
ok $? "a leak is recorded"
# The leak begins after 3 s. The limit is 60000 KiB, of which 16384 KiB are used then, and
# 4096 KiB/s leak, so the limit is reached about 10.6 s later. Page tables count too, which makes
# this a little earlier. On a busy machine the kernel then reclaims pages for seconds until it kills.
reached=$(awk -F, '{ kib = $4 + 0 } NR == FNR { if (kib > most) most = kib; next }
	FNR > 1 && kib > 0.97 * most { print $1; exit }' leak.csv leak.csv)
near "$reached" 13.5 8
ok $? "the leak reaches its limit in time: $reached"
[ "$(truth leak oom_s)" != null ]
ok $? "the leak is killed: $(truth leak oom_s)"
# rate: bytes per second from second 3 to a sample; reads its time and KiB
rate() { awk '{ printf "%.0f\n", ($2 - 16384) * 1024 / ($1 - 3) }'; }
near "$(awk -F, -v t="$reached" '$1 == t { print $1, $4 }' leak.csv | rate)" 4194304 4
ok $? "the program leaks at its rate until it reaches its limit"
near "$(truth leak rate_bytes_per_second)" "$(awk -F, '{ last = $1 " " $4 } END { print last }' leak.csv | rate)" 2
ok $? "the recorded rate is that up to the last sample: $(truth leak rate_bytes_per_second)"
# A sample may be late on a busy machine, but none is left out or early.
awk -F, 'NR > 1 { if ($1 < NR - 1.55 || $9 != 60000) bad = 1; t = $1 }
	END { exit bad || NR < 11 || NR - 1 < int(t + 0.5) }' leak.csv
ok $? "there is a sample for each second, each with the limit of 60000 KiB"

"$bin/record" -l 60000 -t 12 -k program -n twin -o . -- "$bin/leak" heap 4096 1 20000
ok $? "a program that stops growing below its limit is recorded"
[ "$(truth twin oom_s)" = null ] && [ "$(truth twin label)" = '"benign"' ]
ok $? "it is not killed, and its label is benign"

"$bin/record" -t 5 -k program -n broken -o . -- sh -c 'sleep 1; exit 3' 2>log &
pid=$!
wait $pid
[ $? -eq 1 ] && ! [ -e broken.csv ] && ! [ -e broken.json ]
ok $? "a program that fails leaves no trace"
! ls -d "/sys/fs/cgroup/memwatch-eval-$pid" "/sys/fs/cgroup/memory/memwatch-eval-$pid" 2>/dev/null
ok $? "a program that fails leaves no cgroup"

[ "$(leaked_by_frees 0 0)" -eq 0 ]
ok $? "nothing leaks if no free is dropped"
near "$(leaked_by_frees 500 1000000)" 1000000 10
ok $? "1 MB leaks each second if half of the frees are dropped, at most 1 MB/s"
tap_end
