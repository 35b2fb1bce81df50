#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# kills.sh KILLS: in a guest, kills programs with the heap profiler, by a signal and by a full
# memory cgroup of version 2. The profiles lie in a file system whose pages can be reclaimed, as
# on a disk.
set -eu
modprobe zram num_devices=1 2>/dev/null || true
echo 512M >/sys/block/zram0/disksize
mke2fs -b 4096 /dev/zram0 >/dev/null 2>&1
mkdir -p /disk
mount -t ext4 /dev/zram0 /disk
[ -e /sys/fs/cgroup/cgroup.controllers ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
TMPDIR=/disk exec ./heap/tests/test-kill "$1"
