# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# Functions for the tests of the simulated machine in a guest: reading what the machine
# counted, and running work.c step by step. Sourced after tap.sh.

truth=/out/rdt.truth
MIB=1048576

# snapshot LABEL: what the machine counted up to now, into /lab/LABEL
snapshot() { rm -f "$truth" && rdtctl snapshot "$1" && cp "$truth" "/lab/$1"; }

# value LABEL LINE KEY: of the first line that begins with LINE
value() {
	awk -v line="$2 " -v key="$3=" '
		index($0, line) == 1 {
			for (i = 1; i <= NF; i++)
				if (index($i, key) == 1)
					{ print substr($i, length(key) + 1); exit }
		}' "/lab/$1" | grep . || echo 0
}

# process LABEL TGID KEY: summed over the domains
process() {
	awk -v tgid="tgid=$2" -v key="$3=" '
		$1 == "process" && $3 == tgid {
			for (i = 4; i <= NF; i++)
				if (index($i, key) == 1) n += substr($i, length(key) + 1)
		}
		END { printf "%d\n", n }' "/lab/$1"
}

# sums_agree LABEL: RMIDs and processes both add up to the domain, to the byte
sums_agree() {
	awk '
		function get(key,    i) {
			for (i = 1; i <= NF; i++)
				if (index($i, key "=") == 1) return substr($i, length(key) + 2)
		}
		BEGIN { n = split("occupancy total local fills writebacks", keys) }
		$1 == "domain" || $1 == "rmid" || $1 == "process" {
			for (k = 1; k <= n; k++) sum[$1, $2, keys[k]] += get(keys[k])
			domains[$2]
		}
		$1 == "end" { ended = 1 }
		END {
			for (d in domains)
				for (k = 1; k <= n; k++) {
					want = sum["domain", d, keys[k]]
					if (want != sum["rmid", d, keys[k]] ||
					    want != sum["process", d, keys[k]]) {
						print "domain " d ", " keys[k] ": " want ", RMIDs " \
							sum["rmid", d, keys[k]] ", processes " \
							sum["process", d, keys[k]]
						bad = 1
					}
					all += want
				}
			exit bad || !all || !ended
		}' "/lab/$1"
}

# near WHAT GOT WANTED PERCENT [SLACK]
near() {
	echo "# $1: $2, expected $3 within $4 %${5:+ and $5}"
	awk -v a="$2" -v b="$3" -v p="$4" -v s="${5:-0}" '
		BEGIN { d = a - b; if (d < 0) d = -d; exit !(d <= b * p / 100 + s) }'
}

# between WHAT LOW GOT HIGH
between() {
	echo "# $1: $3, expected $2 to $4"
	[ "$2" -le "$3" ] && [ "$3" -le "$4" ]
}

# same WHAT GOT WANTED
same() {
	echo "# $1: $2, expected $3"
	[ "$2" = "$3" ]
}

# start_work CPU ARGUMENTS: sets work; returns when its buffer is there
start_work() {
	cpu=$1
	shift
	taskset "$(printf %x $((1 << cpu)))" ./work "$@" &
	work=$!
	wait_stopped
}

wait_stopped() {
	until grep -q '^State:.T' "/proc/$work/status"; do sleep 0.02; done
}

# go_on: lets work.c continue to its next stop
go_on() {
	kill -CONT "$work"
	sleep 0.05
	wait_stopped
}

end_work() {
	kill -CONT "$work"
	wait "$work"
}

# check_group_on_cpu3: with resctrl mounted at $fs, a process of the group "busy" reads 72 MiB
# on CPU 3, which is in the second domain. Two results; the group stays. The snapshot is "a".
check_group_on_cpu3() {
	mkdir "$fs/mon_groups/busy"
	start_work 3 read 24 3
	echo "$work" > "$fs/mon_groups/busy/tasks"
	file=$fs/mon_groups/busy/mon_data/mon_L3_01/mbm_total_bytes
	before=$(cat "$file")
	go_on
	after=$(cat "$file")
	snapshot a
	end_work
	check "resctrl charges a process that reads 72 MiB with as much" \
		near "bytes" $((after - before)) $((72 * MIB)) 3
	check "the traffic of RMIDs and of processes adds up to that of the domain" sums_agree a
}
