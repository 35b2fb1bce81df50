// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which events sample memory accesses, on machines of which only the files of sysfs are here. These
 * files have the text that the kernel prints: arch/x86/events/intel/core.c (EVENT_ATTR_STR,
 * EVENT_ATTR_STR_HYBRID, PMU_FORMAT_ATTR) and arch/x86/events/amd/ibs.c. The expected values are
 * those of the events in the manuals: 0x1cd is MEM_TRANS_RETIRED.LOAD_LATENCY, 0x82d0 is
 * MEM_INST_RETIRED.ALL_STORES, 0x8203 is the auxiliary event as perf knows it (MEM_LOADS_AUX).
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <time.h>

#include "stale/access-find.h"
#include "stale/access-open.h"
#include "stale/access-why.h"
#include "sysfs-kit.h"

#include "../../selftests/tap.h"

#define DEVICES "sys/bus/event_source/devices"

static const struct sysfs_file core_formats[] = {
	{ "type", "4\n" },
	{ "caps/max_precise", "3\n" },
	{ "format/event", "config:0-7\n" },
	{ "format/umask", "config:8-15\n" },
	{ "format/edge", "config:18\n" },
	{ "format/ldlat", "config1:0-15\n" },
	{ "format/cmask", "config:24-31\n" },
	{ "events/cpu-cycles", "event=0x3c\n" },
	{ NULL, NULL },
};

static const struct sysfs_file skylake[] = {
	{ "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n" },
	{ "events/mem-stores", "event=0xd0,umask=0x82\n" },
	{ NULL, NULL },
};

static const struct sysfs_file sapphire_rapids[] = {
	{ "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n" },
	{ "events/mem-stores", "event=0xcd,umask=0x2\n" },
	{ "events/mem-loads-aux", "event=0x03,umask=0x82\n" },
	{ NULL, NULL },
};

static const struct sysfs_file big_cores[] = { { "cpus", "0-15\n" }, { NULL, NULL } };

static const struct sysfs_file small_cores[] = {
	{ "type", "10\n" },
	{ "cpus", "16-23\n" },
	{ "events/mem-loads", "event=0xd0,umask=0x5,ldlat=3\n" },
	{ "events/mem-stores", "event=0xd0,umask=0x6\n" },
	{ NULL, NULL },
};

static const struct sysfs_file ibs[] = {
	{ "type", "11\n" },
	{ "format/cnt_ctl", "config:19\n" },
	{ "format/l3missonly", "config:16\n" },
	{ NULL, NULL },
};

static const struct sysfs_file ibs_filter[] = {
	{ "format/swfilt", "config2:0\n" },
	{ "caps/zen4_ibs_extensions", "1\n" },
	{ NULL, NULL },
};

static const struct sysfs_file others[] = {
	{ "msr/type", "13\n" },
	{ "software/type", "1\n" },
	{ NULL, NULL },
};

static const struct sysfs_file virtual_cpu[] = {
	{ "cpuinfo", "processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm\n" },
	{ NULL, NULL },
};

static const struct sysfs_file real_cpu[] = {
	{ "cpuinfo", "processor\t: 0\nflags\t\t: fpu vme lahf_lm\nbugs\t\t: hypervisor\n" },
	{ NULL, NULL },
};

static const struct mw_access_mode kernel_mode = { .pid = 1 },
				   user_mode = { .pid = 1, .user = true };

static void test_skylake(void)
{
	struct mw_access_plan plan;
	struct perf_event_attr attr;
	struct sysfs sysfs;

	sysfs_begin(&sysfs);
	sysfs_add(&sysfs, DEVICES "/cpu", core_formats);
	sysfs_add(&sysfs, DEVICES "/cpu", skylake);
	sysfs_add(&sysfs, DEVICES, others);
	tap_eq(mw_access_find(sysfs.ctx, "auto", &plan), 0, "Skylake: there are events");
	tap_eq(plan.nr, 2, "Skylake: loads and stores are two events");
	tap_str_eq(plan.event[0].name, "cpu/mem-loads/", "Skylake: the first event has loads");
	tap_str_eq(plan.event[1].name, "cpu/mem-stores/", "Skylake: the second event has stores");
	attr = mw_access_attr(&kernel_mode, &plan.event[0], 1009);
	tap_eq(attr.type, 4, "Skylake: the type of the PMU");
	tap_eq(attr.config, 0x1cd, "Skylake: the event of loads");
	tap_eq(attr.config1, 3, "Skylake: the smallest latency is that of sysfs");
	tap_eq(attr.precise_ip, 3, "Skylake: the largest precision");
	tap_eq(attr.sample_period, 1009, "the period is that of the caller");
	tap_ok(!attr.exclude_kernel && attr.exclude_guest, "Skylake: the host, with its kernel");
	tap_ok(attr.inherit && attr.enable_on_exec && attr.disabled && attr.sample_id_all &&
		       attr.use_clockid && attr.clockid == CLOCK_MONOTONIC,
	       "events begin with exec, are inherited, and have monotonic time");
	attr = mw_access_attr(&user_mode, &plan.event[1], 1);
	tap_eq(attr.config, 0x82d0, "Skylake: the event of stores");
	tap_ok(attr.exclude_kernel && attr.exclude_hv, "the user mode leaves out the kernel");
	tap_ok(!plan.event[0].has_aux && !plan.event[0].cpus,
	       "Skylake: no auxiliary event, and all CPUs are alike");
	mw_access_plan_uninit(&plan);
	sysfs_end(&sysfs);
}

static void test_sapphire_rapids(void)
{
	struct mw_access_plan plan;
	struct perf_event_attr attr;
	struct sysfs sysfs;

	sysfs_begin(&sysfs);
	sysfs_add(&sysfs, DEVICES "/cpu", core_formats);
	sysfs_add(&sysfs, DEVICES "/cpu", sapphire_rapids);
	tap_eq(mw_access_find(sysfs.ctx, "auto", &plan), 0, "Sapphire Rapids: there are events");
	tap_ok(plan.nr == 2 && plan.event[0].has_aux && !plan.event[1].has_aux,
	       "Sapphire Rapids: only loads have an auxiliary event");
	attr = mw_access_attr_aux(&user_mode, &plan.event[0]);
	tap_eq(attr.config, 0x8203, "Sapphire Rapids: the auxiliary event");
	tap_ok(!attr.sample_period && !attr.precise_ip && !attr.config1 && attr.exclude_kernel &&
		       attr.inherit && attr.enable_on_exec,
	       "the auxiliary event counts what the event samples, and takes no samples");
	tap_eq(plan.event[1].config.word[0], 0x2cd, "Sapphire Rapids: the event of stores");
	mw_access_plan_uninit(&plan);
	tap_eq(mw_access_find(sysfs.ctx, "cpu/mem-loads,ldlat=30/", &plan), 0,
	       "an event can be named with terms");
	tap_ok(plan.nr == 1 && plan.event[0].config.word[0] == 0x1cd &&
		       plan.event[0].config.word[1] == 30 && plan.event[0].has_aux,
	       "a term replaces that of the event in sysfs, and the auxiliary event stays");
	mw_access_plan_uninit(&plan);
	sysfs_end(&sysfs);
}

static void test_hybrid(void)
{
	struct mw_access_plan plan;
	struct sysfs sysfs;

	sysfs_begin(&sysfs);
	sysfs_add(&sysfs, DEVICES "/cpu_core", core_formats);
	sysfs_add(&sysfs, DEVICES "/cpu_core", sapphire_rapids);
	sysfs_add(&sysfs, DEVICES "/cpu_core", big_cores);
	sysfs_add(&sysfs, DEVICES "/cpu_atom", core_formats);
	sysfs_add(&sysfs, DEVICES "/cpu_atom", small_cores);
	tap_eq(mw_access_find(sysfs.ctx, "auto", &plan), 0, "Alder Lake: there are events");
	tap_eq(plan.nr, 4, "Alder Lake: both kinds of cores have loads and stores");
	tap_str_eq(plan.event[0].name, "cpu_atom/mem-loads/", "Alder Lake: small cores come first");
	tap_ok(plan.event[0].type == 10 && plan.event[0].config.word[0] == 0x5d0 &&
		       plan.event[0].config.word[1] == 3 && !plan.event[0].has_aux,
	       "Alder Lake: loads of small cores");
	tap_ok(plan.event[2].type == 4 && plan.event[2].config.word[0] == 0x1cd &&
		       plan.event[2].has_aux,
	       "Alder Lake: loads of big cores");
	tap_ok(!plan.event[0].cpus[15] && plan.event[0].cpus[16] && plan.event[0].cpus[23] &&
		       !plan.event[0].cpus[24],
	       "Alder Lake: the CPUs of small cores");
	tap_ok(plan.event[3].cpus[0] && plan.event[3].cpus[15] && !plan.event[3].cpus[16],
	       "Alder Lake: the CPUs of big cores");
	mw_access_plan_uninit(&plan);
	sysfs_end(&sysfs);
}

static void test_ibs(void)
{
	struct mw_access_plan plan;
	struct mw_access_mode mode;
	struct perf_event_attr attr;
	struct sysfs sysfs;

	sysfs_begin(&sysfs);
	sysfs_add(&sysfs, DEVICES "/cpu", core_formats);
	sysfs_add(&sysfs, DEVICES "/ibs_op", ibs);
	tap_eq(mw_access_find(sysfs.ctx, "auto", &plan), 0, "IBS: there are events");
	tap_ok(plan.nr == 1 && plan.event[0].type == 11, "IBS: one event has all accesses");
	attr = mw_access_attr(&kernel_mode, &plan.event[0], 1600);
	tap_eq(attr.config, 1 << 19, "IBS: operations are counted, not cycles");
	tap_ok(!attr.config2 && !attr.precise_ip && !attr.exclude_kernel && !attr.exclude_guest &&
		       !attr.exclude_hv,
	       "IBS: no flag that the driver refuses");
	tap_eq(plan.event[0].step, 16, "IBS: periods are multiples of 16");
	mode = kernel_mode;
	tap_ok(!mw_access_mode_weaken(&mode, &plan.event[0], -EACCES),
	       "IBS without a filter cannot leave out the kernel");
	tap_eq(mw_access_fail_open(sysfs.ctx, &plan.event[0], false, -EACCES), -EACCES,
	       "IBS without a filter: not permitted");
	tap_ok(strstr(memwatch_ctx_error(sysfs.ctx), "at most 1"),
	       "IBS without a filter: the level that would permit it is named");
	tap_eq(mw_access_fail_open(sysfs.ctx, &plan.event[0], false, -EINVAL), -EOPNOTSUPP,
	       "IBS on an old kernel is not supported");
	mw_access_plan_uninit(&plan);

	sysfs_add(&sysfs, DEVICES "/ibs_op", ibs_filter);
	mw_access_find(sysfs.ctx, "auto", &plan);
	attr = mw_access_attr(&kernel_mode, &plan.event[0], 1600);
	tap_ok(!attr.config2 && !attr.exclude_kernel, "Zen 4: no filter where it is not needed");
	mode = kernel_mode;
	tap_ok(mw_access_mode_weaken(&mode, &plan.event[0], -EACCES) && mode.user,
	       "Zen 4: without permission, the kernel is left out");
	attr = mw_access_attr(&mode, &plan.event[0], 1600);
	tap_ok(attr.config == 1 << 19 && attr.config2 == 1 && attr.exclude_kernel,
	       "Zen 4: to leave out the kernel, the filter is needed");
	tap_ok(!mw_access_mode_weaken(&mode, &plan.event[0], -EACCES),
	       "Zen 4: nothing is weaker than without the kernel");
	mw_access_plan_uninit(&plan);
	sysfs_end(&sysfs);
}

static void test_precision(void)
{
	static const struct sysfs_file imprecise[] = { { "caps/max_precise", "0\n" },
						       { NULL, NULL } };
	struct mw_access_event event = { .precise = 3 };
	struct mw_access_mode mode = { 0 };
	struct mw_access_plan plan;
	struct sysfs sysfs;

	tap_ok(mw_access_mode_weaken(&mode, &event, -EOPNOTSUPP) &&
		       mw_access_mode_weaken(&mode, &event, -EINVAL),
	       "a PMU that refuses a precision is asked for less");
	tap_eq(mw_access_attr(&mode, &event, 1).precise_ip, 1, "the least precision is 1");
	tap_ok(!mw_access_mode_weaken(&mode, &event, -EINVAL),
	       "samples that are not precise are not asked for");
	sysfs_begin(&sysfs);
	sysfs_add(&sysfs, DEVICES "/cpu", core_formats);
	sysfs_add(&sysfs, DEVICES "/cpu", skylake);
	sysfs_add(&sysfs, DEVICES "/cpu", imprecise);
	tap_eq(mw_access_find(sysfs.ctx, "auto", &plan), -EOPNOTSUPP,
	       "a PMU without precise samples is refused");
	tap_ok(strstr(memwatch_ctx_error(sysfs.ctx), "caps/max_precise is 0"),
	       "a PMU without precise samples: the reason names the file");
	sysfs_end(&sysfs);
}

/* The reason why there is no event, on a machine with these files. */
static void test_reason(const struct sysfs_file *cpuinfo, bool devices, bool core, const char *why)
{
	struct mw_access_plan plan;
	struct sysfs sysfs;

	sysfs_begin(&sysfs);
	sysfs_add(&sysfs, "proc", cpuinfo);
	if (devices)
		sysfs_add(&sysfs, DEVICES, others);
	if (core)
		sysfs_add(&sysfs, DEVICES "/cpu", core_formats);
	tap_eq(mw_access_find(sysfs.ctx, "auto", &plan), -EOPNOTSUPP, "no event: %s", why);
	if (!tap_ok(strstr(memwatch_ctx_error(sysfs.ctx), why), "the reason is told: %s", why))
		tap_note("%s", memwatch_ctx_error(sysfs.ctx));
	sysfs_end(&sysfs);
}

static void test_permission(void)
{
	static const struct sysfs_file paranoid[] = { { "perf_event_paranoid", "3\n" },
						      { NULL, NULL } };
	struct mw_access_event event = { .name = "cpu/mem-loads/", .precise = 3 };
	struct sysfs sysfs;

	sysfs_begin(&sysfs);
	sysfs_add(&sysfs, "proc/sys/kernel", paranoid);
	tap_eq(mw_access_fail_open(sysfs.ctx, &event, true, -EPERM), -EACCES,
	       "an event that is not permitted");
	tap_str_eq(
		memwatch_ctx_error(sysfs.ctx),
		"cannot open cpu/mem-loads/: not permitted; it needs CAP_PERFMON, or "
		"kernel.perf_event_paranoid of at most 2 (it is 3) and a process of the same user",
		"the reason has the level that is set, and the one that is needed");
	sysfs_add(&sysfs, "proc", virtual_cpu);
	tap_eq(mw_access_fail_open(sysfs.ctx, &event, true, -ENODATA), -EOPNOTSUPP,
	       "an event that the PMU refuses");
	tap_ok(strstr(memwatch_ctx_error(sysfs.ctx), "virtual machine"),
	       "a virtual machine is named as the possible reason");
	tap_eq(mw_access_fail_open(sysfs.ctx, &event, true, -EMFILE), -EMFILE,
	       "too many open files");
	sysfs_end(&sysfs);
}

static void test_bad_choices(void)
{
	static const char *const bad[] = {
		"",	     "cpu",	     "cpu/mem-loads",	 "/mem-loads/",	     "../cpu//",
		"cpu/x//y/", "cpu/nothing/", "cpu/ldlat=65536/", "cpu/event=0x1ff/", "cpu/event=/",
		"cpu/../x/", "cpu/=1/",	     "cpu/event=0xg/",	 "cpu/mem-loads,/",  "cpu/odd/",
	};
	static const struct sysfs_file odd[] = { { "format/odd", "config9:0-3\n" },
						 { NULL, NULL } };
	struct mw_access_plan plan;
	struct sysfs sysfs;

	sysfs_begin(&sysfs);
	sysfs_add(&sysfs, DEVICES "/cpu", core_formats);
	sysfs_add(&sysfs, DEVICES "/cpu", skylake);
	sysfs_add(&sysfs, DEVICES "/cpu", odd);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		tap_eq(mw_access_find(sysfs.ctx, bad[i], &plan), -EINVAL, "\"%s\" is no event",
		       bad[i]);
	tap_eq(mw_access_find(sysfs.ctx, "arm_spe_0//", &plan), -EOPNOTSUPP,
	       "a PMU that does not exist is not supported");
	tap_eq(mw_access_find(sysfs.ctx, "page-faults", &plan), 0, "page faults need no PMU");
	tap_ok(plan.nr == 1 && plan.event[0].type == PERF_TYPE_SOFTWARE &&
		       plan.event[0].default_period == 1 && plan.event[0].every,
	       "page faults are all recorded");
	mw_access_plan_uninit(&plan);
	sysfs_end(&sysfs);
}

static void test_formats(void)
{
	static const char *const bad[] = { "",		 "config",    "config:",      "config:64",
					   "config:3-1", "config3:0", "config:0-1-2", "config:a",
					   "config:0,,1" };
	struct mw_pmu_config config = { .word = { ~0ULL, 0, 0 } };
	struct mw_pmu_format format;

	tap_ok(mw_pmu_format_parse((struct mw_text){ "config:8-15,40-47\n", 18 }, &format) &&
		       format.word == 0 && format.mask == 0xff000000ff00,
	       "a format may have several ranges");
	tap_ok(mw_pmu_format_put(&format, 0x1234, &config) && config.word[0] == 0xffff12ffffff34ff,
	       "a value is spread over the ranges, from its low bits on");
	tap_ok(!mw_pmu_format_put(&format, 0x12345, &config), "a value must fit into its bits");
	tap_ok(mw_pmu_format_parse((struct mw_text){ "config2:63", 10 }, &format) &&
		       format.word == 2 && format.mask == 1ULL << 63,
	       "a format may be one bit");
	tap_ok(mw_pmu_format_parse((struct mw_text){ "config1:0-63", 12 }, &format) &&
		       format.word == 1 && format.mask == ~0ULL,
	       "a format may be a whole word");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		tap_ok(!mw_pmu_format_parse((struct mw_text){ bad[i], strlen(bad[i]) }, &format),
		       "\"%s\" is no format", bad[i]);
}

int main(void)
{
	tap_start();
	test_formats();
	test_skylake();
	test_sapphire_rapids();
	test_hybrid();
	test_ibs();
	test_precision();
	test_reason(virtual_cpu, true, false, "virtual machine, and its host gives it no PMU");
	test_reason(real_cpu, true, false, "the kernel has found no PMU");
	test_reason(virtual_cpu, true, true, "the PMU that its host gives it has no events");
	test_reason(real_cpu, true, true, "the PMU of this processor has no events");
	test_reason(real_cpu, false, false, "this kernel has no performance events");
	test_permission();
	test_bad_choices();
	return tap_done();
}
