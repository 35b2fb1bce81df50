// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs the program of bpf/groups.bpf.c, see groups.h.
 */
#include "loader/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/iterator.h"
#include "loader/libbpf.h"
#include "loader/log.h"
#include "base/context.h"

#include "groups.skel.h"

struct mw_bpf_groups {
	struct memwatch_ctx *ctx;
	struct groups_bpf *skel;
	struct bpf_link *link;
};

static volatile struct mw_groups_control *control_of(struct mw_bpf_groups *groups)
{
	return (volatile struct mw_groups_control *)&groups->skel->bss->control;
}

static int load_program(struct mw_bpf_groups *groups)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = MW_KERNEL_BTF);
	int err = 0;

	mw_bpf_log_begin(groups->ctx);
	groups->skel = groups_bpf__open_opts(&opts);
	if (!groups->skel)
		err = -errno;
	if (!err)
		err = groups_bpf__load(groups->skel);
	if (!err) {
		groups->link = bpf_program__attach(groups->skel->progs.on_member);
		err = groups->link ? 0 : -errno;
	}
	mw_bpf_log_end();
	return err ? mw_fail(groups->ctx, err, "cannot load the program that reads cgroups: %s",
			     strerror(-err))
		   : 0;
}

int mw_bpf_groups_open(struct memwatch_ctx *ctx, struct mw_bpf_groups **ret)
{
	unsigned long page_size = (unsigned long)sysconf(_SC_PAGESIZE);
	int err = mw_libbpf_load(ctx, "watching cgroups");
	struct mw_bpf_groups *groups;

	if (err)
		return err;
	groups = calloc(1, sizeof(*groups));
	if (!groups)
		return mw_fail_memory(ctx, "cgroups");
	groups->ctx = ctx;
	err = load_program(groups);
	if (err) {
		mw_bpf_groups_close(groups);
		return err;
	}
	control_of(groups)->page_shift = (uint32_t)__builtin_ctzl(page_size);
	*ret = groups;
	return 0;
}

void mw_bpf_groups_close(struct mw_bpf_groups *groups)
{
	if (!groups)
		return;
	bpf_link__destroy(groups->link);
	groups_bpf__destroy(groups->skel);
	free(groups);
}

int mw_bpf_groups_round(struct mw_bpf_groups *groups, uint32_t swap)
{
	volatile struct mw_groups_control *control = control_of(groups);

	control->swap = swap;
	control->full = 0;
	if (!++control->round)
		control->round = 1;
	return mw_bpf_iterator_run(groups->ctx, groups->link, "a round of the cgroups");
}

void mw_bpf_groups_set_unsure(struct mw_bpf_groups *groups)
{
	control_of(groups)->unsure = 1;
}

uint32_t mw_bpf_groups_number(const struct mw_bpf_groups *groups)
{
	return groups->skel->bss->control.round;
}

bool mw_bpf_groups_are_full(struct mw_bpf_groups *groups)
{
	return control_of(groups)->full;
}

int mw_bpf_groups_each(struct mw_bpf_groups *groups, mw_bpf_walk_fn fn, void *userdata)
{
	return mw_bpf_map_walk(groups->ctx, bpf_map__fd(groups->skel->maps.groups),
			       sizeof(uint64_t), sizeof(struct mw_group_memory), fn, userdata);
}

void mw_bpf_groups_delete(struct mw_bpf_groups *groups, uint64_t id)
{
	bpf_map_delete_elem(bpf_map__fd(groups->skel->maps.groups), &id);
}
