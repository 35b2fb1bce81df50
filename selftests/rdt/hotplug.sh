#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine with 2 CPUs: RDT is given up while CPU 1 goes offline or comes
# online. The module changes all CPUs at that moment. A CPU that has left the session, or
# has not joined it, must not be made a part of it: nobody would stop its timer, which the
# kernel moves to another CPU. A parameter for tests makes both take seconds: the CPU
# begins while RDT is given up, and would still wait when all CPUs are told.
set -u
. /lab/lib.sh

online=/sys/devices/system/cpu/cpu1/online

ticks() { sed -n 's/^cpu 1: ticks=\([0-9]*\).*/\1/p' $PROC/overhead; }
ticks_more_than() { [ "$(ticks)" -gt "$1" ]; }
gives_up() { dmesg | grep -q "giving up RDT waits"; }

begin_session() {
	load
	# A tick that stops on an idle CPU would not be seen.
	hold_session idle_stop=0 set
	matches "$1: RDT is used" "$(status backend)" "intel-rdt\|amd-qos"
}

# change_cpu WHAT 0|1: mounts resctrl, and changes the state of CPU 1 while RDT is given
# up. $change_status is the exit status of the change.
change_cpu() {
	dmesg -c > /dev/null
	echo 3000 > $PARAMETERS/delay_ms
	mount -t resctrl resctrl $RESCTRL
	within 5 gives_up
	ok $? "$1: RDT is being given up"
	(echo "$2" > $online) 2> /dev/null
	change_status=$?
	echo 0 > $PARAMETERS/delay_ms
	dmesg | grep -q "a CPU that .* waits"
	ok $? "$1: the CPU was slow"
	is "$1: RDT is given up" "$(status backend)" emulated
}

# check_no_tick WHAT: CPU 1 is offline and does not tick. Then the session ends.
check_no_tick() {
	is "$1: the CPU is offline" "$(cat $online)" 0
	before=$(ticks)
	sleep 1
	is "$1: the offline CPU does not tick" "$(ticks)" "$before"
	release_session
	ok $? "$1: the session stops"
	umount $RESCTRL
	check "$1: the module unloads" rmmod memwatch
	sleep 1
}

plan
begin_session "going offline"
change_cpu "going offline" 0
check_no_tick "going offline"

begin_session "failing to come online"
# The step after which coming online fails: MW_FAIL_CPU_LAST, two steps before the last.
echo $(($(cat $PARAMETERS/fail_steps) - 2)) > $PARAMETERS/fail_step
change_cpu "failing to come online" 1
[ $change_status -ne 0 ]
ok $? "failing to come online: the CPU reports the failure"
echo 0 > $PARAMETERS/fail_step
check_no_tick "failing to come online"

begin_session "coming online"
change_cpu "coming online" 1
is "coming online: the CPU is online" "$(cat $online)" 1
within 5 ticks_more_than "$(ticks)"
ok $? "coming online: the CPU ticks"
release_session
ok $? "coming online: the session stops"
umount $RESCTRL
check "coming online: the module unloads" rmmod memwatch
tap_end
