#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: other users of RDT (resctrl, pqos, any writer of PQR_ASSOC).
# memwatch must not disturb them, and must report them.
set -u
. /lab/lib.sh

# PQR_ASSOC of a CPU as the machine has it: "RMID CLOSID"
read_pqr() {
	rdtctl snapshot pqr
	tac /out/rdt.truth | sed -n "s/^cpu $1 .*rmid=\([0-9]*\) closid=\([0-9]*\).*/\1 \2/p" | head -1
}

# save_groups WHEN: all groups, their masks and their tasks. The tasks of the default
# group are all others and are left out.
save_groups() {
	(cd $RESCTRL && find . -name tasks | sort | while read -r f; do
		echo "$f"
		[ "$f" = ./tasks ] || sort "$f"
		cat "${f%tasks}schemata" "${f%tasks}cpus_list" 2> /dev/null
	done) > "$TMP/groups.$1"
}

# The CLOSIDs of all CPUs, as the machine has them.
closids() {
	for cpu in $(seq 0 $(($(nproc) - 1))); do read_pqr "$cpu" | cut -d' ' -f2; done | xargs
}

# The different RMIDs of all CPUs, as the machine has them.
rmids() {
	for cpu in $(seq 0 $(($(nproc) - 1))); do read_pqr "$cpu" | cut -d' ' -f1; done | sort -u | xargs
}

# run_pqos NAME: Debian's pqos resets the RMIDs of all CPUs and then monitors CPU 1 for
# two seconds. It refuses to monitor a CPU that has an RMID, so it is tried again.
run_pqos() {
	pqos --iface=msr -r -m "all:0-$(($(nproc) - 1))" -t 1 > "/out/pqos-$1.log" 2>&1
	for _ in $(seq 10); do
		taskset 1 pqos --iface=msr -m all:1 -t 2 -i 5 -u csv -o "/out/pqos-$1.csv" \
			>> "/out/pqos-$1.log" 2>&1 && return
	done
}

# check_pqos_was_seen NAME: the session reports that pqos has run; the recording is NAME
check_pqos_was_seen() {
	[ "$(grep -c '"1"' "/out/pqos-$1.csv")" -ge 1 ]
	ok $? "$1: pqos runs and prints its table"
	[ "$(status foreign_writes)" -ge 1 ]
	ok $? "$1: status counts the writes of pqos: $(status foreign_writes)"
	matches "$1: memwatchctl status reports the writes of pqos" \
		"$(memwatchctl status)" "another program writes PQR_ASSOC"
	end_record "$1"
	export_csv "$1"
	[ "$(grep -c 'notice.*foreign_write' "$TMP/$1.csv")" -ge 1 ]
	ok $? "$1: the stream has a notice of the foreign writes"
}

# Writes the register of CPU 0 until a tick has found it: a value that a context switch
# overwrites before the next tick is not seen.
write_foreign_pqr() {
	for _ in $(seq 50); do
		taskset 2 rdtctl pqr 0 7 3
		sleep 0.1
		[ "$(status foreign_writes)" != 0 ] && return
	done
	return 1
}

# CPU 0 switches between two processes all the time, until end_switching. They must not have
# the descriptor that keeps a held session open.
begin_switching() {
	yield processes 1000000000 9>&- &
	switching=$!
}

end_switching() {
	killall -9 yield
	wait $switching 2> /dev/null
}

# check_status_is_current NAME: no session is started and resctrl is not mounted
check_status_is_current() {
	matches "$1: afterwards status shows that RDT can be used" "$(status backend)" \
		"intel-rdt\|amd-qos"
	is "$1: afterwards status gives the capability as the reason" \
		"$(status backend_reason)" "CPUID reports L3 monitoring"
	mwctl info | grep -q "backend [12] .* features 7"
	ok $? "$1: afterwards the device says that RDT can be used: $(mwctl info)"
}

# check_refused NAME: a session does not use RDT, because resctrl is mounted
check_refused() {
	begin_record
	is "$1: with resctrl mounted RDT is not used" "$(status backend)" emulated
	matches "$1: status gives the mounted resctrl as the reason" \
		"$(status backend_reason)" "resctrl was mounted when"
	matches "$1: memwatchctl status reports the mounted resctrl" \
		"$(memwatchctl status)" "conflicts *resctrl is mounted"
	matches "$1: processes are tracked while resctrl is mounted" "$(status rmids_used)" "^[1-9]"
	memload read 2 4096 &
	load1=$!
	echo $load1 > $RESCTRL/group/tasks
	wait $load1
	end_record "$1"
	matches "$1: after the session status says that resctrl is mounted" \
		"$(status backend_reason)" "resctrl is mounted"
	save_groups after
	is "$1: the groups of resctrl are unchanged after the session" \
		"$(cat "$TMP/groups.after")" "$(cat "$TMP/groups.before")"
}

# check_mount NAME: resctrl is mounted while a session runs, and RDT is given up
check_mount() {
	begin_record
	matches "$1: without resctrl RDT is used" "$(status backend)" "intel-rdt\|amd-qos"
	memload read 3 4096 &
	sleep 1
	mount -t resctrl resctrl $RESCTRL
	within 5 status_is backend emulated
	ok $? "$1: mounting resctrl during a session ends the use of RDT"
	matches "$1: status gives the mount of resctrl as the reason" \
		"$(status backend_reason)" "resctrl was mounted while"
	sleep 0.3
	is "$1: no CPU has an RMID after resctrl was mounted" "$(rmids)" 0
	wait $!
	end_record "$1"
	umount $RESCTRL
	export_csv "$1"
	is "$1: the stream has the notice resctrl_mounted" \
		"$(grep -c 'notice.*resctrl_mounted' "$TMP/$1.csv")" 1
	check_status_is_current "$1"
}

# mount_in_trace: mounts resctrl while CPU 0 ticks. Prints how many ticks begin after the mount
# and before a tick asks for RDT to be given up, or "no tick has asked".
mount_in_trace() {
	hold_session period=1000000 set
	begin_switching
	sleep 0.3
	trace_start tick
	echo 1 > $TRACING/events/workqueue/workqueue_queue_work/enable
	mount -t resctrl resctrl $RESCTRL
	echo mounted > $TRACING/trace_marker
	within 5 status_is backend emulated || echo "# RDT was not given up"
	echo 0 > $TRACING/tracing_on
	end_switching
	release_session
	umount $RESCTRL
	# The worker that looks for resctrl four times a second is another function.
	awk '/tracing_mark_write: mounted/ { mounted = 1 }
		/memwatch_tick:/ && mounted { ticks++ }
		/workqueue_queue_work:.* function=conflict_check_users/ { print ticks + 0; found = 1; exit }
		END { if (!found) print "no tick has asked" }' $TRACING/trace
}

# mount_with_group: mounts resctrl, and puts both CPUs into a class of their own at once
mount_with_group() {
	mount -t resctrl resctrl $RESCTRL
	mkdir $RESCTRL/group
	echo 0-1 > $RESCTRL/group/cpus_list
}

# mount_in_session PERIOD: appends what CPU 0 and CPU 1 hold after the hand-over to
# $TMP/mounts. With a long period, resctrl writes before the hand-over.
mount_in_session() {
	hold_session period="$1" set
	begin_switching
	sleep 0.3
	mount_with_group
	within 5 status_is backend emulated || echo "# RDT was not given up"
	sleep 0.5
	for cpu in 0 1; do
		read_pqr $cpu
	done > "$TMP/mounted"
	end_switching
	release_session
	umount $RESCTRL
	sed "s/^/# period $1 ns: RMID and class: /" "$TMP/mounted"
	cat "$TMP/mounted" >> "$TMP/mounts"
}

# stop_after_mount: the session ends right after the mount, before the module has noticed it,
# or while it gives RDT up. Appends to $TMP/stops what CPU 0 and CPU 1 hold.
stop_after_mount() {
	hold_session period=1000000000 set
	begin_switching
	sleep 0.3
	mount_with_group
	release_session
	sleep 0.3
	for cpu in 0 1; do
		read_pqr $cpu
	done >> "$TMP/stops"
	end_switching
	umount $RESCTRL
}

# write_same_rmid: resctrl gives CPU 1 a class, and the RMID that memwatch has programmed there.
# Only a process that does not sleep runs on CPU 1. The module looks for resctrl two seconds later
# than it would. Fails if RDT was given up before the write.
write_same_rmid() {
	taskset -p 1 $$ > "$TMP/affinity"
	hold_session period=1000000000 set
	taskset 2 sh -c 'while :; do :; done' 9>&- &
	spinner=$!
	echo 2000 > $PARAMETERS/delay_ms
	sleep 0.5
	same=$(read_pqr 1 | cut -d' ' -f1)
	mount -t resctrl resctrl $RESCTRL
	rdtctl pqr 1 "$same" 3
	! status_is backend emulated
	in_time=$?
	echo 0 > $PARAMETERS/delay_ms
	within 5 status_is backend emulated
	kept=$(read_pqr 1)
	rdtctl pqr 1 0 0
	kill $spinner
	release_session
	umount $RESCTRL
	taskset -p 3 $$ > "$TMP/affinity"
	[ $in_time = 0 ] && [ "$same" != 0 ]
}

plan
rdtctl guest

# ---- resctrl is mounted before: RDT is not used, the rest works; force changes nothing
mount -t resctrl resctrl $RESCTRL
mkdir $RESCTRL/group $RESCTRL/mon_groups/mon
sleep 1000 &
other=$!
echo $other > $RESCTRL/group/tasks
save_groups before
load
matches "a module that is loaded beside a mounted resctrl says so" \
	"$(status backend_reason)" "resctrl is mounted"
check_refused refused
rmmod memwatch
load force=1
check_refused forced
kill $other
rmdir $RESCTRL/group $RESCTRL/mon_groups/mon
umount $RESCTRL
check_status_is_current forced
rmmod memwatch

# ---- resctrl is mounted during a session
load
check_mount mounted
rmmod memwatch
load force=1
check_mount forced-mounted
rmmod memwatch

# ---- the same, and the tick that comes after the mount asks for RDT to be given up
load
mount_tracing
for _ in 1 2 3 4 5 6; do
	mount_in_trace
done > "$TMP/asked"
sed 's/^/# ticks between the mount and the request: /' "$TMP/asked"
# The worker has seen the mount before the tick if it comes in that millisecond. Each CPU ticks.
[ "$(grep -c '^[012]$' "$TMP/asked")" -ge 5 ]
ok $? "the tick after the mount asks for RDT to be given up, in at least 5 of 6 mounts"
rmmod memwatch

# ---- the same, and CPUs are put into a class at once
load
: > "$TMP/mounts"
for _ in 1 2 3; do
	mount_in_session 1000000
	mount_in_session 1000000000
done
is "CPUs in the class that resctrl has given them, of 12" \
	"$(cut -d' ' -f2 "$TMP/mounts" | grep -c '^1$')" 12
is "CPUs with the RMID of their group, of 12" \
	"$(paste -d' ' - - < "$TMP/mounts" | awk '$1 == $3 && $1 { n += 2 } END { print n + 0 }')" 12
: > "$TMP/stops"
for _ in 1 2 3; do
	stop_after_mount
done
is "CPUs in the class of resctrl after a session that ended when it was mounted, of 6" \
	"$(cut -d' ' -f2 "$TMP/stops" | grep -c '^1$')" 6
is "CPUs with the RMID of their group after such a session, of 6" \
	"$(paste -d' ' - - < "$TMP/stops" | awk '$1 == $3 && $1 { n += 2 } END { print n + 0 }')" 6
for _ in 1 2 3; do
	write_same_rmid && break
done
ok $? "resctrl gives a CPU the RMID that memwatch had programmed there"
is "that CPU keeps RMID and class" "$kept" "$same 3"
rmmod memwatch

# ---- the same, while the module waits for user memory that never comes
load
for page in set get argument; do
	hold_session
	in_background "$TMP/fault" attack fault $page
	within 10 grep -q read "$TMP/fault"
	ok $? "fault-$page: the module accesses memory and blocks"
	mount -t resctrl resctrl $RESCTRL
	# In another process: whoever reads the status of a module that waits with its lock held
	# blocks, and so would this test.
	rm -f "$TMP/given-up"
	{ within 5 status_is backend emulated && : >"$TMP/given-up"; } 9>&- &
	within 10 test -e "$TMP/given-up"
	ok $? "fault-$page: RDT is given up when resctrl is mounted meanwhile"
	is "fault-$page: no CPU has an RMID" "$(rmids)" 0
	end_all attack
	release_session
	umount $RESCTRL
done
rmmod memwatch

# ---- another program writes PQR_ASSOC
load
begin_record
taskset 1 memload read 5 4096 &
sleep 0.5
write_foreign_pqr
ok $? "status counts a foreign write of PQR_ASSOC"
matches "memwatchctl status reports the foreign write" \
	"$(memwatchctl status)" "another program writes PQR_ASSOC"
sleep 0.2
is "the CLOSID of the foreign write is kept" "$(read_pqr 0 | cut -d' ' -f2)" 3
wait $!
end_record foreign
export_csv foreign
[ "$(grep -c 'notice.*foreign_write' "$TMP/foreign.csv")" -ge 1 ]
ok $? "the stream has the notice foreign_write"
rmmod memwatch
is "after unloading CPU 0 has RMID 0 and the CLOSID" "$(read_pqr 0)" "0 3"
rdtctl pqr 0 0 0

# ---- another program writes PQR_ASSOC, and resctrl, which knows nothing of it, is mounted
load
hold_session
begin_switching
write_foreign_pqr
ok $? "status counts the foreign write before the mount"
end_switching
mount -t resctrl resctrl $RESCTRL
within 5 status_is backend emulated
ok $? "RDT is given up after a foreign write"
sleep 0.3
is "the RMID that another program wrote before resctrl was mounted is gone" "$(rmids)" 0
release_session
umount $RESCTRL
rmmod memwatch
rdtctl pqr 0 0 0

# ---- pqos sets classes before the session, and measures during it
modprobe msr 2> /dev/null
mkdir -p /run/lock /var/lock
pqos --iface=msr -e 'llc:1=0xf;llc:2=0xff' -a 'cos:1=0;cos:2=1' > /out/pqos-classes 2>&1
before=$(closids)
is "pqos puts the CPUs into classes" "$before" "1 2"
load
begin_record
taskset 1 memload read 5 4096 &
sleep 0.5
run_pqos pqos
wait $!
is "pqos: the classes of the CPUs are unchanged" "$(closids)" "$before"
check_pqos_was_seen pqos
rmmod memwatch
is "pqos: the classes of the CPUs are unchanged after unloading" "$(closids)" "$before"
is "pqos: no CPU has an RMID after unloading" "$(rmids)" 0
pqos --iface=msr -R > /dev/null 2>&1

# ---- pqos changes the class of a CPU that switches all the time, between the ticks
load
hold_session
begin_switching
wrong=0
for i in $(seq 40); do
	class=$((1 + i % 2))
	pqos --iface=msr -a "cos:$class=0" > /out/pqos-class.log 2>&1
	sleep 0.05
	[ "$(read_pqr 0 | cut -d' ' -f2)" = $class ] || wrong=$((wrong + 1))
done
is "classes that pqos wrote and that were lost, of 40" $wrong 0
end_switching
release_session
is "the last class that pqos wrote is kept after the session" "$(read_pqr 0 | cut -d' ' -f2)" 1
rmmod memwatch

# ---- an RMID is set before the session: force uses RDT all the same
pqos --iface=msr -R > /dev/null 2>&1
pqos --iface=msr -e 'llc:1=0xf;llc:2=0xff' -a 'cos:1=0;cos:2=1' > /out/pqos-classes 2>&1
rdtctl pqr 1 5 2
load force=1
begin_record
matches "forced-pqos: RDT is used although a CPU has an RMID" "$(status backend)" \
	"intel-rdt\|amd-qos"
is "forced-pqos: only the upper RMIDs are used" \
	"$(awk -F '\t' '!/^#/ { print $1 }' /proc/memwatch/rmids |
	sort -n | head -1 | awk -v t="$(status rmids_total)" '{ print ($1 > t) }')" 1
taskset 1 memload read 5 4096 &
sleep 0.5
run_pqos forced-pqos
wait $!
check_pqos_was_seen forced-pqos
rmmod memwatch
is "forced-pqos: the classes of the CPUs are unchanged after unloading" "$(closids)" "$before"
is "forced-pqos: no CPU has an RMID after unloading" "$(rmids)" 0
pqos --iface=msr -R > /dev/null 2>&1

# ---- an RMID is set before the session
rdtctl pqr 1 5 0
load
begin_record
matches "RDT is not used when a CPU already has an RMID" \
	"$(status backend_reason)" "another program"
end_record set
rmmod memwatch
is "the RMID that another program has set is kept" "$(read_pqr 1)" "5 0"
tap_end
