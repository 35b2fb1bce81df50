/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The key by which the programs of the growth monitor know a child of a test.
 */
#ifndef GROWTH_KEY_H
#define GROWTH_KEY_H

#include "growth-rig.h"
#include "loader/growth.h"

struct key_search {
	uint32_t tgid;
	struct mw_growth_key key;
};

static int find_key(void *userdata, const void *key, const void *value)
{
	struct key_search *search = userdata;

	(void)value;
	memcpy(&search->key, key, sizeof(search->key));
	return search->key.tgid == search->tgid;
}

/* Runs a round, which finds the child. */
static struct mw_growth_key key_of(struct mw_bpf_growth *growth, const struct child *c)
{
	struct key_search search = { .tgid = (uint32_t)c->pid };

	mw_bpf_growth_control(growth)->round++;
	if (mw_bpf_growth_round(growth) || mw_bpf_growth_each(growth, find_key, &search) != 1)
		tap_ok(false, "the child has a state");
	return search.key;
}

#endif /* GROWTH_KEY_H */
