/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The mappings of this process, and whether they were accessed. Nothing is allocated.
 */
#ifndef _MW_HEAP_SMAPS_H
#define _MW_HEAP_SMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MW_SMAPS_BUFFER (16u << 10) /* longer than any line */

struct mw_smaps {
	int fd;
	size_t used; /* bytes in the buffer */
	size_t at;   /* where the next line begins */
	char buffer[MW_SMAPS_BUFFER];
};

struct mw_smaps_mapping {
	uint64_t start;
	uint64_t end;
	bool is_referenced; /* a page has been accessed since its accessed bit was cleared */
	bool is_shared;	    /* a page belongs to other processes, too */
	bool is_followed;   /* by userfaultfd */
};

/* Returns 0 or a negative errno. */
int mw_smaps_open(struct mw_smaps *smaps);
void mw_smaps_close(struct mw_smaps *smaps);

/* The next mapping, in the order of addresses. False at the end. */
bool mw_smaps_next(struct mw_smaps *smaps, struct mw_smaps_mapping *ret);

#endif
