/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A stash of objects of one kind for hooks, which must not allocate: they hold
 * the run queue lock, and on PREEMPT_RT even kmalloc(GFP_ATOMIC) may sleep. A
 * worker fills it ahead of need. What hooks give back is buried, because others
 * may still look at it under RCU, and comes back after a grace period.
 */
#ifndef _MW_OBJCACHE_H
#define _MW_OBJCACHE_H

#include <linux/slab.h>

/**
 * struct mw_stash - objects of one kind
 * @cache: where they come from
 * @link: offset of the pointer-sized member that links them while nobody owns
 *	them. RCU readers of a buried object must not use that member.
 * @free: ready to be used
 * @nr_free: how many
 * @buried: given back, a grace period has yet to pass
 * @nr_buried: how many
 * @nr: objects that exist
 * @low: the worker should be kicked below this many free ones
 *
 * mw_lock guards everything but @cache, @link and @low, which are constant.
 */
struct mw_objcache {
	struct kmem_cache *cache;
	unsigned int link;
	unsigned int low;
	void *free;
	void *freed;
	unsigned int nr_free;
	unsigned int nr_freed;
	unsigned int nr;
};

int mw_objcache_init(struct mw_objcache *cache, const char *name, size_t size, size_t link,
		     unsigned int low);
void mw_objcache_uninit(struct mw_objcache *cache);

void *mw_objcache_get(struct mw_objcache *cache);
void mw_objcache_put(struct mw_objcache *cache, void *object);
void mw_objcache_free_later(struct mw_objcache *cache, void *object);
bool mw_objcache_wants_refill(const struct mw_objcache *cache);

int mw_objcache_refill(struct mw_objcache *cache, unsigned int want);
void *mw_objcache_take_freed(struct mw_objcache *cache);
void mw_objcache_recycle(struct mw_objcache *cache, void *list);

#endif /* _MW_OBJCACHE_H */
