// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Object caches, see objcache.h.
 */
#include "lock.h"
#include "objcache.h"

static void **objcache_link(const struct mw_objcache *cache, void *object)
{
	return object + cache->link;
}

static void objcache_push(const struct mw_objcache *cache, void **list, void *object)
{
	*objcache_link(cache, object) = *list;
	*list = object;
}

static void *objcache_pop(const struct mw_objcache *cache, void **list)
{
	void *object = *list;

	if (object)
		*list = *objcache_link(cache, object);
	return object;
}

int mw_objcache_init(struct mw_objcache *cache, const char *name, size_t size, size_t link,
		     unsigned int low)
{
	*cache = (struct mw_objcache){ .link = link, .low = low };
	cache->cache = kmem_cache_create(name, size, sizeof(void *), 0, NULL);
	return cache->cache ? 0 : -ENOMEM;
}

/* The caller makes sure that nobody else uses the cache, not even under RCU. */
void mw_objcache_uninit(struct mw_objcache *cache)
{
	void *object;

	while ((object = objcache_pop(cache, &cache->free)) ||
	       (object = objcache_pop(cache, &cache->freed)))
		kmem_cache_free(cache->cache, object);
	kmem_cache_destroy(cache->cache);
	*cache = (struct mw_objcache){};
}

/* NULL if no object is free. Caller holds mw_lock, as for the next three functions. */
void *mw_objcache_get(struct mw_objcache *cache)
{
	void *object = objcache_pop(cache, &cache->free);

	lockdep_assert_held(&mw_lock);
	if (object)
		cache->nr_free--;
	return object;
}

/* Return an object that no RCU reader can have seen. */
void mw_objcache_put(struct mw_objcache *cache, void *object)
{
	lockdep_assert_held(&mw_lock);
	objcache_push(cache, &cache->free, object);
	cache->nr_free++;
}

/* Return an object that RCU readers may still use. */
void mw_objcache_free_later(struct mw_objcache *cache, void *object)
{
	lockdep_assert_held(&mw_lock);
	objcache_push(cache, &cache->freed, object);
	cache->nr_freed++;
}

bool mw_objcache_wants_refill(const struct mw_objcache *cache)
{
	lockdep_assert_held(&mw_lock);
	return cache->nr_free < cache->low || cache->nr_freed >= cache->low;
}

/* Have at least @want free objects. May sleep. */
int mw_objcache_refill(struct mw_objcache *cache, unsigned int want)
{
	unsigned long flags;
	void *object;

	while (READ_ONCE(cache->nr_free) < want) {
		object = kmem_cache_alloc(cache->cache, GFP_KERNEL);
		if (!object)
			return -ENOMEM;
		raw_spin_lock_irqsave(&mw_lock, flags);
		cache->nr++;
		mw_objcache_put(cache, object);
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	return 0;
}

/* Take all objects that wait for a grace period, as a list for mw_objcache_recycle(). */
void *mw_objcache_take_freed(struct mw_objcache *cache)
{
	unsigned long flags;
	void *list;

	raw_spin_lock_irqsave(&mw_lock, flags);
	list = cache->freed;
	cache->freed = NULL;
	cache->nr_freed = 0;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return list;
}

static void *objcache_take_surplus(struct mw_objcache *cache)
{
	unsigned long flags;
	void *object = NULL;

	raw_spin_lock_irqsave(&mw_lock, flags);
	if (cache->nr_free > 2 * cache->low) {
		object = mw_objcache_get(cache);
		cache->nr--;
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return object;
}

/*
 * Make the objects of @list free, and return what exceeds twice the low mark to
 * the system.
 */
void mw_objcache_recycle(struct mw_objcache *cache, void *list)
{
	unsigned long flags;
	void *object;

	while ((object = objcache_pop(cache, &list))) {
		raw_spin_lock_irqsave(&mw_lock, flags);
		mw_objcache_put(cache, object);
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	while ((object = objcache_take_surplus(cache)))
		kmem_cache_free(cache->cache, object);
}
