// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Cgroups in state files: detectors that were read from a file go on exactly as those that were
 * written to it, and tell nothing twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/context.h"
#include "growth/groups.h"
#include "growth/state-file.h"

#include "../../selftests/tap.h"

#define PATH "/system.slice/leaker.service"
#define STEP (5 * MW_GROWTH_SECOND)

static struct memwatch_ctx *ctx;

/* The events that each of two groups has told. */
static unsigned int told[2];

static int count_event(void *userdata, const struct mw_group_class *class, unsigned int event,
		       uint64_t now)
{
	unsigned int *count = userdata;

	(void)class;
	(void)event;
	(void)now;
	++*count;
	return 0;
}

static void begin(struct mw_groups *groups, unsigned int *count)
{
	*groups = (struct mw_groups){ .ctx = ctx, .tell = count_event, .userdata = count };
	mw_groups_init(groups);
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * MW_GROWTH_SECOND + (uint64_t)now.tv_nsec;
}

/* One round: the machine, and a cgroup in which a tmpfs gains 1 MiB each time. */
static void feed(struct mw_groups *groups, uint64_t start, uint32_t round)
{
	static const char *const paths[] = { "/", PATH };

	for (int i = 0; i < 2; i++) {
		struct mw_group_sample sample = {
			.time_ns = start + round * STEP,
			.headroom = MW_GROWTH_NO_LIMIT,
		};

		sample.pages[MEMWATCH_CLASS_ANON] = 20000 + round % 7 * 3;
		sample.pages[MEMWATCH_CLASS_SHMEM] = 5000 + round * MW_GROWTH_MIB;
		mw_groups_feed(groups, mw_groups_get(groups, paths[i]), &sample);
	}
	mw_groups_judge(groups);
}

static FILE *write_groups(const struct mw_groups *groups)
{
	struct mw_state_writer writer;
	FILE *file = tmpfile();

	mw_state_writer_begin(&writer, file);
	mw_state_writer_put_groups(&writer, groups);
	if (mw_state_writer_end(ctx, &writer))
		tap_note("%s", memwatch_ctx_error(ctx));
	rewind(file);
	return file;
}

static int restore_class(void *userdata, const struct mw_state_class *class, const char *path,
			 const struct mw_growth_history *history)
{
	int n = mw_groups_restore(userdata, class, path, history);

	return n < 0 ? n : 0;
}

static bool are_same(const struct mw_group_class *a, const struct mw_group_class *b)
{
	if (!a || !b || !a->history != !b->history)
		return a == b;
	return a->level == b->level && a->base_ns == b->base_ns && a->since_ns == b->since_ns &&
	       !memcmp(&a->state, &b->state, sizeof(a->state)) &&
	       (!a->history || !memcmp(a->history, b->history, sizeof(*a->history)));
}

static bool are_groups_same(struct mw_groups *a, struct mw_groups *b, const char *path)
{
	const struct mw_group *x = mw_groups_get(a, path), *y = mw_groups_get(b, path);
	bool same = x->first_ns == y->first_ns && x->total_floor == y->total_floor;

	for (unsigned int i = 0; i < MEMWATCH_CLASSES; i++)
		same &= are_same(x->classes[i], y->classes[i]);
	return same;
}

static uint64_t first_notice(struct mw_groups *groups)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);

	mw_groups_fill(mw_groups_get(groups, PATH)->classes[MEMWATCH_CLASS_SHMEM], &group, &row);
	return row.first_notice_ns;
}

int main(void)
{
	struct mw_state_reader reader = { .class = restore_class };
	uint32_t round, rounds = 120;
	struct mw_groups a, b, other;
	uint64_t start = clock_ns();
	FILE *file;

	/* The times of a state are not in the future. */
	start = start > rounds * STEP ? start - rounds * STEP : 1;
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	begin(&a, &told[0]);
	for (round = 0; round < rounds && start + round * STEP <= clock_ns(); round++)
		feed(&a, start, round);
	tap_ok(told[0] == 1, "the tmpfs of a cgroup that grows is told once: %u", told[0]);
	file = write_groups(&a);
	begin(&b, &told[1]);
	feed(&b, start, round);
	reader.userdata = &b;
	tap_eq(mw_state_file_read(ctx, file, "test", &reader), 0, "its state is read from a file");
	tap_ok(are_groups_same(&a, &b, PATH), "the cgroup continues where it stood");
	tap_ok(are_groups_same(&a, &b, "/"), "the machine continues where it stood");
	tap_eq(first_notice(&b), first_notice(&a), "its notice began when it was raised");
	for (uint32_t i = 1; i < 500; i++) {
		feed(&a, start, round + i);
		feed(&b, start, round + i);
	}
	tap_ok(are_groups_same(&a, &b, PATH), "after many more rounds both are the same");
	tap_eq(told[1], told[0] - 1, "nothing is told again");

	begin(&other, &told[1]);
	mw_groups_get(&other, "/else");
	rewind(file);
	reader.userdata = &other;
	tap_eq(mw_state_file_read(ctx, file, "test", &reader), 0,
	       "a cgroup that is gone is no error");
	tap_eq(other.nr, 1, "it does not come back");
	fclose(file);
	mw_groups_uninit(&a);
	mw_groups_uninit(&b);
	mw_groups_uninit(&other);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
