# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Functions for the shell tests of the module, in the lab's guests and on real machines: loading
# it, its status, waiting with a limit, sessions in the background. Sourced; it sources tap.sh.
# The test, this file, tap.sh, the module and the programs are in one folder. A test ends with
# nothing of it left: the module, the processes, the files and the trace are removed at the exit.
# shellcheck shell=sh disable=SC2034

HERE=$(cd "${0%/*}" && pwd)
# shellcheck source=SCRIPTDIR/tap.sh
. "$HERE/tap.sh"

PATH=$HERE:$PATH
TMP=$(mktemp -d)
KO=${KO:-$HERE/memwatch.ko}
# An instance of its own, because the machine may be traced by somebody else.
TRACING=/sys/kernel/tracing/instances/memwatch-test
PROC=/proc/memwatch
PARAMETERS=/sys/module/memwatch/parameters
session_holder=
module_loaded=

# ------------------------------------------------------- machines of others

# need_module: skips the whole test where it cannot load the module or must not. Called before
# plan.
need_module() {
	[ "$(id -u)" -eq 0 ] || skip_all "only root can load the module"
	[ -e /proc/modules ] || skip_all "this kernel loads no modules"
	[ ! -e /sys/module/memwatch ] ||
		skip_all "memwatch is loaded and may be in use; unload it first (memwatchctl status says who uses it)"
	[ -e "$KO" ] || skip_all "there is no memwatch.ko; build it with KDIR=DIR, or name it with KO=FILE"
	insmod "$KO" 2>"$TMP/insmod" || case $(cat "$TMP/insmod") in
	*"nvalid module format"*) skip_all "memwatch.ko was built for another kernel than $(uname -r)" ;;
	*"ey was rejected"* | *"peration not permitted"*)
		skip_all "this kernel loads signed modules only: $(cat "$TMP/insmod")" ;;
	*) cat "$TMP/insmod" >&2 ;;
	esac
	[ ! -e /sys/module/memwatch ] || rmmod memwatch
	module_loaded=yes
}

# count_processes: how many processes there are, without threads of the kernel
count_processes() { for count_exe in /proc/[0-9]*/exe; do readlink "$count_exe"; done | wc -l; }

# may_disrupt: whether the machine is there for tests only. The lab's guests set the variable.
may_disrupt() { [ "${MEMWATCH_DISRUPTIVE-}" = yes ]; }
disruptive="disturbs the whole machine; set MEMWATCH_DISRUPTIVE=yes to allow it"

# What else a test has to undo at its end; it defines this function anew.
undo() { :; }

end_test() {
	end_status=$?
	trap - EXIT
	exec 9>&-
	# The test's own children: a job that has ended has no process any more.
	jobs -p >"$TMP/jobs"
	while read -r end_job; do kill -9 "$end_job" 2>/dev/null; done <"$TMP/jobs"
	end_all mwproc
	wait 2>/dev/null
	undo
	[ -z "$module_loaded" ] || [ ! -e /sys/module/memwatch ] || within 10 rmmod memwatch
	[ ! -d $TRACING ] || rmdir $TRACING
	rm -rf "$TMP"
	exit $end_status
}
trap end_test EXIT
trap 'exit 143' HUP INT TERM

# ------------------------------------------------------------------- waiting

# within SECONDS COMMAND...: runs COMMAND every 50 ms until it succeeds; fails
# after that many seconds. (Seconds of sleep: a slow guest gets more.)
within() {
	within_tries=$(($1 * 20))
	shift
	until "$@"; do
		within_tries=$((within_tries - 1))
		[ "$within_tries" -gt 0 ] || return 1
		sleep 0.05
	done
}

# not COMMAND...: for within
not() { ! "$@"; }

# in_background FILE COMMAND...: a command whose output goes to the file, which is empty from now
# on: the shell of the command may open it only after this one has searched it for "ready".
in_background() {
	background_file=$1
	shift
	: >"$background_file"
	"$@" >"$background_file" 9>&- &
}

# end_all NAME: kills all processes of that name
end_all() {
	for end_comm in /proc/[0-9]*/comm; do
		[ "$(cat "$end_comm" 2>/dev/null)" != "$1" ] || {
			end_pid=${end_comm#/proc/}
			kill -9 "${end_pid%/comm}"
		}
	done
}

# end_processes PID...: kills and reaps children of this shell
end_processes() {
	kill -9 "$@" 2>/dev/null
	for end_pid; do wait "$end_pid" 2>/dev/null; done
}

# json_number KEY FILE: the number after "KEY"
json_number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$2"; }

# ------------------------------------------------------------ module's status

# status KEY: value of a key of /proc/memwatch/status
status() { sed -n "s/^$1:[[:space:]]*//p" $PROC/status; }

status_is() { [ "$(status "$1")" = "$2" ]; }
status_at_least() { [ "$(status "$1")" -ge "$2" ]; }
status_at_most() { [ "$(status "$1")" -le "$2" ]; }

# No session is open and no RMID is in use.
is_idle() { status_is sessions 0 && status_is rmids_used 0; }

# Columns of /proc/memwatch/rmids for a process.
rmid_of() { awk -F '\t' -v p="$1" '$3 == p { print $1 }' $PROC/rmids; }
comm_of() { awk -F '\t' -v p="$1" '$3 == p { print $9 }' $PROC/rmids; }
has_rmid() { [ -n "$(rmid_of "$1")" ]; }

# ------------------------------------------------------------------- sessions

# hold_session COMMAND...: a session of mwctl in the background, after these
# commands of mwctl, until release_session
hold_session() {
	mkfifo "$TMP/hold"
	mwctl "$@" start hold <"$TMP/hold" >"$TMP/session" 2>&1 &
	session_holder=$!
	exec 9>"$TMP/hold"
	within 5 not status_is sessions_started 0
}

# Returns the exit status of mwctl.
release_session() {
	exec 9>&-
	wait "$session_holder"
	release_status=$?
	rm -f "$TMP/hold"
	return $release_status
}

# -------------------------------------------------------------------- tracing

mount_tracing() {
	[ -e /sys/kernel/tracing/trace_clock ] || mount -t tracefs tracefs /sys/kernel/tracing
	[ -d $TRACING ] || mkdir $TRACING
}

# trace_start EVENT...: empties the trace and records only these events of memwatch
trace_start() {
	echo 0 >$TRACING/tracing_on
	echo >$TRACING/trace
	echo >$TRACING/set_event
	for trace_event; do echo 1 >"$TRACING/events/memwatch/memwatch_$trace_event/enable"; done
	echo 1 >$TRACING/tracing_on
}

# trace_has PATTERN: for within
trace_has() { grep -q "$1" $TRACING/trace; }

# trace_count PATTERN: stops the trace and counts its lines that match
trace_count() {
	echo 0 >$TRACING/tracing_on
	grep -c "$1" $TRACING/trace
}
