/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the parts of the workload program share.
 */
#ifndef _MW_HEAP_TESTS_WORK_H
#define _MW_HEAP_TESTS_WORK_H

#include <stddef.h>
#include <stdint.h>

/* What a workload that will be killed leaves behind about itself, in a file that it maps. */
struct work_truth {
	uint64_t top_bytes;   /* live bytes of the site that leaks most */
	uint64_t other_bytes; /* and of the other one */
	uint64_t stop_bytes;  /* it stops leaking there */
	uint64_t top_site;    /* addresses of the functions of the two sites */
	uint64_t other_site;
};

/* Argument @n as a number; @otherwise if it is missing. */
uint64_t work_number(char **argv, int n, uint64_t otherwise);

/* Objects of 1000 bytes that stay. */
void work_allocate(size_t bytes);

#define WORK_UNSUPPORTED 77 /* exit status: this cannot be tried on this machine */

/* work-contract.c */
int work_bounds(char **argv);
int work_cancel(char **argv);
int work_errno(char **argv);

/* work-fork.c */
int work_fork(char **argv);
int work_storm(char **argv);
int work_sigfork(char **argv);
int work_stepfork(char **argv);

/* work-mmap.c */
int work_mmap(char **argv);
int work_region(char **argv);
int work_halves(char **argv);
int work_remap(char **argv);
int work_handler(char **argv);

/* work-plugins.c */
int work_plugins(char **argv);

/* work-sandbox.c */
int work_sandbox(char **argv);

/* work-sites.c */
int work_sites(char **argv);

/* work-stress.c */
int work_stress(char **argv);

/* work-touch.c */
int work_touch(char **argv);
int work_end(char **argv);
int work_guards(char **argv);
int work_many(char **argv);
int work_small(char **argv);

#endif
