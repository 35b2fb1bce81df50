// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * doctor, the hardware: RDT, who else uses it, and the performance counters.
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
};

/* AMD and Hygon leave the width out where it is theirs: 44 bits. */
static uint32_t counter_width(uint32_t vendor, uint32_t offset)
{
	bool amd = vendor == 0x68747541 /* Auth */ || vendor == 0x6f677948 /* Hygo */;

	return 24 + (amd && !offset ? 20 : offset);
}

/* Family 6, model 0x55, stepping 0 to 4: SKZ4, SKZ14, SKZ15. The module refuses it. */
static bool is_defective(uint32_t vendor, uint32_t signature)
{
	return vendor == 0x756e6547 /* Genu */ && (signature & 0x0fff0ff0) == 0x00050650 &&
	       (signature & 0xf) <= 4;
}

/* The chain of the manual. Each leaf is asked only after it is known to be there. */
static void enumerate(const struct mw_cli *cli, struct rdt *rdt)
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
		rdt->missing = "CPUID 7 does not announce resource monitoring";
		return;
	}
	mw_probe_cpuid(cli, 0xf, 0, &id);
	if (!(id.edx & 1U << 1)) {
		rdt->missing = "CPUID 0xf does not announce L3 monitoring";
		return;
	}
	if (is_defective(vendor, signature)) {
		rdt->missing = "this Skylake-X counts wrongly (errata SKZ4, SKZ14, SKZ15)";
		return;
	}
	mw_probe_cpuid(cli, 0xf, 1, &id);
	rdt->max_rmid = id.ecx;
	rdt->scale = id.ebx;
	rdt->width = counter_width(vendor, id.eax & 0xff);
	rdt->occupancy = id.edx & 1;
	rdt->total = id.edx & 2;
	rdt->local = id.edx & 4;
}

bool mw_has_rdt(const struct mw_cli *cli)
{
	struct rdt rdt;

	enumerate(cli, &rdt);
	return !rdt.missing;
}

static const char *missing_event(bool present, unsigned int event)
{
	return present ? "" : memwatch_rdt_event_name(event);
}

static void look_rdt(const struct mw_cli *cli, struct mw_finding *f)
{
	struct rdt rdt;

	enumerate(cli, &rdt);
	if (rdt.missing) {
		mw_missed(f, "none: %s (highest leaf 0x%x%s)", rdt.missing, rdt.highest_leaf,
			  rdt.virtual_machine ? ", virtual machine" : "");
		mw_cost(f,
			"LLC occupancy and memory bandwidth are unavailable; RMIDs are emulated");
		mw_remedy(f, rdt.virtual_machine ? "measure on the host: virtual machines seldom "
						   "get RDT"
						 : "a CPU with Intel RDT or AMD PQoS monitoring");
		return;
	}
	mw_found(f, "%u RMIDs,%s%s%s, %u bytes a unit, %u bit counters", rdt.max_rmid + 1,
		 rdt.occupancy ? " occupancy" : "", rdt.total ? " total" : "",
		 rdt.local ? " local" : "", rdt.scale, rdt.width);
	if (!rdt.occupancy || !rdt.total || !rdt.local) {
		f->result = MW_RESULT_WARN;
		mw_cost(f, "unavailable:%s%s%s%s%s%s", rdt.occupancy ? "" : " ",
			missing_event(rdt.occupancy, MEMWATCH_RDT_OCCUPANCY), rdt.total ? "" : " ",
			missing_event(rdt.total, MEMWATCH_RDT_MBM_TOTAL), rdt.local ? "" : " ",
			missing_event(rdt.local, MEMWATCH_RDT_MBM_LOCAL));
	}
}

static void look_resctrl(const struct mw_cli *cli, struct mw_finding *f)
{
	if (!mw_root_is_mounted(cli, "resctrl")) {
		mw_found(f, "not mounted: RMIDs are ours alone");
		return;
	}
	mw_warned(f, "mounted: it assigns RMIDs too");
	mw_cost(f, "the module leaves RDT alone: LLC occupancy and bandwidth are unavailable");
	mw_remedy(f, "umount /sys/fs/resctrl, or load the module with force=1");
}

static void look_pqr(const struct mw_cli *cli, struct mw_finding *f)
{
	int cpus = mw_probe_cpus(cli), read = 0, used = 0, first = -1;
	uint64_t value = 0, shown = 0;

	if (!mw_has_rdt(cli)) {
		mw_found(f, "does not matter without RDT");
		return;
	}
	if (mw_module_is_loaded(cli)) {
		mw_found(f, "watched by the module, see memwatchctl status");
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
		mw_warned(f, "CPU %d has RMID %u, set by somebody else (%d of %d CPUs)", first,
			  (unsigned int)(shown & 0x3ff), used, read);
		mw_cost(f, "pqos, PCM or resctrl measure too: each spoils the other's numbers");
		mw_remedy(f, "stop the other one: pqos -R, umount /sys/fs/resctrl");
	} else if (read) {
		mw_found(f, "no RMID is set on any CPU");
	} else {
		mw_warned(f, "cannot be seen: /dev/cpu/0/msr is not readable");
		mw_cost(f, "nothing, if no other program uses RDT");
		mw_remedy(f, "modprobe msr, run as root");
	}
}

static void explain_counter(const struct mw_cli *cli, struct mw_finding *f, int err)
{
	char paranoid[16];

	mw_missed(f, "%s", strerror(-err));
	switch (-err) {
	case ENOENT:
	case EOPNOTSUPP:
		mw_missed(f, "the kernel has no such counter here (%s)",
			  err == -ENOENT ? "ENOENT" : "EOPNOTSUPP");
		mw_remedy(f, "in a virtual machine: give it a virtual PMU; else none");
		break;
	case EACCES:
	case EPERM:
		mw_root_line(cli, "/proc/sys/kernel/perf_event_paranoid", paranoid,
			     sizeof(paranoid));
		mw_missed(f, "not permitted (perf_event_paranoid is %s)", paranoid);
		mw_remedy(f, "run as root or with CAP_PERFMON");
		break;
	case EBUSY:
		mw_missed(f, "somebody else holds it (EBUSY)");
		mw_remedy(f, "stop other profilers; sysctl kernel.nmi_watchdog=0");
		break;
	case ENOSYS:
		mw_missed(f, "this kernel has no perf_event_open");
		mw_remedy(f, "use a kernel built with CONFIG_PERF_EVENTS");
		break;
	default:
		break;
	}
}

/* The ratio that cannot be computed without a counter; NULL if there is none. */
static const struct memwatch_metric_info *find_ratio(unsigned int counter)
{
	const struct memwatch_metric_info *metric;

	for (unsigned int i = 0; (metric = memwatch_metric_info(i)); i++)
		if (metric->source == MEMWATCH_METRIC_RATIO &&
		    (metric->index == counter || metric->divisor == counter))
			return metric;
	return NULL;
}

/* The checks of the counters are in the order of enum memwatch_counter. */
static void look_counter(const struct mw_cli *cli, struct mw_finding *f)
{
	unsigned int counter = (unsigned int)(f->check - mw_doctor_hardware) - NR_CHECKS_OF_RDT;
	const struct memwatch_metric_info *ratio = find_ratio(counter);
	int cpus, err = mw_probe_counter(cli, counter, &cpus);

	if (!err) {
		mw_found(f, "counts on all %d CPUs", cpus);
		return;
	}
	explain_counter(cli, f, err);
	if (ratio)
		mw_cost(f, "%s and with it %s are unavailable", memwatch_counter_name(counter),
			ratio->title);
	else
		mw_cost(f, "%s is unavailable", memwatch_counter_name(counter));
}

static void look_share(const struct mw_cli *cli, struct mw_finding *f)
{
	int cpus, share, counters = 0;

	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		counters += !mw_probe_counter(cli, i, &cpus);
	if (!counters) {
		mw_found(f, "no counter, nothing to share");
		return;
	}
	share = mw_probe_counter_share(cli);
	if (share >= 99) {
		mw_found(f, "all counters run all the time");
		return;
	}
	mw_warned(f, "a counter runs only %d %% of the time", share < 0 ? 0 : share);
	mw_cost(f, "values are scaled up and marked multiplexed");
	mw_remedy(f, "stop other profilers; sysctl kernel.nmi_watchdog=0");
}

static void look_watchdog(const struct mw_cli *cli, struct mw_finding *f)
{
	char value[16];

	if (mw_root_line(cli, "/proc/sys/kernel/nmi_watchdog", value, sizeof(value)) <= 0 ||
	    value[0] != '1') {
		mw_found(f, "off");
		return;
	}
	mw_warned(f, "on: it holds one counter on every CPU");
	mw_cost(f, "with few counters others are multiplexed");
	mw_remedy(f, "sysctl kernel.nmi_watchdog=0");
}

static void look_paranoid(const struct mw_cli *cli, struct mw_finding *f)
{
	char value[16];

	if (mw_root_line(cli, "/proc/sys/kernel/perf_event_paranoid", value, sizeof(value)) <= 0) {
		mw_missed(f, "no perf_event_paranoid: this kernel has no perf events");
		mw_cost(f, "no counters and no ring to user space");
	} else if (mw_has_capability(cli, CAP_SYS_ADMIN) || mw_has_capability(cli, CAP_PERFMON)) {
		mw_found(f, "%s, does not bind with CAP_PERFMON", value);
	} else if (atoi(value) <= 0) {
		mw_found(f, "%s", value);
	} else {
		mw_warned(f, "%s", value);
		mw_cost(f, "counters of whole CPUs are not permitted to this user");
		mw_remedy(f, "run as root or with CAP_PERFMON");
	}
}

static const struct mw_check rdt_checks[NR_CHECKS_OF_RDT] = {
	{ "rdt", "RDT", false, look_rdt },
	{ "resctrl", "resctrl", false, look_resctrl },
	{ "pqr_assoc", "RDT used by others", false, look_pqr },
};

static const struct mw_check perf_checks[NR_CHECKS_OF_PERF] = {
	{ "pmu_sharing", "counter sharing", false, look_share },
	{ "nmi_watchdog", "NMI watchdog", false, look_watchdog },
	{ "perf_event_paranoid", "perf_event_paranoid", false, look_paranoid },
};

struct mw_check mw_doctor_hardware[NR_CHECKS_OF_RDT + MEMWATCH_COUNTER_MAX + NR_CHECKS_OF_PERF + 1];

/* Before main(): the checks of the counters come from the library's table of metrics. */
__attribute__((constructor)) static void list_checks(void)
{
	static char names[MEMWATCH_COUNTER_MAX][64];
	struct mw_check *counter_checks = mw_doctor_hardware + NR_CHECKS_OF_RDT;

	memcpy(mw_doctor_hardware, rdt_checks, sizeof(rdt_checks));
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "pmu_%s", memwatch_counter_name(i));
		counter_checks[i] = (struct mw_check){
			.name = names[i],
			.title = memwatch_metric_find(MEMWATCH_METRIC_COUNTER, i)->title,
			.look = look_counter,
		};
	}
	memcpy(counter_checks + MEMWATCH_COUNTER_MAX, perf_checks, sizeof(perf_checks));
}
