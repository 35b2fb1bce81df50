/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The lines of the instructions of CPython 3.11, from its tables of locations (co_linetable).
 */
#ifndef MW_HEAP_PYTHON_LINES_H
#define MW_HEAP_PYTHON_LINES_H

#include <stdint.h>
#include <stddef.h>

/**
 * struct mw_line_runs - the lines of all code objects of a profile
 * @runs: instructions that follow each other and have one line
 */
struct mw_line_runs {
	struct mw_line_run {
		uint32_t end;  /* the first instruction behind it, counted from 0 */
		uint32_t line; /* 0: none */
	} * runs;
	uint32_t count, capacity;
};

/*
 * Adds the runs of a table, as far as it makes sense; whatever is in it, there are not more than
 * @len of them. Returns 0 or -ENOMEM.
 */
int mw_line_runs_add(struct mw_line_runs *runs, const uint8_t *table, size_t len,
		     uint32_t first_line);

/* The line of an instruction in the runs from @first to @end; 0 if it has none. */
uint32_t mw_line_runs_find(const struct mw_line_runs *runs, uint32_t first, uint32_t end,
			   uint32_t instruction);

#endif /* MW_HEAP_PYTHON_LINES_H */
