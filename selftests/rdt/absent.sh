#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# In the simulated machine, on a kernel that is told to leave RDT alone, so that it
# has no resctrl: a session uses RDT, and looking for resctrl does not run modprobe
# again and again. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/lib.sh
. /lab/lib.sh

cat > /bin/count-modprobe <<EOT
#!/bin/sh
echo "\$*" >> $TMP/modprobe
EOT
chmod +x /bin/count-modprobe
: > "$TMP/modprobe"

plan 4
grep resctrl /proc/filesystems
is "the kernel has no resctrl" $? 1
echo /bin/count-modprobe > /proc/sys/kernel/modprobe
load
hold_session
matches "without resctrl RDT is used" "$(status backend)" "intel-rdt\|amd-qos"
sleep 3
release_session
hold_session
sleep 1
release_session
calls=$(grep -c resctrl "$TMP/modprobe")
echo "# modprobe was called $calls times for resctrl in two sessions of 3 s and 1 s"
[ "$calls" -le 1 ]
ok $? "the kernel is asked for resctrl at most once"
check "the module unloads" rmmod memwatch
tap_end
