#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In a guest: runs test_growth, or the test given, with swap and with permission to set
# the clock.
modprobe zram 2>/dev/null
if [ -e /sys/block/zram0/disksize ] && echo 256M >/sys/block/zram0/disksize 2>/dev/null; then
	if mkswap /dev/zram0 >/dev/null 2>&1; then
		swapon /dev/zram0 2>/dev/null
	fi
fi
cd /tmp || exit 1
MEMWATCH_TEST_CLOCK=yes exec "$OLDPWD/${1:-test_growth}"
