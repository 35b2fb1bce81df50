/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A profiled program that goes on when it is told to, and whose header can be written.
 */
#ifndef _MW_HEAP_TESTS_STEPS_H
#define _MW_HEAP_TESTS_STEPS_H

#include "heap/tests/kit.h"

/* A program that allocates 1 MB for each line that it gets. */
struct steps {
	struct kit_run run;
	int input;
	struct profile profile;
	struct mw_heap_header *control; /* the same file, writable */
};

static inline bool steps_start_program(struct steps *steps, const char *settings,
				       const char *const *argv)
{
	int ends[2], fd;

	kit_empty();
	if (pipe2(ends, O_CLOEXEC))
		return false;
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	steps->input = ends[1];
	kit_start(&steps->run, NULL, settings, argv);
	for (int n = 0; n < 10000 && !kit_open(&steps->profile, steps->run.pid); n++)
		usleep(1000);
	if (!steps->profile.base)
		return false;
	fd = open(kit.opened, O_RDWR);
	steps->control = mmap(NULL, MW_HEAP_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return steps->control != MAP_FAILED;
}

static inline bool steps_start(struct steps *steps, const char *settings)
{
	return steps_start_program(steps, settings, KIT_ARGV(kit.work, "steps"));
}

static inline bool steps_go(struct steps *steps)
{
	char answer;

	return write(steps->input, "\n", 1) == 1 && read(steps->run.output, &answer, 1) == 1;
}

static inline void steps_ask(struct steps *steps, enum mw_heap_control control, uint64_t rate)
{
	steps->control->control_rate = rate;
	__atomic_store_n(&steps->control->control, control, __ATOMIC_RELEASE);
}

static inline void steps_ask_trace(struct steps *steps, uint32_t control)
{
	__atomic_store_n(&steps->control->trace_control, control, __ATOMIC_RELEASE);
}

static inline void steps_end(struct steps *steps)
{
	close(steps->input);
	kit_finish(&steps->run);
	kit_free(&steps->run);
	munmap(steps->control, MW_HEAP_PAGE_BYTES);
	profile_close(&steps->profile);
}

#endif
