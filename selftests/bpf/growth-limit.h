/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Processes that leak until they meet their limit, and when their alert comes.
 */
#ifndef GROWTH_LIMIT_H
#define GROWTH_LIMIT_H

#include <fcntl.h>

#include "growth-children.h"

/* Lets @c leak until it meets its limit. Returns when that was, or 0, and the first alert. */
static inline uint64_t watch_leak(struct child *c, struct memwatch_record_growth *alert)
{
	const struct memwatch_record_header *header;
	uint64_t end = now_ns() + 60000000000ULL, hit = 0;

	run_rounds(1);
	send_byte(c->go[1]);
	fcntl(c->done[0], F_SETFL, O_NONBLOCK);
	while (now_ns() < end && !hit) {
		char byte;

		memwatch_watch_poll(watch, 100);
		while (memwatch_watch_next(watch, &header) == 1) {
			const struct memwatch_record_growth *r = (const void *)header;

			if (header->type == MEMWATCH_RECORD_GROWTH && r->tgid == (uint32_t)c->pid &&
			    r->what == MEMWATCH_GROWTH_ALERTED && !alert->tgid)
				*alert = *r;
		}
		if (read(c->done[0], &byte, 1) == 1)
			hit = now_ns();
	}
	return hit;
}

static inline void test_limit(void)
{
	struct memwatch_record_growth alert = { 0 };
	struct child c = start_child(leak_after_start);
	uint64_t hit;

	await_byte(c.done[0]);
	/* Processes that start are judged more cautiously; this one was there before the watch. */
	memwatch_watch_unref(watch);
	watch = open_watch(0, 300000000);
	hit = watch_leak(&c, &alert);
	tap_ok(alert.tgid > 0, "a leak of 20 MiB/s towards RLIMIT_DATA is found");
	tap_ok(hit > alert.h.time_ns + 3000000000ULL,
	       "the alert is raised at least 3 s before the limit: %.1f s, it says %u s",
	       alert.tgid ? (double)(hit - alert.h.time_ns) / 1e9 : -1.0, alert.eta_s);
	tap_eq(alert.limit, MEMWATCH_LIMIT_DATA, "the alert names RLIMIT_DATA");
	tap_eq(alert.reason, MEMWATCH_GROWTH_REASON_LIMIT, "the alert is raised by the rule limit");
	stop_child(&c);
}

/* Watches a child that leaks from its start on: its alert is early if its program @is_known. */
static inline struct child leak_known(bool is_known, const char *what)
{
	struct child c = start_child(leak_from_start);
	struct memwatch_record_growth alert = { 0 };
	struct memwatch_growth_row row = { 0 };
	uint64_t hit;

	await_byte(c.done[0]);
	hit = watch_leak(&c, &alert);
	find_process(c.pid, &row, NULL);
	tap_eq(!!(row.flags & MEMWATCH_GROWTH_F_KNOWN), is_known, "%s", what);
	if (is_known)
		tap_ok(alert.tgid && hit > alert.h.time_ns + 3000000000ULL,
		       "its alert is early: %.1f s before the limit",
		       alert.tgid ? (double)(hit - alert.h.time_ns) / 1e9 : -1.0);
	return c;
}

/* After a process of this name has reached its limit, see test_limit(). */
static inline void test_known_program(void)
{
	struct child c = leak_known(true, "what a program did when it ran before is known");

	/* A guest has no time for the minute that this takes, and its program is the same. */
	if (getenv("MEMWATCH_IN_GUEST")) {
		stop_child(&c);
		return;
	}
	tap_ok(wait_for_event(c.pid, MEMWATCH_GROWTH_SETTLED),
	       "a process that has reached its limit and still lives settles");
	stop_child(&c);
	c = leak_known(false, "what a program did is forgotten when one of its processes settles");
	stop_child(&c);
}

#endif /* GROWTH_LIMIT_H */
