#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The workload of the demonstration: real programs that read memory sequentially,
# compress, sort, grow, sleep, fork and exit. They work on the files "data" and "words"
# of the current folder.

sleep 4 &

# Reads a file repeatedly.
(for _ in 1 2 3 4 5 6 7 8; do sha256sum data; done) >/dev/null &

# Compresses.
(sleep 0.3; exec xz -0 -c data >data.xz) &
(sleep 0.8; exec gzip -1 -c data >data.gz) &

# Allocates a quarter of a mebibyte at a time and frees nothing.
perl -e 'for (1 .. 120) { push @a, "x" x 262144; select undef, undef, undef, 0.02 }' &

# Sorts in memory.
(sleep 1.5; exec sort -S 64M -o sorted words) &

# Runs short-lived processes one after the other.
n=0
while [ $n -lt 15 ]; do
	expr $n + 1 >/dev/null
	n=$((n + 1))
	sleep 0.05
done
wait
