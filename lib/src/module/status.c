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

static bool set_waiting(struct memwatch_proc_status *status, struct mw_text value)
{
	struct memwatch_proc_waiting *waiting = &status->waiting[status->nr_waiting];

	if (status->nr_waiting == sizeof(status->waiting) / sizeof(status->waiting[0]))
		return true;
	if (!parse_task(value, &waiting->tgid, waiting->comm))
		return false;
	status->nr_waiting++;
	return true;
}

static bool set_setter(struct memwatch_proc_setter *setter, struct mw_text value)
{
	return parse_task(value, &setter->tgid, setter->comm);
}

/* "TGID started|open COMM" */
static bool set_session(struct memwatch_proc_status *status, struct mw_text value)
{
	struct memwatch_proc_session *session = &status->session[status->nr_session];
	struct mw_text tgid, state;
	uint64_t number;

	if (status->nr_session == sizeof(status->session) / sizeof(status->session[0]))
		return true;
	if (!mw_text_take(&value, ' ', &tgid) || !mw_text_number(tgid, UINT32_MAX, &number) ||
	    !mw_text_take(&value, ' ', &state) || !value.at ||
	    !mw_text_unescape(value, session->comm, sizeof(session->comm)))
		return false;
	if (!mw_text_is(state, "started") && !mw_text_is(state, "open"))
		return false;
	session->tgid = (uint32_t)number;
	session->started = mw_text_is(state, "started");
	status->nr_session++;
	return true;
}

static bool set_key(struct memwatch_proc_status *status, struct mw_text name, struct mw_text value)
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
		void *member = (char *)status + keys[i].offset;

		if (!mw_text_is(name, keys[i].name))
			continue;
		status->keys++;
		if (keys[i].string)
			return mw_text_copy(value, member, keys[i].size);
		return set_number(member, keys[i].size, value);
	}
	return true;
}

static bool parse_status_line(struct memwatch_proc_status *status, struct mw_text line)
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
	struct memwatch_proc_status *status;
	unsigned int number = 0;

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
	*ret = status;
	return 0;
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
