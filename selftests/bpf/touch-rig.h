/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Children of a test that grow and touch a known part of their memory, and visits of them. The
 * times that the visits are given are not those of the clock, so that a test of minutes takes
 * seconds.
 */
#ifndef TOUCH_RIG_H
#define TOUCH_RIG_H

#include "growth-key.h"
#include "growth/touch.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

#define STEP (10 * MW_GROWTH_SECOND)

static struct mw_bpf_growth *growth;
static struct mw_touch touch;

/* What a child shares with the test: its memory, and what it is to do next. */
static struct order {
	size_t grow, from, to; /* MiB */
	bool huge, fork, exec, lock, hide, guard;
	int error; /* the answer to @guard */
} * order;

static void obey(struct child *c)
{
	size_t held = 0;
	char *base;

	base = mmap(NULL, 4096 * MIB, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	base = (char *)(((uintptr_t)base + 2 * MIB - 1) & ~(2 * MIB - 1));
	madvise(base, 2048 * MIB, order->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (;;) {
		send_byte(c->done[1]);
		await_byte(c->go[0]);
		if (order->lock)
			mlock(base + held, order->grow * MIB);
		memset(base + held, 1, order->grow * MIB);
		held += order->grow * MIB;
		for (size_t at = order->from * MIB; at < order->to * MIB; at += 4096)
			base[at]++;
		if (order->guard && madvise(base + held, 8 * MIB, MADV_GUARD_INSTALL))
			order->error = errno;
		if (order->hide)
			mprotect(base, held, PROT_NONE);
		if (order->fork && !fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		if (order->exec)
			execlp("sleep", "sleep", "1000", (char *)NULL);
	}
}

/* Lets the child do the order, and waits for it. */
static void tell(struct child *c, struct order what)
{
	*order = what;
	send_byte(c->go[1]);
	if (!what.exec)
		await_byte(c->done[0]);
}

/* Visits all suspects, without the pauses. */
static void visit_at(uint64_t now)
{
	do {
		touch.next_ns = now;
		mw_touch_run(&touch, now);
	} while (touch.visiting || touch.next_ns <= now);
}

/* Gives a child a notice. */
static void note(const struct child *c, size_t mib, uint64_t now)
{
	struct mw_growth_key key = key_of(growth, c);
	struct memwatch_record_growth record = {
		.what = MEMWATCH_GROWTH_NOTICED,
		.tgid = key.tgid,
		.start_time_ns = key.start_ns,
		.signal_bytes = mib * MIB,
	};

	mw_touch_note(&touch, &record, now);
}

/* Begins to follow a child, as if it had a notice now. */
static void follow(const struct child *c, size_t mib, uint64_t now)
{
	note(c, mib, now);
	visit_at(now);
}

static void visit(uint64_t *now)
{
	*now += STEP;
	visit_at(*now);
}

static void visit_times(uint64_t *now, unsigned int times)
{
	while (times--)
		visit(now);
}

static struct mw_growth_touch measure(uint64_t now)
{
	struct mw_growth_touch result = { 0 };

	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++)
		if (touch.follow[i].pidfd >= 0)
			mw_cohort_measure(&touch.follow[i].cohort, now, &result);
	return result;
}

static void end_child(struct child *c, uint64_t *now)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	visit(now);
}

#endif /* TOUCH_RIG_H */
