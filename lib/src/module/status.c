// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Parses /proc/memwatch/status: lines of the form "key: value".
 */
#include <memwatch/proc.h>

#include <errno.h>
#include <stdlib.h>

#include "base/context.h"
#include "base/text.h"
#include "module/proc-file.h"

#define LIST_MAX 64

/**
 * struct status - a status with its lists
 * @seen: what the caller sees; the first member, so that its address is that of the whole
 * @waiting: processes without an RMID
 * @session: open sessions
 * @settings_by: who made the settings in force
 * @defaults_by: who made the defaults
 */
struct status {
	struct memwatch_proc_status seen;
	struct memwatch_proc_waiting waiting[LIST_MAX];
	struct memwatch_proc_session session[LIST_MAX];
	struct memwatch_proc_setter settings_by;
	struct memwatch_proc_setter defaults_by;
};

#define MEMBER(name) offsetof(struct memwatch_proc_status, name)
#define STRING(name)                                                                               \
	{                                                                                          \
#name, MEMBER(name), sizeof(((struct memwatch_proc_status *)0)->name), true        \
	}
#define NUMBER(name)                                                                               \
	{                                                                                          \
#name, MEMBER(name), sizeof(((struct memwatch_proc_status *)0)->name), false       \
	}

static const struct key {
	const char *name;
	size_t offset;
	size_t size;
	bool string;
} keys[] = {
	STRING(version),
	NUMBER(abi),
	NUMBER(schema),
	STRING(backend),
	STRING(backend_reason),
	NUMBER(sessions),
	NUMBER(sessions_started),
	NUMBER(period_ns),
	NUMBER(limbo_ns),
	STRING(policy),
	NUMBER(idle_stop),
	STRING(cpumask),
	NUMBER(filters),
	NUMBER(rmids_total),
	NUMBER(rmids_used),
	NUMBER(rmids_limbo),
	NUMBER(rmids_free),
	NUMBER(processes),
	NUMBER(processes_measured),
	NUMBER(processes_waiting),
	NUMBER(processes_filtered),
	NUMBER(allocs),
	NUMBER(frees),
	NUMBER(promotions),
	NUMBER(revocations),
	NUMBER(exhausted),
	NUMBER(untracked),
	NUMBER(foreign_writes),
	NUMBER(rdt_budget),
	NUMBER(rdt_domains),
	NUMBER(rdt_scale_bytes),
	NUMBER(rdt_width_bits),
	NUMBER(rdt_counters),
	NUMBER(rdt_counted_rmids),
	NUMBER(rdt_counter_turns),
	NUMBER(period_asked_ns),
	STRING(period_reason),
};

static bool set_number(void *member, size_t size, struct mw_text value)
{
	uint64_t number;

	if (!mw_text_number(value, size == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX, &number))
		return false;
	if (size == sizeof(uint32_t))
		*(uint32_t *)member = (uint32_t)number;
	else
		*(uint64_t *)member = number;
	return true;
}

/* "TGID COMM" */
static bool parse_task(struct mw_text value, __u32 *ret_tgid, char *comm)
{
	struct mw_text tgid;
	uint64_t number;

	if (!mw_text_take(&value, ' ', &tgid) || !mw_text_number(tgid, UINT32_MAX, &number) ||
	    !value.at || !mw_text_unescape(value, comm, MEMWATCH_COMM_LEN))
		return false;
	*ret_tgid = (uint32_t)number;
	return true;
}

static bool set_waiting(struct status *status, struct mw_text value)
{
	struct memwatch_proc_waiting *waiting = &status->waiting[status->seen.nr_waiting];

	if (status->seen.nr_waiting == LIST_MAX)
		return true;
	if (!parse_task(value, &waiting->tgid, waiting->comm))
		return false;
	status->seen.nr_waiting++;
	return true;
}

static bool set_setter(struct memwatch_proc_setter *setter, struct mw_text value)
{
	return parse_task(value, &setter->tgid, setter->comm);
}

/* "TGID started|open COMM" */
static bool set_session(struct status *status, struct mw_text value)
{
	struct memwatch_proc_session *session = &status->session[status->seen.nr_session];
	struct mw_text tgid, state;
	uint64_t number;

	if (status->seen.nr_session == LIST_MAX)
		return true;
	if (!mw_text_take(&value, ' ', &tgid) || !mw_text_number(tgid, UINT32_MAX, &number) ||
	    !mw_text_take(&value, ' ', &state) || !value.at ||
	    !mw_text_unescape(value, session->comm, sizeof(session->comm)))
		return false;
	if (!mw_text_is(state, "started") && !mw_text_is(state, "open"))
		return false;
	session->tgid = (uint32_t)number;
	session->started = mw_text_is(state, "started");
	status->seen.nr_session++;
	return true;
}

static bool set_key(struct status *status, struct mw_text name, struct mw_text value)
{
	if (mw_text_is(name, "waiting"))
		return set_waiting(status, value);
	if (mw_text_is(name, "session"))
		return set_session(status, value);
	if (mw_text_is(name, "settings_by"))
		return set_setter(&status->settings_by, value);
	if (mw_text_is(name, "defaults_by"))
		return set_setter(&status->defaults_by, value);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		void *member = (char *)&status->seen + keys[i].offset;

		if (!mw_text_is(name, keys[i].name))
			continue;
		status->seen.keys++;
		if (keys[i].string)
			return mw_text_copy(value, member, keys[i].size);
		return set_number(member, keys[i].size, value);
	}
	return true;
}

static bool parse_status_line(struct status *status, struct mw_text line)
{
	struct mw_text name;

	if (!mw_text_take(&line, ':', &name) || !line.at)
		return false;
	mw_text_skip(&line, " ");
	return set_key(status, name, line);
}

/* A line with a colon is refused for its value, so its key is a known one. */
static int refuse_status_line(struct memwatch_ctx *ctx, unsigned int number, struct mw_text line)
{
	struct mw_text name;

	if (!mw_text_take(&line, ':', &name) || !line.at)
		return mw_fail(ctx, -EBADMSG, "/proc/memwatch/status: line %u has no colon",
			       number);
	return mw_fail(ctx, -EBADMSG,
		       "/proc/memwatch/status: line %u: the value of %.*s is not valid", number,
		       (int)name.len, name.at);
}

int memwatch_proc_status_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
			       struct memwatch_proc_status **ret)
{
	struct mw_text rest = { text, len }, line;
	unsigned int number = 0;
	struct status *status;

	status = calloc(1, sizeof(*status));
	if (!status)
		return mw_fail_memory(ctx, "status");
	while (rest.len && mw_text_take(&rest, '\n', &line)) {
		number++;
		if (!parse_status_line(status, line)) {
			free(status);
			return refuse_status_line(ctx, number, line);
		}
	}
	status->seen.settings_by = &status->settings_by;
	status->seen.defaults_by = &status->defaults_by;
	*ret = &status->seen;
	return 0;
}

const struct memwatch_proc_waiting *
memwatch_proc_waiting_at(const struct memwatch_proc_status *status, unsigned int index)
{
	const struct status *whole = (const struct status *)(const void *)status;

	return index < status->nr_waiting ? &whole->waiting[index] : NULL;
}

const struct memwatch_proc_session *
memwatch_proc_session_at(const struct memwatch_proc_status *status, unsigned int index)
{
	const struct status *whole = (const struct status *)(const void *)status;

	return index < status->nr_session ? &whole->session[index] : NULL;
}

int memwatch_proc_status_read(struct memwatch_ctx *ctx, struct memwatch_proc_status **ret)
{
	char *text;
	size_t len;
	int err;

	err = mw_proc_file_read(ctx, "status", &text, &len);
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
