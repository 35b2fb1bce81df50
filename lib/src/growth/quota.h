/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which processes keep a state when there is not room for all of them. Each user gets an
 * equal share of the states, and what some do not need goes to the others. Within a share,
 * processes that do not grow give their states to those that wait, the oldest first, so
 * that each process is watched for some time and those that grow are watched all the time.
 */
#ifndef MW_GROWTH_QUOTA_H
#define MW_GROWTH_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/growth.h"

/* How long a process keeps its state at least: three samples show whether it grows. */
#define MW_QUOTA_TURN_NS (15 * MW_GROWTH_SECOND)

/**
 * struct mw_quota_user - a user in the last round
 * @uid: user id, see &struct mw_growth_owner
 * @numbers: what the iterator counted
 * @surplus: number of states above the share
 * @turns: number of states that are given to waiting processes
 */
struct mw_quota_user {
	uint32_t uid;
	struct mw_growth_owner numbers;
	uint32_t surplus;
	uint32_t turns;
};

/**
 * struct mw_quota - the shares
 * @max: number of states
 * @users: those with processes in the last round, owned; sorted by demand
 * @nr_users: number of users
 * @capacity: how many fit
 * @waiting: processes without a state in the last round
 * @share: states of each user, or MW_GROWTH_NO_LIMIT if there is room for all
 * @replaced: number of states that were removed so far
 * @turn_ns: when waiting processes last got their turn
 * @full: samples that were lost so far because there was no room
 * @told: the log says that there is not enough room
 */
struct mw_quota {
	uint32_t max;
	struct mw_quota_user *users;
	uint32_t nr_users, capacity;
	uint32_t waiting;
	uint32_t share;
	uint64_t replaced;
	uint64_t turn_ns;
	uint64_t full;
	bool told;
};

void mw_quota_init(struct mw_quota *quota, uint32_t max);
void mw_quota_uninit(struct mw_quota *quota);

/*
 * After a round: computes the share. Costs nothing while there is room for all. Returns 0 or
 * a negative errno.
 */
int mw_quota_update(struct mw_quota *quota, struct memwatch_ctx *ctx, struct mw_bpf_growth *bpf,
		    uint32_t round);

/* Before a round: removes states, so that others find room. Returns 0 or a negative errno. */
int mw_quota_make_room(struct mw_quota *quota, struct memwatch_ctx *ctx, struct mw_bpf_growth *bpf,
		       uint64_t now_ns);

/*
 * The share of each user, for @nr demands in ascending order; MW_GROWTH_NO_LIMIT if @max is
 * enough for all of them.
 */
uint32_t mw_quota_share(const uint32_t *demands, uint32_t nr, uint32_t max);

/* How much it matters that a process keeps its state: from 0 to 3, an alert. */
unsigned int mw_quota_interest(const struct mw_growth *g);

#endif /* MW_GROWTH_QUOTA_H */
