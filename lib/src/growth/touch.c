// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The accessed bits are cleared by process_madvise(MADV_COLD), for some pages at a time, so that
 * the lock of the address space is never held for long. clear_refs would do it for the whole
 * process, and other means (DAMON, idle page tracking, userfaultfd) are not in every kernel.
 * MADV_COLD also puts these pages to the end of the list of those in use; there are at most 4096 of
 * them.
 */
#include "growth/touch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/context.h"
#include "base/timemath.h"

#define VISIT_NS (10 * MW_GROWTH_SECOND)

/* A new suspect is visited earlier, but no earlier than this after the last visit. */
#define VISIT_MIN_NS MW_GROWTH_SECOND

/*
 * The pause between two suspects. A suspect takes about 1 ms, and a visit of as many as there can
 * be ends before the next one is due.
 */
#define PAUSE_NS (10 * 1000 * 1000)

/* Visits take at most one part in so many of the time of one CPU. */
#define REST_FACTOR 200

/* Ranges that one call clears. */
#define BATCH 64

/* Pages of all suspects that are sampled, unless that leaves too few of each for a proof. */
#define PAGES_OF_ALL (MW_GROWTH_SUSPECTS * MW_TOUCH_PAGES)
#define PAGES_MIN    1024U

#define SMALL_PAGE   4096U
#define HUGE_PAGE    (1U << MW_TOUCH_REGION_SHIFT)

void mw_touch_init(struct mw_touch *touch, struct memwatch_ctx *ctx, struct mw_bpf_growth *growth,
		   uint32_t max, bool wanted)
{
	*touch = (struct mw_touch){
		.ctx = ctx,
		.growth = growth,
		.max = max ? max : MW_GROWTH_SUSPECTS,
		.state = wanted ? MEMWATCH_TOUCH_IDLE : MEMWATCH_TOUCH_UNWANTED,
		.next_ns = MW_TIME_MAX,
	};
	for (uint32_t i = 0; i < touch->max; i++)
		touch->follow[i].pidfd = -1;
}

static void end_follow(struct mw_touch *touch, struct mw_touch_follow *follow)
{
	if (follow->pidfd < 0)
		return;
	if (touch->bpf)
		mw_bpf_touch_delete(touch->bpf, &follow->key);
	mw_bpf_growth_put_touch(touch->growth, &follow->key, NULL);
	mw_cohort_uninit(&follow->cohort);
	close(follow->pidfd);
	follow->pidfd = -1;
}

static void end_all(struct mw_touch *touch)
{
	for (uint32_t i = 0; i < touch->max; i++)
		end_follow(touch, &touch->follow[i]);
	touch->visiting = false;
	touch->next_ns = MW_TIME_MAX;
	mw_bpf_touch_close(touch->bpf);
	touch->bpf = NULL;
}

void mw_touch_uninit(struct mw_touch *touch)
{
	if (touch->growth)
		end_all(touch);
}

static void give_up(struct mw_touch *touch, int err)
{
	mw_log(touch->ctx, MEMWATCH_LOG_WARNING,
	       "it cannot be told whether growing processes use what they gain: %s",
	       memwatch_ctx_error(touch->ctx));
	end_all(touch);
	touch->state = MEMWATCH_TOUCH_IMPOSSIBLE;
	touch->error = -err;
}

int mw_touch_open(struct mw_touch *touch)
{
	int err;

	if (touch->state == MEMWATCH_TOUCH_UNWANTED)
		return 0;
	err = mw_bpf_touch_open(touch->ctx, touch->max, &touch->bpf);
	if (err)
		give_up(touch, err);
	return err;
}

/* How many pages of a suspect are sampled: fewer if there may be many suspects. */
static uint32_t pages_of_each(const struct mw_touch *touch)
{
	uint32_t share = PAGES_OF_ALL / touch->max;

	return (uint32_t)mw_min_u64(MW_TOUCH_PAGES, mw_max_u64(PAGES_MIN, share));
}

static struct mw_touch_follow *find_follow(struct mw_touch *touch, const struct mw_growth_key *key)
{
	for (uint32_t i = 0; i < touch->max; i++)
		if (touch->follow[i].pidfd >= 0 &&
		    !memcmp(&touch->follow[i].key, key, sizeof(*key)))
			return &touch->follow[i];
	return NULL;
}

static struct mw_touch_follow *find_free(struct mw_touch *touch)
{
	for (uint32_t i = 0; i < touch->max; i++)
		if (touch->follow[i].pidfd < 0)
			return &touch->follow[i];
	return NULL;
}

/*
 * The id of the process may be another one's by now. But then the first visit, which is later,
 * does not find a process with this start time.
 */
static void begin_follow(struct mw_touch *touch, const struct mw_growth_key *key, uint64_t pages,
			 uint64_t now_ns)
{
	struct mw_touch_follow *follow = find_free(touch);

	if (!touch->bpf || !follow || find_follow(touch, key))
		return;
	follow->pidfd = (int)syscall(SYS_pidfd_open, key->tgid, 0);
	if (follow->pidfd < 0)
		return;
	follow->key = *key;
	follow->placed = false;
	mw_cohort_init(&follow->cohort, pages, pages_of_each(touch));
	if (touch->visiting)
		return;
	/* What is there already is not of the cohort, so look as soon as the budget allows. */
	touch->next_ns = mw_min_u64(touch->next_ns, mw_max_u64(now_ns, touch->rested_ns));
}

static void end_key(struct mw_touch *touch, const struct mw_growth_key *key)
{
	struct mw_touch_follow *follow = find_follow(touch, key);

	if (follow)
		end_follow(touch, follow);
}

void mw_touch_note(struct mw_touch *touch, const struct memwatch_record_growth *record,
		   uint64_t now_ns)
{
	struct mw_growth_key key = { .start_ns = record->start_time_ns, .tgid = record->tgid };

	/* Who is followed already has called exec since: its pages are gone. */
	if (record->what == MEMWATCH_GROWTH_NOTICED || record->what == MEMWATCH_GROWTH_SETTLED)
		end_key(touch, &key);
	if (record->what == MEMWATCH_GROWTH_NOTICED)
		begin_follow(touch, &key, record->signal_bytes >> MW_GROWTH_PAGE_SHIFT, now_ns);
}

void mw_touch_check(struct mw_touch *touch, const struct mw_growth_key *key,
		    const struct mw_growth *g, uint64_t now_ns)
{
	if (g->flags & MW_GROWTH_F_NOTICE)
		begin_follow(touch, key, g->signal, now_ns);
	else
		end_key(touch, key);
}

/* Clears up to BATCH pages by one call. Returns how many of them were cleared, or an error. */
static int clear_batch(struct mw_touch *touch, struct mw_touch_follow *follow, const __u64 *pages,
		       uint32_t count)
{
	uint64_t begin = mw_clock(CLOCK_MONOTONIC), took;
	struct iovec ranges[BATCH];
	ssize_t bytes;
	int cleared = 0;

	for (uint32_t i = 0; i < count; i++)
		ranges[i] = (struct iovec){
			.iov_base = (void *)(uintptr_t)(pages[i] & MW_TOUCH_ADDRESS),
			.iov_len = pages[i] & MW_TOUCH_HUGE ? HUGE_PAGE : SMALL_PAGE,
		};
	bytes = syscall(SYS_process_madvise, follow->pidfd, ranges, count, MADV_COLD, 0);
	if (bytes < 0 && errno == EPERM)
		return mw_fail(touch->ctx, -EPERM, "that needs CAP_SYS_NICE and CAP_SYS_PTRACE");
	if (bytes < 0 && errno != EINVAL && errno != ENOMEM)
		return mw_fail(touch->ctx, -errno, "process_madvise: %s", strerror(errno));
	took = mw_clock(CLOCK_MONOTONIC) - begin;
	touch->stall_ns = mw_max_u64(touch->stall_ns, took);
	while (cleared < (int)count && bytes >= (ssize_t)ranges[cleared].iov_len)
		bytes -= (ssize_t)ranges[cleared++].iov_len;
	return cleared;
}

/* Clears the accessed bits of pages. What cannot be cleared, locked memory, is left out. */
static int clear_pages(struct mw_touch *touch, struct mw_touch_follow *follow, const __u64 *pages,
		       uint32_t count)
{
	uint32_t at = 0;

	while (at < count) {
		uint32_t batch = count - at < BATCH ? count - at : BATCH;
		int cleared = clear_batch(touch, follow, pages + at, batch);

		if (cleared < 0)
			return cleared;
		at += (uint32_t)cleared;
		if (cleared < (int)batch)
			mw_cohort_drop(&follow->cohort, pages[at++]);
	}
	return 0;
}

/* Evaluates the visit of one suspect. */
static int evaluate(struct mw_touch *touch, struct mw_touch_follow *follow, uint64_t now_ns)
{
	uint32_t slot = (uint32_t)(follow - touch->follow);
	const struct mw_touch_suspect *found = mw_bpf_touch_get(touch->bpf, slot);
	struct mw_growth_touch result;
	int err;

	if (!found) /* it exited during the visit */
		return 0;
	follow->visited = true;
	if (mw_cohort_fit(&follow->cohort, (uint64_t)found->count + found->missed)) {
		follow->placed = false;
		touch->again = true;
		return 0;
	}
	err = mw_cohort_visit(&follow->cohort, now_ns, found->page, found->count, touch->clear);
	if (err > 0)
		err = clear_pages(touch, follow, touch->clear, (uint32_t)err);
	if (err == -ESRCH)
		return 0;
	if (err)
		return err;
	mw_cohort_measure(&follow->cohort, now_ns, &result);
	err = mw_bpf_growth_put_touch(touch->growth, &follow->key, &result);
	return err ? mw_fail(touch->ctx, err, "cannot write to a BPF map: %s", strerror(-err)) : 0;
}

/* Tells the program which processes are suspects, and how coarsely to sample them. */
static int place_all(struct mw_touch *touch)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < touch->max; i++) {
		struct mw_touch_follow *follow = &touch->follow[i];

		follow->visited = false;
		if (follow->pidfd < 0 || follow->placed)
			continue;
		err = mw_bpf_touch_put(touch->bpf, i, &follow->key, follow->cohort.shift);
		follow->placed = !err;
	}
	return err;
}

static int begin_visit(struct mw_touch *touch, uint64_t now_ns)
{
	int err = place_all(touch);

	touch->visiting = true;
	touch->again = false;
	touch->begun_ns = now_ns;
	touch->spent_ns = 0;
	return err ? err : mw_bpf_touch_begin(touch->bpf);
}

/* Visits one suspect. Returns 1 if there may be another one. */
static int visit_next(struct mw_touch *touch, uint64_t now_ns)
{
	uint32_t slot;
	int err, rc = mw_bpf_touch_next(touch->bpf, &slot);

	if (rc <= 0 || touch->follow[slot].pidfd < 0)
		return rc;
	err = evaluate(touch, &touch->follow[slot], now_ns);
	return err ? err : 1;
}

/* Ends a visit. Suspects that it has not found have ended, or called exec. */
static void end_visit(struct mw_touch *touch, uint64_t now_ns)
{
	bool have_new = false;

	for (uint32_t i = 0; i < touch->max; i++) {
		struct mw_touch_follow *follow = &touch->follow[i];

		have_new |= follow->pidfd >= 0 && !follow->placed;
		if (follow->placed && !follow->visited)
			end_follow(touch, follow);
	}
	touch->visiting = false;
	touch->visits++;
	touch->rested_ns = touch->begun_ns +
			   mw_max_u64(VISIT_MIN_NS, touch->spent_ns * REST_FACTOR);
	if (touch->again)
		touch->next_ns = now_ns;
	else if (have_new)
		touch->next_ns = touch->rested_ns;
	else
		touch->next_ns = mw_max_u64(touch->begun_ns + VISIT_NS, touch->rested_ns);
}

/* Does what is due of a visit. Returns 1 if it has not ended. */
static int go_on(struct mw_touch *touch, uint64_t now_ns)
{
	int err = touch->visiting ? 0 : begin_visit(touch, now_ns);

	return err ? err : visit_next(touch, now_ns);
}

uint64_t mw_touch_run(struct mw_touch *touch, uint64_t now_ns)
{
	uint64_t begin, cost;
	int rc;

	if (now_ns < touch->next_ns)
		return 0;
	if (!mw_touch_count(touch) && !touch->visiting) {
		touch->next_ns = MW_TIME_MAX;
		return 0;
	}
	begin = mw_clock(CLOCK_THREAD_CPUTIME_ID);
	touch->state = MEMWATCH_TOUCH_ACTIVE;
	rc = go_on(touch, now_ns);
	cost = mw_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
	touch->cpu_ns += cost;
	touch->spent_ns += cost;
	if (rc < 0)
		give_up(touch, rc);
	else if (rc)
		touch->next_ns = now_ns + PAUSE_NS;
	else
		end_visit(touch, now_ns);
	return cost;
}

uint32_t mw_touch_count(const struct mw_touch *touch)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < touch->max; i++)
		count += touch->follow[i].pidfd >= 0;
	return count;
}

void mw_touch_get_stats(const struct mw_touch *touch, struct memwatch_watch_stats *stats)
{
	stats->touch_state = touch->state;
	stats->touch_error = (uint32_t)touch->error;
	stats->touch_suspects = mw_touch_count(touch);
	stats->touch_visits = touch->visits;
	stats->touch_cpu_ns = touch->cpu_ns;
	stats->touch_stall_ns = touch->stall_ns;
}
