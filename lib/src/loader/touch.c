// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 */
#include "loader/touch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"
#include "loader/iterator.h"
#include "loader/libbpf.h"
#include "loader/log.h"

#include "touch.skel.h"

/* The bits 12 to 51 of an entry are an address, but for one that says "encrypted". */
#define ADDRESS_BITS 0x000ffffffffff000ULL

/* Where the direct map is searched for: as far below a page table as there may be memory. */
#define SEARCHES (64 * 1024 / MW_TOUCH_CANDIDATES)

struct mw_bpf_touch {
	struct memwatch_ctx *ctx;
	struct touch_bpf *skel;
	struct bpf_link *link;
	int fd; /* of the iterator; -1: there is no visit */
	uint32_t visit;
	struct mw_touch_suspect suspect; /* as read last */
};

static const char a_visit[] = "a visit of growing processes";

/* Searches for the direct map, taking @mask for the address bits of an entry. */
static int search(struct mw_bpf_touch *touch, uint64_t mask)
{
	volatile struct mw_touch_control *control = &touch->skel->bss->control;
	int err = 0;

	control->mask = mask;
	for (uint32_t i = 0; i < SEARCHES && !control->base && !err; i++) {
		control->candidate = i * MW_TOUCH_CANDIDATES;
		control->searched = 0;
		err = mw_bpf_iterator_run(touch->ctx, touch->link, a_visit);
	}
	return err;
}

/* On AMD bit 47 or bit 51 of an address says that the memory is encrypted. */
static int find_direct_map(struct mw_bpf_touch *touch)
{
	static const uint64_t encrypted[] = { 0, 1ULL << 51, 1ULL << 47 };
	int err = 0;

	for (size_t i = 0; i < 3 && !touch->skel->bss->control.base && !err; i++)
		err = search(touch, ADDRESS_BITS & ~encrypted[i]);
	if (!err && !touch->skel->bss->control.base)
		err = mw_fail(touch->ctx, -EOPNOTSUPP,
			      "the page tables of this machine cannot be read: their place in "
			      "memory was not found");
	return err;
}

static int load(struct mw_bpf_touch *touch, uint32_t max_suspects)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = MW_KERNEL_BTF);
	int err = 0;

	mw_bpf_log_begin(touch->ctx);
	touch->skel = touch_bpf__open_opts(&opts);
	if (!touch->skel)
		err = -errno;
	if (!err)
		err = bpf_map__set_max_entries(touch->skel->maps.suspects, max_suspects);
	if (!err)
		err = touch_bpf__load(touch->skel);
	if (!err) {
		touch->link = bpf_program__attach(touch->skel->progs.on_visit);
		if (!touch->link)
			err = -errno;
	}
	mw_bpf_log_end();
	return err ? mw_fail(touch->ctx, err, "cannot load the program that reads page tables: %s",
			     strerror(-err))
		   : 0;
}

int mw_bpf_touch_open(struct memwatch_ctx *ctx, uint32_t max_suspects, struct mw_bpf_touch **ret)
{
	struct mw_bpf_touch *touch;
	int err;

#ifndef __x86_64__
	return mw_fail(ctx, -EOPNOTSUPP, "page tables can be read on x86-64 only");
#endif
	touch = calloc(1, sizeof(*touch));
	if (!touch)
		return mw_fail_memory(ctx, "program that reads page tables");
	touch->ctx = ctx;
	touch->fd = -1;
	err = load(touch, max_suspects);
	if (!err)
		err = find_direct_map(touch);
	if (err)
		mw_bpf_touch_close(touch);
	else
		*ret = touch;
	return err;
}

static void end_visit(struct mw_bpf_touch *touch)
{
	if (touch->fd >= 0)
		close(touch->fd);
	touch->fd = -1;
}

void mw_bpf_touch_close(struct mw_bpf_touch *touch)
{
	if (!touch)
		return;
	end_visit(touch);
	bpf_link__destroy(touch->link);
	touch_bpf__destroy(touch->skel);
	free(touch);
}

int mw_bpf_touch_put(struct mw_bpf_touch *touch, uint32_t slot, const struct mw_growth_key *key,
		     uint32_t shift)
{
	memset(&touch->suspect, 0, sizeof(touch->suspect));
	touch->suspect.key = *key;
	touch->suspect.shift = shift;
	if (bpf_map_update_elem(bpf_map__fd(touch->skel->maps.suspects), &slot, &touch->suspect,
				BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(touch->skel->maps.slots), key, &slot, BPF_ANY))
		return mw_fail(touch->ctx, -errno, "cannot write to a BPF map: %s",
			       strerror(errno));
	return 0;
}

void mw_bpf_touch_delete(struct mw_bpf_touch *touch, const struct mw_growth_key *key)
{
	bpf_map_delete_elem(bpf_map__fd(touch->skel->maps.slots), key);
}

int mw_bpf_touch_begin(struct mw_bpf_touch *touch)
{
	end_visit(touch);
	if (!++touch->visit)
		touch->visit = 1;
	touch->skel->bss->control.visit = touch->visit;
	touch->fd = mw_bpf_iterator_start(touch->ctx, touch->link, a_visit);
	return touch->fd < 0 ? touch->fd : 0;
}

int mw_bpf_touch_next(struct mw_bpf_touch *touch, uint32_t *ret)
{
	int n = mw_bpf_iterator_read(touch->ctx, touch->fd, ret, sizeof(*ret), a_visit);

	if (n <= 0)
		end_visit(touch);
	return n < 0 ? n : n > 0;
}

const struct mw_touch_suspect *mw_bpf_touch_get(struct mw_bpf_touch *touch, uint32_t slot)
{
	if (bpf_map_lookup_elem(bpf_map__fd(touch->skel->maps.suspects), &slot, &touch->suspect) ||
	    touch->suspect.visit != touch->visit)
		return NULL;
	return &touch->suspect;
}
