// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The sites and the objects as tables for people and as CSV.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "cmds/stale/stale.h"
#include "common/message.h"
#include "output/table.h"
#include "common/pool.h"
#include "text/escape.h"

const char *const stale_growth_names[] = { "none", "growing", "burst", "stopped" };

enum site_column {
	SITE_LEAK,
	SITE_STALE,
	SITE_STALE_OBJECTS,
	SITE_LIVE,
	SITE_LIVE_OBJECTS,
	SITE_ALLOCATED,
	SITE_FREED,
	SITE_LONGEST,
	SITE_THRESHOLD,
	SITE_SCHEME,
	SITE_GROWTH,
	SITE_NAME,
	SITE_COLUMNS,
};

static const struct mw_column site_columns[SITE_COLUMNS] = {
	[SITE_LEAK] = { "leak", "LEAK", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[SITE_STALE] = { "stale_bytes", "STALE", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	[SITE_STALE_OBJECTS] = { "stale_objects", "OBJECTS", MW_KIND_UINT, MW_UNIT_COUNT, 0 },
	[SITE_LIVE] = { "live_bytes", "LIVE", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	[SITE_LIVE_OBJECTS] = { "live_objects", NULL, MW_KIND_UINT, MW_UNIT_COUNT,
				MW_COLUMN_HIDDEN },
	[SITE_ALLOCATED] = { "allocated_objects", "ALLOCATED", MW_KIND_UINT, MW_UNIT_COUNT, 0 },
	[SITE_FREED] = { "freed_objects", "FREED", MW_KIND_UINT, MW_UNIT_COUNT, 0 },
	[SITE_LONGEST] = { "longest_ns", "LONGEST", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[SITE_THRESHOLD] = { "threshold_ns", "THRESHOLD", MW_KIND_DOUBLE, MW_UNIT_NS, 0 },
	[SITE_SCHEME] = { "scheme", "SCHEME", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[SITE_GROWTH] = { "growth", "GROWTH", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[SITE_NAME] = { "site", "SITE", MW_KIND_TEXT, MW_UNIT_NONE, MW_COLUMN_LAST },
};

enum object_column {
	OBJECT_LEAK,
	OBJECT_STALENESS,
	OBJECT_SIZE,
	OBJECT_ADDRESS,
	OBJECT_TID,
	OBJECT_ACCESSES,
	OBJECT_SITE,
	OBJECT_LAST,
	OBJECT_COLUMNS,
};

static const struct mw_column object_columns[OBJECT_COLUMNS] = {
	[OBJECT_LEAK] = { "leak", "LEAK", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[OBJECT_STALENESS] = { "staleness_ns", "STALENESS", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[OBJECT_SIZE] = { "size_bytes", "SIZE", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	[OBJECT_ADDRESS] = { "address", "ADDRESS", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[OBJECT_TID] = { "tid", "THREAD", MW_KIND_UINT, MW_UNIT_NONE, 0 },
	[OBJECT_ACCESSES] = { "accesses", "ACCESSES", MW_KIND_UINT, MW_UNIT_COUNT, 0 },
	[OBJECT_SITE] = { "site", "SITE", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[OBJECT_LAST] = { "last_access_site", "LAST-ACCESS", MW_KIND_TEXT, MW_UNIT_NONE,
			  MW_COLUMN_LAST },
};

static struct mw_cell text_cell(const char *text)
{
	return (struct mw_cell){ .text = text, .missing = !text };
}

static struct mw_cell number_cell(uint64_t number)
{
	return (struct mw_cell){ .number = number };
}

static void fill_site(const struct memwatch_stale_site *site, struct mw_cell *cells)
{
	cells[SITE_LEAK] = text_cell(site->leak ? "yes" : "no");
	cells[SITE_STALE] = number_cell(site->stale_bytes);
	cells[SITE_STALE_OBJECTS] = number_cell(site->stale_objects);
	cells[SITE_LIVE] = number_cell(site->live_bytes);
	cells[SITE_LIVE_OBJECTS] = number_cell(site->live_objects);
	cells[SITE_ALLOCATED] = number_cell(site->allocated_objects);
	cells[SITE_FREED] = number_cell(site->freed_objects);
	cells[SITE_LONGEST] = (struct mw_cell){ .number = site->longest_ns,
						.missing = !site->live_objects };
	cells[SITE_THRESHOLD] = (struct mw_cell){ .real = site->threshold_ns,
						  .missing = isnan(site->threshold_ns) };
	cells[SITE_SCHEME] = text_cell(stale_scheme_names[site->scheme]);
	cells[SITE_GROWTH] = text_cell(stale_growth_names[site->growth]);
	cells[SITE_NAME] = text_cell(site->site);
}

/* Prints the table and frees it. @err: it has not all rows. Returns an exit code. */
static int finish_table(const struct stale_result *r, struct mw_table *table, int err,
			uint64_t hidden)
{
	int rc = 0;

	if (err)
		rc = mw_error_errno(err, "stale report");
	else if (r->cli->format == MW_FORMAT_CSV)
		mw_table_csv(table, stdout);
	else
		rc = mw_table_print(table);
	if (!rc && hidden && r->cli->format == MW_FORMAT_TABLE)
		printf("%" PRIu64 " more rows are not shown (--top %" PRIu64 ").\n", hidden,
		       r->top);
	mw_table_uninit(table);
	return rc;
}

int stale_print_sites(const struct stale_result *r)
{
	uint64_t sites = r->info.sites, shown = r->top && r->top < sites ? r->top : sites;
	MEMWATCH_OPTS(memwatch_stale_site, site);
	struct mw_table table;
	int err = 0;

	mw_table_init(&table, site_columns, SITE_COLUMNS);
	for (uint32_t i = 0; !err && i < shown; i++) {
		struct mw_cell *cells = mw_table_row(&table);

		if (cells && memwatch_stale_get_site(r->stale, i, &site) == 1)
			fill_site(&site, cells);
		else
			err = -ENOMEM;
	}
	return finish_table(r, &table, err, sites - shown);
}

#define ADDRESS_SIZE 19

static int fill_object(const struct stale_result *r, const struct memwatch_stale_object *object,
		       struct mw_pool *pool, struct mw_cell *cells)
{
	char *address = mw_pool_alloc(pool, ADDRESS_SIZE);
	MEMWATCH_OPTS(memwatch_stale_site, site);

	if (!cells || !address)
		return -ENOMEM;
	snprintf(address, ADDRESS_SIZE, "%#" PRIx64, (uint64_t)object->address);
	memwatch_stale_get_site(r->stale, object->site, &site);
	cells[OBJECT_LEAK] = text_cell(object->leak ? "yes" : "no");
	cells[OBJECT_STALENESS] = number_cell(object->staleness_ns);
	cells[OBJECT_SIZE] = number_cell(object->size);
	cells[OBJECT_ADDRESS] = text_cell(address);
	cells[OBJECT_TID] = number_cell(object->tid);
	cells[OBJECT_ACCESSES] = number_cell(object->accesses);
	cells[OBJECT_SITE] = text_cell(site.site);
	cells[OBJECT_LAST] = text_cell(object->last_access);
	return 0;
}

int stale_print_objects(const struct stale_result *r)
{
	uint64_t live = r->info.live_objects, shown = r->top && r->top < live ? r->top : live;
	MEMWATCH_OPTS(memwatch_stale_object, object);
	struct mw_pool pool = { 0 };
	struct mw_table table;
	int err = 0, rc;

	mw_table_init(&table, object_columns, OBJECT_COLUMNS);
	for (uint64_t i = 0; !err && i < shown; i++) {
		memwatch_stale_get_object(r->stale, i, &object);
		err = fill_object(r, &object, &pool, mw_table_row(&table));
	}
	rc = finish_table(r, &table, err, live - shown);
	mw_pool_free(&pool);
	return rc;
}

/* "SITE leaks: 12 objects (1.5 KiB) were not used for up to 3 s; 988 others were freed at X." */
static void print_leak(const struct stale_result *r, uint32_t number,
		       const struct memwatch_stale_site *site)
{
	MEMWATCH_OPTS(memwatch_stale_place, frees);
	MEMWATCH_OPTS(memwatch_stale_place, access);
	char bytes[32], longest[32];

	mw_human_uint(site->stale_bytes, MW_UNIT_BYTES, bytes, sizeof(bytes));
	mw_human_uint(site->longest_ns, MW_UNIT_NS, longest, sizeof(longest));
	mw_escape_line(stdout,
		       "%s leaks: %" PRIu64 " of %" PRIu64
		       " objects (%s) were not used for up to %s.",
		       site->site, (uint64_t)site->stale_objects, (uint64_t)site->allocated_objects,
		       bytes, longest);
	if (memwatch_stale_get_place(r->stale, MEMWATCH_STALE_SITE_FREES, number, 0, &frees) == 1)
		mw_escape_line(stdout, "  %" PRIu64 " others were freed, most of them at %s.",
			       (uint64_t)site->freed_objects, frees.place);
	if (memwatch_stale_get_place(r->stale, MEMWATCH_STALE_SITE_ACCESS, number, 0, &access) == 1)
		mw_escape_line(stdout, "  Its objects are used most often at %s.", access.place);
}

/* Whether events are missing in what the profiler has recorded. */
static bool is_incomplete(const struct memwatch_stale_info *info)
{
	return info->recorded && (info->lost || info->overlaps || info->damaged || info->cut_off ||
				  info->state == MEMWATCH_STALE_STATE_FULL);
}

static void print_incomplete(const struct memwatch_stale_info *info)
{
	uint64_t recorded = info->allocations + info->frees;

	if (info->lost)
		printf("Only %" PRIu64 " of %" PRIu64 " allocations and frees were recorded. "
		       "The others are unknown,\n",
		       recorded, recorded + (uint64_t)info->lost);
	else
		printf("The trace is not complete. What is not in it is unknown,\n");
	printf("so this report is about the recorded part only.\n");
}

/* A program that is active for less, without its pauses, may have done no more than to start. */
#define SHORT_NS 100000000

static void print_duration(const struct memwatch_stale_info *info)
{
	char active[32];

	mw_human_uint(info->active_ns, MW_UNIT_NS, active, sizeof(active));
	printf("The program was active for %s only%s. In so short a time, %s.\n", active,
	       is_incomplete(info) ? " in the recorded part" : "",
	       info->leaked_objects ? "what it keeps\nfrom its start looks like a leak"
				    : "a leak\nmay not be seen yet");
}

/* What is known of objects without their accesses. */
static const char *allocation_evidence(const struct memwatch_stale_info *info)
{
	if (is_incomplete(info))
		return "";
	if (info->began == MEMWATCH_STALE_BEGAN_LATER || info->began == MEMWATCH_STALE_BEGAN_FORK)
		return "What was allocated before the recording began is unknown. Of the rest, "
		       "what is live,\nwhere it was allocated, and its age and growth are exact.\n";
	return "What is live, where it was allocated, and its age and growth are exact.\n";
}

/* For how long the program was watched, and what "not used" means in this report. */
static void print_evidence(const struct memwatch_stale_info *info)
{
	uint64_t charged = info->accesses - info->misses;

	if (info->active_ns < SHORT_NS)
		print_duration(info);
	if (!info->access_event)
		printf("No accesses were sampled: \"not used\" means allocated and not freed "
		       "since.\n%s",
		       allocation_evidence(info));
	else if (info->access_flags & MEMWATCH_STALE_ACCESS_PAGE_FAULTS)
		printf("Accesses: %" PRIu64 " to live objects, the first one to each page only "
		       "(%s):\n"
		       "\"not used\" hardly means more than allocated and not freed since.\n",
		       charged, info->access_event);
	else
		printf("Accesses: %" PRIu64 " samples in live objects, one in %" PRIu64 " (%s).\n",
		       charged, (uint64_t)info->access_period, info->access_event);
}

void stale_print_summary(const struct stale_result *r)
{
	MEMWATCH_OPTS(memwatch_stale_site, site);

	for (uint32_t i = 0; memwatch_stale_get_site(r->stale, i, &site) == 1 && site.leak; i++)
		if (!r->top || i < r->top)
			print_leak(r, i, &site);
	if (!r->info.leaked_objects)
		printf("No leak was found%s.\n",
		       is_incomplete(&r->info) ? " in the recorded part" : "");
	if (is_incomplete(&r->info))
		print_incomplete(&r->info);
	if (r->info.recorded && !r->cli->quiet)
		print_evidence(&r->info);
}
