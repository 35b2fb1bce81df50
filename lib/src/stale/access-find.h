/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which perf events sample the memory accesses of this machine, with their addresses.
 *
 * Processors of Intel sample loads (load latency) and stores by PEBS; the kernel names the events
 * mem-loads and mem-stores. On hybrid processors each kind of core has a PMU of its own. Processors
 * of AMD sample all operations by IBS (ibs_op), of which those with an address are accesses. Most
 * virtual machines have neither. The software event "page-faults" exists everywhere: it has the
 * address of each first access to a page, and of no other access.
 */
#ifndef MW_STALE_ACCESS_FIND_H
#define MW_STALE_ACCESS_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/ctx.h>

#include "stale/access-pmu.h"

#define MW_ACCESS_EVENTS_MAX 8
#define MW_ACCESS_NAME_ROOM  160

/**
 * enum mw_access_kernel - how accesses by the kernel are left out
 * @MW_ACCESS_KERNEL_FLAG: by perf_event_attr.exclude_kernel
 * @MW_ACCESS_KERNEL_FILTER: by that and the software filter of IBS (struct mw_access_event.filter)
 * @MW_ACCESS_KERNEL_NEVER: the event cannot leave them out
 */
enum mw_access_kernel {
	MW_ACCESS_KERNEL_FLAG,
	MW_ACCESS_KERNEL_FILTER,
	MW_ACCESS_KERNEL_NEVER,
};

/**
 * struct mw_access_event - an event that samples accesses
 * @name: as perf writes it: "cpu/mem-loads/"
 * @type: perf_event_attr.type
 * @config: perf_event_attr.config and so on
 * @filter: the same with the software filter; only with MW_ACCESS_KERNEL_FILTER
 * @aux: config of the auxiliary event that leads the group; only if @has_aux
 * @kernel: enum mw_access_kernel
 * @precise: perf_event_attr.precise_ip to begin with; 0: not a precise event
 * @step: periods are multiples of it
 * @default_period: mean period if none is asked for
 * @every: each access is recorded, whatever the period
 * @has_aux: the event works only in a group behind @aux
 * @exclude_guest: perf_event_attr.exclude_guest
 * @cpus: the CPUs that have the event, as MW_CPUS_MAX bytes that are 0 or 1; NULL: all. Owned.
 */
struct mw_access_event {
	char name[MW_ACCESS_NAME_ROOM];
	uint32_t type;
	struct mw_pmu_config config, filter, aux;
	enum mw_access_kernel kernel;
	int precise;
	uint32_t step;
	uint64_t default_period;
	bool every;
	bool has_aux;
	bool exclude_guest;
	uint8_t *cpus;
};

/**
 * struct mw_access_plan - the events of a machine
 * @event: the events
 * @nr: how many
 */
struct mw_access_plan {
	struct mw_access_event event[MW_ACCESS_EVENTS_MAX];
	unsigned int nr;
};

/*
 * Finds the events. @choice is "auto", "page-faults", or an event of a PMU as perf writes it,
 * "PMU/TERMS/", for example "cpu/mem-loads,ldlat=30/". Nothing is opened, so that the files of
 * another machine can be looked at. Caller frees with mw_access_plan_uninit(). Returns:
 *	0
 *	-EOPNOTSUPP	there is no such event; the error text of @ctx says why
 *	-EINVAL		@choice is no event, or sysfs is not understood
 *	any other errno of reading the files of sysfs
 */
int mw_access_find(struct memwatch_ctx *ctx, const char *choice, struct mw_access_plan *ret);

void mw_access_plan_uninit(struct mw_access_plan *plan);

#endif /* MW_STALE_ACCESS_FIND_H */
