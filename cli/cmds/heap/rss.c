// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap report --rss": what the resident set of a process consists of.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "cmds/heap/rss.h"
#include "common/message.h"
#include "output/table.h"
#include "text/escape.h"

static const struct {
	const char *key, *title;
} parts[MEMWATCH_HEAP_PARTS] = {
	[MEMWATCH_HEAP_PART_LIVE] = { "live", "live" },
	[MEMWATCH_HEAP_PART_OVERHEAD] = { "overhead", "headers and rounding of these" },
	[MEMWATCH_HEAP_PART_FREE] = { "free", "free inside the allocator" },
	[MEMWATCH_HEAP_PART_CACHES] = { "caches", "free in caches of threads" },
	[MEMWATCH_HEAP_PART_STACKS] = { "stacks", "stacks" },
	[MEMWATCH_HEAP_PART_ANONYMOUS] = { "anonymous", "other anonymous mappings" },
	[MEMWATCH_HEAP_PART_FILES] = { "files", "files" },
	[MEMWATCH_HEAP_PART_SHARED] = { "shared", "shared memory" },
	[MEMWATCH_HEAP_PART_UNEXPLAINED] = { "unexplained", "unexplained" },
};

static const char *const verdict_names[] = {
	[MEMWATCH_HEAP_IN_USE] = "in-use",   [MEMWATCH_HEAP_LEAK] = "leak",
	[MEMWATCH_HEAP_HOARDED] = "hoarded", [MEMWATCH_HEAP_FRAGMENTED] = "fragmented",
	[MEMWATCH_HEAP_OTHER] = "other",
};

enum { PART, SIZE, SHARE, LOW, HIGH, COLUMNS };

static const struct mw_column columns[COLUMNS] = {
	[PART] = { "part", "PART", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[SIZE] = { "bytes", "SIZE", MW_KIND_DOUBLE, MW_UNIT_BYTES, 0 },
	[SHARE] = { "percent", "SHARE", MW_KIND_DOUBLE, MW_UNIT_PERCENT, 0 },
	[LOW] = { "low_bytes", "FROM", MW_KIND_DOUBLE, MW_UNIT_BYTES, 0 },
	[HIGH] = { "high_bytes", "TO", MW_KIND_DOUBLE, MW_UNIT_BYTES, 0 },
};

/* The call stack that holds most of what is live; "" if none is known. */
static const char *top_site(const struct heap_rows *sites, char *buf, size_t size)
{
	MEMWATCH_OPTS(memwatch_heap_row, row);

	*buf = '\0';
	if (memwatch_heap_view_get_row(sites->view, 0, &row) != 1 ||
	    !(row.flat[MEMWATCH_HEAP_LIVE_BYTES].value > 0))
		return buf;
	return heap_site_text(sites->view, 0, buf, size);
}

/* The verdict as a sentence. Returns @buf. */
static const char *sentence(const struct memwatch_heap_rss *rss, const struct heap_rows *sites,
			    char *buf, size_t size)
{
	const struct memwatch_heap_estimate *part = rss->part;
	char a[32], b[32], site[1600];
	const char *unknown = rss->flags & MEMWATCH_HEAP_RSS_NO_FIGURES
				      ? ", and may be free inside the allocator"
				      : "";
	const char *by = *top_site(sites, site, sizeof(site)) ? "; most is from " : "";

	mw_human_double(part[MEMWATCH_HEAP_PART_LIVE].value, MW_UNIT_BYTES, a, sizeof(a));
	switch (rss->verdict) {
	case MEMWATCH_HEAP_LEAK:
		snprintf(buf, size, "Leak: %s are live and have grown until now%s%s.", a, by, site);
		return buf;
	case MEMWATCH_HEAP_IN_USE:
		snprintf(buf, size, "In use: %s are live and do not grow%s%s.", a, by, site);
		return buf;
	case MEMWATCH_HEAP_OTHER:
		mw_human_double(part[rss->largest].value, MW_UNIT_BYTES, b, sizeof(b));
		if (rss->largest == MEMWATCH_HEAP_PART_UNEXPLAINED)
			snprintf(buf, size, "Other: the largest part is %s that are unexplained%s.",
				 b, unknown);
		else
			snprintf(buf, size,
				 "Other: it is not the heap: the largest part is %s of %s.", b,
				 parts[rss->largest].title);
		return buf;
	default:
		break;
	}
	mw_human_double(part[MEMWATCH_HEAP_PART_FREE].value, MW_UNIT_BYTES, a, sizeof(a));
	mw_human_double(rss->trim.value, MW_UNIT_BYTES, b, sizeof(b));
	if (rss->verdict == MEMWATCH_HEAP_HOARDED)
		snprintf(buf, size,
			 "Hoarded: the allocator keeps %s that are free; malloc_trim() would "
			 "return %s.",
			 a, isnan(rss->trim.value) ? "an unknown part" : b);
	else
		snprintf(buf, size,
			 "Fragmented: %s are free between live objects, so that malloc_trim() "
			 "would return only %s%s%s.",
			 a, b, *site ? "; most of these objects are from " : "", site);
	return buf;
}

static int read_rss(const struct heap_profiles *profiles, const char *path,
		    struct memwatch_heap_rss *rss)
{
	int err = memwatch_heap_get_rss(profiles->heap, 0, profiles->memory, rss);

	if (!err)
		return 0;
	mw_error(err == -ENODATA ? MW_EXIT_NOTHING : MW_EXIT_FAILED, path, "%s",
		 memwatch_ctx_error(profiles->ctx));
	if (err == -ENODATA)
		mw_hint("give the number of a process that runs");
	return err == -ENODATA ? MW_EXIT_NOTHING : MW_EXIT_FAILED;
}

/* Programs that read CSV get the names of JSON. */
static int fill_table(const struct memwatch_heap_rss *rss, bool csv, struct mw_table *table)
{
	mw_table_init(table, columns, COLUMNS);
	for (int i = 0; i < MEMWATCH_HEAP_PARTS; i++) {
		const struct memwatch_heap_estimate *part = &rss->part[i];
		struct mw_cell *cells = mw_table_row(table);
		bool known = !isnan(part->value), interval = known && part->low < part->high;

		if (!cells)
			return mw_error_errno(-ENOMEM, "heap report");
		cells[PART] = (struct mw_cell){ .text = csv ? parts[i].key : parts[i].title };
		cells[SIZE] = (struct mw_cell){ .real = part->value, .missing = !known };
		cells[SHARE] = (struct mw_cell){
			.real = 100 * part->value / (double)rss->rss_bytes,
			.missing = !known || !rss->rss_bytes,
		};
		cells[LOW] = (struct mw_cell){ .real = part->low, .missing = !interval };
		cells[HIGH] = (struct mw_cell){ .real = part->high, .missing = !interval };
	}
	return 0;
}

static void print_beside(const struct memwatch_heap_rss *rss)
{
	char a[32], b[32];

	if (!(rss->flags & MEMWATCH_HEAP_RSS_ENDED))
		printf("Beside it: page tables %s, swapped out %s.\n",
		       mw_human_uint(rss->page_table_bytes, MW_UNIT_BYTES, a, sizeof(a)),
		       mw_human_uint(rss->swapped_bytes, MW_UNIT_BYTES, b, sizeof(b)));
	if (!(rss->flags & MEMWATCH_HEAP_RSS_NO_FIGURES))
		printf("The figures of the allocator are %s old.\n",
		       mw_human_uint(rss->figures_age_ns, MW_UNIT_NS, a, sizeof(a)));
	if (rss->flags & MEMWATCH_HEAP_RSS_NO_FIGURES)
		printf("The profile has no figures of the allocator, or none yet: what is free in "
		       "it is not known.\n");
	if (rss->flags & MEMWATCH_HEAP_RSS_UNSEEN)
		printf("The allocator has another number of bytes in use than the profile has "
		       "live: objects from before it began, for example.\n");
	if (rss->flags & MEMWATCH_HEAP_RSS_ENDED)
		printf("The process is not looked at: this is what its profile says.\n");
	if (!isnan(rss->trim.value))
		printf("malloc_trim() would return %s.\n",
		       mw_human_double(rss->trim.value, MW_UNIT_BYTES, a, sizeof(a)));
	if (rss->arenas > 1)
		printf("There are %u arenas: %s are free in all but the first, which "
		       "MALLOC_ARENA_MAX=1 would make one.\n",
		       rss->arenas, mw_human_uint(rss->cap_bytes, MW_UNIT_BYTES, a, sizeof(a)));
}

int heap_rss_print(const struct heap_profiles *profiles, const struct heap_rows *sites,
		   const char *path)
{
	MEMWATCH_OPTS(memwatch_heap_info, info);
	MEMWATCH_OPTS(memwatch_heap_rss, rss);
	bool csv = sites->cli->format == MW_FORMAT_CSV;
	char text[2048], comm[64], name[256];
	struct mw_table table;
	int rc = read_rss(profiles, path, &rss);

	if (rc)
		return rc;
	rc = fill_table(&rss, csv, &table);
	if (!rc && csv) {
		mw_table_csv(&table, stdout);
	} else if (!rc) {
		memwatch_heap_get_info(profiles->heap, 0, &info);
		printf("%s: process %u (%s), resident set %s\n\n",
		       mw_escape(path, name, sizeof(name)), info.pid,
		       mw_escape(info.comm, comm, sizeof(comm)),
		       mw_human_uint(rss.rss_bytes, MW_UNIT_BYTES, text, sizeof(text)));
		rc = mw_table_print(&table);
		putchar('\n');
		print_beside(&rss);
		printf("%s\n", sentence(&rss, sites, text, sizeof(text)));
	}
	mw_table_uninit(&table);
	return rc;
}

static void parts_json(const struct memwatch_heap_rss *rss, struct mw_json *json)
{
	mw_json_object(json, "parts");
	for (int i = 0; i < MEMWATCH_HEAP_PARTS; i++)
		mw_estimate_json(json, parts[i].key, &rss->part[i]);
	mw_json_object_end(json);
}

int heap_rss_json(const struct heap_profiles *profiles, const struct heap_rows *sites,
		  const char *path, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_heap_rss, rss);
	char text[2048];
	int rc = read_rss(profiles, path, &rss);

	if (rc)
		return rc;
	mw_json_object(json, "rss");
	mw_json_uint(json, "rss_bytes", rss.rss_bytes);
	parts_json(&rss, json);
	mw_json_uint(json, "swapped_bytes", rss.swapped_bytes);
	mw_json_uint(json, "page_table_bytes", rss.page_table_bytes);
	mw_json_string(json, "verdict", verdict_names[rss.verdict]);
	mw_json_string(json, "sentence", sentence(&rss, sites, text, sizeof(text)));
	mw_json_string(json, "largest",
		       rss.verdict == MEMWATCH_HEAP_OTHER ? parts[rss.largest].key : NULL);
	mw_estimate_json(json, "trim_bytes", &rss.trim);
	mw_json_uint(json, "cap_bytes", rss.cap_bytes);
	mw_json_uint(json, "arenas", rss.arenas);
	mw_json_bool(json, "has_figures", !(rss.flags & MEMWATCH_HEAP_RSS_NO_FIGURES));
	mw_json_bool(json, "has_unseen", rss.flags & MEMWATCH_HEAP_RSS_UNSEEN);
	mw_json_bool(json, "has_ended", rss.flags & MEMWATCH_HEAP_RSS_ENDED);
	mw_json_double(json, "figures_age_seconds",
		       rss.figures_age_ns == UINT64_MAX ? NAN : (double)rss.figures_age_ns / 1e9);
	mw_json_object_end(json);
	return 0;
}
