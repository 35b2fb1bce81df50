# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# Functions for the shell tests in the lab's guests: the module's status, waiting
# with a limit, sessions in the background. Sourced; it sources tap.sh beside it.
# In the guest, the files of all tests are in /lab.
# shellcheck shell=sh disable=SC2034

# shellcheck source=SCRIPTDIR/tap.sh
. /lab/tap.sh

PATH=/lab:$PATH
TMP=$(mktemp -d)
TRACING=/sys/kernel/tracing
PROC=/proc/memwatch
session_holder=

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

# end_processes PID...: kills and reaps children of this shell
end_processes() {
	kill -9 "$@" 2>/dev/null
	for end_pid; do wait "$end_pid" 2>/dev/null; done
}

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

mount_tracing() { [ -e $TRACING/trace_clock ] || mount -t tracefs tracefs $TRACING; }

# trace_start EVENT...: empties the trace and records only these events of memwatch
trace_start() {
	echo 0 >$TRACING/tracing_on
	echo >$TRACING/trace
	echo >$TRACING/set_event
	for trace_event; do echo 1 >"$TRACING/events/memwatch/memwatch_$trace_event/enable"; done
	echo 1 >$TRACING/tracing_on
}

# trace_count PATTERN: stops the trace and counts its lines that match
trace_count() {
	echo 0 >$TRACING/tracing_on
	grep -c "$1" $TRACING/trace
}
