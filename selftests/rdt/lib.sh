# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the guest's parts of check-rdt have in common: TAP, the module, and a
# session that is recorded.

PATH=/lab:/usr/sbin:$PATH
TMP=$(mktemp -d)
recorder=
# shellcheck source=SCRIPTDIR/../tap.sh
. /lab/tap.sh

status() { sed -n "s/^$1: //p" /proc/memwatch/status; }
rmid_of() { awk -F '\t' -v p="$1" '$3 == p { print $1 }' /proc/memwatch/rmids; }

load() { insmod /lab/memwatch.ko "$@"; }

# A recorded session in the background, until end_record; a tick each $PERIOD. It
# goes before the loads, so that nothing is lost when the host leaves little for all
# of them.
begin_record() {
	rm -f "$TMP/run.mwr"
	memwatchctl record -o "$TMP/run.mwr" --period "$PERIOD" --quiet 2> "$TMP/record.err" &
	recorder=$!
	renice -n -15 -p $recorder > /dev/null
	for _ in $(seq 200); do
		[ "$(status sessions_started)" != 0 ] && return
		sleep 0.05
	done
	echo "# no session: $(cat "$TMP/record.err")"
}

end_record() {
	cp /proc/memwatch/status /out/status
	cp /proc/memwatch/overhead /out/overhead
	kill -INT $recorder
	wait $recorder
	cp "$TMP/run.mwr" "/out/${1:-run}.mwr"
}

soon() { # soon COMMAND...: true within 5 s
	for _ in $(seq 100); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}
