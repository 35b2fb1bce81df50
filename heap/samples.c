/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live samples in the profile, and the sums that go with them.
 *
 * A slot of the profile belongs to one thread at a time: to the one that took it from the
 * free list, until the index publishes the address; then to the one that takes or holds the
 * address in the index. So nothing in a slot needs an atomic operation but its state, which
 * is for readers in other processes.
 */
#include <errno.h>

#include "filter.h"
#include "index.h"
#include "interval.h"
#include "lock.h"
#include "probes.h"
#include "profile.h"
#include "runtime.h"
#include "samples.h"
#include "stacks.h"
#include "thread.h"
#include "watch.h"

/* Samples that are looked at while the lock is held: this takes some tens of microseconds. */
#define THIN_STEP   512
#define THIN_STRIDE 1000003 /* a prime: samples are visited in this distance */

/* How often all of them may be looked at for one new sample, with a rate that is doubled. */
#define THIN_PASSES_MAX 4

static uint32_t thin_next; /* slot where thinning goes on; 0: a pass begins */

/* Head of the free slots: a tag against reuse in the upper half, slot + 1 in the lower. */
static uint64_t free_head;

static struct mw_heap_sample *slot_at(uint32_t slot)
{
	return mw_profile_at(MW_HEAP_CHUNK_SAMPLES, (uint64_t)slot * sizeof(struct mw_heap_sample));
}

static bool slot_exists(uint64_t slot)
{
	return (slot + 1) * sizeof(struct mw_heap_sample) <=
	       mw_profile_bytes(MW_HEAP_CHUNK_SAMPLES);
}

/* A free slot links to the next one in free_link. */
static bool slot_pop(uint32_t *ret)
{
	uint64_t head = __atomic_load_n(&free_head, __ATOMIC_ACQUIRE), next;
	uint32_t slot;

	do {
		slot = (uint32_t)head - 1;
		if (!(uint32_t)head || !slot_exists(slot))
			return false;
		next = (head >> 32) + 1;
		next = next << 32 | __atomic_load_n(&slot_at(slot)->free_link, __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&free_head, &head, next, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_ACQUIRE));
	*ret = slot;
	return true;
}

static void slot_push(uint32_t slot)
{
	uint64_t head = __atomic_load_n(&free_head, __ATOMIC_RELAXED), next;

	do {
		__atomic_store_n(&slot_at(slot)->free_link, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | (slot + 1);
	} while (!__atomic_compare_exchange_n(&free_head, &head, next, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
}

static int slot_allocate(uint32_t *ret)
{
	uint64_t slot = 0;
	int rc;

	if (slot_pop(ret))
		return 0;
	rc = mw_profile_reserve(MW_HEAP_CHUNK_SAMPLES, &mw_profile.header->sample_slots, 1,
				sizeof(struct mw_heap_sample), &slot);
	*ret = (uint32_t)slot;
	return rc;
}

static void state_change(struct mw_heap_sample *sample, uint32_t state)
{
	uint64_t generation = (sample->state >> 2) + (state == MW_HEAP_SAMPLE_WRITING);

	__atomic_store_n(&sample->state, generation << 2 | state, __ATOMIC_RELEASE);
	/* A reader that sees a field of the new generation must see that the state changed. */
	if (state == MW_HEAP_SAMPLE_WRITING)
		__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* What a sample stands for. */
struct sample_weight {
	uint64_t bytes;
	double objects;
	double bytes_variance;
	double objects_variance;
};

static struct sample_weight weight_of(uint64_t size, uint64_t rate)
{
	double p = mw_interval_probability(size, rate), objects = 1 / p;
	struct sample_weight weight = {
		.bytes = (uint64_t)((double)size * objects + 0.5),
		.objects = objects,
		.objects_variance = (1 - p) * objects * objects,
	};

	weight.bytes_variance = weight.objects_variance * (double)size * (double)size;
	return weight;
}

static void peak_follow(struct mw_heap_header *header, uint64_t live, uint64_t now)
{
	uint64_t peak = __atomic_load_n(&header->counters.peak_live_bytes, __ATOMIC_RELAXED);

	while (live > peak && (int64_t)live > 0) {
		if (__atomic_compare_exchange_n(&header->counters.peak_live_bytes, &peak, live,
						true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			__atomic_store_n(&header->counters.peak_live_ns, now, __ATOMIC_RELAXED);
	}
}

static void birth_count(const struct mw_sample_birth *birth, const struct sample_weight *weight)
{
	struct mw_heap_header *header = mw_profile.header;
	struct mw_heap_stack *stack = mw_stack_at(birth->stack);
	uint64_t live;

	mw_count(&header->counters.allocated_bytes, weight->bytes);
	live = __atomic_add_fetch(&header->live_bytes, weight->bytes, __ATOMIC_RELAXED);
	mw_count(&header->live_samples, 1);
	peak_follow(header, live, birth->time_ns);
	if (!stack)
		return;
	mw_count(&stack->alloc_samples, 1);
	mw_count(&stack->alloc_bytes, weight->bytes);
	mw_count_double(&stack->alloc_objects, weight->objects);
	mw_count_double(&stack->alloc_bytes_variance, weight->bytes_variance);
	mw_count_double(&stack->alloc_objects_variance, weight->objects_variance);
}

static void live_uncount(const struct sample_weight *weight)
{
	mw_count(&mw_profile.header->live_bytes, -weight->bytes);
	mw_count(&mw_profile.header->live_samples, (uint64_t)-1);
}

/* Bin 0 is below 2^10 ns, each further one twice as long. */
static unsigned int lifetime_bin(uint64_t ns)
{
	unsigned int bits = ns ? 64 - (unsigned int)__builtin_clzll(ns) : 0;
	unsigned int bin = bits <= 10 ? 0 : bits - 10;

	return bin < MW_HEAP_LIFETIME_BINS ? bin : MW_HEAP_LIFETIME_BINS - 1;
}

static void death_count(const struct mw_heap_sample *sample, uint64_t now)
{
	struct mw_heap_header *header = mw_profile.header;
	struct mw_heap_stack *stack = mw_stack_at(sample->stack);
	struct sample_weight weight = weight_of(sample->size, sample->rate);
	uint64_t age = now > sample->time_ns ? now - sample->time_ns : 0;

	mw_count(&header->counters.sampled_frees, 1);
	mw_count(&header->counters.freed_bytes, weight.bytes);
	live_uncount(&weight);
	if (!stack)
		return;
	mw_count(&stack->free_samples, 1);
	mw_count(&stack->free_bytes, weight.bytes);
	mw_count_double(&stack->free_objects, weight.objects);
	__atomic_fetch_add(&stack->lifetime[lifetime_bin(age)], 1, __ATOMIC_RELAXED);
}

/* The sample in @slot is gone; the caller owns the slot. */
static void slot_retire(uint32_t slot)
{
	struct mw_heap_sample *sample = slot_at(slot);

	mw_isolate_unguard(sample->guard);
	mw_watch_end(sample->watch, sample->address, sample->size);
	mw_filter_remove((const void *)(uintptr_t)sample->address);
	state_change(sample, MW_HEAP_SAMPLE_FREE);
	slot_push(slot);
}

static void slot_free(uint32_t slot)
{
	death_count(slot_at(slot), mw_runtime_now());
	mw_probe_free(slot_at(slot)->address);
	slot_retire(slot);
}

/* Takes a place in the index; adds a table to it if its buckets are full. */
static int index_claim(uint64_t address, struct mw_index_place *ret)
{
	unsigned int waits = 0;

	do {
		int rc = mw_index_claim(address, ret);

		if (!rc)
			return 0;
		if (!mw_lock_try(&mw_maintenance))
			continue;
		/* Another thread may have added a table since. */
		rc = mw_index_claim(address, ret);
		if (!rc) {
			mw_lock_end(&mw_maintenance);
			return 0;
		}
		rc = mw_index_grow();
		mw_lock_end(&mw_maintenance);
		if (rc)
			return rc;
	} while (mw_lock_wait(&mw_maintenance, &waits));
	return -EAGAIN;
}

static void birth_lose(uint64_t bytes, int error)
{
	struct mw_heap_counters *counters = &mw_profile.header->counters;

	mw_count(&counters->lost_samples, 1);
	mw_count(&counters->lost_bytes, bytes);
	if (error == -EAGAIN)
		mw_count(&counters->lost_no_room, 1);
}

/* If a free of an earlier object at this address passed this library by, that object ends now. */
static void stale_sample_end(uint64_t address)
{
	uint32_t slot;

	if (mw_filter_may_have((const void *)(uintptr_t)address) &&
	    mw_index_take(address, &slot) == MW_INDEX_FOUND) {
		mw_count(&mw_profile.header->counters.unseen_frees, 1);
		slot_free(slot);
	}
}

/*
 * Keeps the sample in @slot with the probability that makes it one of rate @rate, or drops it.
 * Caller holds the maintenance lock.
 */
static void slot_thin(uint32_t slot, uint64_t rate, struct mw_random *random)
{
	struct mw_heap_sample *sample = slot_at(slot);
	struct sample_weight before, after;
	struct mw_index_place place;
	uint64_t address;
	double keep;

	if ((__atomic_load_n(&sample->state, __ATOMIC_ACQUIRE) & MW_HEAP_SAMPLE_MASK) !=
	    MW_HEAP_SAMPLE_LIVE)
		return;
	address = __atomic_load_n(&sample->address, __ATOMIC_RELAXED);
	if (!mw_index_hold(address, &place))
		return;
	/* Which sample is at this address may have changed since; the one that is held is thinned.
	 */
	slot = *place.slot;
	sample = slot_at(slot);
	if (sample->rate >= rate) {
		if (!mw_index_release(&place, address, slot))
			slot_free(slot);
		return;
	}
	before = weight_of(sample->size, sample->rate);
	after = weight_of(sample->size, rate);
	keep = before.objects / after.objects;
	if (mw_random_unit(random) > keep) {
		live_uncount(&before);
		mw_count(&mw_profile.header->counters.thinned_samples, 1);
		mw_probe_free(address);
		/* The object keeps its pages, and nobody will see that it is freed. */
		mw_watch_stop(sample->watch, address);
		sample->watch = 0;
		mw_index_abandon(&place);
		slot_retire(slot);
		return;
	}
	state_change(sample, MW_HEAP_SAMPLE_WRITING);
	sample->rate = rate;
	state_change(sample, MW_HEAP_SAMPLE_LIVE);
	mw_count(&mw_profile.header->live_bytes, after.bytes - before.bytes);
	if (!mw_index_release(&place, address, slot))
		slot_free(slot);
}

/* Looks at the next few samples, which are spread over the table. */
static void thin_step(uint32_t slots, uint64_t rate)
{
	uint32_t end = slots - thin_next < THIN_STEP ? slots : thin_next + THIN_STEP;

	for (; thin_next < end; thin_next++)
		slot_thin((uint32_t)((uint64_t)thin_next * THIN_STRIDE % slots), rate,
			  &mw_thread.random);
	if (thin_next == slots)
		thin_next = 0;
}

/*
 * Drops samples by the odds of their rate and the present one. A pass over all of them begins
 * with doubling the rate. It is made in small steps, each of them only when there is no room, so
 * that nobody waits for long. If the first step drops next to nothing, because the objects are
 * much larger than the rate, the rate is doubled again at once. Caller holds the maintenance lock.
 */
static void samples_thin(uint32_t slots)
{
	struct mw_heap_counters *counters = &mw_profile.header->counters;
	uint64_t before = __atomic_load_n(&counters->thinned_samples, __ATOMIC_RELAXED);
	bool first = thin_next == 0;

	if (first) {
		mw_runtime_raise(__atomic_load_n(&mw_runtime.rate, __ATOMIC_RELAXED));
		mw_count(&counters->thinnings, 1);
		mw_profile_limit(MW_HEAP_LIMIT_SAMPLES_FULL);
	}
	thin_step(slots, __atomic_load_n(&mw_runtime.rate, __ATOMIC_RELAXED));
	if (first && counters->thinned_samples - before < THIN_STEP / 16)
		thin_next = 0;
}

/* Thinning makes room if the table is as large as it can be, and most of it is in use. */
static bool thinning_helps(uint32_t slots)
{
	return __atomic_load_n(&mw_runtime.rate, __ATOMIC_RELAXED) && slots &&
	       __atomic_load_n(&mw_profile.header->live_samples, __ATOMIC_RELAXED) >= slots / 2;
}

/* A slot for a new sample. If there is none, samples are thinned out until there is one. */
static int slot_make(uint32_t *ret)
{
	uint32_t slots = (uint32_t)(mw_profile_bytes(MW_HEAP_CHUNK_SAMPLES) /
				    sizeof(struct mw_heap_sample));
	uint32_t steps = THIN_PASSES_MAX * (slots / THIN_STEP + 1);
	unsigned int waits = 0;
	int rc = slot_allocate(ret);

	while (rc && rc != -EAGAIN && steps > 0 && thinning_helps(slots)) {
		if (mw_lock_try(&mw_maintenance)) {
			samples_thin(slots);
			mw_lock_end(&mw_maintenance);
			steps--;
		} else if (!mw_lock_wait(&mw_maintenance, &waits)) {
			return -EAGAIN;
		}
		rc = slot_allocate(ret);
	}
	return rc;
}

bool mw_sample_add(const struct mw_sample_birth *birth)
{
	struct mw_heap_header *header = mw_profile.header;
	struct sample_weight weight = weight_of(birth->size, birth->rate);
	struct mw_heap_sample *sample;
	struct mw_index_place place;
	uint32_t slot;
	int rc;

	stale_sample_end(birth->address);
	mw_count(&header->counters.samples, 1);
	rc = slot_make(&slot);
	if (rc) {
		birth_lose(weight.bytes, rc);
		return false;
	}
	rc = index_claim(birth->address, &place);
	if (rc) {
		slot_push(slot);
		birth_lose(weight.bytes, rc);
		return false;
	}
	sample = slot_at(slot);
	state_change(sample, MW_HEAP_SAMPLE_WRITING);
	sample->address = birth->address;
	sample->size = birth->size;
	sample->rate = birth->rate;
	sample->time_ns = birth->time_ns;
	sample->allocated_before = __atomic_load_n(&header->counters.allocated_bytes,
						   __ATOMIC_RELAXED);
	sample->stack = birth->stack;
	sample->tid = birth->tid;
	sample->source = (uint16_t)birth->source;
	sample->watch = birth->watch;
	sample->guard = birth->guard;
	state_change(sample, MW_HEAP_SAMPLE_LIVE);
	mw_filter_add((const void *)(uintptr_t)birth->address);
	birth_count(birth, &weight);
	mw_probe_alloc(birth->address, birth->size, weight.bytes);
	if (!mw_index_release(&place, birth->address, slot))
		slot_free(slot);
	return true;
}

bool mw_sample_free(const void *address)
{
	uint32_t slot;

	switch (mw_index_take((uintptr_t)address, &slot)) {
	case MW_INDEX_FOUND:
		slot_free(slot);
		return true;
	case MW_INDEX_DEFERRED:
		return true;
	case MW_INDEX_ABSENT:
		break;
	}
	return false;
}

bool mw_sample_detach(const void *address, uint32_t *ret_slot)
{
	if (mw_index_take((uintptr_t)address, ret_slot) != MW_INDEX_FOUND)
		return false;
	/* The allocator must find one mapping where it had one: mremap() takes no others. */
	mw_watch_stop(slot_at(*ret_slot)->watch, (uintptr_t)address);
	return true;
}

void mw_sample_detached_free(uint32_t slot)
{
	slot_free(slot);
}

/* Puts a sample back into the map. False if its place was taken by others. */
static bool detached_attach(uint32_t slot)
{
	uint64_t address = slot_at(slot)->address;
	struct mw_index_place place;

	if (index_claim(address, &place))
		return false;
	if (!mw_index_release(&place, address, slot))
		slot_free(slot);
	return true;
}

void mw_sample_detached_lose(uint32_t slot)
{
	struct sample_weight weight = weight_of(slot_at(slot)->size, slot_at(slot)->rate);

	mw_count(&mw_profile.header->counters.lost_samples, 1);
	mw_count(&mw_profile.header->counters.lost_bytes, weight.bytes);
	live_uncount(&weight);
	slot_retire(slot);
}

void mw_sample_detached_restore(uint32_t slot)
{
	if (!detached_attach(slot))
		mw_sample_detached_lose(slot);
}

bool mw_sample_detached_shrink(uint32_t slot, uint64_t address, uint64_t size,
			       struct mw_random *random)
{
	struct mw_heap_sample *sample = slot_at(slot);
	struct sample_weight before = weight_of(sample->size, sample->rate);
	struct sample_weight after = weight_of(size, sample->rate);
	struct mw_heap_stack *stack = mw_stack_at(sample->stack);

	if (mw_random_unit(random) > before.objects / after.objects) {
		slot_free(slot);
		return false;
	}
	/* What is freed here is, on average, what the program has unmapped. */
	mw_count(&mw_profile.header->counters.freed_bytes, before.bytes - after.bytes);
	mw_count(&mw_profile.header->live_bytes, after.bytes - before.bytes);
	if (stack)
		mw_count(&stack->free_bytes, before.bytes - after.bytes);
	mw_filter_remove((const void *)(uintptr_t)sample->address);
	state_change(sample, MW_HEAP_SAMPLE_WRITING);
	sample->address = address;
	sample->size = size;
	state_change(sample, MW_HEAP_SAMPLE_LIVE);
	mw_filter_add((const void *)(uintptr_t)address);
	if (detached_attach(slot))
		return true;
	mw_sample_detached_lose(slot);
	return false;
}

void mw_samples_clear(void)
{
	free_head = 0;
	thin_next = 0;
}
