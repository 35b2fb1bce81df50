// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 */
#include "loader/where.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/context.h"
#include "loader/libbpf.h"
#include "loader/log.h"

#include "where.skel.h"

/* Of one CPU: the event and the program at it. The link closes the event. */
struct cpu_event {
	int fd;
	struct bpf_link *link;
};

/**
 * struct mw_bpf_where - the programs
 * @ctx: context, not owned
 * @skel: the programs and maps, owned
 * @has_calls: the programs for brk() and mmap() are loaded
 * @brk, @mmap: these, while they are attached
 * @cpus, @nr_cpus: the events of all CPUs, owned
 * @attached: the programs are attached
 * @samples: maps of samples, or -1
 */
struct mw_bpf_where {
	struct memwatch_ctx *ctx;
	struct where_bpf *skel;
	bool has_calls;
	struct bpf_link *brk, *mmap;
	struct cpu_event *cpus;
	uint32_t nr_cpus;
	bool attached;
	int samples[MW_GROWTH_SUSPECTS];
};

static int load(struct mw_bpf_where *where, bool calls)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = MW_KERNEL_BTF);
	int err;

	where->skel = where_bpf__open_opts(&opts);
	if (!where->skel)
		return -errno;
	bpf_program__set_autoload(where->skel->progs.on_brk, calls);
	bpf_program__set_autoload(where->skel->progs.on_mmap, calls);
	err = where_bpf__load(where->skel);
	if (err) {
		where_bpf__destroy(where->skel);
		where->skel = NULL;
	}
	where->has_calls = calls;
	return err;
}

static int load_what_is_possible(struct mw_bpf_where *where)
{
	int first, err;

	mw_bpf_log_begin(where->ctx);
	first = load(where, true);
	err = first ? load(where, false) : 0;
	mw_bpf_log_end();
	if (err)
		return mw_fail(where->ctx, err, "cannot load the programs that sample stacks: %s",
			       strerror(-err));
	if (first)
		mw_log(where->ctx, MEMWATCH_LOG_INFO,
		       "calls of brk() and mmap() cannot be sampled (%s), only page faults",
		       strerror(-first));
	return 0;
}

static int prepare_cpus(struct mw_bpf_where *where)
{
	int nr = libbpf_num_possible_cpus();

	if (nr <= 0)
		return mw_fail(where->ctx, nr ?: -EINVAL, "the number of CPUs is not known");
	where->cpus = calloc((size_t)nr, sizeof(*where->cpus));
	if (!where->cpus)
		return mw_fail_memory(where->ctx, "programs that sample stacks");
	where->nr_cpus = (uint32_t)nr;
	return 0;
}

int mw_bpf_where_open(struct memwatch_ctx *ctx, struct mw_bpf_where **ret)
{
	struct mw_bpf_where *where;
	int err;

#ifndef __x86_64__
	return mw_fail(ctx, -EOPNOTSUPP, "stacks can be sampled on x86-64 only");
#endif
	where = calloc(1, sizeof(*where));
	if (!where)
		return mw_fail_memory(ctx, "programs that sample stacks");
	where->ctx = ctx;
	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++)
		where->samples[i] = -1;
	err = prepare_cpus(where);
	if (!err)
		err = load_what_is_possible(where);
	if (err)
		mw_bpf_where_close(where);
	else
		*ret = where;
	return err;
}

void mw_bpf_where_close(struct mw_bpf_where *where)
{
	if (!where)
		return;
	mw_bpf_where_detach(where);
	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++)
		if (where->samples[i] >= 0)
			close(where->samples[i]);
	where_bpf__destroy(where->skel);
	free(where->cpus);
	free(where);
}

/* Returns 0, also for a CPU that is offline, or a negative errno. */
static int attach_cpu(struct mw_bpf_where *where, uint32_t cpu, uint64_t period)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_period = period,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == ENODEV ? 0 : -errno;
	where->cpus[cpu].link = bpf_program__attach_perf_event(where->skel->progs.on_fault, fd);
	if (!where->cpus[cpu].link) {
		int err = -errno;

		close(fd);
		return err;
	}
	where->cpus[cpu].fd = fd;
	return 0;
}

/*
 * Page faults alone are worth it. Up to Linux 5.12 a program can be attached to a function only
 * once (f3a95075549e, "bpf: Allow trampoline re-attach"), so later suspects have no more.
 */
static void attach_calls(struct mw_bpf_where *where)
{
	if (!where->has_calls)
		return;
	where->brk = bpf_program__attach(where->skel->progs.on_brk);
	where->mmap = bpf_program__attach(where->skel->progs.on_mmap);
	if (where->brk && where->mmap)
		return;
	mw_log(where->ctx, MEMWATCH_LOG_INFO, "cannot attach to brk() and mmap(): %s",
	       strerror(errno));
	where->has_calls = false;
}

int mw_bpf_where_attach(struct mw_bpf_where *where, uint64_t period)
{
	int err = 0;

	where->attached = true;
	mw_bpf_log_begin(where->ctx);
	for (uint32_t cpu = 0; !err && cpu < where->nr_cpus; cpu++)
		err = attach_cpu(where, cpu, period);
	if (!err)
		attach_calls(where);
	mw_bpf_log_end();
	if (!err)
		return 0;
	mw_bpf_where_detach(where);
	return mw_fail(where->ctx, err, "cannot sample page faults: %s", strerror(-err));
}

void mw_bpf_where_detach(struct mw_bpf_where *where)
{
	for (uint32_t cpu = 0; where->attached && cpu < where->nr_cpus; cpu++) {
		if (where->cpus[cpu].link)
			bpf_link__destroy(where->cpus[cpu].link);
		where->cpus[cpu].link = NULL;
	}
	if (where->brk)
		bpf_link__destroy(where->brk);
	if (where->mmap)
		bpf_link__destroy(where->mmap);
	where->brk = where->mmap = NULL;
	where->attached = false;
}

bool mw_bpf_where_is_attached(const struct mw_bpf_where *where)
{
	return where->attached;
}

void mw_bpf_where_set_period(struct mw_bpf_where *where, uint64_t period)
{
	for (uint32_t cpu = 0; cpu < where->nr_cpus; cpu++)
		if (where->cpus[cpu].link)
			ioctl(where->cpus[cpu].fd, PERF_EVENT_IOC_PERIOD, &period);
}

uint64_t mw_bpf_where_faults(const struct mw_bpf_where *where)
{
	return *(volatile __u64 *)&where->skel->bss->faults;
}

int mw_bpf_where_put(struct mw_bpf_where *where, uint32_t slot, const struct mw_growth_key *key)
{
	struct mw_where_process process = { .start_ns = key->start_ns, .slot = slot };
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "samples", sizeof(uint32_t),
				sizeof(struct mw_where_sample), MW_WHERE_MAX, NULL);

	if (fd < 0)
		return mw_fail(where->ctx, -errno, "cannot create a BPF map: %s", strerror(errno));
	where->samples[slot] = fd;
	if (!bpf_map_update_elem(bpf_map__fd(where->skel->maps.slots), &slot, &fd, BPF_ANY) &&
	    !bpf_map_update_elem(bpf_map__fd(where->skel->maps.processes), &key->tgid, &process,
				 BPF_ANY))
		return 0;
	return mw_fail(where->ctx, -errno, "cannot write to a BPF map: %s", strerror(errno));
}

void mw_bpf_where_delete(struct mw_bpf_where *where, uint32_t slot, const struct mw_growth_key *key)
{
	struct mw_where_process process;
	int fd = bpf_map__fd(where->skel->maps.processes);

	/* Another process with this id may be followed by now. */
	if (!bpf_map_lookup_elem(fd, &key->tgid, &process) && process.slot == slot)
		bpf_map_delete_elem(fd, &key->tgid);
	bpf_map_delete_elem(bpf_map__fd(where->skel->maps.slots), &slot);
	if (where->samples[slot] >= 0)
		close(where->samples[slot]);
	where->samples[slot] = -1;
}

int mw_bpf_where_get(struct mw_bpf_where *where, uint32_t slot, struct mw_where_sample *ret,
		     uint32_t counts[MW_WHERE_KINDS])
{
	uint32_t nr = 0;

	counts[MW_WHERE_TOUCHED] = counts[MW_WHERE_ASKED] = 0;
	for (uint32_t i = 0; i < MW_WHERE_MAX; i++) {
		if (bpf_map_lookup_elem(where->samples[slot], &i, &ret[nr]))
			return mw_fail(where->ctx, -errno, "cannot read a BPF map: %s",
				       strerror(errno));
		if (!ret[nr].weight || ret[nr].bytes > MW_WHERE_STACK)
			continue;
		nr++;
		counts[i < MW_WHERE_TOUCHED_MAX ? MW_WHERE_TOUCHED : MW_WHERE_ASKED]++;
	}
	return 0;
}
