// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loads and runs the growth programs. The exit program is attached before the first
 * round, so that each state that a round makes is deleted in the end.
 */
#include "loader/growth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/iterator.h"
#include "loader/libbpf.h"
#include "loader/log.h"
#include "loader/map-walk.h"
#include "loader/rings.h"
#include "base/context.h"

#include "growth.skel.h"

/* 64 KiB for each CPU: alerts and requests for a round are rare. */
#define RING_PAGES 16

struct mw_bpf_growth {
	struct memwatch_ctx *ctx;
	struct mw_merge *merge;
	struct growth_bpf *skel;
	struct bpf_link *task;
	struct bpf_link *exit;
	struct bpf_link *free;
	struct bpf_link *events;
	struct mw_bpf_rings *rings;
	unsigned int nr_cpus; /* possible CPUs */
	uint64_t *counts;     /* scratch space: a value for each CPU */
};

static int fail_growth_load(struct memwatch_ctx *ctx, int err)
{
	if (access(MW_KERNEL_BTF, R_OK))
		return mw_fail(ctx, -EOPNOTSUPP,
			       "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which the growth "
			       "monitor needs");
	if (err == -EPERM || err == -EACCES)
		return mw_fail(ctx, err,
			       "cannot load the growth programs: not permitted, or refused by the "
			       "verifier; MEMWATCH_LOG=debug tells which of the two");
	return mw_fail(ctx, err, "cannot load the growth programs: %s", strerror(-err));
}

static int attach_program(struct mw_bpf_growth *growth, const struct bpf_program *program,
			  const char *to, struct bpf_link **ret)
{
	*ret = bpf_program__attach(program);
	return *ret ? 0
		    : mw_fail(growth->ctx, -errno, "cannot attach to %s: %s", to, strerror(errno));
}

static int attach_programs(struct mw_bpf_growth *growth)
{
	int err;

	err = attach_program(growth, growth->skel->progs.on_exit, "sched_process_exit",
			     &growth->exit);
	if (!err)
		err = attach_program(growth, growth->skel->progs.on_free, "sched_process_free",
				     &growth->free);
	if (!err)
		err = attach_program(growth, growth->skel->progs.on_task, "the task iterator",
				     &growth->task);
	return err;
}

static int load_growth_programs(struct mw_bpf_growth *growth, uint32_t max_processes)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = MW_KERNEL_BTF);
	int err = 0;

	mw_bpf_log_begin(growth->ctx);
	growth->skel = growth_bpf__open_opts(&opts);
	if (!growth->skel)
		err = -errno;
	if (!err)
		err = bpf_program__set_autoload(growth->skel->progs.on_test, false);
	if (!err)
		err = bpf_map__set_max_entries(growth->skel->maps.processes, max_processes);
	if (!err)
		err = bpf_map__set_max_entries(growth->skel->maps.histories, max_processes);
	if (!err)
		err = bpf_map__set_max_entries(growth->skel->maps.filters, growth->nr_cpus);
	if (!err)
		err = growth_bpf__load(growth->skel);
	if (err)
		fail_growth_load(growth->ctx, err);
	else
		err = attach_programs(growth);
	mw_bpf_log_end();
	return err;
}

/* Each record wakes the library up, so that a requested round runs at once. */
static int open_growth_rings(struct mw_bpf_growth *growth)
{
	struct mw_bpf_rings_opts opts = {
		.map = bpf_map__fd(growth->skel->maps.records),
		.counts = bpf_map__fd(growth->skel->maps.counts),
		.no_ring = MW_GROWTH_COUNT_NO_RING,
		.held = MW_GROWTH_COUNT_NO_RING,
		.pages = RING_PAGES,
	};

	return mw_bpf_rings_open(growth->ctx, &opts, growth->merge, &growth->rings);
}

int mw_bpf_growth_open(struct memwatch_ctx *ctx, uint32_t max_processes, struct mw_merge *merge,
		       struct mw_bpf_growth **ret)
{
	unsigned long page_size = (unsigned long)sysconf(_SC_PAGESIZE);
	int err = mw_libbpf_load(ctx, "watching for growth"), cpus;
	struct mw_bpf_growth *growth;

	if (err)
		return err;
	growth = calloc(1, sizeof(*growth));
	if (!growth)
		return mw_fail_memory(ctx, "growth programs");
	err = -ENOMEM;
	cpus = libbpf_num_possible_cpus();
	growth->ctx = ctx;
	growth->merge = merge;
	growth->nr_cpus = cpus > 0 ? (unsigned int)cpus : 0;
	growth->counts = calloc(growth->nr_cpus, sizeof(*growth->counts));
	if (!growth->nr_cpus || !growth->counts) {
		mw_fail_memory(ctx, "growth programs");
		goto err_close;
	}
	err = load_growth_programs(growth, max_processes);
	if (!err)
		err = open_growth_rings(growth);
	if (err)
		goto err_close;
	growth->skel->bss->control.page_shift = (uint32_t)__builtin_ctzl(page_size) -
						MW_GROWTH_PAGE_SHIFT;
	growth->skel->bss->control.quota = MW_GROWTH_NO_LIMIT;
	err = mw_bpf_growth_put_owner(growth, MW_GROWTH_OWNER_OTHERS,
				      &(struct mw_growth_owner){ 0 });
	if (err) {
		mw_fail(ctx, err, "cannot write to a BPF map: %s", strerror(-err));
		goto err_close;
	}
	*ret = growth;
	return 0;

err_close:
	mw_bpf_growth_close(growth);
	return err;
}

void mw_bpf_growth_close(struct mw_bpf_growth *growth)
{
	if (!growth)
		return;
	bpf_link__destroy(growth->events);
	bpf_link__destroy(growth->task);
	bpf_link__destroy(growth->exit);
	bpf_link__destroy(growth->free);
	mw_bpf_rings_close(growth->rings);
	growth_bpf__destroy(growth->skel);
	free(growth->counts);
	free(growth);
}

void mw_bpf_growth_refresh(struct mw_bpf_growth *growth)
{
	mw_bpf_rings_refresh(growth->rings);
}

int mw_bpf_growth_wait(struct mw_bpf_growth *growth, int timeout_ms)
{
	return mw_bpf_rings_wait(growth->rings, timeout_ms);
}

int mw_bpf_growth_fd(const struct mw_bpf_growth *growth)
{
	return mw_bpf_rings_fd(growth->rings);
}

volatile struct mw_growth_control *mw_bpf_growth_control(struct mw_bpf_growth *growth)
{
	return (volatile struct mw_growth_control *)&growth->skel->bss->control;
}

int mw_bpf_growth_round(struct mw_bpf_growth *growth)
{
	return mw_bpf_iterator_run(growth->ctx, growth->task, "a round");
}

int mw_bpf_growth_attach_events(struct mw_bpf_growth *growth)
{
	if (growth->events)
		return 0;
	mw_bpf_log_begin(growth->ctx);
	growth->events = bpf_program__attach(growth->skel->progs.on_rss_stat);
	mw_bpf_log_end();
	return growth->events ? 0 : -errno;
}

void mw_bpf_growth_detach_events(struct mw_bpf_growth *growth)
{
	bpf_link__destroy(growth->events);
	growth->events = NULL;
}

/* Up to 6.1: two events, each of which stands for up to 64 page faults. Later: 2 MiB. */
uint32_t mw_bpf_growth_width(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	uint32_t width = 512;

	if (btf && btf__find_by_name_kind(btf, "mm_rss_stat", BTF_KIND_STRUCT) >= 0)
		width = 2;
	btf__free(btf);
	return width;
}

void mw_bpf_growth_event_runs(struct mw_bpf_growth *growth, struct mw_event_runs *ret)
{
	int fd = bpf_map__fd(growth->skel->maps.filters);
	struct mw_growth_filter filter;

	*ret = (struct mw_event_runs){ 0 };
	for (uint32_t cpu = 0; cpu < growth->nr_cpus; cpu++) {
		if (bpf_map_lookup_elem(fd, &cpu, &filter))
			continue;
		ret->all += filter.runs;
		ret->timed += filter.timed;
		ret->timed_ns += filter.timed_ns;
	}
}

uint64_t mw_bpf_growth_count(struct mw_bpf_growth *growth, enum mw_growth_count what)
{
	uint32_t key = what;
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(growth->skel->maps.counts), &key, growth->counts))
		return 0;
	for (unsigned int cpu = 0; cpu < growth->nr_cpus; cpu++)
		sum += growth->counts[cpu];
	return sum;
}

int mw_bpf_growth_each(struct mw_bpf_growth *growth, mw_bpf_walk_fn fn, void *userdata)
{
	return mw_bpf_map_walk(growth->ctx, bpf_map__fd(growth->skel->maps.processes),
			       sizeof(struct mw_growth_key), sizeof(struct mw_growth_process), fn,
			       userdata);
}

int mw_bpf_growth_each_owner(struct mw_bpf_growth *growth, mw_bpf_walk_fn fn, void *userdata)
{
	return mw_bpf_map_walk(growth->ctx, bpf_map__fd(growth->skel->maps.owners),
			       sizeof(uint32_t), sizeof(struct mw_growth_owner), fn, userdata);
}

int mw_bpf_growth_put_owner(struct mw_bpf_growth *growth, uint32_t uid,
			    const struct mw_growth_owner *owner)
{
	int fd = bpf_map__fd(growth->skel->maps.owners);

	return bpf_map_update_elem(fd, &uid, owner, BPF_ANY) ? -errno : 0;
}

void mw_bpf_growth_delete_owner(struct mw_bpf_growth *growth, uint32_t uid)
{
	bpf_map_delete_elem(bpf_map__fd(growth->skel->maps.owners), &uid);
}

int mw_bpf_growth_get(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
		      struct mw_growth_process *process)
{
	return !bpf_map_lookup_elem(bpf_map__fd(growth->skel->maps.processes), key, process);
}

int mw_bpf_growth_history(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
			  struct mw_growth_history *history)
{
	return !bpf_map_lookup_elem(bpf_map__fd(growth->skel->maps.histories), key, history);
}

int mw_bpf_growth_put(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
		      const struct mw_growth_process *process,
		      const struct mw_growth_history *history)
{
	if (history &&
	    bpf_map_update_elem(bpf_map__fd(growth->skel->maps.histories), key, history, BPF_ANY))
		return -errno;
	return bpf_map_update_elem(bpf_map__fd(growth->skel->maps.processes), key, process, BPF_ANY)
		       ? -errno
		       : 0;
}

void mw_bpf_growth_delete(struct mw_bpf_growth *growth, const struct mw_growth_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(growth->skel->maps.histories), key);
	bpf_map_delete_elem(bpf_map__fd(growth->skel->maps.processes), key);
}

int mw_bpf_growth_put_touch(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
			    const struct mw_growth_touch *pages)
{
	int fd = bpf_map__fd(growth->skel->maps.touches);

	if (!pages)
		return bpf_map_delete_elem(fd, key) ? -errno : 0;
	return bpf_map_update_elem(fd, key, pages, BPF_ANY) ? -errno : 0;
}

void mw_bpf_growth_get_touch(struct mw_bpf_growth *growth, const struct mw_growth_key *key,
			     struct mw_growth_touch *pages)
{
	struct mw_growth_touch found;

	if (!bpf_map_lookup_elem(bpf_map__fd(growth->skel->maps.touches), key, &found))
		*pages = found;
}
