// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Parses /proc/memwatch/rmids: columns separated by tabs, whose order is given by the first
 * line. A newer module may add columns before comm. That is the last column because a name
 * may contain any character.
 */
#include <memwatch/proc.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"
#include "base/text.h"
#include "module/proc-file.h"

#define COLUMN(name)                                                                               \
	{                                                                                          \
#name, offsetof(struct memwatch_process, name),                                    \
			sizeof(((struct memwatch_process *)0)->name)                               \
	}

static const struct column {
	const char *name;
	size_t offset;
	size_t size;
} columns[] = {
	COLUMN(rmid),	       COLUMN(generation),    COLUMN(tgid),	 COLUMN(parent_tgid),
	COLUMN(start_time_ns), COLUMN(alloc_time_ns), COLUMN(cgroup_id), COLUMN(uid),
};

#define NR_COLUMNS     (sizeof(columns) / sizeof(columns[0]))
#define PLACES_MAX     64
#define UNKNOWN_COLUMN NR_COLUMNS
#define COMM_COLUMN    (NR_COLUMNS + 1)

/* Which column of @columns, or which of the two above, is at which place of a line. */
struct layout {
	size_t count;
	size_t place[PLACES_MAX];
};

/**
 * struct rmids - the result with its list
 * @seen: what the caller sees; the first member, so that its address is that of the whole
 * @processes: one for each RMID in use
 */
struct rmids {
	struct memwatch_proc_rmids seen;
	struct memwatch_process *processes;
};

/* The result, the capacity of its array, and the columns of the file. */
struct rmids_parser {
	struct rmids *rmids;
	size_t max_processes;
	struct layout layout;
};

static size_t find_column(struct mw_text name)
{
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		if (mw_text_is(name, columns[i].name))
			return i;
	}
	return mw_text_is(name, "comm") ? COMM_COLUMN : UNKNOWN_COLUMN;
}

/* "# rmid generation ... comm"; every column that is known here is required. */
static bool parse_names(struct mw_text line, struct layout *layout)
{
	size_t known = 0;
	struct mw_text name;
	char separator;

	if (!mw_text_skip(&line, "# "))
		return false;
	separator = memchr(line.at, '\t', line.len) ? '\t' : ' ';
	layout->count = 0;
	while (mw_text_take(&line, separator, &name)) {
		if (layout->count == PLACES_MAX)
			return false;
		layout->place[layout->count] = find_column(name);
		known += layout->place[layout->count] < NR_COLUMNS;
		layout->count++;
	}
	return known == NR_COLUMNS && layout->place[layout->count - 1] == COMM_COLUMN;
}

static bool parse_value(const struct column *column, struct mw_text text,
			struct memwatch_process *process)
{
	void *member = (char *)process + column->offset;
	uint64_t number;

	if (!mw_text_number(text, column->size == 4 ? UINT32_MAX : UINT64_MAX, &number))
		return false;
	if (column->size == 4)
		*(uint32_t *)member = (uint32_t)number;
	else
		*(uint64_t *)member = number;
	return true;
}

static bool parse_process(struct mw_text line, const struct layout *layout,
			  struct memwatch_process *process)
{
	struct mw_text value;

	*process = (struct memwatch_process){ .sz = sizeof(*process) };
	for (size_t i = 0; i + 1 < layout->count; i++) {
		if (!mw_text_take(&line, '\t', &value) || !line.at)
			return false;
		if (layout->place[i] < NR_COLUMNS &&
		    !parse_value(&columns[layout->place[i]], value, process))
			return false;
	}
	process->flags = MEMWATCH_PROCESS_EXISTED;
	process->reason = MEMWATCH_REASON_SCAN;
	return process->rmid && mw_text_unescape(line, process->comm, sizeof(process->comm));
}

/* Returns 1 at the line "# end COUNT". */
static int parse_rmids_line(struct rmids_parser *parser, struct mw_text line)
{
	struct rmids *rmids = parser->rmids;
	struct memwatch_process process;
	uint64_t count;

	if (mw_text_skip(&line, "# end "))
		return mw_text_number(line, UINT64_MAX, &count) && count == rmids->seen.count
			       ? 1
			       : -EBADMSG;
	if (!parse_process(line, &parser->layout, &process))
		return -EBADMSG;
	if (mw_array_reserve(rmids->processes, parser->max_processes, rmids->seen.count + 1))
		return -ENOMEM;
	rmids->processes[rmids->seen.count++] = process;
	return 0;
}

static int parse_rmids(struct memwatch_ctx *ctx, struct mw_text rest, struct rmids *rmids)
{
	struct rmids_parser parser = { .rmids = rmids };
	unsigned int number = 1;
	struct mw_text line;
	int err;

	if (!mw_text_take(&rest, '\n', &line) || !parse_names(line, &parser.layout))
		return mw_fail(ctx, -EBADMSG,
			       "/proc/memwatch/rmids: the first line does not name the columns");
	while (rest.len && mw_text_take(&rest, '\n', &line)) {
		number++;
		err = parse_rmids_line(&parser, line);
		if (err == -ENOMEM)
			return mw_fail_memory(ctx, "rmids");
		if (err < 0 || (err && rest.len))
			return mw_fail(ctx, -EBADMSG, "/proc/memwatch/rmids: line %u is not valid",
				       number);
		if (err)
			return 0;
	}
	return mw_fail(ctx, -EBADMSG,
		       "/proc/memwatch/rmids: the last line is missing: the list is incomplete");
}

int memwatch_proc_rmids_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
			      struct memwatch_proc_rmids **ret)
{
	struct rmids *rmids = calloc(1, sizeof(*rmids));
	int err;

	if (!rmids)
		return mw_fail_memory(ctx, "rmids");
	err = parse_rmids(ctx, (struct mw_text){ text, len }, rmids);
	if (err) {
		memwatch_proc_rmids_free(&rmids->seen);
		return err;
	}
	*ret = &rmids->seen;
	return 0;
}

int memwatch_proc_rmids_read(struct memwatch_ctx *ctx, struct memwatch_proc_rmids **ret)
{
	char *text;
	size_t len;
	int err;

	err = mw_proc_file_read(ctx, "rmids", &text, &len);
	if (err)
		return err;
	err = memwatch_proc_rmids_parse(ctx, text, len, ret);
	free(text);
	return err;
}

struct memwatch_proc_rmids *memwatch_proc_rmids_free(struct memwatch_proc_rmids *rmids)
{
	struct rmids *whole = (struct rmids *)(void *)rmids;

	if (whole)
		free(whole->processes);
	free(whole);
	return NULL;
}

const struct memwatch_process *memwatch_proc_rmid_at(const struct memwatch_proc_rmids *rmids,
						     size_t index)
{
	const struct rmids *whole = (const struct rmids *)(const void *)rmids;

	return index < rmids->count ? &whole->processes[index] : NULL;
}
