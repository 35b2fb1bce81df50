# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Directories for --root, which replace the files of the kernel. Each function makes one
# below $DATA.

put() { mkdir -p "$(dirname "$root/$1")"; cat >"$root/$1"; }

# A Debian 12 server with RDT, on which the module is loaded and a session runs.
make_root_ready() {
	root=$DATA/ready
	echo 6.1.0-56-amd64 | put proc/sys/kernel/osrelease
	printf '%s=y\n' CONFIG_MODULES CONFIG_TRACEPOINTS CONFIG_HIGH_RES_TIMERS CONFIG_PERF_EVENTS \
		CONFIG_BPF_SYSCALL CONFIG_BPF_EVENTS CONFIG_CGROUPS CONFIG_BPF_JIT CONFIG_DEBUG_INFO_BTF |
		put boot/config-6.1.0-56-amd64
	put sys/kernel/btf/vmlinux </dev/null
	put sys/kernel/tracing/events/memwatch/enable </dev/null
	echo '[none] integrity confidentiality' | put sys/kernel/security/lockdown
	echo | put sys/devices/system/cpu/nohz_full
	echo N | put sys/module/module/parameters/sig_enforce
	cat ../../VERSION | put sys/module/memwatch/version
	echo 'cpu memory' | put sys/fs/cgroup/cgroup.controllers
	echo 0 | put proc/sys/kernel/nmi_watchdog
	echo 2 | put proc/sys/kernel/perf_event_paranoid
	echo 'CapEff:	000001ffffffffff' | put proc/self/status
	echo 'proc /proc proc rw 0 0' | put proc/self/mounts
	put dev/memwatch </dev/null
	put probes <<-'END'
		cpus 2
		cpuid.0.0 16 0 0 0
		cpuid.7.0 0 1000 0 0
		cpuid.f.0 0 ff 0 2
		cpuid.f.1 8 10000 ff 7
	END
	put proc/memwatch/status <<-'END'
		version: 0.1.0
		abi: 1
		schema: 1
		backend: intel-rdt
		backend_reason: CPUID 0xf: 255 RMIDs
		sessions: 1
		sessions_started: 1
		session: 812 started memwatchctl
		period_ns: 2000000
		period_asked_ns: 1000000
		period_reason: ticks took 7.31 % of the time of CPU 0, tick_max_percent is 5
		limbo_ns: 2000000
		policy: fair
		idle_stop: 0
		cpumask: 0-1
		filters: 0
		settings_by: 812 memwatchctl
		defaults_by: 0 -
		rmids_total: 255
		rmids_used: 3
		rmids_limbo: 1
		rmids_free: 251
		processes: 5
		processes_measured: 3
		processes_waiting: 2
		processes_filtered: 0
		allocs: 40
		frees: 37
		promotions: 1
		revocations: 0
		exhausted: 2
		untracked: 0
		foreign_writes: 3
		rdt_budget: 48
		rdt_domains: 1
		rdt_scale_bytes: 65536
		rdt_width_bits: 32
		rdt_counters: 0
		rdt_counted_rmids: 0
		rdt_counter_turns: 0
		waiting: 901 make
		waiting: 902 a\011b
	END
	tr '|' '\t' <<-'END' | put proc/memwatch/rmids
		# rmid generation tgid parent_tgid start_time_ns alloc_time_ns cgroup_id uid comm
		1|1|1|0|10|5000000000|0|0|systemd
		7|3|812|700|4000000000|5000000001|0|0|memwatchctl
		2|9|950|812|6000000000|6000000001|0|1000|b\134d \011"\377,x
		# end 3
	END
	put proc/memwatch/overhead <<-'END'
		memory_bytes: 143360
		cpu 0: ticks=1000 missed=1 jitter_max_ns=81000 switches=6400 pqr_writes=320 switch_cycles=8000 switch_sampled=100 tick_cycles=2000000 rdt_ops=9000 rdt_ops_max=42 rdt_reads=1500 rdt_waits=3 rdt_ns=5100000 rdt_sync_ns=90000 rdt_busy=17 rdt_age_max_ns=1094000 irqs_off_max_ns=38000 tick_ns=73100000 tick_ppm=36550
		cpu 1: ticks=0 missed=0 jitter_max_ns=0 switches=0 pqr_writes=0 switch_cycles=0 switch_sampled=0 tick_cycles=0
		jitter_ns 0-1023: 700
		jitter_ns 1024-2047: 300
		jitter_ns 2048-4095: 0
	END
}

# An AMD server whose bandwidth counters are assigned to RMIDs, with a session.
make_root_assigned() {
	make_root_ready
	mv "$DATA/ready" "$DATA/assigned"
	root=$DATA/assigned
	put probes <<-'END'
		cpus 2
		cpuid.0.0 10 68747541 444d4163 69746e65
		cpuid.7.0 0 1000 0 0
		cpuid.f.0 0 ff 0 2
		cpuid.f.1 0 40 ff 7
		cpuid.80000000.0 80000026 0 0 0
		cpuid.80000020.0 0 20 0 0
		cpuid.80000020.5 0 1f 0 0
	END
	sed -i -e 's/^backend: .*/backend: amd-qos/' -e 's/^rdt_counters: .*/rdt_counters: 32/' \
		-e 's/^rdt_counted_rmids: .*/rdt_counted_rmids: 16/' \
		-e 's/^rdt_counter_turns: .*/rdt_counter_turns: 7/' "$root/proc/memwatch/status"
	make_root_ready
}

# A virtual machine without RDT, counters and privileges. CPUID returns the data of its
# highest leaf for leaf 0xf, which looks like 2696 RMIDs.
make_root_bare() {
	root=$DATA/bare
	echo 5.4.0-1-amd64 | put proc/sys/kernel/osrelease
	echo 'CapEff:	0000000000000000' | put proc/self/status
	put proc/self/mounts </dev/null
	echo 2 | put proc/sys/kernel/perf_event_paranoid
	put proc/modules </dev/null
	put probes <<-'END'
		cpuid.0.0 d 0 0 0
		cpuid.1.0 0 0 80000000 0
		cpuid.7.0 0 1000 0 0
		cpuid.f.0 2e7 a88 a88 2
		cpuid.f.1 2e7 a88 a88 7
		bpf_load -1
		counter.cycles -2
		counter.instructions -2
		counter.llc_references -13
		counter.llc_misses -16
		memlock 65536
	END
}

# A server on which other programs use RDT and counters, and the module was loaded with
# --force.
make_root_contended() {
	make_root_ready
	mv "$DATA/ready" "$DATA/contended"
	root=$DATA/contended
	rm -r "$root/sys/kernel/tracing/events/memwatch" "$root/dev/memwatch" "$root/boot"
	put sys/kernel/tracing/events/sched/enable </dev/null
	echo 4098 | put proc/sys/kernel/tainted
	echo 9.9.9 | put sys/module/memwatch/version
	echo 'resctrl /sys/fs/resctrl resctrl rw 0 0' | put proc/self/mounts
	echo 1 | put proc/sys/kernel/nmi_watchdog
	echo 2-3 | put sys/devices/system/cpu/nohz_full
	echo 'none integrity [confidentiality]' | put sys/kernel/security/lockdown
	echo Y | put sys/module/module/parameters/sig_enforce
	printf '%s=y\n' CONFIG_MODULES CONFIG_TRACEPOINTS CONFIG_BPF_SYSCALL | gzip >"$DATA/config.gz"
	put proc/config.gz <"$DATA/config.gz"
	put probes <<-'END'
		cpus 4
		cpuid.0.0 16 0 0 0
		cpuid.7.0 0 1000 0 0
		cpuid.f.0 0 ff 0 2
		cpuid.f.1 0 10000 ff 1
		counter_share 75
	END
	make_root_ready
}

# A server with RDT on which the module is not loaded, and pqos has set an RMID.
make_root_foreign() {
	make_root_ready
	mv "$DATA/ready" "$DATA/foreign"
	root=$DATA/foreign
	rm -r "$root/sys/module/memwatch" "$root/proc/memwatch" "$root/dev/memwatch"
	put proc/modules </dev/null
	echo 'extra/memwatch.ko: kernel/fs/binfmt_misc.ko' | put lib/modules/6.1.0-56-amd64/modules.dep
	{ echo 'pqr.0 0x300000000'; echo 'pqr.1 0x300000005'; } >>"$root/probes"
	make_root_ready
}

# A machine without the module on which three growth monitors run: the event program of the second
# one is detached, and the third one cannot measure what its event program costs. Four more files
# must be ignored: the process id is used again, the process has ended, the file is incomplete, or
# it is being written.
make_root_growing() {
	root=$DATA/growing
	monitor() { # PID START COMMAND EVENTS_STATE
		printf '%s: %s\n' pid "$1" start_ticks "$2" command "$3" told_ns 1 rounds 70 pokes 4 \
			processes 812 growing 9 full 0 lost 1 period_ns 5000000000 gap_ns 24000000 \
			rest_ppm 1000 storm_ppm 10000 cpu_ppm 310 event_ppm 4200 width 512 \
			events_state "$4" events_error 0 retry_ns 0 detached 2 \
			touch_state 2 suspects 3 stall_ns 140000 \
			where_state 2 sampled 3 where_period 64
	}
	monitor 41 7700 0 1 | put run/memwatch/growth.41
	monitor 42 7800 2 2 | put run/memwatch/growth.42
	monitor 43 7900 0 1 | put run/memwatch/growth.43
	monitor 44 8000 0 1 | put run/memwatch/growth.44
	monitor 45 8100 0 1 | head -9 | put run/memwatch/growth.45
	monitor 46 8200 4 1 | sed 's/^event_ppm: .*/event_ppm: 18446744073709551615/' |
		put run/memwatch/growth.46
	monitor 41 7700 0 1 | put run/memwatch/.growth.41.0123456789abcdef.tmp
	for stat in 41:7700 42:7800 43:7901 45:8100 46:8200; do
		echo "${stat%:*} (a) b (c) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ${stat#*:} 9 9" |
			put "proc/${stat%:*}/stat"
	done
}
