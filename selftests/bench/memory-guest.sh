#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: the memory of the module with 512 RMIDs and 10 000 processes.
set -eu
insmod /lab/memwatch.ko rmids=512
/lab/crowd 10000 /lab/mwctl start run='cat /proc/memwatch/overhead /proc/memwatch/status > /out/memory'
grep '^memwatch ' /proc/modules > /out/module
rmmod memwatch
