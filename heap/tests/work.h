/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a workload that will be killed leaves behind about itself, in a file that it maps.
 */
#ifndef _MW_HEAP_TESTS_WORK_H
#define _MW_HEAP_TESTS_WORK_H

#include <stdint.h>

struct work_truth {
	uint64_t top_bytes;   /* live bytes of the site that leaks most */
	uint64_t other_bytes; /* and of the other one */
	uint64_t stop_bytes;  /* it stops leaking there */
	uint64_t top_site;    /* addresses of the functions of the two sites */
	uint64_t other_site;
};

#endif
