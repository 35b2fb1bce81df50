// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Shares of the states, see quota.h.
 */
#include "growth/quota.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/context.h"
#include "base/timemath.h"

/* mw_quota_interest() of a process that grows: it keeps its state when others take turns. */
#define INTEREST_GROWING 2

/**
 * struct candidate - a state that may be removed
 * @key: its process
 * @user: index of its user
 * @interest: see mw_quota_interest()
 * @first_ns: when the process was sampled first
 * @last_ns: when it was sampled last
 */
struct candidate {
	struct mw_growth_key key;
	uint32_t user;
	uint32_t interest;
	uint64_t first_ns;
	uint64_t last_ns;
};

struct candidates {
	const struct mw_quota *quota;
	struct candidate *items;
	size_t nr, capacity;
};

void mw_quota_init(struct mw_quota *quota, uint32_t max)
{
	*quota = (struct mw_quota){ .max = max, .share = MW_GROWTH_NO_LIMIT };
}

void mw_quota_uninit(struct mw_quota *quota)
{
	free(quota->users);
	quota->users = NULL;
}

uint32_t mw_quota_share(const uint32_t *demands, uint32_t nr, uint32_t max)
{
	uint32_t left = max, share;

	for (uint32_t i = 0; i < nr; i++) {
		share = left / (nr - i);
		if (demands[i] > share)
			return share ? share : 1;
		left -= demands[i];
	}
	return MW_GROWTH_NO_LIMIT;
}

unsigned int mw_quota_interest(const struct mw_growth *g)
{
	if (g->flags & MW_GROWTH_F_ALERT)
		return 3;
	if (g->verdict == MW_GROWTH_GROWING ||
	    (g->points > 1 && g->last_ns - g->top_ns <= MW_GROWTH_STALL_NS))
		return INTEREST_GROWING;
	return !!(g->flags & MW_GROWTH_F_HISTORY);
}

static uint32_t demand_of(const struct mw_quota_user *user)
{
	return mw_growth_add_sat(user->numbers.states, user->numbers.refused);
}

static int compare_demands(const void *a, const void *b)
{
	uint32_t p = demand_of(a), q = demand_of(b);

	return (p > q) - (p < q);
}

struct collection {
	struct mw_quota *quota;
	uint32_t round;
};

static int collect_user(void *userdata, const void *key, const void *value)
{
	const struct mw_growth_owner *numbers = value;
	struct collection *collection = userdata;
	struct mw_quota *quota = collection->quota;

	if (numbers->round != collection->round)
		return 0;
	if (mw_array_reserve(quota->users, quota->capacity, quota->nr_users + 1))
		return -ENOMEM;
	quota->users[quota->nr_users++] = (struct mw_quota_user){
		.uid = *(const uint32_t *)key,
		.numbers = *numbers,
	};
	quota->waiting += numbers->refused;
	return 0;
}

static void tell_full(struct mw_quota *quota, struct memwatch_ctx *ctx)
{
	const struct mw_quota_user *most = &quota->users[quota->nr_users - 1];

	quota->told = true;
	mw_log(ctx, MEMWATCH_LOG_WARNING,
	       "at most %u processes can be monitored, and %u more run; user %u has the most, %u: "
	       "its processes are monitored in turns, so their leaks are found later",
	       quota->max, quota->waiting, most->uid, demand_of(most));
}

static int compute_share(struct mw_quota *quota, struct memwatch_ctx *ctx)
{
	uint32_t *demands = calloc(quota->nr_users + 1, sizeof(*demands));

	if (!demands)
		return mw_fail_memory(ctx, "shares of the growth monitor");
	qsort(quota->users, quota->nr_users, sizeof(*quota->users), compare_demands);
	for (uint32_t i = 0; i < quota->nr_users; i++)
		demands[i] = demand_of(&quota->users[i]);
	quota->share = mw_quota_share(demands, quota->nr_users, quota->max);
	free(demands);
	return 0;
}

int mw_quota_update(struct mw_quota *quota, struct memwatch_ctx *ctx, struct mw_bpf_growth *bpf,
		    uint32_t round)
{
	struct collection collection = { .quota = quota, .round = round };
	uint64_t full = mw_bpf_growth_count(bpf, MW_GROWTH_COUNT_FULL);
	int err = 0;

	quota->nr_users = quota->waiting = 0;
	quota->share = MW_GROWTH_NO_LIMIT;
	if (full != quota->full) {
		quota->full = full;
		err = mw_bpf_growth_each_owner(bpf, collect_user, &collection);
	}
	if (!err && quota->waiting) {
		err = compute_share(quota, ctx);
		if (!quota->told)
			tell_full(quota, ctx);
	}
	mw_bpf_growth_control(bpf)->quota = quota->share;
	return err;
}

/* Sets how many states each user loses. Returns whether there are any. */
static bool plan_removal(struct mw_quota *quota, bool turn)
{
	bool any = false;

	for (uint32_t i = 0; i < quota->nr_users; i++) {
		struct mw_quota_user *user = &quota->users[i];
		uint32_t states = user->numbers.states, kept = states;

		user->surplus = user->turns = 0;
		if (states > quota->share) {
			user->surplus = states - quota->share;
			kept = quota->share;
		}
		if (turn && user->numbers.refused)
			user->turns = (uint32_t)mw_min_u64(user->numbers.refused, kept);
		any |= user->surplus || user->turns;
	}
	return any;
}

static int add_candidate(void *userdata, const void *key, const void *value)
{
	const struct mw_growth_process *process = value;
	struct candidates *candidates = userdata;
	const struct mw_quota *quota = candidates->quota;
	const struct mw_quota_user *found = NULL;
	uint32_t user = quota->nr_users;

	/* @users is sorted by demand; those who lose states have the largest: search backwards. */
	while (user && !found && (quota->users[user - 1].surplus || quota->users[user - 1].turns)) {
		user--;
		if (quota->users[user].uid == process->owner)
			found = &quota->users[user];
	}
	if (!found)
		return 0;
	if (mw_array_reserve(candidates->items, candidates->capacity, candidates->nr + 1))
		return -ENOMEM;
	candidates->items[candidates->nr++] = (struct candidate){
		.key = *(const struct mw_growth_key *)key,
		.user = user,
		.interest = mw_quota_interest(&process->growth),
		.first_ns = process->growth.first_ns,
		.last_ns = process->growth.last_ns,
	};
	return 0;
}

/* By user; of each user, those of least interest first; of these, the oldest first. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *p = a, *q = b;

	if (p->user != q->user)
		return p->user < q->user ? -1 : 1;
	if (p->interest != q->interest)
		return p->interest < q->interest ? -1 : 1;
	return (p->first_ns > q->first_ns) - (p->first_ns < q->first_ns);
}

static bool may_lose_turn(const struct candidate *candidate)
{
	return candidate->interest < INTEREST_GROWING &&
	       candidate->last_ns - candidate->first_ns >= MW_QUOTA_TURN_NS;
}

static void remove_states(struct mw_quota *quota, struct mw_bpf_growth *bpf,
			  const struct candidates *candidates)
{
	for (size_t i = 0; i < candidates->nr; i++) {
		const struct candidate *candidate = &candidates->items[i];
		struct mw_quota_user *user = &quota->users[candidate->user];

		if (user->surplus)
			user->surplus--;
		else if (user->turns && may_lose_turn(candidate))
			user->turns--;
		else
			continue;
		mw_bpf_growth_delete(bpf, &candidate->key);
		user->numbers.states--;
		quota->replaced++;
	}
	for (uint32_t i = 0; i < quota->nr_users; i++)
		mw_bpf_growth_put_owner(bpf, quota->users[i].uid, &quota->users[i].numbers);
}

int mw_quota_make_room(struct mw_quota *quota, struct memwatch_ctx *ctx, struct mw_bpf_growth *bpf,
		       uint64_t now_ns)
{
	bool turn = now_ns - quota->turn_ns >= MW_QUOTA_TURN_NS;
	struct candidates candidates = { .quota = quota };
	int err;

	if (!quota->waiting || !plan_removal(quota, turn))
		return 0;
	if (turn)
		quota->turn_ns = now_ns;
	err = mw_bpf_growth_each(bpf, add_candidate, &candidates);
	if (!err && candidates.nr) {
		qsort(candidates.items, candidates.nr, sizeof(*candidates.items),
		      compare_candidates);
		remove_states(quota, bpf, &candidates);
	}
	free(candidates.items);
	return err == -ENOMEM ? mw_fail_memory(ctx, "shares of the growth monitor") : err;
}
