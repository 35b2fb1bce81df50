// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The checks of the hardware: RDT, other programs that use it, and hardware counters.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/memwatch.h>

#include "cmds/doctor/doctor.h"
#include "cmds/doctor/probe.h"
#include "common/root.h"

#define NR_CHECKS_OF_RDT  3
#define NR_CHECKS_OF_PERF 3

struct rdt {
	const char *missing; /* why there is none, or NULL */
	uint32_t highest_leaf;
	uint32_t max_rmid;
	uint32_t scale;
	uint32_t width;
	bool occupancy, total, local;
	bool virtual_machine;
	uint32_t counters; /* assignable ones of each L3 cache */
};

#define LEAF_EXTENDED 0x80000000
#define LEAF_QOS_AMD  0x80000020

/* AMD has fewer bandwidth counters than RMIDs, and software assigns them (ABMC). */
static uint32_t count_assignable(const struct mw_cli *cli)
{
	struct mw_cpuid id;

	mw_probe_cpuid(cli, LEAF_EXTENDED, 0, &id);
	if (id.eax < LEAF_QOS_AMD || id.eax >> 31 == 0)
		return 0;
	mw_probe_cpuid(cli, LEAF_QOS_AMD, 0, &id);
	if (!(id.ebx & 1U << 5))
		return 0;
	mw_probe_cpuid(cli, LEAF_QOS_AMD, 5, &id);
	return (id.ebx & 0xffff) + 1;
}

/* AMD and Hygon CPUs report no offset if the counters have 44 bits. */
static uint32_t counter_width(uint32_t vendor, uint32_t offset)
{
	bool amd = vendor == 0x68747541 /* Auth */ || vendor == 0x6f677948 /* Hygo */;

	return 24 + (amd && !offset ? 20 : offset);
}

/*
 * Errata SKZ4, SKZ14 and SKZ15: family 6, model 0x55, stepping 0 to 4. RDT counts wrongly on
 * these CPUs, so the module does not use it there.
 */
static bool has_rdt_erratum(uint32_t vendor, uint32_t signature)
{
	return vendor == 0x756e6547 /* Genu */ && (signature & 0x0fff0ff0) == 0x00050650 &&
	       (signature & 0xf) <= 4;
}

/* In the order of the Intel manual: a leaf is read only if an earlier one announces it. */
static void read_rdt_features(const struct mw_cli *cli, struct rdt *rdt)
{
	struct mw_cpuid id;
	uint32_t vendor, signature;

	memset(rdt, 0, sizeof(*rdt));
	mw_probe_cpuid(cli, 0, 0, &id);
	rdt->highest_leaf = id.eax;
	vendor = id.ebx;
	mw_probe_cpuid(cli, 1, 0, &id);
	signature = id.eax;
	rdt->virtual_machine = id.ecx >> 31;
	if (rdt->highest_leaf < 0xf) {
		rdt->missing = "CPUID leaf 0xf is absent";
		return;
	}
	mw_probe_cpuid(cli, 7, 0, &id);
	if (!(id.ebx & 1U << 12)) {
		rdt->missing = "CPUID leaf 7 does not announce resource monitoring";
		return;
	}
	mw_probe_cpuid(cli, 0xf, 0, &id);
	if (!(id.edx & 1U << 1)) {
		rdt->missing = "CPUID leaf 0xf does not announce L3 monitoring";
		return;
	}
	if (has_rdt_erratum(vendor, signature)) {
		rdt->missing = "the counters of this CPU are wrong (errata SKZ4, SKZ14, SKZ15)";
		return;
	}
	mw_probe_cpuid(cli, 0xf, 1, &id);
	rdt->max_rmid = id.ecx;
	rdt->scale = id.ebx;
	rdt->width = counter_width(vendor, id.eax & 0xff);
	rdt->occupancy = id.edx & 1;
	rdt->total = id.edx & 2;
	rdt->local = id.edx & 4;
	rdt->counters = count_assignable(cli);
}

bool mw_has_rdt(const struct mw_cli *cli)
{
	struct rdt rdt;

	read_rdt_features(cli, &rdt);
	return !rdt.missing;
}

static const char *missing_event(bool present, unsigned int event)
{
	return present ? "" : memwatch_rdt_event_name(event);
}

static void report_assignable(const struct rdt *rdt, struct mw_finding *f)
{
	uint32_t events = rdt->total + rdt->local;

	mw_finding_cost(f,
			"%u bandwidth counters in each L3 cache are assigned to RMIDs where the "
			"kernel has enabled this (since 6.18): %u RMIDs are counted at a time",
			rdt->counters, events ? rdt->counters / events : 0);
}

static void check_rdt(const struct mw_cli *cli, struct mw_finding *f)
{
	struct rdt rdt;

	read_rdt_features(cli, &rdt);
	if (rdt.missing) {
		mw_finding_missing(f, "not available: %s (highest leaf 0x%x%s)", rdt.missing,
				   rdt.highest_leaf,
				   rdt.virtual_machine ? ", virtual machine" : "");
		mw_finding_cost(f, "no LLC occupancy and memory bandwidth; RMIDs are emulated");
		mw_finding_remedy(
			f,
			rdt.virtual_machine
				? "measure on the host: RDT is rarely available in virtual machines"
				: "use a CPU with Intel RDT or AMD PQoS monitoring");
		return;
	}
	mw_finding_ok(f, "%u RMIDs,%s%s%s, counter unit %u bytes, %u-bit counters",
		      rdt.max_rmid + 1, rdt.occupancy ? " occupancy" : "",
		      rdt.total ? " total" : "", rdt.local ? " local" : "", rdt.scale, rdt.width);
	if (rdt.counters)
		report_assignable(&rdt, f);
	if (!rdt.occupancy || !rdt.total || !rdt.local) {
		f->result = MW_RESULT_WARN;
		mw_finding_cost(
			f, "no values of%s%s%s%s%s%s", rdt.occupancy ? "" : " ",
			missing_event(rdt.occupancy, MEMWATCH_RDT_OCCUPANCY), rdt.total ? "" : " ",
			missing_event(rdt.total, MEMWATCH_RDT_MBM_TOTAL), rdt.local ? "" : " ",
			missing_event(rdt.local, MEMWATCH_RDT_MBM_LOCAL));
	}
}

static void check_resctrl(const struct mw_cli *cli, struct mw_finding *f)
{
	if (!mw_root_is_mounted(cli, "resctrl")) {
		mw_finding_ok(f, "resctrl is not mounted, so it uses no RMIDs");
		return;
	}
	mw_finding_warn(f, "resctrl is mounted and assigns RMIDs too");
	mw_finding_cost(f, "the module does not use RDT: no LLC occupancy and memory bandwidth");
	mw_finding_remedy(f, "measure with --backend bpf; or, if nobody needs its groups and "
			     "allocations, run umount /sys/fs/resctrl");
}

static void check_pqr_assoc(const struct mw_cli *cli, struct mw_finding *f)
{
	int cpus = mw_probe_cpus(cli), read = 0, used = 0, first = -1;
	uint64_t value = 0, shown = 0;

	if (!mw_has_rdt(cli)) {
		mw_finding_ok(f, "not relevant without RDT");
		return;
	}
	if (mw_module_is_loaded(cli)) {
		mw_finding_ok(f, "the module checks this; see memwatchctl status");
		return;
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		if (mw_probe_pqr(cli, cpu, &value))
			continue;
		read++;
		if (value & 0x3ff && !used++) {
			first = cpu;
			shown = value;
		}
	}
	if (used) {
		mw_finding_warn(
			f, "another program has set an RMID on %d of %d CPUs (RMID %u on CPU %d)",
			used, read, (unsigned int)(shown & 0x3ff), first);
		mw_finding_cost(f, "another program measures with RDT, and both get wrong values");
		mw_finding_remedy(f, "stop the other program; if it has ended, reset the RMIDs: "
				     "pqos -r; or load the module with force=1");
	} else if (read) {
		mw_finding_ok(f, "no CPU has an RMID");
	} else {
		mw_finding_warn(f, "not known, because /dev/cpu/0/msr is not readable");
		mw_finding_cost(f, "none, if no other program uses RDT");
		mw_finding_remedy(f, "run modprobe msr, and run memwatchctl as root");
	}
}

static void report_counter_error(const struct mw_cli *cli, struct mw_finding *f, int err)
{
	char paranoid[16];

	mw_finding_missing(f, "%s", strerror(-err));
	switch (-err) {
	case ENOENT:
	case EOPNOTSUPP:
		mw_finding_missing(f,
				   "the kernel does not support this counter on this machine (%s)",
				   err == -ENOENT ? "ENOENT" : "EOPNOTSUPP");
		mw_finding_remedy(f, "if this is a virtual machine, give it a virtual PMU");
		break;
	case EACCES:
	case EPERM:
		mw_root_line(cli, "/proc/sys/kernel/perf_event_paranoid", paranoid,
			     sizeof(paranoid));
		mw_finding_missing(f,
				   "this user may not use the counter (perf_event_paranoid is %s)",
				   paranoid);
		mw_finding_remedy(f, "run memwatchctl as root, or with CAP_PERFMON");
		break;
	case EBUSY:
		mw_finding_missing(f, "another program uses the counter (EBUSY)");
		mw_finding_remedy(f, "stop other profilers, or run sysctl kernel.nmi_watchdog=0");
		break;
	case ENOSYS:
		mw_finding_missing(f, "this kernel has no perf_event_open()");
		mw_finding_remedy(f, "use a kernel built with CONFIG_PERF_EVENTS");
		break;
	default:
		break;
	}
}

/* The ratio that cannot be computed without a counter; NULL if there is none. */
static const struct memwatch_metric_info *find_ratio(unsigned int counter)
{
	const struct memwatch_metric_info *metric;

	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++)
		if (metric->source == MEMWATCH_METRIC_RATIO &&
		    (metric->index == counter || metric->divisor == counter))
			return metric;
	return NULL;
}

/* The checks of the counters are in the order of enum memwatch_counter. */
static void check_counter(const struct mw_cli *cli, struct mw_finding *f)
{
	unsigned int counter = (unsigned int)(f->check - mw_doctor_hardware) - NR_CHECKS_OF_RDT;
	const struct memwatch_metric_info *ratio = find_ratio(counter);
	int cpus, err = mw_probe_counter(cli, counter, &cpus);

	if (!err) {
		mw_finding_ok(f, "available on all %d CPUs", cpus);
		return;
	}
	report_counter_error(cli, f, err);
	if (ratio)
		mw_finding_cost(f, "no values of %s and of %s", memwatch_counter_name(counter),
				ratio->title);
	else
		mw_finding_cost(f, "no values of %s", memwatch_counter_name(counter));
}

static void check_counter_sharing(const struct mw_cli *cli, struct mw_finding *f)
{
	int cpus, share, counters = 0;

	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		counters += !mw_probe_counter(cli, i, &cpus);
	if (!counters) {
		mw_finding_ok(f, "not relevant without counters");
		return;
	}
	share = mw_probe_counter_share(cli);
	if (share >= 99) {
		mw_finding_ok(f, "all counters can run at the same time");
		return;
	}
	mw_finding_warn(f, "a counter runs for only %d %% of the time", share < 0 ? 0 : share);
	mw_finding_cost(f, "values are scaled up and have the status multiplexed");
	mw_finding_remedy(f, "stop other profilers, or run sysctl kernel.nmi_watchdog=0");
}

static void check_nmi_watchdog(const struct mw_cli *cli, struct mw_finding *f)
{
	char value[16];

	if (mw_root_line(cli, "/proc/sys/kernel/nmi_watchdog", value, sizeof(value)) <= 0 ||
	    value[0] != '1') {
		mw_finding_ok(f, "the NMI watchdog is off");
		return;
	}
	mw_finding_warn(f, "the NMI watchdog uses one counter on every CPU");
	mw_finding_cost(f, "other counters may be multiplexed");
	mw_finding_remedy(f, "run sysctl kernel.nmi_watchdog=0");
}

static void check_perf_event_paranoid(const struct mw_cli *cli, struct mw_finding *f)
{
	char value[16];

	if (mw_root_line(cli, "/proc/sys/kernel/perf_event_paranoid", value, sizeof(value)) <= 0) {
		mw_finding_missing(f, "this kernel has no perf events");
		mw_finding_cost(f, "no counters, and no ring buffers for records");
	} else if (mw_has_capability(cli, CAP_SYS_ADMIN)) {
		mw_finding_ok(f, "it is %s, but CAP_SYS_ADMIN overrides it", value);
	} else if (atoi(value) > 2) {
		/* Debian's kernels have this value, which upstream kernels do not know. */
		mw_finding_warn(f, "it is %s, which means root only", value);
		mw_finding_cost(f, "this user may not use perf events at all");
		mw_finding_remedy(f, "run memwatchctl as root, or sysctl "
				     "kernel.perf_event_paranoid=2");
	} else if (mw_has_capability(cli, CAP_PERFMON)) {
		mw_finding_ok(f, "it is %s, but CAP_PERFMON overrides it", value);
	} else if (atoi(value) <= 0) {
		mw_finding_ok(f, "it is %s", value);
	} else {
		mw_finding_warn(f, "it is %s", value);
		mw_finding_cost(f, "this user may not use counters of whole CPUs");
		mw_finding_remedy(f, "run memwatchctl as root, or with CAP_PERFMON");
	}
}

static const struct mw_check rdt_checks[NR_CHECKS_OF_RDT] = {
	{ "rdt", "RDT", false, check_rdt },
	{ "resctrl", "resctrl", false, check_resctrl },
	{ "pqr_assoc", "RDT used by others", false, check_pqr_assoc },
};

static const struct mw_check perf_checks[NR_CHECKS_OF_PERF] = {
	{ "pmu_sharing", "counter sharing", false, check_counter_sharing },
	{ "nmi_watchdog", "NMI watchdog", false, check_nmi_watchdog },
	{ "perf_event_paranoid", "perf_event_paranoid", false, check_perf_event_paranoid },
};

struct mw_check mw_doctor_hardware[NR_CHECKS_OF_RDT + MEMWATCH_COUNTER_MAX + NR_CHECKS_OF_PERF + 1];

/* Before main(): the checks of the counters come from the library's table of metrics. */
__attribute__((constructor)) static void init_hardware_checks(void)
{
	static char names[MEMWATCH_COUNTER_MAX][64];
	struct mw_check *counter_checks = mw_doctor_hardware + NR_CHECKS_OF_RDT;

	memcpy(mw_doctor_hardware, rdt_checks, sizeof(rdt_checks));
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "pmu_%s", memwatch_counter_name(i));
		counter_checks[i] = (struct mw_check){
			.name = names[i],
			.title = memwatch_metric_find(MEMWATCH_METRIC_COUNTER, i)->title,
			.look = check_counter,
		};
	}
	memcpy(counter_checks + MEMWATCH_COUNTER_MAX, perf_checks, sizeof(perf_checks));
}
