/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A PMU as sysfs describes it, below /sys/bus/event_source/devices: its number, its formats, and
 * its named events. Which bits of struct perf_event_attr a term such as "umask=0x82" sets is read
 * from there and known nowhere else; see Documentation/ABI/testing/
 * sysfs-bus-event_source-devices-format of the kernel.
 */
#ifndef MW_STALE_ACCESS_PMU_H
#define MW_STALE_ACCESS_PMU_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/ctx.h>

#include "base/text.h"

#define MW_PMU_DEVICES	  "/sys/bus/event_source/devices"
#define MW_PMU_NAME_ROOM  64
#define MW_PMU_PATH_ROOM  256
#define MW_PMU_NO_PRECISE (-1)
#define MW_PMU_WORDS	  3

/**
 * struct mw_pmu_config - the members of struct perf_event_attr that terms set
 * @word: config, config1, config2
 */
struct mw_pmu_config {
	uint64_t word[MW_PMU_WORDS];
};

/**
 * struct mw_pmu_format - which bits a term sets
 * @word: index in struct mw_pmu_config
 * @mask: the bits; the lowest bit of the value goes to the lowest one
 */
struct mw_pmu_format {
	unsigned int word;
	uint64_t mask;
};

/**
 * struct mw_pmu - a PMU
 * @ctx: context, not owned
 * @name: its folder below MW_PMU_DEVICES
 * @type: for perf_event_attr.type
 * @max_precise: the largest perf_event_attr.precise_ip; MW_PMU_NO_PRECISE: sysfs does not say it
 */
struct mw_pmu {
	struct memwatch_ctx *ctx;
	char name[MW_PMU_NAME_ROOM];
	uint32_t type;
	int max_precise;
};

/* Parses "config1:0-7,32". Returns false if it is nothing like that. */
bool mw_pmu_format_parse(struct mw_text text, struct mw_pmu_format *format);

/* Replaces the bits of @format. Returns false if @value does not fit. */
bool mw_pmu_format_put(const struct mw_pmu_format *format, uint64_t value,
		       struct mw_pmu_config *config);

/* Returns 0, -ENOENT if there is no such PMU, or another errno; the error text of @ctx is set. */
int mw_pmu_open(struct memwatch_ctx *ctx, const char *name, struct mw_pmu *ret);

/* Whether the PMU has the file @name, such as "events/mem-loads". */
bool mw_pmu_has(const struct mw_pmu *pmu, const char *name);

/*
 * Adds @terms to @config: "event=0xcd,umask=0x1", the name of an event of the PMU, or the name of
 * a format, which becomes 1. Returns 0, or -EINVAL with the error text set.
 */
int mw_pmu_encode(const struct mw_pmu *pmu, struct mw_text terms, struct mw_pmu_config *config);

#endif /* MW_STALE_ACCESS_PMU_H */
