#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: the notices about RDT arrive through netlink, once each.
set -u
. /lab/lib.sh

begin_reader() {
	: > "$TMP/$1"
	nlnotices "$1" > "$TMP/$1" 9>&- &
	readers="${readers:-} $!"
	within 5 grep -q ready "$TMP/$1" || echo "# $1: $(cat "$TMP/$1")"
}

told() { grep -q "$1" "$TMP/subscribe"; }
times_told() { grep -c "kind=$1 " "$TMP/subscribe"; }

plan
rdtctl guest
load
begin_reader subscribe
begin_reader group

hold_session
rdtctl pqr 0 9 3
within 5 told "kind=1 cpu=0 count=[1-9][0-9]* value=1288490[0-9]* "
ok $? "a foreign writer of PQR_ASSOC: readers are told the CPU and what was found"

mount -t resctrl resctrl $RESCTRL
within 5 told "kind=2 "
ok $? "resctrl is mounted: readers are told"
within 5 told "kind=6 .*count=1 value=0 .*text=the backend is emulated .*resctrl was mounted while"
ok $? "RDT is given up: readers are told the backend and the reason"
release_session

hold_session
release_session
is "a session that starts without RDT, as the one before, is no news" "$(times_told 6)" 1
umount $RESCTRL
hold_session
within 5 told "kind=6 .*count=2 value=1 .*text=the backend is intel-rdt"
ok $? "a session uses RDT again: readers are told"
release_session
mount -t resctrl resctrl $RESCTRL
hold_session
within 5 told "kind=6 .*count=3 value=0 .*text=.*resctrl was mounted when the session started; unmount it"
ok $? "a session starts beside resctrl: readers are told the reason and the remedy"
release_session
umount $RESCTRL

is "each is told once" "$(times_told 2) $(times_told 6)" "1 3"
is "each is in the log once" "$(dmesg | grep -c 'memwatch: the backend is')" 3
is "the multicast group has told the same" \
	"$(grep sequence= "$TMP/group")" "$(grep sequence= "$TMP/subscribe")"
rmmod memwatch
ok $? "the module unloads"
# shellcheck disable=SC2086 # words
end_processes $readers
tap_end
