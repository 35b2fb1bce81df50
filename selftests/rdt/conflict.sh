#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: others who use RDT. Nobody is harmed, and everybody
# is told.
set -u
. /lab/lib.sh

R=/sys/fs/resctrl

# PQR_ASSOC of a CPU as the machine has it: "RMID CLOSID"
pqr() {
	rdtctl snapshot pqr
	tac /out/rdt.truth | sed -n "s/^cpu $1 .*rmid=\([0-9]*\) closid=\([0-9]*\).*/\1 \2/p" | head -1
}

# All groups, their masks, and who is in them; the default group is everybody else.
groups() {
	(cd $R && find . -name tasks | sort | while read -r f; do
		echo "$f"
		[ "$f" = ./tasks ] || sort "$f"
		cat "${f%tasks}schemata" "${f%tasks}cpus_list" 2> /dev/null
	done) > "$TMP/groups.$1"
}
# The classes of all CPUs, as the machine has them.
closids() {
	for cpu in $(seq 0 $(($(nproc) - 1))); do pqr "$cpu" | cut -d' ' -f2; done | xargs
}

rmids() {
	for cpu in $(seq 0 $(($(nproc) - 1))); do pqr "$cpu" | cut -d' ' -f1; done | sort -u | xargs
}

# Debian's pqos takes away the RMIDs of all CPUs, and then looks at CPU 1 for two
# seconds. It does not start on a CPU that has an RMID, as the one has that it
# runs on itself.
pqos_runs() { # pqos_runs NAME
	pqos --iface=msr -r -m "all:0-$(($(nproc) - 1))" -t 1 > "/out/pqos-$1.log" 2>&1
	for _ in $(seq 10); do
		taskset 1 pqos --iface=msr -m all:1 -t 2 -i 5 -u csv -o "/out/pqos-$1.csv" \
			>> "/out/pqos-$1.log" 2>&1 && return
	done
}

# What a session says of pqos that has run; the recording is NAME.
pqos_was_seen() {
	[ "$(grep -c '"1"' "/out/pqos-$1.csv")" -ge 1 ]
	ok $? "$1: pqos runs and prints its table"
	[ "$(status foreign_writes)" -ge 1 ]
	ok $? "$1: its writes are counted ($(status foreign_writes))"
	matches "$1: and shown" "$(memwatchctl status)" "another program writes PQR_ASSOC"
	end_record "$1"
	memwatchctl export "/out/$1.mwr" --to csv -o "$TMP/$1.csv" --quiet
	[ "$(grep -c 'notice.*foreign_write' "$TMP/$1.csv")" -ge 1 ]
	ok $? "$1: the stream has a notice"
}

# A stranger writes CPU 0's register, until a tick finds it: what a switch
# overwrites before the next tick is not seen.
strange_write() {
	for _ in $(seq 50); do
		taskset 2 rdtctl pqr 0 7 3
		sleep 0.1
		[ "$(status foreign_writes)" != 0 ] && return
	done
	return 1
}

backend() { [ "$(status backend)" = "$1" ]; }

plan
rdtctl guest

# ---- mounted before: refused, and the rest goes on
mount -t resctrl resctrl $R
mkdir $R/group $R/mon_groups/mon
sleep 1000 &
other=$!
echo $other > $R/group/tasks
groups before
load
begin_record
is "with resctrl mounted RMIDs are numbers" "$(status backend)" emulated
matches "and status says why" "$(status backend_reason)" "resctrl is mounted"
matches "so does the command" "$(memwatchctl status)" "conflicts *resctrl is mounted"
matches "but processes are tracked" "$(status rmids_used)" "^[1-9]"
end_record refused
groups after
is "the groups are what they were" "$(cat "$TMP/groups.after")" "$(cat "$TMP/groups.before")"
rmmod memwatch

# ---- forced: CLOSIDs stay, RMIDs come from above
load force=1
begin_record
matches "force overrides" "$(status backend)" "intel-rdt\|amd-qos"
is "with the upper RMIDs only" "$(awk -F '\t' '!/^#/ { print $1 }' /proc/memwatch/rmids |
	sort -n | head -1 | awk -v t="$(status rmids_total)" '{ print ($1 > t) }')" 1
memload read 2 4096 &
load1=$!
echo $load1 > $R/group/tasks
wait $load1
end_record forced
groups after
is "the groups are what they were then too" "$(cat "$TMP/groups.after")" "$(cat "$TMP/groups.before")"
rmmod memwatch
for cpu in $(seq 0 $(($(nproc) - 1))); do
	is "CPU $cpu is back at RMID 0" "$(pqr "$cpu" | cut -d' ' -f1)" 0
done
kill $other
rmdir $R/group $R/mon_groups/mon
umount $R

# ---- mounted during
load
begin_record
matches "without resctrl RDT is used" "$(status backend)" "intel-rdt\|amd-qos"
memload read 3 4096 &
sleep 1
mount -t resctrl resctrl $R
soon backend emulated
ok $? "a mount in mid-session ends RDT"
matches "and status says why" "$(status backend_reason)" "resctrl was mounted"
sleep 0.3
is "CPU 0 has RMID 0" "$(pqr 0 | cut -d' ' -f1)" 0
wait $!
end_record mounted
umount $R
memwatchctl export /out/mounted.mwr --to csv -o "$TMP/mounted.csv" --quiet
is "the stream has the notice" "$(grep -c 'notice.*resctrl_mounted' "$TMP/mounted.csv")" 1
rmmod memwatch

# ---- somebody writes PQR_ASSOC
load
begin_record
taskset 1 memload read 5 4096 &
sleep 0.5
strange_write
ok $? "a foreign write is counted"
matches "and shown" "$(memwatchctl status)" "another program writes PQR_ASSOC"
sleep 0.2
is "its CLOSID is kept" "$(pqr 0 | cut -d' ' -f2)" 3
wait $!
end_record foreign
memwatchctl export /out/foreign.mwr --to csv -o "$TMP/foreign.csv" --quiet
[ "$(grep -c 'notice.*foreign_write' "$TMP/foreign.csv")" -ge 1 ]
ok $? "the stream has a notice"
rmmod memwatch
is "after unloading RMID 0 and the CLOSID" "$(pqr 0)" "0 3"
rdtctl pqr 0 0 0

# ---- pqos sets classes before, and measures in mid-session
modprobe msr 2> /dev/null
mkdir -p /run/lock /var/lock
pqos --iface=msr -e 'llc:1=0xf;llc:2=0xff' -a 'cos:1=0;cos:2=1' > /out/pqos-classes 2>&1
before=$(closids)
is "pqos puts CPUs into classes" "$before" "1 2"
load
begin_record
taskset 1 memload read 5 4096 &
sleep 0.5
pqos_runs pqos
wait $!
is "pqos: the classes are what they were" "$(closids)" "$before"
pqos_was_seen pqos
rmmod memwatch
is "pqos: after unloading the classes are still that" "$(closids)" "$before"
is "pqos: and no CPU has an RMID" "$(rmids)" 0
pqos --iface=msr -R > /dev/null 2>&1

# ---- the same while resctrl is mounted, with force
mount -t resctrl resctrl $R
mkdir $R/group $R/mon_groups/mon
echo 1 > $R/group/cpus_list
sleep 1000 &
other=$!
echo $other > $R/group/tasks
groups before
before=$(closids)
load force=1
begin_record
taskset 1 memload read 5 4096 &
sleep 0.5
pqos_runs forced-pqos
wait $!
pqos_was_seen forced-pqos
groups after
is "forced-pqos: the groups are what they were" "$(cat "$TMP/groups.after")" "$(cat "$TMP/groups.before")"
rmmod memwatch
is "forced-pqos: so are the classes, after unloading" "$(closids)" "$before"
is "forced-pqos: and no CPU has an RMID" "$(rmids)" 0
kill $other
rmdir $R/group $R/mon_groups/mon
umount $R

# ---- set before
rdtctl pqr 1 5 0
load
begin_record
matches "an RMID that is set already refuses RDT" "$(status backend_reason)" "another program"
end_record set
rmmod memwatch
is "and is left alone" "$(pqr 1)" "5 0"
tap_end
