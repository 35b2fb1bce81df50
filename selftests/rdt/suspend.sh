#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: the system goes to sleep and wakes up while processes move
# memory. The kernel does all that it does for suspend to RAM, and then for hibernation,
# until it would make the image or turn the power off (pm_test). The machine resets its
# registers and empties its caches as if it had been off. Then suspend to idle, which leaves
# all CPUs online and their registers as they are. Arguments: intel, or amd for counters that
# are assigned; number of domains.
set -u
. /lab/lib.sh

ABMC_CFG=0xc00003fd
ABMC_DSC=0xc00003fe
EXT_CFG=0xc00003ff
DRIVER=/sys/bus/virtio/drivers/9pnet_virtio
device=$(basename $DRIVER/virtio*)

# The 9p client of the kernel does not survive it when its device is suspended, so /out is
# unmounted meanwhile, and nobody may have a file open there.
detach_out() {
	umount /out && echo "$device" > $DRIVER/unbind
}
attach_out() {
	echo "$device" > $DRIVER/bind
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none,access=any out /out
}

# sleep_once STATE LEVEL: goes to sleep, and wakes up by itself
sleep_once() {
	echo "$2" > /sys/power/pm_test
	detach_out || return
	sleep_status=0
	echo "$1" > /sys/power/state || sleep_status=1
	attach_out
	return $sleep_status
}

reads() { sed -n 's/^cpu 0: .* rdt_reads=\([0-9]*\) .*/\1/p' $PROC/overhead; }
reads_at_least() { [ "$(reads)" -ge "$1" ]; }
overhead_of_cpu0() { sed -n "s/^cpu 0: .*\<$1=\([0-9]*\).*/\1/p" $PROC/overhead; }

# let_loads_run: until CPU 0 has read 300 times
let_loads_run() { sleep 1 && within 10 reads_at_least $(($(reads) + 300)); }

# Of the last four counters, the number of those that are enabled (bit 62 of the description
# of each), as CPU $1 sees them.
enabled_counters() {
	for id in $(seq 28 31); do
		wrmsr -p "$1" $ABMC_CFG "$(printf '0x%x000000000000' "$id")"
		rdmsr -p "$1" -f 62:62 $ABMC_DSC
	done | grep -c 1
}

begin_loads() {
	loads=
	for load in read write migrate; do
		memload $load 1000 8192 &
		loads="$loads $!"
	done
	for load in $loads; do within 10 has_rmid "$load"; done
}

# run_asleep WHAT STATE
run_asleep() {
	rdtctl sleep
	sleep_once "$2" core
	ok $? "$1: the system sleeps, as far as a test can, and resumes"
	let_loads_run
	ok $? "$1: CPU 0 reads counters after it has resumed"
	is "$1: all L3 domains are read again" "$(status rdt_domains)" "$domains"
	is "$1: what the registers lost is not taken for a write of another program" \
		"$(status foreign_writes)" 0
	if [ "$vendor" = amd ]; then
		[ "$(enabled_counters 0)" -gt 0 ]
		ok $? "$1: counters are assigned again in the domain of CPU 0: $(enabled_counters 0)"
	fi
}

run_idle() {
	missed=$(overhead_of_cpu0 missed)
	sleep_once freeze platform
	ok $? "suspend to idle: the system sleeps, as far as a test can, and resumes"
	let_loads_run
	ok $? "suspend to idle: CPU 0 reads counters after it has resumed"
	echo "# ticks that CPU 0 missed: $missed, then $(overhead_of_cpu0 missed)"
}

vendor=$1 domains=$2
exec > "$TMP/stdout" 2> "$TMP/stderr"
trap 'cat "$TMP/stdout" >> /out/stdout.log; cat "$TMP/stderr" >> /out/stderr.log' EXIT
plan
# Longer than the second that is the unit of the clock that goes on meanwhile.
echo 3 > /sys/module/suspend/parameters/pm_test_delay
grep -q deep /sys/power/mem_sleep && echo deep > /sys/power/mem_sleep
ok $? "the kernel can suspend to RAM: $(cat /sys/power/mem_sleep)"
if [ "$vendor" = amd ]; then
	modprobe msr
	wrmsr -a $EXT_CFG 1
fi
rdtctl guest && rdtctl track on
load
begin_record
rdtctl snapshot begin
begin_loads
let_loads_run
ok $? "CPU 0 reads counters"
run_asleep "suspend to RAM" mem
run_asleep "hibernation" disk
run_idle
# shellcheck disable=SC2086 # words
kill $loads
# shellcheck disable=SC2086
wait $loads
sleep 0.3
rdtctl snapshot end
end_record
rmmod memwatch
ok $? "the module unloads"
rdtctl snapshot unloaded
tap_end
