#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# "memwatchctl events" with the module, as root, as a member of the group and as others; in
# the format of the journal; and with a process that leaks. Runs in the lab. Speaks TAP.
set -u
# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
export LC_ALL=C
USER=1000 GROUP=990 # the group memwatch of the guest
cd "$TMP" || exit 1
chmod 755 "$TMP"

has() { grep -qE -- "$1" "$2"; }

# follow FILE COMMAND...: in the background, its output in FILE; waits until it waits for events
follow() {
	file=$1
	shift
	: > "$file"
	"$@" > "$file" 2> "$file.err" 9>&- &
	follower=$!
	within 30 polls $follower || cat "$file.err"
}

# The command calls poll() only after it has subscribed. 7 is the number of the call.
polls() { grep -q '^7 ' "/proc/$1/syscall" 2> /dev/null; }

has_ended() { ! grep -q '^State:[[:space:]]*[^Z]' "/proc/$1/status" 2> /dev/null; }

ctl_as() { attack as "$@"; }

# Several notices of several kinds, of which the last one says that CPU 1 is back.
provoke() {
	hold_session
	mwproc storm 60 2
	echo 0 > /sys/devices/system/cpu/cpu1/online
	echo 1 > /sys/devices/system/cpu/cpu1/online
	release_session
}

plan
memwatchctl events > out 2> err
is "without the module the exit status is 3" $? 3
has "module memwatch is not loaded" err && has "^hint: load it" err
ok $? "without the module the error says so, with a hint"

insmod /lab/memwatch.ko rmids=4 gid=$GROUP
follow table memwatchctl events
table=$follower
follow json memwatchctl events --format json
json=$follower
follow member attack as user=$USER group=$GROUP -- memwatchctl events --format json
member=$follower
provoke
within 10 has "cpu_online" table
ok $? "the table shows that a CPU came online"
has "^[0-9-]* [0-9:]*  rmids_exhausted  .* no RMID was free for a new process; since the module was loaded for [1-9]" table
ok $? "the table shows the time, the kind, and what happened"
within 10 has '"event": "cpu_online"' json
has '^\{"schema": 1, "source": "module", "event": "cpu_offline", "time_ns": [0-9]*, "sentence": "CPU 1 went offline and is not measured any more", "cpu": 1, "count": 1, "value": 0, "sequence": [0-9]*, "suppressed": 0, "lost": 0\}$' json
ok $? "with --format json, each event is one object on a line"
within 10 has '"event": "cpu_online"' member
is "a member of the group sees the same as root" "$(cat member)" "$(cat json)"
head -1 json > /out/event.json

kill -INT $table
wait $table
is "Ctrl-C ends the command with 0" $? 0
end_processes $json $member

attack as user=$USER group=$USER -- memwatchctl events > out 2> err
is "for a stranger the exit status is 3" $? 3
has "not permitted" err && has "^hint: " err
ok $? "for a stranger the error says who may, with a hint"
attack as new=user,net -- memwatchctl events > out 2> err
is "in a container the exit status is 3" $? 3
has "on the host, not in a container" err
ok $? "in a container the error says so"

follow out memwatchctl events --count 3
echo 10000 > $PARAMETERS/notices
wait $follower
is "--count ends the command with 0" $? 0
is "--count is exact" "$(wc -l < out)" 3
memwatchctl events --duration 300ms > out
is "--duration ends the command with 0" $? 0
mkfifo pipe
sh -c 'exec sleep 60' < pipe 9>&- &
reader=$!
follow pipe memwatchctl events
end_processes $reader
within 10 has_ended $follower
ok $? "the command ends when nobody reads its output any more"
end_processes $follower
sleep 1.2
follow out memwatchctl events --format json
echo 10000 > $PARAMETERS/notices
within 10 has '"count": 10000, ' out
end_processes $follower
is "10000 notices at once: the lines and what they say was suppressed add up" \
	"$(sed -n 's/.*"suppressed": \([0-9]*\), "lost": 0}/\1/p' out |
	awk '{ n += $1 + 1 } END { print n, (NR <= 16) }')" "10000 1"

# ---- too many for a reader that does not read: until the socket that it stopped has lost some
sockets_lose() { awk 'NR > 1 && $9 { lost = 1 } END { exit !lost }' /proc/net/netlink; }
fill_sockets() {
	echo 20 > $PARAMETERS/notices
	sleep 1.1
	sockets_lose
}
follow out memwatchctl events --format json
kill -STOP $follower
within 10 fill_sockets # 200 times
kill -CONT $follower
# The kernel drops notices until the reader has emptied the full socket, so one may not do.
show_gap() {
	echo 1 > $PARAMETERS/notices
	has '"value": 1, ' out
}
within 10 show_gap
end_processes $follower
sed -n 's/.*"sequence": \([0-9]*\), .*"lost": \([0-9]*\)}/\1 \2/p' out |
	awk 'NR > 1 { bad += $1 != last + 1 + $2 } { last = $1; lost += $2 } END { print lost + 0, bad + 0 }' > lost
read -r lost bad < lost
[ "$lost" -gt 0 ]
ok $? "a reader that stops for a while loses notices and says so: $lost"
is "numbers and losses of the notices agree" "$bad" 0
has "^memwatchctl: .*$lost notices were lost" out.err
ok $? "a warning says how many were lost"

# ---- the journal
mkdir -p /run/systemd/journal /run/memwatch
datagrams /run/systemd/journal/socket > journal 2>&1 9>&- &
datagrams=$!
within 5 has ready journal
: > stdout
JOURNAL_STREAM=$(stat -c %d:%i stdout) memwatchctl events >> stdout 2> err 9>&- &
unit=$!
within 30 polls $unit
provoke
within 10 has "^MEMWATCH_EVENT=cpu_online" journal
ok $? "in a unit, events go to the journal"
is "in a unit, standard output gets nothing beside the journal" "$(cat stdout err)" ""
is "an entry has all fields" \
	"$(sed -n '/^MESSAGE=CPU 1 went offline/,/^--/p' journal | sed 's/\(TIME_NS\|COUNT\)=[0-9]*/\1=N/' | xargs)" \
	"MESSAGE=CPU 1 went offline and is not measured any more PRIORITY=5 SYSLOG_IDENTIFIER=memwatchctl MEMWATCH_EVENT=cpu_offline MEMWATCH_SOURCE=module MEMWATCH_TIME_NS=N MEMWATCH_CPU=1 MEMWATCH_COUNT=N MEMWATCH_VALUE=0 MEMWATCH_SUPPRESSED=0 MEMWATCH_LOST=0 --"
kill $unit
wait $unit
is "a signal ends the unit with 0" $? 0
follow out env JOURNAL_STREAM=1:2 memwatchctl events --count 1
echo 1 > $PARAMETERS/notices
wait $follower
has foreign_write out
ok $? "if standard output is not the journal, events are printed"

# ---- the growth monitor; the name of the process tries to forge a field
# It has 150 MiB before it is seen, and grows after it was seen at rest: not a start-up.
(
	# shellcheck disable=SC3045 # the shell of the guest has it
	ulimit -d 600000
	exec awk 'BEGIN {
		printf "x\nPRIORITY=0" > "/proc/self/comm"
		close("/proc/self/comm")
		for (block = "x"; length(block) < 65536;)
			block = block block
		for (i = -600; i < 1800; i++) {
			for (j = 0; j < 4; j++)
				x[i, j] = block i
			if (i >= 0)
				system("sleep 0.1")
			else if (i == -1)
				system("sleep 30")
		}
	}' 2> /dev/null 9>&-
) &
leak=$!
has_base() { [ "$(awk '/^RssAnon/ { print $2 }' /proc/$leak/status)" -gt 153600 ]; }
within 60 has_base
JOURNAL_STREAM=$(stat -c %d:%i stdout) memwatchctl events --growth >> stdout 2> err 9>&- &
unit=$!
follow json memwatchctl events --growth --format json
json=$follower
within 200 has '"source": "growth", "event": "alert"' json
ok $? "with --growth, a process that leaks is an event"
has '"source": "growth", "event": "notice"' json
ok $? "the notice of its growth is an event, too"
within 200 has "^MEMWATCH_EVENT=alert" journal
ok $? "with --growth in a unit, the alert is in the journal"
grep '"event": "alert"' json | head -1 > /out/alert.json
cp journal seen # more may come between two looks at it
is "the name of a process forges no field" "$(grep -c '^PRIORITY=0$' seen)" \
	"$(grep -c '^MEMWATCH_COMM$' seen)"
is "status lists the growth monitor of events" \
	"$(memwatchctl status --format json | grep -c '"command": "events"')" 2
end_processes $leak

# ---- a tmpfs fills, by 5 MB/s; no process grows
mkdir filled
mount -t tmpfs tmpfs filled
(
	for i in $(seq 60); do
		head -c 5000000 /dev/zero > filled/$i 2> /dev/null
		sleep 1
	done
) 9>&- &
filler=$!
within 120 has '"event": "notice".*"class": "shmem"' json
ok $? "a tmpfs that fills is an event"
within 30 has "^MEMWATCH_CLASS=shmem" journal
ok $? "it is in the journal, with its class"
grep '"class": "shmem"' json | head -1 > /out/group.json
end_processes $filler $json $unit $datagrams
umount filled

# ---- unloading
follow out memwatchctl events
rmmod memwatch
is "the module unloads while events are read" $? 0
wait $follower
is "unloading ends the command with 3" $? 3
has "not loaded" out.err
ok $? "unloading is the reason that it gives"
tap_end
