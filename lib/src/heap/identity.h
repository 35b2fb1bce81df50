/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The allocations that two snapshots of one process have in common. They were sampled once,
 * so they add nothing to the error of the difference.
 */
#ifndef MW_HEAP_IDENTITY_H
#define MW_HEAP_IDENTITY_H

#include "heap/model.h"

/**
 * struct mw_identities - the live allocations of a profile
 * @profile: the profile
 * @index: from the hash of an identity to the number of the sample
 */
struct mw_identities {
	const struct mw_prof_profile *profile;
	uint64_t seed;
	struct mw_index index;
};

/* Returns 0 or -ENOMEM. */
int mw_identities_init(struct mw_identities *identities, const struct memwatch_heap *heap,
		       const struct mw_prof_profile *profile);
void mw_identities_uninit(struct mw_identities *identities);

/* Whether the profile has the allocation of @sample; false if it is not known. */
bool mw_identities_have(const struct mw_identities *identities,
			const struct mw_prof_sample *sample);

/* Whether both are profiles of the same run of one process. */
bool mw_identities_same_process(const struct mw_prof_profile *a, const struct mw_prof_profile *b);

#endif /* MW_HEAP_IDENTITY_H */
