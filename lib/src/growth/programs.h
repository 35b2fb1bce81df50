/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The programs of a trace that have reached their limit, see bpf/growth-program.h. A trace does not
 * tell users apart, so a program is known by its name alone.
 */
#ifndef MW_GROWTH_PROGRAMS_H
#define MW_GROWTH_PROGRAMS_H

#include <stdint.h>

#include "base/index.h"
#include "bpf/growth.h"

struct mw_program;

/**
 * struct mw_programs - programs that came near their limit
 * @programs: owned
 * @nr: number of programs
 * @max: how many fit
 * @by_name: from a name to a program
 */
struct mw_programs {
	struct mw_program *programs;
	uint32_t nr, max;
	struct mw_index by_name;
};

void mw_programs_init(struct mw_programs *programs);
void mw_programs_uninit(struct mw_programs *programs);

/*
 * Recalls or remembers what the program @name does, whose process @g had @event at its last sample.
 * Returns 0 or -ENOMEM.
 */
int mw_programs_note(struct mw_programs *programs, const char *name, struct mw_growth *g,
		     __u32 event);

#endif /* MW_GROWTH_PROGRAMS_H */
