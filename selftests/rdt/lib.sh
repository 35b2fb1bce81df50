# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh disable=SC2034
#
# Functions for the guest's parts of check-rdt: loading the module, and a session
# that is recorded. Sourced; it sources guest.sh.

# shellcheck source=SCRIPTDIR/../guest.sh
. /lab/guest.sh
PATH=/lab:/usr/sbin:$PATH
RESCTRL=/sys/fs/resctrl
recorder=

# The emulator takes some fifty times longer than a processor to read an RMID. The limit
# of time is longer accordingly; a later parameter overrides it.
load() { insmod /lab/memwatch.ko rdt_time_ns=2000000 "$@"; }

# A recorded session in the background, until end_record; a tick each $PERIOD. The
# recorder has a higher priority than the loads, so that no record is lost when the
# host leaves little time for the guest.
begin_record() {
	rm -f "$TMP/run.mwr"
	memwatchctl record -o "$TMP/run.mwr" --period "$PERIOD" --quiet 2> "$TMP/record.err" &
	recorder=$!
	renice -n -15 -p $recorder > /dev/null
	within 10 not status_is sessions_started 0 ||
		echo "# no session: $(cat "$TMP/record.err")"
}

# end_record [NAME]: the recording is then /out/NAME.mwr (run.mwr)
end_record() {
	cp $PROC/status /out/status
	cp $PROC/overhead /out/overhead
	kill -INT $recorder
	wait $recorder
	cp "$TMP/run.mwr" "/out/${1:-run}.mwr"
}

# export_csv NAME: /out/NAME.mwr as CSV in $TMP/NAME.csv
export_csv() { memwatchctl export "/out/$1.mwr" --to csv -o "$TMP/$1.csv" --force --quiet; }
