/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The verdict on the memory of a cgroup or of the machine, in a table, as JSON, and as a
 * sentence.
 */
#ifndef MW_GROWTH_GROUP_H
#define MW_GROWTH_GROUP_H

#include <stdbool.h>

#include <memwatch/memwatch.h>

#include "output/json.h"
#include "output/table.h"

/* Is it about the machine, and not about a cgroup? */
bool mw_group_is_host(const struct memwatch_growth_group *group);

/* "tmpfs and shared memory". */
const char *mw_group_class_words(unsigned int class);

/* "cgroup /a shmem" or "host slab", for the column of names. Returns @buf. */
const char *mw_group_name(const struct memwatch_growth_group *group, char *buf, size_t size);

/*
 * Fills the cells of a table of mw_verdict_columns. @name is that of mw_group_name(); it and @row
 * must live as long as the cells.
 */
void mw_group_fill_cells(const char *name, const struct memwatch_growth_row *row,
			 uint64_t origin_ns, struct mw_cell *cells);

/* Writes path, class, and all values, as members of the object that is open. */
void mw_group_json_members(const struct memwatch_growth_group *group,
			   const struct memwatch_growth_row *row, uint64_t origin_ns,
			   struct mw_json *json);

/* As mw_verdict_sentence(). */
const char *mw_group_sentence(const struct memwatch_growth_group *group,
			      const struct memwatch_growth_row *row, const char *limit, char *buf,
			      size_t size);

/* The same about what is now, with the name of its limit. */
const char *mw_group_state_sentence(const struct memwatch_growth_group *group,
				    const struct memwatch_growth_row *row, char *buf, size_t size);

/* What an event says: a sentence about a notice or an alert, or about its end. Returns @buf. */
const char *mw_group_event_sentence(const struct memwatch_record_growth *record,
				    const struct memwatch_growth_group *group,
				    const struct memwatch_growth_row *row, char *buf, size_t size);

#endif
