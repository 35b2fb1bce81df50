// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The allocations that two snapshots of one process have in common.
 */
#include "heap/identity.h"

#include "base/array.h"

int mw_identities_init(struct mw_identities *identities, const struct memwatch_heap *heap,
		       const struct mw_prof_profile *profile)
{
	*identities = (struct mw_identities){ .profile = profile, .seed = heap->strings.seed };
	for (uint32_t i = 0; i < profile->nr_samples; i++) {
		uint64_t identity = profile->samples[i].identity;

		/* A file can repeat one identity; one entry is enough, and keeps chains short. */
		if (!identity || mw_identities_have(identities, &profile->samples[i]))
			continue;
		if (mw_index_insert(&identities->index,
				    mw_strings_hash(identities->seed, &identity, sizeof(identity)),
				    i))
			return -ENOMEM;
	}
	return 0;
}

void mw_identities_uninit(struct mw_identities *identities)
{
	mw_index_free(&identities->index);
}

bool mw_identities_have(const struct mw_identities *identities, const struct mw_prof_sample *sample)
{
	uint32_t hash, at, number;

	if (!sample->identity)
		return false;
	hash = mw_strings_hash(identities->seed, &sample->identity, sizeof(sample->identity));
	mw_index_for_each (&identities->index, hash, &at, number)
		if (identities->profile->samples[number].identity == sample->identity)
			return true;
	return false;
}

bool mw_identities_same_process(const struct mw_prof_profile *a, const struct mw_prof_profile *b)
{
	return a->info.format == MEMWATCH_HEAP_MEMWATCH &&
	       b->info.format == MEMWATCH_HEAP_MEMWATCH && a->info.pid == b->info.pid &&
	       a->info.start_ns == b->info.start_ns;
}
