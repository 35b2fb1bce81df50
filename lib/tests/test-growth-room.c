// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How much may grow below the limits of cgroups, compared with a process that grows page by page
 * until the rules of the kernel allow no more.
 */
#include "bpf/growth-room.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define LEVELS	4
#define ENDLESS MW_GROWTH_ROOM_ENDLESS
#define PLENTY	1000 /* more than all limits together */
#define TRIALS	100000

/* What the cgroup of a process (0) and those above it have left, and the machine. */
struct hierarchy {
	uint64_t memory[LEVELS], swap[LEVELS], machine;
};

/* A limit, or none. */
static uint64_t random_limit(struct prng *prng)
{
	return prng_below(prng, 3) ? prng_below(prng, 20) : ENDLESS;
}

static struct hierarchy random_hierarchy(struct prng *prng)
{
	struct hierarchy h = { .machine = prng_below(prng, 20) };

	for (int i = 0; i < LEVELS; i++) {
		h.memory[i] = random_limit(prng);
		h.swap[i] = random_limit(prng);
	}
	return h;
}

static bool is_below(uint64_t pages, const uint64_t *limits)
{
	for (int i = 0; i < LEVELS; i++)
		if (pages > limits[i])
			return false;
	return true;
}

/*
 * A new page is charged to all levels. While one of them is above its limit, a page is swapped out
 * if all levels and the machine have swap left, else the process is killed.
 */
static uint64_t grow_until_killed(const struct hierarchy *h)
{
	uint64_t memory = 0, swap = 0;

	while (memory + swap < PLENTY) {
		memory++;
		if (is_below(memory, h->memory))
			continue;
		if (swap + 1 > h->machine || !is_below(swap + 1, h->swap))
			return memory - 1 + swap;
		memory--;
		swap++;
	}
	return ENDLESS;
}

static uint64_t compute_room(const struct hierarchy *h)
{
	struct mw_growth_room room;

	mw_growth_room_init(&room, h->machine);
	for (int i = 0; i < LEVELS; i++) {
		struct mw_growth_room above;

		mw_growth_room_init(&above, h->swap[i]);
		mw_growth_room_lower(&above, h->memory[i], MEMWATCH_LIMIT_CGROUP_MAX);
		mw_growth_room_ascend(&room, &above);
	}
	return mw_growth_room_pages(&room);
}

static void test_kernel_rules(void)
{
	struct prng prng = { .state = 20260917 };
	int wrong = 0, endless = 0;

	tap_note("the seed is %llu", (unsigned long long)prng.state);
	for (int i = 0; i < TRIALS; i++) {
		struct hierarchy h = random_hierarchy(&prng);
		uint64_t want = grow_until_killed(&h);

		wrong += compute_room(&h) != want;
		endless += want == ENDLESS;
	}
	tap_eq(wrong, 0, "the room is what a process can grow by until the kernel kills it");
	tap_ok(endless > 0 && endless < TRIALS / 2, "some of %d processes have no limit: %d",
	       TRIALS, endless);
}

/* In version 1 there is a limit of memory and one of memory and swap together. */
static void test_version1(void)
{
	struct mw_growth_room room, above;

	mw_growth_room_init(&room, 50);
	mw_growth_room_init(&above, 50);
	mw_growth_room_lower(&above, 100, MEMWATCH_LIMIT_CGROUP_MAX);
	mw_growth_room_ascend(&room, &above);
	tap_eq(mw_growth_room_pages(&room), 150, "swap adds to what is left of memory");
	mw_growth_room_init(&above, 50);
	mw_growth_room_lower_both(&above, 120);
	mw_growth_room_ascend(&room, &above);
	tap_eq(mw_growth_room_pages(&room), 120,
	       "a limit of memory and swap together of a cgroup above ends that");
}

static void test_names(void)
{
	struct mw_growth_room room, above;

	mw_growth_room_init(&room, 0);
	tap_eq(room.limit, MEMWATCH_LIMIT_NONE, "without limits there is none to name");
	mw_growth_room_lower(&room, 10, MEMWATCH_LIMIT_CGROUP_HIGH);
	mw_growth_room_init(&above, 0);
	mw_growth_room_lower(&above, 20, MEMWATCH_LIMIT_CGROUP_MAX);
	mw_growth_room_ascend(&room, &above);
	tap_eq(room.limit, MEMWATCH_LIMIT_CGROUP_HIGH, "the limit with the least memory is named");
	mw_growth_room_lower(&above, 5, MEMWATCH_LIMIT_CGROUP_MAX);
	mw_growth_room_ascend(&room, &above);
	tap_eq(room.limit, MEMWATCH_LIMIT_CGROUP_MAX, "a nearer limit of a cgroup above is named");
}

int main(void)
{
	tap_start();
	test_kernel_rules();
	test_version1();
	test_names();
	return tap_done();
}
