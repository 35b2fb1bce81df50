/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Object caches for hooks. A hook must not allocate memory: it holds the run
 * queue lock, and on PREEMPT_RT even kmalloc(GFP_ATOMIC) may sleep. So a worker
 * allocates objects ahead. An object that a hook frees may still be used by RCU
 * readers; it is used again only after a grace period.
 */
#ifndef _MW_OBJCACHE_H
#define _MW_OBJCACHE_H

#include <linux/slab.h>

/**
 * struct mw_objcache - objects of one kind
 * @cache: slab cache of the objects
 * @link: offset of the pointer-sized member that links free objects; RCU readers
 * 	must not use that member
 * @low: with fewer free objects, or as many freed ones, the worker is kicked
 * @free: objects that are ready for use
 * @freed: freed objects, for which a grace period has yet to pass
 * @nr_free: number of objects in @free
 * @nr_freed: number of objects in @freed
 * @nr: number of objects that exist
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
