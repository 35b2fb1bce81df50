#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# In a lab guest: runs kselftest's runner on what was installed in /kselftest. With "busy" the
# guest is like a machine with other work: other processes run, the module must not disturb them.
# The other arguments are for run_kselftest.sh.
# udev makes this link on a real machine; the runner writes to it.
ln -sf /proc/self/fd/1 /dev/stdout
# With Debian's value, 3, perf events would need CAP_SYS_ADMIN.
echo 2 >/proc/sys/kernel/perf_event_paranoid
# Fewer processes than by default, because the processors are emulated.
export KSELFTEST_TEST_SCHEDULER_ARGS=500
case ${1-} in
busy)
	shift
	unset MEMWATCH_DISRUPTIVE
	for _ in $(seq 100); do sleep 100000 & done ;;
rdt)
	shift
	modprobe msr ;;
esac
cd /kselftest && exec ./run_kselftest.sh "$@"
