// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Parsers of /proc/memwatch. The text comes from the kernel, but a file may be
 * a copy from anywhere: nothing is assumed about it.
 */
#include <memwatch/proc.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text-file.h"

static int bad_line(struct memwatch_ctx *ctx, const char *file, unsigned int number,
		    struct mw_span line)
{
	char shown[61];
	size_t len = line.len < sizeof(shown) ? line.len : sizeof(shown) - 1;

	for (size_t i = 0; i < len; i++)
		shown[i] = line.at[i] >= 0x20 && line.at[i] < 0x7f ? line.at[i] : '?';
	shown[len] = '\0';
	return mw_fail(ctx, -EBADMSG, "%s: line %u does not parse: \"%s\"", file, number, shown);
}

/* -------------------------------------------------------------- status */

enum key_kind { KEY_U32, KEY_U64, KEY_TEXT };

static const struct key {
	const char *name;
	enum key_kind kind;
	size_t offset;
	size_t size;
} status_keys[] = {
#define KEY(kind, member) \
	{ #member, kind, offsetof(struct memwatch_proc_status, member), \
	  sizeof(((struct memwatch_proc_status *)0)->member) }
	KEY(KEY_TEXT, version),
	KEY(KEY_U32, abi),
	KEY(KEY_U32, schema),
	KEY(KEY_TEXT, backend),
	KEY(KEY_TEXT, backend_reason),
	KEY(KEY_U64, sessions),
	KEY(KEY_U64, sessions_started),
	KEY(KEY_U64, period_ns),
	KEY(KEY_U64, limbo_ns),
	KEY(KEY_TEXT, policy),
	KEY(KEY_U64, idle_stop),
	KEY(KEY_TEXT, cpumask),
	KEY(KEY_U64, filters),
	KEY(KEY_U64, rmids_total),
	KEY(KEY_U64, rmids_used),
	KEY(KEY_U64, rmids_limbo),
	KEY(KEY_U64, rmids_free),
	KEY(KEY_U64, processes),
	KEY(KEY_U64, processes_measured),
	KEY(KEY_U64, processes_waiting),
	KEY(KEY_U64, processes_filtered),
	KEY(KEY_U64, allocs),
	KEY(KEY_U64, frees),
	KEY(KEY_U64, promotions),
	KEY(KEY_U64, revocations),
	KEY(KEY_U64, exhausted),
	KEY(KEY_U64, untracked),
#undef KEY
};

static bool parse_value(struct memwatch_proc_status *status, const struct key *key,
			struct mw_span value)
{
	char *member = (char *)status + key->offset;
	uint64_t number;

	if (key->kind == KEY_TEXT)
		return mw_span_copy(value, member, key->size);
	if (!mw_span_number(value, key->kind == KEY_U32 ? UINT32_MAX : UINT64_MAX, &number))
		return false;
	if (key->kind == KEY_U32)
		*(__u32 *)member = (__u32)number;
	else
		*(__u64 *)member = number;
	return true;
}

static bool parse_waiting(struct memwatch_proc_status *status, struct mw_span value)
{
	struct memwatch_proc_waiting *waiting;
	struct mw_span tgid;
	uint64_t number;

	if (status->nr_waiting == sizeof(status->waiting) / sizeof(*status->waiting))
		return true; /* the first ones waited longest */
	waiting = &status->waiting[status->nr_waiting];
	if (!mw_span_until(&value, ' ', &tgid) || !mw_span_number(tgid, UINT32_MAX, &number) ||
	    !mw_span_unescape(value, waiting->comm, sizeof(waiting->comm)))
		return false;
	waiting->tgid = (__u32)number;
	status->nr_waiting++;
	return true;
}

static bool parse_status_line(struct memwatch_proc_status *status, struct mw_span line)
{
	struct mw_span key;

	if (!mw_span_until(&line, ':', &key) || !key.len)
		return false;
	/* after the colon a blank, unless there is no value */
	if (line.len && !mw_span_skip(&line, " "))
		return false;
	if (mw_span_equals(key, "waiting"))
		return parse_waiting(status, line);
	for (size_t i = 0; i < sizeof(status_keys) / sizeof(*status_keys); i++) {
		if (!mw_span_equals(key, status_keys[i].name))
			continue;
		status->keys++;
		return parse_value(status, &status_keys[i], line);
	}
	return true;
}

int memwatch_proc_status_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
			       struct memwatch_proc_status **ret)
{
	struct memwatch_proc_status *status = calloc(1, sizeof(*status));
	struct mw_span rest = { text, len }, line;

	if (!status)
		return mw_fail(ctx, -ENOMEM, "status: no memory");
	for (unsigned int number = 1; mw_span_line(&rest, &line); number++) {
		if (!parse_status_line(status, line)) {
			free(status);
			return bad_line(ctx, "/proc/memwatch/status", number, line);
		}
	}
	*ret = status;
	return 0;
}

int memwatch_proc_status_read(struct memwatch_ctx *ctx, struct memwatch_proc_status **ret)
{
	size_t len;
	char *text;
	int err;

	err = mw_text_file_read(ctx, "/proc/memwatch/status", &text, &len);
	if (err)
		return err;
	err = memwatch_proc_status_parse(ctx, text, len, ret);
	free(text);
	return err;
}

struct memwatch_proc_status *memwatch_proc_status_free(struct memwatch_proc_status *status)
{
	free(status);
	return NULL;
}

/* --------------------------------------------------------------- rmids */

static bool parse_rmid_line(struct memwatch_process *process, struct mw_span line)
{
	struct {
		uint64_t max;
		uint64_t value;
	} columns[] = { { UINT32_MAX, 0 }, { UINT32_MAX, 0 }, { UINT32_MAX, 0 }, { UINT32_MAX, 0 },
			{ UINT64_MAX, 0 }, { UINT64_MAX, 0 }, { UINT64_MAX, 0 }, { UINT32_MAX, 0 } };
	struct mw_span column;

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		if (!mw_span_until(&line, '\t', &column) ||
		    !mw_span_number(column, columns[i].max, &columns[i].value))
			return false;
	}
	*process = (struct memwatch_process){
		.rmid = (__u32)columns[0].value,
		.generation = (__u32)columns[1].value,
		.tgid = (__u32)columns[2].value,
		.parent_tgid = (__u32)columns[3].value,
		.start_time_ns = columns[4].value,
		.alloc_time_ns = columns[5].value,
		.cgroup_id = columns[6].value,
		.uid = (__u32)columns[7].value,
		.flags = MEMWATCH_PROCESS_EXISTED,
	};
	return process->rmid && mw_span_unescape(line, process->comm, sizeof(process->comm));
}

static int add_process(struct memwatch_proc_rmids *rmids, size_t *max,
		       const struct memwatch_process *process)
{
	if (rmids->count == *max) {
		size_t bigger = *max ? *max * 2 : 64;
		struct memwatch_process *processes;

		processes = realloc(rmids->processes, bigger * sizeof(*processes));
		if (!processes)
			return -ENOMEM;
		rmids->processes = processes;
		*max = bigger;
	}
	rmids->processes[rmids->count++] = *process;
	return 0;
}

static int parse_rmids(struct memwatch_ctx *ctx, struct mw_span rest,
		       struct memwatch_proc_rmids *rmids)
{
	static const char file[] = "/proc/memwatch/rmids";
	struct memwatch_process process;
	struct mw_span line;
	size_t max = 0;
	uint64_t count;

	if (!mw_span_line(&rest, &line) || !mw_span_skip(&line, "# rmid"))
		return mw_fail(ctx, -EBADMSG, "%s: its first line does not name the columns", file);
	for (unsigned int number = 2; mw_span_line(&rest, &line); number++) {
		struct mw_span end = line;

		if (mw_span_skip(&end, "# end ")) {
			if (!mw_span_number(end, UINT64_MAX, &count) || rest.len)
				return bad_line(ctx, file, number, line);
			if (count != rmids->count)
				return mw_fail(ctx, -EBADMSG, "%s: %zu lines, but %llu were sent",
					       file, rmids->count, (unsigned long long)count);
			return 0;
		}
		if (!parse_rmid_line(&process, line))
			return bad_line(ctx, file, number, line);
		if (add_process(rmids, &max, &process))
			return mw_fail(ctx, -ENOMEM, "%s: no memory", file);
	}
	return mw_fail(ctx, -EBADMSG, "%s: incomplete, its last line is missing", file);
}

int memwatch_proc_rmids_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
			      struct memwatch_proc_rmids **ret)
{
	struct memwatch_proc_rmids *rmids = calloc(1, sizeof(*rmids));
	int err;

	if (!rmids)
		return mw_fail(ctx, -ENOMEM, "rmids: no memory");
	err = parse_rmids(ctx, (struct mw_span){ text, len }, rmids);
	if (err) {
		memwatch_proc_rmids_free(rmids);
		return err;
	}
	*ret = rmids;
	return 0;
}

int memwatch_proc_rmids_read(struct memwatch_ctx *ctx, struct memwatch_proc_rmids **ret)
{
	size_t len;
	char *text;
	int err;

	err = mw_text_file_read(ctx, "/proc/memwatch/rmids", &text, &len);
	if (err)
		return err;
	err = memwatch_proc_rmids_parse(ctx, text, len, ret);
	free(text);
	return err;
}

struct memwatch_proc_rmids *memwatch_proc_rmids_free(struct memwatch_proc_rmids *rmids)
{
	if (rmids)
		free(rmids->processes);
	free(rmids);
	return NULL;
}

/* ------------------------------------------------------------ overhead */

static bool parse_cpu_field(struct memwatch_proc_overhead_cpu *cpu, struct mw_span field)
{
	const struct {
		const char *name;
		__u64 *member;
	} fields[] = {
		{ "ticks=", &cpu->ticks },
		{ "missed=", &cpu->missed },
		{ "jitter_max_ns=", &cpu->jitter_max_ns },
		{ "switches=", &cpu->switches },
		{ "pqr_writes=", &cpu->pqr_writes },
		{ "switch_cycles=", &cpu->switch_cycles },
		{ "switch_sampled=", &cpu->switch_sampled },
		{ "tick_cycles=", &cpu->tick_cycles },
	};
	uint64_t number;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (mw_span_skip(&field, fields[i].name)) {
			if (!mw_span_number(field, UINT64_MAX, &number))
				return false;
			*fields[i].member = number;
			return true;
		}
	}
	return field.len && memchr(field.at, '=', field.len);
}

static bool parse_cpu_line(struct memwatch_proc_overhead_cpu *cpu, struct mw_span line)
{
	struct mw_span field;
	uint64_t number;

	if (!mw_span_until(&line, ':', &field) || !mw_span_number(field, UINT32_MAX, &number))
		return false;
	*cpu = (struct memwatch_proc_overhead_cpu){ .cpu = (__u32)number };
	mw_span_skip(&line, " ");
	while (line.len) {
		if (!mw_span_until(&line, ' ', &field)) {
			field = line;
			line.len = 0;
		}
		if (field.len && !parse_cpu_field(cpu, field))
			return false;
	}
	return true;
}

static bool parse_jitter_line(struct memwatch_proc_jitter *jitter, struct mw_span line)
{
	struct mw_span low, high;
	uint64_t numbers[3];

	if (!mw_span_until(&line, '-', &low) || !mw_span_until(&line, ':', &high) ||
	    !mw_span_skip(&line, " ") || !mw_span_number(low, UINT64_MAX, &numbers[0]) ||
	    !mw_span_number(high, UINT64_MAX, &numbers[1]) ||
	    !mw_span_number(line, UINT64_MAX, &numbers[2]))
		return false;
	*jitter = (struct memwatch_proc_jitter){ numbers[0], numbers[1], numbers[2] };
	return true;
}

/* Room for one more; the arrays grow by powers of two. */
static int make_room(void **array, size_t count, size_t size)
{
	void *bigger;

	if (count && count & (count - 1))
		return 0;
	bigger = realloc(*array, (count ? count * 2 : 1) * size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	return 0;
}

static int parse_overhead_line(struct memwatch_proc_overhead *overhead, struct mw_span line)
{
	if (mw_span_skip(&line, "cpu ")) {
		if (make_room((void **)&overhead->cpus, overhead->nr_cpus, sizeof(*overhead->cpus)))
			return -ENOMEM;
		return parse_cpu_line(&overhead->cpus[overhead->nr_cpus++], line) ? 0 : -EBADMSG;
	}
	if (mw_span_skip(&line, "jitter_ns ")) {
		if (make_room((void **)&overhead->jitter, overhead->nr_jitter,
			      sizeof(*overhead->jitter)))
			return -ENOMEM;
		return parse_jitter_line(&overhead->jitter[overhead->nr_jitter++], line) ? 0 :
											  -EBADMSG;
	}
	/* a key that this library does not know */
	return line.len && memchr(line.at, ':', line.len) ? 0 : -EBADMSG;
}

int memwatch_proc_overhead_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
				 struct memwatch_proc_overhead **ret)
{
	struct memwatch_proc_overhead *overhead = calloc(1, sizeof(*overhead));
	struct mw_span rest = { text, len }, line;
	int err;

	if (!overhead)
		return mw_fail(ctx, -ENOMEM, "overhead: no memory");
	for (unsigned int number = 1; mw_span_line(&rest, &line); number++) {
		err = parse_overhead_line(overhead, line);
		if (err) {
			memwatch_proc_overhead_free(overhead);
			if (err == -ENOMEM)
				return mw_fail(ctx, err, "overhead: no memory");
			return bad_line(ctx, "/proc/memwatch/overhead", number, line);
		}
	}
	*ret = overhead;
	return 0;
}

int memwatch_proc_overhead_read(struct memwatch_ctx *ctx, struct memwatch_proc_overhead **ret)
{
	size_t len;
	char *text;
	int err;

	err = mw_text_file_read(ctx, "/proc/memwatch/overhead", &text, &len);
	if (err)
		return err;
	err = memwatch_proc_overhead_parse(ctx, text, len, ret);
	free(text);
	return err;
}

struct memwatch_proc_overhead *memwatch_proc_overhead_free(struct memwatch_proc_overhead *overhead)
{
	if (overhead) {
		free(overhead->cpus);
		free(overhead->jitter);
	}
	free(overhead);
	return NULL;
}
