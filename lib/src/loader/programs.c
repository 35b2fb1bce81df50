// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loads the programs that make records, and explains what failed.
 */
#include "loader/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/libbpf.h"
#include "loader/log.h"
#include "loader/stolen.h"
#include "base/context.h"
#include "base/timemath.h"

#include "relay.skel.h"
#include "scheduler.skel.h"

/*
 * Places for the sums of owners that have a generation only, on each CPU. Owners that share one
 * take turns: more places make this rare.
 */
#define SCHEDULER_PLACES 512

/* The first @size - 1 bytes of a file as a string; "" if it cannot be read. */
static void read_short_text(struct memwatch_ctx *ctx, const char *name, char *text, size_t size)
{
	ssize_t got = -1;
	char *path;
	int fd;

	text[0] = '\0';
	if (mw_ctx_path(ctx, name, &path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return;
	got = read(fd, text, size - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
}

static bool is_locked_down(struct memwatch_ctx *ctx)
{
	char text[128];

	read_short_text(ctx, "/sys/kernel/security/lockdown", text, sizeof(text));
	return strstr(text, "[confidentiality]");
}

static int fail_load(struct memwatch_ctx *ctx, const char *what, int err)
{
	struct rlimit limit = { 0, 0 };

	/* usually the verifier then rejects bpf_probe_read_kernel() as unknown */
	if ((err == -EPERM || err == -EINVAL) && is_locked_down(ctx))
		return mw_fail(ctx, err,
			       "cannot load %s: the kernel is locked down "
			       "(confidentiality), which forbids BPF to read kernel memory",
			       what);
	if (err == -EPERM && !geteuid() && !getrlimit(RLIMIT_MEMLOCK, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY)
		return mw_fail(ctx, err,
			       "cannot load %s: the limit for locked memory is too small "
			       "for BPF maps on this kernel; raise it (ulimit -l unlimited)",
			       what);
	if (err == -EPERM || err == -EACCES)
		return mw_fail(ctx, err,
			       "cannot load %s: not permitted; it needs root, or "
			       "CAP_BPF and CAP_PERFMON",
			       what);
	if (err == -ENOSYS || err == -ENOPROTOOPT)
		return mw_fail(ctx, -EOPNOTSUPP,
			       "cannot load %s: this kernel has no BPF "
			       "(CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS)",
			       what);
	if (err == -ENOMEM)
		return mw_fail_memory(ctx, "cannot load the BPF programs");
	if (err == -EMFILE || err == -ENFILE)
		return mw_fail(ctx, err,
			       "cannot load %s: too many open files; raise the limit "
			       "(ulimit -n)",
			       what);
	return mw_fail(ctx, err == -EINVAL || err == -E2BIG ? -EOPNOTSUPP : err,
		       "cannot load %s: the kernel refuses it: %s", what, strerror(-err));
}

static void destroy_relay(void *skeleton)
{
	relay_bpf__destroy(skeleton);
}

static int load_relay(struct memwatch_ctx *ctx, const struct mw_bpf_programs_opts *opts,
		      struct mw_bpf_programs *programs)
{
	struct relay_bpf *skel = relay_bpf__open();
	int err;

	if (!skel)
		return fail_load(ctx, "the relay", -errno);
	skel->rodata->mode = opts->mode;
	skel->rodata->counters = opts->counters;
	skel->rodata->places = opts->nr_rmids + 1;
	err = bpf_map__set_max_entries(skel->maps.sums, opts->nr_rmids + 1);
	if (!err)
		err = relay_bpf__load(skel);
	if (err) {
		relay_bpf__destroy(skel);
		return fail_load(ctx, "the relay", err);
	}
	*programs = (struct mw_bpf_programs){
		.skeleton = skel,
		.destroy = destroy_relay,
		.obj = skel->obj,
		.records = skel->maps.records,
		.failures = skel->maps.failures,
		.current = skel->maps.current,
		.missing_rings = (const volatile uint64_t *)&skel->bss->missing_rings,
	};
	return 0;
}

/*
 * Threads that can be registered: four times as many as there are, and not few. A map of the
 * kernel needs about 100 bytes for each of them, and 250 bytes for each process.
 */
static uint32_t threads_max(struct memwatch_ctx *ctx)
{
	unsigned int running, threads = 0;
	char text[128];

	read_short_text(ctx, "/proc/loadavg", text, sizeof(text));
	if (sscanf(text, "%*f %*f %*f %u/%u", &running, &threads) != 2)
		threads = 0;
	return (uint32_t)mw_min_u64(mw_max_u64(4ULL * threads, 32768), 1U << 20);
}

static void destroy_scheduler(void *skeleton)
{
	scheduler_bpf__destroy(skeleton);
}

static int load_scheduler(struct memwatch_ctx *ctx, const struct mw_bpf_programs_opts *opts,
			  struct mw_bpf_programs *programs)
{
	static const char what[] = "the programs that measure without the module";
	LIBBPF_OPTS(bpf_object_open_opts, open_opts, .btf_custom_path = MW_KERNEL_BTF);
	uint32_t threads = threads_max(ctx);
	struct scheduler_bpf *skel;
	int err;

	skel = scheduler_bpf__open_opts(&open_opts);
	if (!skel)
		return fail_load(ctx, what, -errno);
	skel->rodata->mode = opts->mode;
	skel->rodata->counters = opts->counters;
	skel->rodata->places = SCHEDULER_PLACES;
	skel->rodata->cpus = opts->cpus;
	skel->rodata->period_ns = opts->period_ns;
	skel->rodata->since_ns = mw_clock(CLOCK_BOOTTIME);
	skel->rodata->steal_time = mw_bpf_stolen_distance();
	err = bpf_map__set_max_entries(skel->maps.sums, SCHEDULER_PLACES);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.threads, threads);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.processes, threads / 2);
	if (!err)
		err = scheduler_bpf__load(skel);
	if (err) {
		scheduler_bpf__destroy(skel);
		return fail_load(ctx, what, err);
	}
	*programs = (struct mw_bpf_programs){
		.skeleton = skel,
		.destroy = destroy_scheduler,
		.obj = skel->obj,
		.records = skel->maps.records,
		.failures = skel->maps.failures,
		.current = skel->maps.current,
		.missing_rings = (const volatile uint64_t *)&skel->bss->missing_rings,
		.stopping = &skel->bss->stopping,
	};
	return 0;
}

int mw_bpf_programs_load(struct memwatch_ctx *ctx, const struct mw_bpf_programs_opts *opts,
			 struct mw_bpf_programs *programs)
{
	int err;

	mw_bpf_log_begin(ctx);
	if (opts->source == MW_BPF_SOURCE_SCHEDULER)
		err = load_scheduler(ctx, opts, programs);
	else
		err = load_relay(ctx, opts, programs);
	mw_bpf_log_end();
	return err;
}

void mw_bpf_programs_unload(struct mw_bpf_programs *programs)
{
	if (programs->skeleton)
		programs->destroy(programs->skeleton);
	*programs = (struct mw_bpf_programs){ 0 };
}
