#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: a session while one process has this many threads.
set -eu
echo $(($1 * 2)) >/proc/sys/kernel/threads-max
echo 4194304 >/proc/sys/kernel/pid_max
/lab/mwctl start run="/lab/crowd -t $1 true"
