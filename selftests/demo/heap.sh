#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The second half of the demonstration: a server leaks in a memory cgroup until the kernel kills
# it, and the profile that is left names the line. It runs on this machine and needs no module.
#
#	heap.sh DIRECTORY     for the server and its profiles; must not exist
#
# Exit status 4: this machine cannot do it, and standard output says why.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$here/../../$build ;; esac
out=$1
ctl=$build/cli/memwatchctl
limit=$((400 << 20))
cannot() { echo "This part cannot run here: $*."; exit 4; }

[ "$(id -u)" -eq 0 ] || cannot "it needs root"
[ -r /sys/kernel/btf/vmlinux ] || cannot "the kernel has no BTF"
mkdir -p "$out" || exit 1
${CC:-gcc} -O1 -g -o "$out/server" "$here/server.c" || cannot "there is no C compiler"

group='' server='' watch=''
clean() {
	kill $server $watch 2>/dev/null
	wait $server 2>/dev/null
	[ -z "$group" ] || rmdir "$group"
}
trap clean EXIT
if [ -d /sys/fs/cgroup/memory ]; then
	group=/sys/fs/cgroup/memory/memwatch-demo-$$
	mkdir "$group" && echo $limit >"$group/memory.limit_in_bytes"
else
	grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null ||
		cannot "there is no memory cgroup"
	group=/sys/fs/cgroup/memwatch-demo-$$
	mkdir "$group" && echo $limit >"$group/memory.max" && echo 0 >"$group/memory.swap.max"
fi || cannot "the memory cgroup cannot be made"

begin=$(date +%s%N)
seconds() { local ns=$(($(date +%s%N) - begin)); printf '%3d.%d s' $((ns / 1000000000)) $((ns / 100000000 % 10)); }

"$ctl" --quiet growth watch --alerts --interval 1s --snapshots "$out" \
	>"$out/alerts" 2>"$out/watch.log" &
watch=$!
(
	echo $BASHPID >"$group/cgroup.procs"
	exec "$ctl" --quiet heap run -o "$out/profiles" -- "$out/server"
) &
server=$!
echo "$(seconds)  the server starts, in a memory cgroup of 400 MiB"
alerted=
while kill -0 $server 2>/dev/null; do
	if [ -z "$alerted" ] && alert=$(grep -m 1 'process server (' "$out/alerts"); then
		alerted=yes
		echo "$(seconds)  $alert"
	fi
	sleep 0.1
done
wait $server
status=$?
server=
echo "$(seconds)  the kernel has killed the server (exit status $status)"
kill $watch
wait $watch 2>/dev/null
watch=
profile=$(echo "$out"/profiles/server.*.mwheap)
echo
echo "memwatchctl heap report ${profile##*/} --sites --top 1"
"$ctl" heap report "$profile" --sites --top 1 || exit 1
[ -n "$alerted" ] && [ $status -eq 137 ]
