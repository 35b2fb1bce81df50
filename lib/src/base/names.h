/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Names of the numbers of linux/memwatch.h, as JSON and CSV show them. Each list stands
 * once and is used by the functions memwatch_*_name() and by the table of record fields.
 */
#ifndef MW_NAMES_H
#define MW_NAMES_H

#include <stdint.h>

/* @name has @count entries; a number that is not in use has NULL. */
struct mw_names {
	const char *const *name;
	uint16_t count;
};

extern const struct mw_names mw_status_names;
extern const struct mw_names mw_reason_names;
extern const struct mw_names mw_notice_names;
extern const struct mw_names mw_backend_names;
extern const struct mw_names mw_cpu_state_names;
extern const struct mw_names mw_growth_event_names;
extern const struct mw_names mw_growth_verdict_names;
extern const struct mw_names mw_growth_reason_names;
extern const struct mw_names mw_limit_names;

/* The name of @number, or "unknown". */
const char *mw_name_of(const struct mw_names *names, unsigned int number);

#endif /* MW_NAMES_H */
