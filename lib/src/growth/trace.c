// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of traces. A line with a field that is not exactly what it should be is
 * refused, with its number: a guess would give wrong verdicts.
 */
#include "growth/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/text.h"

/* The path of a cgroup has up to 4095 bytes, of which each may be written as an escape of four. */
#define LINE_MAX_BYTES (20U << 10)
#define NR_FIELDS      9  /* which every trace has */
#define MAX_FIELDS     64 /* columns that are looked at */

static const char *const field_names[NR_FIELDS] = { "time_s",  "pid",	  "comm",
						    "anon_kb", "file_kb", "shmem_kb",
						    "swap_kb", "vsz_kb",  "limit_kb" };

/* Columns that a trace may have behind these, in any order. */
enum {
	CGROUP,
	KERNEL,
	SLAB,
	SOCK,
	PAGETABLES,
	GAINED,
	COLD,
	COLD_LOW,
	COLD_HIGH,
	UNTOUCHED,
	NR_OPTIONAL
};
static const char *const optional_names[NR_OPTIONAL] = {
	"cgroup",    "kernel_kb", "slab_kb",	 "sock_kb",	 "pagetables_kb",
	"gained_kb", "cold_kb",	  "cold_low_kb", "cold_high_kb", "untouched_s"
};

/* The most KiB whose number of bytes fits 64 bits. */
#define KB_MAX ((UINT64_MAX >> 10) - 1)

/**
 * struct memwatch_trace - a trace that is being read
 * @ctx: context, a reference
 * @file: owned
 * @number: number of the line in @line
 * @last_ns: time of the previous sample
 * @place: which field is which of the optional columns; 0: there is none
 * @cgroup: the cgroup of the current line
 * @line: the current line, whose fields are unquoted in place
 */
struct memwatch_trace {
	struct memwatch_ctx *ctx;
	FILE *file;
	uint64_t number;
	uint64_t last_ns;
	unsigned int place[NR_OPTIONAL];
	char cgroup[LINE_MAX_BYTES + 1];
	char line[LINE_MAX_BYTES + 1];
};

/* Fails with a message about the field @what of the line, or about the line if it is NULL. */
static int refuse_line(struct memwatch_trace *trace, const char *why, const char *what)
{
	return mw_fail(trace->ctx, -EBADMSG, "line %" PRIu64 ": %s %s", trace->number,
		       what ? what : "the line", why);
}

/* Reads the next line, without its end. Returns 1, 0 at the end of the file, or an error. */
static int read_line(struct memwatch_trace *trace)
{
	size_t len = 0;
	int c;

	trace->number++;
	while ((c = getc(trace->file)) != EOF && c != '\n') {
		if (!c)
			return refuse_line(trace, "contains a NUL byte", NULL);
		if (len == LINE_MAX_BYTES)
			return refuse_line(trace, "is longer than 20 KiB", NULL);
		trace->line[len++] = (char)c;
	}
	if (c == EOF && ferror(trace->file))
		return mw_fail(trace->ctx, -EIO, "cannot be read: %s", strerror(errno));
	if (c == EOF && !len)
		return 0;
	if (len && trace->line[len - 1] == '\r')
		len--;
	trace->line[len] = '\0';
	return 1;
}

/* Unquotes the field at @at in place. Returns the character after it, or NULL. */
static char *unquote_field(char *at, struct mw_text *field)
{
	char *to = at, *from = at + 1;

	field->at = at;
	for (;; from++) {
		if (!*from)
			return NULL;
		if (*from == '"' && *++from != '"')
			break;
		*to++ = *from;
	}
	field->len = (size_t)(to - at);
	return from;
}

/* Splits the line into @fields, the rest of which are empty. */
static int split_line(struct memwatch_trace *trace, struct mw_text *fields)
{
	char *at = trace->line, *end;
	int n = 0;

	for (bool more = true; more && n < MAX_FIELDS; n++) {
		const char *what = n < NR_FIELDS ? field_names[n] : "a column";

		if (*at == '"') {
			end = unquote_field(at, &fields[n]);
			if (!end)
				return refuse_line(trace, "has a quote that does not end", what);
		} else {
			end = at + strcspn(at, ",");
			fields[n] = (struct mw_text){ at, (size_t)(end - at) };
		}
		if (*end && *end != ',')
			return refuse_line(trace, "has text after a quote", what);
		more = *end;
		at = end + more;
	}
	if (n < NR_FIELDS)
		return refuse_line(trace, "is missing", field_names[n]);
	for (; n < MAX_FIELDS; n++)
		fields[n] = (struct mw_text){ at, 0 };
	return 0;
}

/* Seconds with up to nine digits behind the point; more are cut. */
static bool parse_time(struct mw_text text, uint64_t *ret_ns)
{
	struct mw_text whole;
	uint64_t seconds, fraction = 0, unit = 100000000;

	if (!mw_text_take(&text, '.', &whole) ||
	    !mw_text_number(whole, UINT64_MAX / 1000000000 - 1, &seconds))
		return false;
	for (size_t i = 0; i < text.len; i++, unit /= 10) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		fraction += (uint64_t)(text.at[i] - '0') * unit;
	}
	*ret_ns = seconds * 1000000000 + fraction;
	return true;
}

static int parse_bytes(struct memwatch_trace *trace, struct mw_text field, const char *name,
		       __u64 *ret_bytes)
{
	uint64_t kb;

	if (!mw_text_number(field, KB_MAX, &kb))
		return refuse_line(trace, "is not a number of KiB", name);
	*ret_bytes = kb << 10;
	return 0;
}

static int parse_kb(struct memwatch_trace *trace, const struct mw_text *fields, int i,
		    __u64 *ret_bytes)
{
	return parse_bytes(trace, fields[i], field_names[i], ret_bytes);
}

/* As parse_kb(); what is not there is left alone. */
static int parse_optional_kb(struct memwatch_trace *trace, const struct mw_text *fields, int i,
			     __u64 *ret_bytes)
{
	struct mw_text field = fields[trace->place[i]];

	if (!trace->place[i] || !field.len)
		return 0;
	return parse_bytes(trace, field, optional_names[i], ret_bytes);
}

/* What the process does not touch any more. Without an interval it is exact. */
static int parse_touch(struct memwatch_trace *trace, const struct mw_text *fields,
		       struct memwatch_growth_sample *ret)
{
	struct mw_text cold = fields[trace->place[COLD]], gained = fields[trace->place[GAINED]];
	struct mw_text untouched = fields[trace->place[UNTOUCHED]];
	uint64_t seconds = 0;
	int err;

	if (!trace->place[COLD] || !cold.len)
		return 0;
	err = parse_optional_kb(trace, fields, COLD, &ret->cold_bytes);
	ret->cold_low_bytes = ret->cold_high_bytes = ret->cold_bytes;
	ret->gained_bytes = MEMWATCH_GROWTH_NONE;
	if (err || !trace->place[GAINED] || !gained.len)
		return err;
	err = parse_optional_kb(trace, fields, GAINED, &ret->gained_bytes);
	if (!err)
		err = parse_optional_kb(trace, fields, COLD_LOW, &ret->cold_low_bytes);
	if (!err)
		err = parse_optional_kb(trace, fields, COLD_HIGH, &ret->cold_high_bytes);
	if (!err && trace->place[UNTOUCHED] && untouched.len &&
	    !mw_text_number(untouched, UINT32_MAX, &seconds))
		return refuse_line(trace, "is not a number of seconds", optional_names[UNTOUCHED]);
	ret->untouched_ns = seconds * 1000000000;
	return err;
}

static int parse_optional(struct memwatch_trace *trace, const struct mw_text *fields,
			  struct memwatch_growth_sample *ret)
{
	struct mw_text cgroup = fields[trace->place[CGROUP]];
	int err;

	if (trace->place[CGROUP]) {
		if (!mw_text_copy(cgroup, trace->cgroup, sizeof(trace->cgroup)))
			return refuse_line(trace, "is not a path", optional_names[CGROUP]);
		ret->cgroup = trace->cgroup;
		/* Without a path, it is unknown for a process, and is the machine for id 0. */
		if (!cgroup.len)
			ret->cgroup = ret->tgid ? NULL : "/";
	}
	err = parse_optional_kb(trace, fields, KERNEL, &ret->kernel_bytes);
	if (!err)
		err = parse_optional_kb(trace, fields, SLAB, &ret->slab_bytes);
	if (!err)
		err = parse_optional_kb(trace, fields, SOCK, &ret->sock_bytes);
	if (!err)
		err = parse_optional_kb(trace, fields, PAGETABLES, &ret->pagetables_bytes);
	return err ? err : parse_touch(trace, fields, ret);
}

static int parse_sample(struct memwatch_trace *trace, struct mw_text *fields,
			struct memwatch_growth_sample *ret)
{
	uint64_t pid, time_ns;
	int err;

	if (!parse_time(fields[0], &time_ns))
		return refuse_line(trace, "is not a time in seconds", field_names[0]);
	if (time_ns < trace->last_ns)
		return refuse_line(trace, "is less than in the previous line", field_names[0]);
	trace->last_ns = ret->time_ns = time_ns;
	if (!mw_text_number(fields[1], UINT32_MAX, &pid))
		return refuse_line(trace, "is not a process id", field_names[1]);
	ret->tgid = (__u32)pid;
	if (!mw_text_copy(fields[2], ret->comm, sizeof(ret->comm)))
		return refuse_line(trace, "is longer than 63 bytes", field_names[2]);
	err = parse_kb(trace, fields, 3, &ret->anon_bytes);
	if (!err)
		err = parse_kb(trace, fields, 4, &ret->file_bytes);
	if (!err)
		err = parse_kb(trace, fields, 5, &ret->shmem_bytes);
	if (!err)
		err = parse_kb(trace, fields, 6, &ret->swap_bytes);
	if (!err)
		err = parse_kb(trace, fields, 7, &ret->vsz_bytes);
	if (!err && fields[8].len)
		err = parse_kb(trace, fields, 8, &ret->limit_bytes);
	if (!ret->limit_bytes)
		ret->limit_bytes = MEMWATCH_GROWTH_NONE;
	return err ? err : parse_optional(trace, fields, ret);
}

/* Finds the optional columns in the header. */
static void find_columns(struct memwatch_trace *trace, const struct mw_text *fields)
{
	for (unsigned int i = NR_FIELDS; i < MAX_FIELDS; i++)
		for (unsigned int name = 0; name < NR_OPTIONAL; name++)
			if (mw_text_is(fields[i], optional_names[name]))
				trace->place[name] = i;
}

static int read_header(struct memwatch_trace *trace)
{
	struct mw_text fields[MAX_FIELDS];
	int err = read_line(trace);

	if (err > 0)
		err = split_line(trace, fields);
	else if (!err)
		err = refuse_line(trace, "is empty", NULL);
	for (int i = 0; !err && i < NR_FIELDS; i++)
		if (!mw_text_is(fields[i], field_names[i]))
			err = -EBADMSG;
	if (err == -EBADMSG)
		mw_fail(trace->ctx, err,
			"line 1: the header of a trace is needed: time_s,pid,comm,anon_kb,file_kb,"
			"shmem_kb,swap_kb,vsz_kb,limit_kb");
	else if (!err)
		find_columns(trace, fields);
	return err;
}

int mw_trace_open_file(struct memwatch_ctx *ctx, FILE *file, const char *name,
		       struct memwatch_trace **ret)
{
	struct memwatch_trace *trace = calloc(1, sizeof(*trace));
	int err;

	if (!trace) {
		fclose(file);
		return mw_fail_memory(ctx, name);
	}
	trace->ctx = memwatch_ctx_ref(ctx);
	trace->file = file;
	err = read_header(trace);
	if (err) {
		memwatch_trace_close(trace);
		return err;
	}
	*ret = trace;
	return 0;
}

int memwatch_trace_open(struct memwatch_ctx *ctx, const char *path, struct memwatch_trace **ret)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : fdopen(0, "re");

	if (!file) {
		int err = -errno;

		return mw_fail(ctx, err, "%s", strerror(-err));
	}
	return mw_trace_open_file(ctx, file, path, ret);
}

int memwatch_trace_next(struct memwatch_trace *trace, struct memwatch_growth_sample *ret)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample);
	struct mw_text fields[MAX_FIELDS];
	int err;

	do {
		err = read_line(trace);
		if (err <= 0)
			return err;
	} while (!trace->line[0]);
	err = split_line(trace, fields);
	if (!err)
		err = parse_sample(trace, fields, &sample);
	if (!err)
		err = mw_opts_export(ret, &sample, sizeof(sample));
	return err ? err : 1;
}

void memwatch_trace_close(struct memwatch_trace *trace)
{
	if (!trace)
		return;
	fclose(trace->file);
	memwatch_ctx_unref(trace->ctx);
	free(trace);
}
