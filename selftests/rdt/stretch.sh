#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# In the simulated machine: the period becomes longer when ticks cost more than
# tick_max_percent. An access to a counter takes so long that they do.
set -u
. /lab/lib.sh

notices() { dmesg | grep -c "memwatch: the period is now"; }
is_lengthened() { ! status_is period_ns "$(status period_asked_ns)"; }

# has_ticked N: a CPU has ticked N times since the module was loaded
has_ticked() { sed -n 's/^cpu .*: ticks=\([0-9]*\) .*/\1/p' $PROC/overhead | sort -n | tail -1 |
	{ read -r ticks && [ "$ticks" -ge "$1" ]; }; }

begin_loads() {
	loads=
	for _ in 1 2 3 4; do
		memload read 1000 256 &
		loads="$loads $!"
	done
}

check_limit_not_reached() {
	load tick_max_percent=100
	begin_record
	begin_loads
	within 60 has_ticked 2000
	ok $? "below the limit: CPUs tick"
	is "below the limit: the period stays as it was set" "$(status period_ns)" 1000000
	is "below the limit: status says so" "$(status period_reason)" "as set"
	is "below the limit: nothing is logged" "$(notices)" 0
	matches "below the limit: the share of the time is known all the same" \
		"$(sed -n 's/^cpu .* tick_ppm=//p' $PROC/overhead | sort -n | tail -1)" "^[1-9]"
	end_record below
	export_csv below
	is "below the limit: the stream has no notice" \
		"$(grep -c 'period_lengthened' "$TMP/below.csv")" 0
	# shellcheck disable=SC2086 # words
	end_processes $loads
	rmmod memwatch
}

# Prints how many ticks were not due at a multiple of their period, how many had a shorter
# period than one before, on how many CPUs the RMIDs did not run for the whole time, on how
# many they did, the period of the last tick, and that of the last notice.
read_ticks='
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$at["type"] == "tick" {
		period = $at["period_ns"]
		unaligned += $at["expected_ns"] % period != 0
		shorter += period < longest[$at["cpu"]]
		longest[$at["cpu"]] = period
	}
	$at["type"] == "sample" { run[$at["cpu"]] += $at["run_ns"] }
	$at["state"] == "online" { first[$at["cpu"]] = $at["time_ns"] }
	$at["state"] == "stopped" { last[$at["cpu"]] = $at["time_ns"] }
	$at["reason"] == "period_lengthened" { said = $at["value"] }
	END {
		for (cpu in first)
			if (run[cpu] == last[cpu] - first[cpu]) right++
			else wrong++
		print unaligned + 0, shorter + 0, wrong + 0, right + 0, period, said
	}'

check_limit_exceeded() {
	load tick_max_percent=1
	begin_record
	begin_loads
	within 60 is_lengthened
	ok $? "beyond the limit: the period becomes longer"
	within 60 status_is period_ns 16000000
	ok $? "beyond the limit: it becomes longer up to 16 ms: $(status period_ns) ns"
	is "beyond the limit: status gives the period that was set" "$(status period_asked_ns)" 1000000
	matches "beyond the limit: status gives the reason" "$(status period_reason)" \
		"^ticks took [0-9.]* % of the time of CPU [01], tick_max_percent is 1$"
	is "beyond the limit: each of four steps is logged once" "$(notices)" 4

	memwatchctl config --force policy=fifo
	is "another setting is changed: the period stays as long" "$(status period_ns)" 16000000
	memwatchctl --format json record -o "$TMP/second.mwr" --period 1ms --duration 300ms > "$TMP/second"
	ok $? "a second session asks for the same period and runs"
	is "a second session learns the period in use" \
		"$(tr ',' '\n' < "$TMP/second" | sed -n 's/.*"period_ns": *//p' | head -1)" 16000000
	end_record beyond
	is "after the session, the period is what it was" \
		"$(status period_ns) $(status period_reason)" "1000000 as set"
	export_csv beyond
	matches "report says that the period became longer" \
		"$(memwatchctl report /out/beyond.mwr)" \
		"The tick period became longer: 1.00 ms at first, "
	is "the stream has a notice for each step" \
		"$(grep -c 'period_lengthened' "$TMP/beyond.csv")" 4
	awk -F, "$read_ticks" "$TMP/beyond.csv" > "$TMP/read"
	read -r unaligned shorter wrong right last said < "$TMP/read"
	is "every tick is due at a multiple of its period" "$unaligned" 0
	is "no tick has a shorter period than the one before it" "$shorter" 0
	is "the times of all RMIDs of each CPU add up to wall time" "$wrong $right" "0 2"
	is "the last tick has the period in use" "$last" 16000000
	is "the last notice has the period in use" "$said" 16000000
	# shellcheck disable=SC2086 # words
	end_processes $loads
}

# The administrator's word counts: a period that is set anew begins without a past.
check_new_period() {
	begin_record
	begin_loads
	within 60 is_lengthened
	memwatchctl config --force period=20ms
	is "a new period is used as it was set" "$(status period_ns) $(status period_reason)" \
		"20000000 as set"
	sleep 12
	is "a period above the maximum stays as it is" "$(status period_ns)" 20000000
	end_record new
	# shellcheck disable=SC2086 # words
	end_processes $loads
}

plan
load tick_max_percent=101 2> /dev/null
ok $((!$?)) "a limit of more than 100 % is refused"
check_limit_not_reached
check_limit_exceeded
check_new_period
rmmod memwatch
ok $? "the module unloads"
tap_end
