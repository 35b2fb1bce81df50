#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: the latency of a fork storm without a session and in one, alone and while one
# process has THREADS threads.
set -eu
echo $(($1 * 2)) >/proc/sys/kernel/threads-max
echo 4194304 >/proc/sys/kernel/pid_max
insmod /lab/memwatch.ko assume_rdt=64 rmids=64
cat >/lab/both.sh <<'END'
/lab/fork-storm 8 250 | sed "s/^/$1 without /"
/lab/mwctl start run="/lab/fork-storm 8 250" | sed -n "s/^fork/$1 session fork/p"
END
sh /lab/both.sh 0
/lab/crowd -t "$1" sh /lab/both.sh "$1"
rmmod memwatch
