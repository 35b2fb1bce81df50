// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is remembered of programs: the kernel has the map "programs" for it.
 */
#include "growth/programs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/**
 * struct mw_program - a program that came near its limit
 * @name: owned
 * @known: that has not been forgotten
 * @reached: when that was, and what limit
 */
struct mw_program {
	char *name;
	bool known;
	struct mw_growth_reached reached;
};

void mw_programs_init(struct mw_programs *programs)
{
	*programs = (struct mw_programs){ 0 };
	mw_index_init(&programs->by_name);
}

void mw_programs_uninit(struct mw_programs *programs)
{
	for (uint32_t i = 0; i < programs->nr; i++)
		free(programs->programs[i].name);
	free(programs->programs);
	mw_index_free(&programs->by_name);
}

static uint32_t hash_name(const struct mw_programs *programs, const char *name)
{
	return mw_index_hash_text(&programs->by_name, name, strlen(name));
}

static struct mw_program *find_program(const struct mw_programs *programs, const char *name)
{
	uint32_t hash = hash_name(programs, name), at, number;

	mw_index_for_each (&programs->by_name, hash, &at, number)
		if (!strcmp(programs->programs[number].name, name))
			return &programs->programs[number];
	return NULL;
}

static struct mw_program *add_program(struct mw_programs *programs, const char *name)
{
	struct mw_program *program;

	if (mw_array_reserve(programs->programs, programs->max, programs->nr + 1U))
		return NULL;
	program = &programs->programs[programs->nr];
	*program = (struct mw_program){ .name = strdup(name) };
	if (!program->name ||
	    mw_index_insert(&programs->by_name, hash_name(programs, name), programs->nr)) {
		free(program->name);
		return NULL;
	}
	programs->nr++;
	return program;
}

int mw_programs_note(struct mw_programs *programs, const char *name, struct mw_growth *g,
		     __u32 event)
{
	bool reaches = mw_growth_program_reaches(g);
	struct mw_program *program;

	if (!event && !reaches)
		return 0;
	program = find_program(programs, name);
	mw_growth_program_recall(g, event, program && program->known ? &program->reached : NULL);
	if (program && program->known && mw_growth_program_settles(g, event, &program->reached)) {
		program->known = false;
	} else if (reaches) {
		if (!program)
			program = add_program(programs, name);
		if (!program)
			return -ENOMEM;
		mw_growth_program_remember(g, &program->reached);
		program->known = true;
	}
	return 0;
}
