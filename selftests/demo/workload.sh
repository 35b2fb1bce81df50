#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A few seconds of an ordinary machine: programs that stream through memory,
# compress, sort, grow, sleep, fork and exit. All of them are the real ones;
# they work on the files "data" and "words" of this folder.

sleep 4 &

# Streams: reads more than any cache holds, over and over.
(for _ in 1 2 3 4 5 6 7 8; do sha256sum data; done) >/dev/null &

# Compress.
(sleep 0.3; exec xz -0 -c data >data.xz) &
(sleep 0.8; exec gzip -1 -c data >data.gz) &

# Grows: a quarter of a mebibyte at a time, and never gives back.
perl -e 'for (1 .. 120) { push @a, "x" x 262144; select undef, undef, undef, 0.02 }' &

# Sorts, in memory.
(sleep 1.5; exec sort -S 64M -o sorted words) &

# Forks: short-lived processes, one after the other.
n=0
while [ $n -lt 15 ]; do
	expr $n + 1 >/dev/null
	n=$((n + 1))
	sleep 0.05
done
wait
