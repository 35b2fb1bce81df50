/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What leak-site.so keeps in a file while the program runs, for the test that started it. The
 * test reads it as numbers of 8 bytes in this order.
 */
#ifndef _MW_SELFTESTS_LEAK_SITE_H
#define _MW_SELFTESTS_LEAK_SITE_H

#include <stdint.h>

struct leak_site_truth {
	uint64_t allocations; /* calls of malloc(), calloc() and realloc() */
	uint64_t snapshots;   /* copies of the profile that were made */
	uint64_t objects;     /* frees that were dropped */
	uint64_t bytes;
	double samples; /* expected among the objects: the sum of their probabilities */
	uint64_t call;	/* address of the call in its ELF file, as the profile has it */
};

#endif
