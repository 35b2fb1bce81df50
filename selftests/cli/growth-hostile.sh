#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# growth watch on this machine with processes that leak at the same time and whose names
# attack a terminal, a log and the command of --exec. Needs root and a kernel with BTF, but
# not the module. Takes half a minute and 3 GB of memory. Speaks TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=SCRIPTDIR/../tap.sh
. "$here/../tap.sh"
ctl=${CTL:-$here/../../${BUILD:-build}/cli/memwatchctl}
case $ctl in /*) ;; *) ctl=$PWD/$ctl ;; esac
if [ "$(id -u)" -ne 0 ] || [ ! -r /sys/kernel/btf/vmlinux ]; then
	skip_all "needs root and a kernel with BTF"
fi
export LC_ALL=C.UTF-8
work=$(mktemp -d)
watch=''
leaks=()
trap 'kill "${leaks[@]}" $watch 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1

# Each process has a name of at most 15 bytes.
names=(
	$'\e]0;owned\a' $'\e[2J\e[H' $'x\nALERT sshd' $'over\rwrite' $'rlo\u202etxt' $'csi\u009b2J'
	--help -f/etc/hostname
)
shown=(
	'\x1b]0;owned\x07' '\x1b[2J\x1b[H' 'x\x0aALERT sshd' 'over\x0dwrite' 'rlo\u202etxt' 'csi\u009b2J'
	--help -f/etc/hostname
)

# Takes its name and 120 MiB, and after 20 s at rest allocates 2 MiB every 0.1 s until its limit: not
# a start-up, see growth.sh.
cat >leak.py <<'END'
import os, resource, sys, time
with open("/proc/self/comm", "wb") as file:
    file.write(os.fsencode(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_DATA, (400000000, 400000000))
blocks = [b"x" * (120 << 20)]
time.sleep(20)
try:
    while True:
        blocks.append(b"x" * (2 << 20))
        time.sleep(0.1)
except MemoryError:
    time.sleep(60)
END

# What the manual shows, with a logger that writes its arguments to a file.
mkdir bin
cat >bin/logger <<'END'
#!/bin/sh
printf '[%s]' "$@" >>arguments
echo >>arguments
END
chmod +x bin/logger
cat >hook <<'END'
mkdir running.$$
set -- running.*
echo $# >>running
echo "$MEMWATCH_COUNT" >>counts
logger -t memwatch -- "$MEMWATCH_SENTENCE"
sleep 3
rmdir running.$$
END
touch arguments running counts

has_all() {
	local i
	for ((i = 0; i < ${#names[@]}; i++)); do
		grep -qF -- "ALERT process ${shown[i]} (${leaks[i]}): memory grew" out || return 1
	done
}
# The number of seconds is a limit.
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}
# Counts cover all events that were printed.
counted() { [ "$(awk '{ n += $1 } END { print n + 0 }' counts)" -eq "$(grep -cE '^(ALERT|clear) ' out)" ]; }
no_zombie() { ! ps --ppid "$watch" -o stat= | grep -q Z; }

# Each has its 120 MiB.
rest() {
	local pid
	for pid in "${leaks[@]}"; do
		[ "$(awk '/^RssAnon/ { print $2 }' "/proc/$pid/status")" -gt 122880 ] || return 1
	done
}

plan
for name in "${names[@]}"; do
	python3 leak.py "$name" &
	leaks+=($!)
done
within 20 rest
PATH=$PWD/bin:$PATH "$ctl" growth watch --alerts --interval 1s --exec 'exec sh ./hook' >out 2>errors &
watch=$!
within 60 has_all
rc=$?
ok $rc "growth watch shows the name of each leaking process escaped, on a line of its own"
[ $rc -eq 0 ] || cat -v out | sed 's/^/# /'
! grep -vqE '^(ALERT|clear) process ' out && ! grep -q '^ALERT sshd' out
ok $? "every line of growth watch begins with a word of the monitor"
! grep -qP '[\x00-\x1f\x7f-\x{9f}\x{202e}]' out
ok $? "growth watch prints no control character and none that changes the order"
within 30 counted
ok $? "the commands of --exec account for every alert"
[ "$(sort -n running | tail -1)" -le 4 ]
ok $? "at most four commands of --exec run at a time"
echo "# $(wc -l <running) commands, at most $(sort -n running | tail -1) at a time"
grep -qF "[-t][memwatch][--][process --help (${leaks[6]}): memory grew" arguments &&
	grep -qF "[-t][memwatch][--][process -f/etc/hostname (${leaks[7]}): memory grew" arguments
ok $? "a name that looks like an option reaches logger as text"
within 10 no_zombie
ok $? "growth watch leaves no zombie while it runs"
kill -TERM $watch
start=$SECONDS
wait $watch
is "growth watch exits with 0 after SIGTERM" $? 0
[ $((SECONDS - start)) -le 10 ]
ok $? "growth watch ends soon after SIGTERM although commands run"
tap_end
