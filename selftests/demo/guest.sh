#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The guest's part of the demonstration: loads the module, records the workload, and
# saves what memwatch says about the machine. Results go to /out.
set -eu
say() { echo "guest: $*"; }

say "Linux $(uname -r) with $(nproc) CPUs is up"
cd /tmp
dd if=/dev/urandom of=data bs=64k count=8 2>/dev/null
seq 1 150000 >>data
perl -e 'print int rand 1e6, "\n" for 1 .. 60000' >words

insmod /lab/memwatch.ko
say "the module is loaded: $(sed -n 's/^backend: //p' /proc/memwatch/status)," \
	"$(sed -n 's/^rmids_total: //p' /proc/memwatch/status) RMIDs"
memwatchctl doctor >/out/doctor.txt || :
memwatchctl --format json doctor >/out/doctor.json || :

say "recording sha256sum, xz, gzip, sort, perl, sleep, expr and sh"
# The emulated processors are slow: a reader with real-time priority would take most of one.
memwatchctl record --priority normal -o demo.mwr -- sh /lab/workload.sh 2>/out/record.txt || {
	cat /out/record.txt
	exit 1
}
sed 's/^/guest: /' /out/record.txt
cp demo.mwr /out/demo.mwr
memwatchctl status >/out/status.txt
memwatchctl dump >/out/dump.txt
rmmod memwatch
say "the module is unloaded"
