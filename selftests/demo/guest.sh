#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the virtual machine: load the module, record the workload, show what the
# machine has and what memwatch says about itself. Results go to /out.
set -eu
step() { echo "[guest] $*"; }

step "kernel $(uname -r), $(nproc) CPUs"
cd /tmp
dd if=/dev/urandom of=data bs=64k count=8 2>/dev/null
seq 1 150000 >>data
perl -e 'print int rand 1e6, "\n" for 1 .. 60000' >words

insmod /lab/memwatch.ko
step "module loaded: $(sed -n 's/^backend: //p' /proc/memwatch/status)," \
	"$(sed -n 's/^rmids_total: //p' /proc/memwatch/status) RMIDs"
memwatchctl doctor >/out/doctor.txt || :
memwatchctl --format json doctor >/out/doctor.json || :

step "recording a workload: sha256sum, xz, gzip, sort, perl, sleep, expr, sh"
memwatchctl record -o demo.mwr -- sh /lab/workload.sh 2>/out/record.txt || {
	cat /out/record.txt
	exit 1
}
sed 's/^/[guest] /' /out/record.txt
cp demo.mwr /out/demo.mwr
memwatchctl status >/out/status.txt
memwatchctl dump >/out/dump.txt
rmmod memwatch
step "module unloaded"
