#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
#
# growth watch names the line that leaks: a program with the heap profiler, in a mount namespace
# of its own, so that neither its profile nor the program itself can be reached by a path from
# outside. Needs root and a kernel with BTF, but not the module. Takes a minute. Speaks TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=SCRIPTDIR/../tap.sh
. "$here/../tap.sh"
build=${BUILD:-build}
case $build in /*) ;; *) build=$here/../../$build ;; esac
build=$(cd "$build" && pwd)
ctl=${CTL:-$build/cli/memwatchctl}
if [ "$(id -u)" -ne 0 ] || [ ! -r /sys/kernel/btf/vmlinux ]; then
	skip_all "needs root and a kernel with BTF"
fi
work=$(mktemp -d)
leak=''
trap 'kill $leak 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir hidden snapshots

plan

mkfifo input
# shellcheck disable=SC2016 # the variables are those of the inner shell
(
	ulimit -d 800000
	exec unshare -m sh -c '
		mount -t tmpfs none hidden && mkdir -m 700 hidden/profiles &&
		cp "$0/selftests/rss-answers" hidden/server &&
		exec env LD_PRELOAD="$0/heap/libmemwatch-heap.so" MEMWATCH_HEAP_DIR="$PWD/hidden/profiles" \
			hidden/server leak' "$build" <input >/dev/null
) &
leak=$!
exec 5>input
"$ctl" --format json growth watch --interval 1s --duration 90s --pid $leak --snapshots snapshots \
	--exec 'echo "$MEMWATCH_SENTENCE" >>hook' >alerts 2>errors
grep -m 1 '"event": "alert"' alerts >alert
python3 "$here/../../cli/tests/schema.py" growth-alert-heap alert >schema
ok $? "an alert has the documented members"
ask() {
	python3 -c 'import json, sys; d = json.load(open("alert")); h = d["heap"]
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1"
}
ask '[f["function"] for f in h["stack"][:3]] == ["take", "idle", "main"]'
ok $? "it names the call stack that holds the growth"
line=$(grep -n 'void \*p = malloc(size)' "$here/rss-answers.c" | cut -d: -f1)
ask "h['stack'][0]['file'].endswith('rss-answers.c') and h['stack'][0]['line'] == $line"
ok $? "it names the line"
ask '0.6 * d["growth_bytes"] < h["growth_bytes"]["value"] < 1.2 * d["growth_bytes"]'
ok $? "it says how much of the growth that is"
ask '0.8 * d["since_s"] - 1 <= d["time_s"] - h["seconds"] <= d["since_s"] + 5'
ok $? "it says since when"
grep -q 'of this, .* in the last .*, at .*, are from take (rss-answers.c:' hook
ok $? "the sentence says the same"
copy=$(python3 -c 'import json; print(json.load(open("alert"))["heap"]["copy"])')
"$ctl" --format csv heap report --no-symbols "$copy" >report
ok $? "a copy of the profile is kept, although the process and its files are gone"
[ "$(stat -c %a "$copy")" = 600 ]
ok $? "nobody else can read the copy"
[ -s alert ] || sed 's/^/# /' errors alerts
tap_end
