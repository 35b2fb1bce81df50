#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# growth.sh [TEST [ARGUMENT...]]
#
# In a guest: runs test_growth, or the test given, with swap, with permission to set the
# clock, and, with the module ext4, in a file system whose files have pages that can be
# reclaimed: those of the guest's root cannot. Debian sets kernel.perf_event_paranoid to 3,
# which its kernels take as "CAP_SYS_ADMIN only".
tests=$PWD
modprobe zram num_devices=2 2>/dev/null
echo 2 >/proc/sys/kernel/perf_event_paranoid
if [ -e /sys/block/zram0/disksize ] && echo 256M >/sys/block/zram0/disksize 2>/dev/null; then
	if mkswap /dev/zram0 >/dev/null 2>&1; then
		swapon /dev/zram0 2>/dev/null
	fi
fi
cd /tmp || exit 1
if grep -q ext4 /proc/filesystems && echo 128M >/sys/block/zram1/disksize; then
	mke2fs -b 4096 /dev/zram1 >/dev/null 2>&1
	mkdir disk
	mount -t ext4 /dev/zram1 disk && cd disk || exit 1
fi
[ $# -gt 0 ] || set -- test_growth
test=$1
shift
MEMWATCH_IN_GUEST=yes exec "$tests/$test" "$@"
