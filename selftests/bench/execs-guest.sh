#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: 300 programs that a filter excludes are executed while there are so many processes.
set -eu
cat >/lab/execs.sh <<'END'
i=0
while [ $i -lt 300 ]; do
	/bin/busybox true
	i=$((i + 1))
done
END
/lab/crowd "$1" /lab/mwctl comm=sh start run="sh /lab/execs.sh"
