// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The search for events that sample accesses, see access-find.h.
 */
#include "stale/access-find.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"
#include "base/cpus.h"
#include "stale/access-why.h"

/* Operations or accesses between two samples, on average; some 10^4 samples a second on a CPU. */
#define DEFAULT_PERIOD 100000

void mw_access_plan_uninit(struct mw_access_plan *plan)
{
	for (unsigned int i = 0; i < plan->nr; i++)
		free(plan->event[i].cpus);
	plan->nr = 0;
}

/* ----------------------------------------------------- events of a PMU */

/* The PMUs of hybrid processors say which CPUs they belong to. */
static int event_read_cpus(const struct mw_pmu *pmu, struct mw_access_event *event)
{
	char path[MW_PMU_PATH_ROOM];
	int err;

	if (!mw_pmu_has(pmu, "cpus"))
		return 0;
	event->cpus = malloc(MW_CPUS_MAX);
	if (!event->cpus)
		return mw_fail_memory(pmu->ctx, "the CPUs of a PMU");
	snprintf(path, sizeof(path), MW_PMU_DEVICES "/%s/cpus", pmu->name);
	err = mw_cpus_read(pmu->ctx, path, event->cpus, MW_CPUS_MAX);
	if (err) {
		free(event->cpus);
		event->cpus = NULL;
	}
	return err;
}

static bool terms_have(struct mw_text terms, const char *name)
{
	struct mw_text term;

	while (mw_text_take(&terms, ',', &term))
		if (mw_text_is(term, name))
			return true;
	return false;
}

/*
 * IBS. Its driver refuses the flags exclude_* unless the software filter is asked for, which it has
 * since commit d29e744c7167 ("perf/x86: Relax privilege filter restriction on AMD IBS"); it
 * refuses exclude_guest, and periods that are no multiples of 16 (perf_ibs_init()). With cnt_ctl
 * it counts operations, not cycles, and the driver keeps the low bits of the counter that the
 * hardware has randomised (perf_ibs_handle_irq()).
 */
static int event_fill_ibs(const struct mw_pmu *pmu, struct mw_access_event *event)
{
	static const struct mw_text cnt_ctl = { "cnt_ctl", 7 }, swfilt = { "swfilt", 6 };
	int err = 0;

	event->step = 16;
	event->exclude_guest = false;
	if (mw_pmu_has(pmu, "format/cnt_ctl"))
		err = mw_pmu_encode(pmu, cnt_ctl, &event->config);
	event->kernel = MW_ACCESS_KERNEL_NEVER;
	if (err || !mw_pmu_has(pmu, "format/swfilt"))
		return err;
	event->kernel = MW_ACCESS_KERNEL_FILTER;
	event->filter = event->config;
	return mw_pmu_encode(pmu, swfilt, &event->filter);
}

/*
 * PEBS. Since Sapphire Rapids, the big cores sample loads only while a second event counts in
 * front of them in the same group: commit 61b985e3e775 ("perf/x86/intel: Add perf core PMU
 * support for Sapphire Rapids"). The kernel offers that event as mem-loads-aux.
 */
static int event_fill_core(const struct mw_pmu *pmu, struct mw_text terms,
			   struct mw_access_event *event)
{
	static const struct mw_text aux = { "mem-loads-aux", 13 };

	event->precise = pmu->max_precise == MW_PMU_NO_PRECISE ? 3 : pmu->max_precise;
	if (!event->precise)
		return mw_fail(pmu->ctx, -EOPNOTSUPP,
			       "the PMU %s takes no precise samples here (caps/max_precise is 0), "
			       "and others have no addresses of accesses",
			       pmu->name);
	event->has_aux = terms_have(terms, "mem-loads") && mw_pmu_has(pmu, "events/mem-loads-aux");
	return event->has_aux ? mw_pmu_encode(pmu, aux, &event->aux) : 0;
}

static int plan_add(struct mw_access_plan *plan, const struct mw_pmu *pmu, struct mw_text terms)
{
	struct mw_access_event event = {
		.type = pmu->type,
		.step = 1,
		.exclude_guest = true,
		.default_period = DEFAULT_PERIOD,
	};
	int err;

	if (plan->nr == MW_ACCESS_EVENTS_MAX)
		return mw_fail(pmu->ctx, -E2BIG, "there are too many PMUs with memory accesses");
	snprintf(event.name, sizeof(event.name), "%s/%.*s/", pmu->name, (int)terms.len,
		 terms.len ? terms.at : "");
	err = terms.len ? mw_pmu_encode(pmu, terms, &event.config) : 0;
	if (!err)
		err = strcmp(pmu->name, "ibs_op") ? event_fill_core(pmu, terms, &event)
						  : event_fill_ibs(pmu, &event);
	if (!err)
		err = event_read_cpus(pmu, &event);
	if (!err)
		plan->event[plan->nr++] = event;
	return err;
}

/* ------------------------------------------------------ choices of users */

/* The kernel records each software event if samples have their period (perf_swevent_event()). */
static int plan_page_faults(struct mw_access_plan *plan)
{
	plan->event[plan->nr++] = (struct mw_access_event){
		.name = "page-faults",
		.type = PERF_TYPE_SOFTWARE,
		.config.word[0] = PERF_COUNT_SW_PAGE_FAULTS,
		.step = 1,
		.default_period = 1,
		.every = true,
		.exclude_guest = true,
	};
	return 0;
}

/* "PMU/TERMS/" */
static int plan_named(struct memwatch_ctx *ctx, const char *choice, struct mw_access_plan *plan)
{
	struct mw_text rest = { choice, strlen(choice) }, name, terms;
	char copy[MW_PMU_NAME_ROOM];
	struct mw_pmu pmu;
	int err;

	mw_text_take(&rest, '/', &name);
	if (!mw_text_take(&rest, '/', &terms) || !rest.at || rest.len ||
	    strlen(choice) >= MW_ACCESS_NAME_ROOM || !mw_text_copy(name, copy, sizeof(copy)))
		return mw_fail(ctx, -EINVAL,
			       "\"%s\" is no event: it must be auto, page-faults, or PMU/TERMS/ "
			       "such as cpu/mem-loads/",
			       choice);
	err = mw_pmu_open(ctx, copy, &pmu);
	if (err == -ENOENT)
		return mw_fail(ctx, -EOPNOTSUPP, "there is no PMU %s: %s", copy,
			       mw_access_why_no_pmu(ctx));
	return err ? err : plan_add(plan, &pmu, terms);
}

static bool is_core(const char *name)
{
	return !strcmp(name, "cpu") || !strncmp(name, "cpu_", 4);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_candidate(const struct dirent *entry)
{
	return is_core(entry->d_name) || !strcmp(entry->d_name, "ibs_op");
}

static int plan_add_pmu(struct memwatch_ctx *ctx, const char *name, struct mw_access_plan *plan)
{
	static const char *const events[] = { "mem-loads", "mem-stores" };
	char file[MW_PMU_NAME_ROOM];
	struct mw_pmu pmu;
	int err = mw_pmu_open(ctx, name, &pmu);

	if (err || !is_core(name))
		return err ? err : plan_add(plan, &pmu, (struct mw_text){ 0 });
	for (int i = 0; i < 2 && !err; i++) {
		snprintf(file, sizeof(file), "events/%s", events[i]);
		if (mw_pmu_has(&pmu, file))
			err = plan_add(plan, &pmu,
				       (struct mw_text){ events[i], strlen(events[i]) });
	}
	return err;
}

static int plan_auto(struct memwatch_ctx *ctx, struct mw_access_plan *plan)
{
	struct dirent **entries;
	bool core = false;
	char *path;
	int nr, err = mw_ctx_path(ctx, MW_PMU_DEVICES, &path);

	if (err)
		return err;
	nr = scandir(path, &entries, is_candidate, compare_names);
	free(path);
	if (nr < 0 && errno != ENOENT)
		return mw_fail(ctx, -errno, "%s: %s", MW_PMU_DEVICES, strerror(errno));
	if (nr < 0)
		return mw_fail(ctx, -EOPNOTSUPP,
			       "this kernel has no performance events: there is no %s",
			       MW_PMU_DEVICES);
	for (int i = 0; i < nr; i++) {
		core |= is_core(entries[i]->d_name);
		if (!err)
			err = plan_add_pmu(ctx, entries[i]->d_name, plan);
		free(entries[i]);
	}
	free(entries);
	if (!err && !plan->nr)
		err = mw_fail(ctx, -EOPNOTSUPP, "nothing samples memory accesses: %s",
			      core ? mw_access_why_no_event(ctx) : mw_access_why_no_pmu(ctx));
	return err;
}

int mw_access_find(struct memwatch_ctx *ctx, const char *choice, struct mw_access_plan *ret)
{
	int err;

	*ret = (struct mw_access_plan){ 0 };
	if (!strcmp(choice, "auto"))
		err = plan_auto(ctx, ret);
	else if (!strcmp(choice, "page-faults"))
		err = plan_page_faults(ret);
	else
		err = plan_named(ctx, choice, ret);
	if (err)
		mw_access_plan_uninit(ret);
	return err;
}
