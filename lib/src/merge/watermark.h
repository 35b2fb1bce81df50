/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The frontier of a ring and the watermark of all, see merge.h.
 */
#ifndef MW_MERGE_WATERMARK_H
#define MW_MERGE_WATERMARK_H

#include "merge/state.h"

/**
 * struct mw_watermark - the smallest frontier of all rings
 * @natural_ns: without the rules that force delivery
 * @forced_ns: with them; frames older than this are delivered
 */
struct mw_watermark {
	uint64_t natural_ns;
	uint64_t forced_ns;
};

/* The frontier of a ring, without the rules that force delivery. */
uint64_t mw_source_frontier(const struct mw_merge *merge, const struct mw_source *source);
void mw_merge_find_watermark(const struct mw_merge *merge, struct mw_watermark *mark);

#endif /* MW_MERGE_WATERMARK_H */
