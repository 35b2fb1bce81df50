// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whose stacks are sampled, and how many.
 */
#include "growth/stacks.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "base/context.h"
#include "base/timemath.h"

/*
 * So many page faults of the machine are looked at in a second: at a microsecond for one of a
 * suspect, which is the most, this is 0.02 % of a CPU.
 */
#define FAULTS_PER_SECOND 200

/*
 * A process that leaks 10 KB/s has two or three faults a second. Until the first adaptation one
 * that faults all the time has 30000 samples, of which the programs take 50.
 */
#define PERIOD_FIRST 16
#define PERIOD_MAX   (1U << 20)

/*
 * Most processes with a notice are programs that start and end soon. To attach the programs and to
 * detach them costs more than sampling does.
 */
#define DELAY_NS (2 * MW_GROWTH_SECOND)

#define CHECK_NS MW_GROWTH_SECOND

void mw_stacks_init(struct mw_stacks *stacks, struct memwatch_ctx *ctx, bool wanted)
{
	*stacks = (struct mw_stacks){
		.ctx = ctx,
		.state = wanted ? MEMWATCH_WHERE_IDLE : MEMWATCH_WHERE_UNWANTED,
		.next_ns = MW_TIME_MAX,
		.period = PERIOD_FIRST,
	};
	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++)
		stacks->follow[i].pidfd = -1;
}

static void end_follow(struct mw_stacks *stacks, struct mw_stacks_follow *follow)
{
	if (follow->placed)
		mw_bpf_where_delete(stacks->bpf, (uint32_t)(follow - stacks->follow), &follow->key);
	close(follow->pidfd);
	follow->pidfd = -1;
	if (mw_stacks_count(stacks))
		return;
	mw_bpf_where_detach(stacks->bpf);
	stacks->next_ns = MW_TIME_MAX;
	stacks->state = MEMWATCH_WHERE_IDLE;
}

void mw_stacks_uninit(struct mw_stacks *stacks)
{
	for (uint32_t i = 0; stacks->bpf && i < MW_GROWTH_SUSPECTS; i++)
		if (stacks->follow[i].pidfd >= 0)
			end_follow(stacks, &stacks->follow[i]);
	mw_bpf_where_close(stacks->bpf);
	stacks->bpf = NULL;
}

static void give_up(struct mw_stacks *stacks, int err)
{
	mw_log(stacks->ctx, MEMWATCH_LOG_WARNING,
	       "it cannot be told where growing processes take their memory: %s",
	       memwatch_ctx_error(stacks->ctx));
	mw_stacks_uninit(stacks);
	stacks->state = MEMWATCH_WHERE_IMPOSSIBLE;
	stacks->error = -err;
}

int mw_stacks_open(struct mw_stacks *stacks)
{
	int err;

	if (stacks->state == MEMWATCH_WHERE_UNWANTED)
		return 0;
	err = mw_bpf_where_open(stacks->ctx, &stacks->bpf);
	if (err)
		give_up(stacks, err);
	return err;
}

static struct mw_stacks_follow *find_follow(struct mw_stacks *stacks,
					    const struct mw_growth_key *key)
{
	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++)
		if (stacks->follow[i].pidfd >= 0 &&
		    !memcmp(&stacks->follow[i].key, key, sizeof(*key)))
			return &stacks->follow[i];
	return NULL;
}

static struct mw_stacks_follow *find_free(struct mw_stacks *stacks)
{
	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++)
		if (stacks->follow[i].pidfd < 0)
			return &stacks->follow[i];
	return NULL;
}

void mw_stacks_begin(struct mw_stacks *stacks, const struct mw_growth_key *key, uint64_t now_ns)
{
	struct mw_stacks_follow *follow = find_free(stacks);

	if (!stacks->bpf || !follow || find_follow(stacks, key))
		return;
	follow->pidfd = (int)syscall(SYS_pidfd_open, key->tgid, 0);
	if (follow->pidfd < 0)
		return;
	follow->key = *key;
	follow->placed = false;
	follow->since_ns = now_ns;
	stacks->next_ns = mw_min_u64(stacks->next_ns, now_ns + DELAY_NS);
}

void mw_stacks_end(struct mw_stacks *stacks, const struct mw_growth_key *key)
{
	struct mw_stacks_follow *follow = find_follow(stacks, key);

	if (follow)
		end_follow(stacks, follow);
}

static void forget_ended(struct mw_stacks *stacks)
{
	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++) {
		struct pollfd ended = { .fd = stacks->follow[i].pidfd, .events = POLLIN };

		if (ended.fd >= 0 && poll(&ended, 1, 0) == 1)
			end_follow(stacks, &stacks->follow[i]);
	}
}

static void adapt(struct mw_stacks *stacks, uint64_t now_ns)
{
	uint64_t faults = mw_bpf_where_faults(stacks->bpf), passed = now_ns - stacks->checked_ns;
	uint64_t seen = faults - stacks->faults;
	uint64_t wanted = mw_max_u64(1, passed / (MW_GROWTH_SECOND / FAULTS_PER_SECOND));
	uint64_t period = stacks->period;

	stacks->faults = faults;
	stacks->checked_ns = now_ns;
	/* A rate that is about right stays, so that the samples of a process weigh the same. */
	if (seen > wanted || seen < wanted / 8)
		period = mw_max_u64(1,
				    mw_min_u64(PERIOD_MAX, period * mw_max_u64(seen, 1) / wanted));
	if (period == stacks->period)
		return;
	stacks->period = period;
	mw_bpf_where_set_period(stacks->bpf, period);
}

static int attach(struct mw_stacks *stacks, uint64_t now_ns)
{
	if (mw_bpf_where_is_attached(stacks->bpf))
		return 0;
	stacks->period = PERIOD_FIRST;
	stacks->faults = mw_bpf_where_faults(stacks->bpf);
	stacks->checked_ns = now_ns;
	stacks->state = MEMWATCH_WHERE_ACTIVE;
	return mw_bpf_where_attach(stacks->bpf, stacks->period);
}

/* Begins to sample a process that is still a suspect after a while. */
static int place(struct mw_stacks *stacks, struct mw_stacks_follow *follow, uint64_t now_ns)
{
	int err;

	if (follow->pidfd < 0 || follow->placed || now_ns < follow->since_ns + DELAY_NS)
		return 0;
	/* A heap profile says more. */
	if (memwatch_heap_is_profiled(stacks->ctx, follow->key.tgid)) {
		end_follow(stacks, follow);
		return 0;
	}
	follow->placed = true;
	err = mw_bpf_where_put(stacks->bpf, (uint32_t)(follow - stacks->follow), &follow->key);
	return err ? err : attach(stacks, now_ns);
}

void mw_stacks_run(struct mw_stacks *stacks, uint64_t now_ns)
{
	int err = 0;

	if (now_ns < stacks->next_ns)
		return;
	stacks->next_ns = now_ns + CHECK_NS;
	forget_ended(stacks);
	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS && !err; i++)
		err = place(stacks, &stacks->follow[i], now_ns);
	if (err)
		give_up(stacks, err);
	else if (stacks->state == MEMWATCH_WHERE_ACTIVE && now_ns > stacks->checked_ns)
		adapt(stacks, now_ns);
}

int mw_stacks_get(struct mw_stacks *stacks, const struct mw_growth_key *key,
		  struct mw_where_samples *ret)
{
	struct mw_stacks_follow *follow = find_follow(stacks, key);
	int err;

	if (!follow || !follow->placed)
		return mw_fail(stacks->ctx, -ENODATA, "the stacks of process %u are not sampled",
			       key->tgid);
	err = mw_bpf_where_get(stacks->bpf, (uint32_t)(follow - stacks->follow), ret->list,
			       ret->counts);
	if (!err && !ret->counts[MW_WHERE_TOUCHED] && !ret->counts[MW_WHERE_ASKED])
		err = mw_fail(stacks->ctx, -ENODATA, "no stack of process %u was sampled yet",
			      key->tgid);
	return err;
}

uint32_t mw_stacks_count(const struct mw_stacks *stacks)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < MW_GROWTH_SUSPECTS; i++)
		count += stacks->follow[i].pidfd >= 0;
	return count;
}

void mw_stacks_get_stats(const struct mw_stacks *stacks, struct memwatch_watch_stats *stats)
{
	stats->where_state = stacks->state;
	stats->where_error = (uint32_t)stacks->error;
	stats->where_suspects = mw_stacks_count(stacks);
	stats->where_period = stacks->state == MEMWATCH_WHERE_ACTIVE ? (uint32_t)stacks->period : 0;
	stats->where_faults = stacks->bpf ? mw_bpf_where_faults(stacks->bpf) : 0;
}
