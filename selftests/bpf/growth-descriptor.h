/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor in a program with an event loop of its own, which never waits inside the
 * library.
 */
#ifndef GROWTH_DESCRIPTOR_H
#define GROWTH_DESCRIPTOR_H

#include <poll.h>

#include "growth-children.h"
#include "growth-rig.h"

/* Is @fd readable within @ms? */
static bool is_readable(int fd, int ms)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	return poll(&readable, 1, ms) == 1 && readable.revents & POLLIN;
}

/* Polls without waiting, until the monitor has nothing to do. Returns the bits of all calls. */
static int poll_all(void)
{
	int all = 0, bits;

	while ((bits = memwatch_watch_poll(watch, 0)) > 0) {
		if (bits & MEMWATCH_WATCH_EVENT)
			drain_records();
		all |= bits;
	}
	return bits < 0 ? bits : all;
}

/* Without the event program, only the time makes the descriptor readable. */
static void test_descriptor_time(void)
{
	uint64_t end = now_ns() + 20000000000ULL;
	int fd, rounds = 0, early = 0, idle = 0;
	struct memwatch_watch *other = watch;

	watch = open_watch_with(MEMWATCH_WATCH_NO_EVENTS, 0, 300000000);
	fd = memwatch_watch_fd(watch);
	tap_ok(fd >= 0, "a monitor has a descriptor for event loops: %d", fd);
	tap_eq(memwatch_watch_fd(watch), fd, "a monitor has one descriptor");
	while (now_ns() < end && rounds < 5 && is_readable(fd, 5000)) {
		int bits = poll_all();

		rounds += !!(bits & MEMWATCH_WATCH_ROUND);
		early += !bits;
		idle += !is_readable(fd, 0);
	}
	tap_eq(rounds, 5, "the descriptor is readable when a round is due");
	tap_ok(early <= 5, "the descriptor is not readable much too early: %d times", early);
	tap_ok(idle > 0, "the descriptor is not readable when there is nothing to do: %d times",
	       idle);
	memwatch_watch_unref(watch);
	watch = other;
}

/* Between two rounds, the event program makes it readable. */
static void test_descriptor_request(void)
{
	const char *title = "the descriptor is readable when fast growth requests a round";
	uint64_t end = now_ns() + 20000000000ULL, pokes;
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	int fd = memwatch_watch_fd(watch);
	struct child c;
	int steps = 0;

	memwatch_watch_get_stats(watch, &stats);
	if (!stats.events_attached) {
		tap_skip(title, "the event program is not attached");
		return;
	}
	c = start_child(grow_in_steps);
	run_rounds(2);
	memwatch_watch_get_stats(watch, &stats);
	pokes = stats.pokes;
	/* A step that begins soon after a round and ends within the gap requests none. */
	while (stats.pokes == pokes && now_ns() < end && steps < 20) {
		send_byte(c.go[1]);
		await_byte(c.done[0]);
		steps++;
		if (is_readable(fd, (int)(stats.gap_ns / 1000000) + 1))
			poll_all();
		memwatch_watch_get_stats(watch, &stats);
	}
	tap_ok(stats.pokes > pokes, "%s", title);
	stop_child(&c);
}

#endif /* GROWTH_DESCRIPTOR_H */
