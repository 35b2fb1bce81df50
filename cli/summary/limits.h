/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How --max-memory is divided among the tables that a stream fills. A recording may come from
 * a stranger, so each table has a limit; what does not fit is added up in the row "(others)".
 */
#ifndef MW_LIMITS_H
#define MW_LIMITS_H

#include <stdint.h>

#include "common/cmd.h"

/**
 * struct mw_limits - the sizes of the tables
 * @processes: of the tracker: assignments
 * @pending: of the tracker: changes that wait
 * @entries: of all open slots
 * @rows: of the summary, and of the table that is printed
 * @rmids: of the lists of all rows
 */
struct mw_limits {
	uint32_t processes;
	uint32_t pending;
	uint32_t entries;
	uint32_t rows;
	uint32_t rmids;
};

/* The least value of --max-memory: less would not hold a small recording. */
#define MW_LIMITS_MIN_BYTES (16ULL << 20)

/* The option, for a command whose configuration has the member @member. */
#define MW_LIMITS_OPTION(config, member)                                                           \
	{                                                                                          \
		"max-memory", 0, MW_OPTION_BYTES, offsetof(config, member), "SIZE",                \
			"how much memory the tables may use; default: a quarter of the machine's", \
			NULL                                                                       \
	}

/*
 * Sets the limits for @bytes, or for a quarter of the memory of this machine if @bytes is 0.
 * Returns 0, or MW_EXIT_USAGE after an error message that begins with @where.
 */
int mw_limits_init(struct mw_limits *limits, uint64_t bytes, const char *where);

#endif
