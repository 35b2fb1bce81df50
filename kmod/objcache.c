// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Objects for hooks, see objcache.h.
 */
#include "track.h"
#include "objcache.h"

static void **link_of(const struct mw_stash *stash, void *object)
{
	return object + stash->link;
}

static void push(const struct mw_stash *stash, void **list, void *object)
{
	*link_of(stash, object) = *list;
	*list = object;
}

static void *pop(const struct mw_stash *stash, void **list)
{
	void *object = *list;

	if (object)
		*list = *link_of(stash, object);
	return object;
}

int mw_stash_init(struct mw_stash *stash, const char *name, size_t size, size_t link,
		  unsigned int low)
{
	*stash = (struct mw_stash){ .link = link, .low = low };
	stash->cache = kmem_cache_create(name, size, sizeof(void *), 0, NULL);
	return stash->cache ? 0 : -ENOMEM;
}

/* The caller has made sure that nobody else uses the stash, not even under RCU. */
void mw_stash_uninit(struct mw_stash *stash)
{
	void *object;

	while ((object = pop(stash, &stash->free)) || (object = pop(stash, &stash->buried)))
		kmem_cache_free(stash->cache, object);
	kmem_cache_destroy(stash->cache);
	*stash = (struct mw_stash){};
}

/* Caller holds mw_lock, as for the next four. NULL if there is none left. */
void *mw_stash_get(struct mw_stash *stash)
{
	void *object = pop(stash, &stash->free);

	lockdep_assert_held(&mw_lock);
	if (object)
		stash->nr_free--;
	return object;
}

/* Give back what nobody else has seen. */
void mw_stash_put(struct mw_stash *stash, void *object)
{
	lockdep_assert_held(&mw_lock);
	push(stash, &stash->free, object);
	stash->nr_free++;
}

/* Give back what others may still look at under RCU. */
void mw_stash_bury(struct mw_stash *stash, void *object)
{
	lockdep_assert_held(&mw_lock);
	push(stash, &stash->buried, object);
	stash->nr_buried++;
}

bool mw_stash_wants_upkeep(const struct mw_stash *stash)
{
	lockdep_assert_held(&mw_lock);
	return stash->nr_free < stash->low || stash->nr_buried >= stash->low;
}

/* Have at least @want free ones. May sleep. */
int mw_stash_refill(struct mw_stash *stash, unsigned int want)
{
	unsigned long flags;
	void *object;

	while (READ_ONCE(stash->nr_free) < want) {
		object = kmem_cache_alloc(stash->cache, GFP_KERNEL);
		if (!object)
			return -ENOMEM;
		raw_spin_lock_irqsave(&mw_lock, flags);
		stash->nr++;
		mw_stash_put(stash, object);
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	return 0;
}

/* All that is buried now, for mw_stash_recycle() after a grace period. */
void *mw_stash_exhume(struct mw_stash *stash)
{
	unsigned long flags;
	void *list;

	raw_spin_lock_irqsave(&mw_lock, flags);
	list = stash->buried;
	stash->buried = NULL;
	stash->nr_buried = 0;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return list;
}

static void *surplus(struct mw_stash *stash)
{
	unsigned long flags;
	void *object = NULL;

	raw_spin_lock_irqsave(&mw_lock, flags);
	if (stash->nr_free > 2 * stash->low) {
		object = mw_stash_get(stash);
		stash->nr--;
	}
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	return object;
}

/* @list back into use; what is more than twice the low mark to the system. */
void mw_stash_recycle(struct mw_stash *stash, void *list)
{
	unsigned long flags;
	void *object;

	while ((object = pop(stash, &list))) {
		raw_spin_lock_irqsave(&mw_lock, flags);
		mw_stash_put(stash, object);
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
	while ((object = surplus(stash)))
		kmem_cache_free(stash->cache, object);
}
