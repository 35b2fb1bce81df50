/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The source of a stream, the metrics that it lacks and the records that it lost, for people
 * and for programs.
 */
#ifndef MW_RECORDING_INFO_H
#define MW_RECORDING_INFO_H

#include <memwatch/memwatch.h>

#include "output/json.h"
#include "output/table.h"

/* The members "recording", "unavailable" and "estimated". */
void mw_recording_json(struct mw_json *json, const struct memwatch_stream_info *info,
		       uint64_t first_ns, uint64_t last_ns);
void mw_recording_print(const char *path, const struct memwatch_stream_info *info,
			uint64_t first_ns, uint64_t last_ns);

/* The period may become longer in mid-session. *@longest_ns: the longest one so far, 0 at first */
void mw_period_note(uint64_t *longest_ns, const struct memwatch_record_header *record);
/* The member "period_max_ns". */
void mw_period_json(struct mw_json *json, uint64_t longest_ns);
/* Prints a line if the period became longer. */
void mw_period_print(FILE *file, const struct memwatch_stream_info *info, uint64_t longest_ns);

/* The member "losses". */
void mw_losses_json(struct mw_json *json, const struct memwatch_stream_stats *stream,
		    const struct memwatch_slots_stats *slots);
void mw_losses_print(const struct memwatch_stream_stats *stream,
		     const struct memwatch_slots_stats *slots);

/* Prints a line for each reason, with all metrics that are unavailable because of it. */
void mw_unavailable_print(const struct memwatch_stream_info *info);
/* Explains "~" and "!" if a cell of the table has them. */
void mw_table_legend(const struct mw_table *table);

#endif
