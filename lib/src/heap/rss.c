// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Divides the resident set of a process into parts. The kernel says what is resident of each
 * mapping; the samples say what is live there; the figures of the C library say how much it has
 * in use and free, exactly, but as of some time ago. What is in use has therefore two estimates:
 * that of the samples, and that of the figures, corrected by what was sampled and freed since.
 * They are combined by their variances. No part is what is left over: that is "unexplained".
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "heap/memory.h"
#include "heap/model.h"
#include "base/context.h"
#include "base/timemath.h"

/* Where the C library has put an object. */
enum place { IN_ARENA, MAPPED, PLACES };

/* An object of at least this size is mapped on its own, unless the mapping is an arena. */
#define MAPPED_MIN 65536
/* A chunk has a word before its object and is aligned; a mapped one has two. */
#define CHUNK_WORD  8
#define CHUNK_ALIGN 16
#define CHUNK_MIN   32
/* The C library keeps 7 chunks of each size from 32 to 1040 bytes for each thread. */
#define CACHE_MAX (7 * 16 * (65 * 66 / 2 - 1))
/* By how much the heap may differ from what the figures say without any other reason. */
#define SLACK 262144.0

/**
 * struct place_sums - the sampled objects of a place
 * @requested, @chunks: estimates of the bytes requested, and of what the allocator needs for them
 * @variance: of @chunks
 * @ss, @sc, @cc: sums of size^2, size * chunk and chunk^2, times the variance of the number
 * @resident: estimate of the resident bytes of @requested
 * @born: of @chunks, those younger than the figures
 * @found: resident bytes of the sampled objects themselves
 * @number: estimate of the number of objects
 */
struct place_sums {
	double requested, chunks, variance;
	double ss, sc, cc;
	double resident;
	double born;
	double found;
	double number;
};

/* An estimate of bytes and its variance. */
struct amount {
	double value, variance;
};

/**
 * struct account - the work on one process
 * @holds: of each mapping, whether it belongs to the heap, and whether it has mapped objects
 * @old: estimate of the live bytes that are older than the figures
 * @weight: bytes that a sample stands for, on average
 * @churn: bytes allocated and freed since the figures were taken
 * @freed: bytes freed of them
 * @in_use: with overhead, and in arenas with the caches of threads; resident or not
 * @caches: of threads
 * @free: inside the allocator, resident or not
 * @size, @resident: of the mappings of the heap
 * @absent: bytes of the heap that are free and not resident
 * @other: estimate of the bytes in use in the heap outside of brk()
 */
struct account {
	const struct mw_prof_profile *profile;
	const struct memwatch_heap_memory *memory;
	struct memwatch_heap_rss *ret;
	bool glibc, has_figures;
	bool *is_heap, *has_mapped;
	struct place_sums sums[PLACES];
	double old, weight, churn, freed;
	struct amount in_use[PLACES], caches;
	double size, resident, free, absent, other;
};

static double max0(double value)
{
	return value > 0 ? value : 0;
}

static double clamp(double value, double low, double high)
{
	return fmin(fmax(value, low), high);
}

static struct amount combine(struct amount a, struct amount b)
{
	double sum = a.variance + b.variance;

	if (!(sum > 0))
		return b;
	return (struct amount){ (a.value * b.variance + b.value * a.variance) / sum,
				a.variance * b.variance / sum };
}

static double chunk_bytes(const struct account *a, enum place place, double size)
{
	double page = (double)(a->memory ? a->memory->page_bytes : 4096);

	if (!a->glibc)
		return size;
	if (place == MAPPED)
		return ceil((size + 2 * CHUNK_WORD) / page) * page;
	return fmax(CHUNK_MIN, ceil((size + CHUNK_WORD) / CHUNK_ALIGN) * CHUNK_ALIGN);
}

/* The place of a sample; marks its mapping. Returns false if the object is gone already. */
static bool find_place(struct account *a, const struct mw_prof_sample *sample, enum place *ret,
		       double *resident)
{
	const struct mw_memory_mapping *mapping;
	bool own;

	*resident = (double)sample->size;
	*ret = sample->size >= MAPPED_MIN ? MAPPED : IN_ARENA;
	if (!a->memory)
		return true;
	mapping = mw_memory_find(a->memory, sample->address);
	if (!mapping || mapping->kind == MW_MEMORY_FILE)
		return false;
	own = mapping->kind == MW_MEMORY_HEAP || mapping->kind == MW_MEMORY_ARENA;
	if (own || !a->glibc)
		*ret = IN_ARENA;
	if (*ret == MAPPED)
		a->has_mapped[mapping - a->memory->mappings] = true;
	else
		a->is_heap[mapping - a->memory->mappings] = true;
	*resident = (double)mw_memory_resident(
		a->memory, sample->address,
		mw_min_u64(mw_add_sat(sample->address, sample->size), mapping->end));
	return true;
}

/* Whether an object is where brk() has put the first arena. */
static bool is_main(const struct account *a, const struct mw_prof_sample *sample)
{
	return a->memory && mw_memory_find(a->memory, sample->address)->kind == MW_MEMORY_HEAP;
}

static void add_sample(struct account *a, const struct mw_prof_sample *sample)
{
	const struct mw_prof_sum *number = &sample->sum[MEMWATCH_HEAP_LIVE_OBJECTS];
	double size = (double)sample->size, chunk, resident;
	struct place_sums *sums;
	enum place place;

	if (!sample->count)
		return;
	/* The figures' sum of live bytes has such memory too, but it is none of the allocator's. */
	if (sample->is_mapped && sample->birth_ns <= (int64_t)a->profile->figures_ns)
		a->old += size * number->value;
	if (sample->is_mapped || !find_place(a, sample, &place, &resident))
		return;
	/* Of a process that has ended, all is as it was when the figures were taken. */
	if (!a->memory && a->has_figures && sample->birth_ns > (int64_t)a->profile->figures_ns)
		return;
	sums = &a->sums[place];
	chunk = chunk_bytes(a, place, size);
	sums->requested += size * number->value;
	sums->chunks += chunk * number->value;
	sums->variance += chunk * chunk * number->variance;
	sums->ss += size * size * number->variance;
	sums->sc += size * chunk * number->variance;
	sums->cc += chunk * chunk * number->variance;
	sums->resident += resident * number->value;
	sums->found += resident;
	sums->number += number->value;
	if (place == IN_ARENA && !is_main(a, sample))
		a->other += chunk * number->value;
	if (sample->birth_ns > (int64_t)a->profile->figures_ns)
		sums->born += chunk * number->value;
	else
		a->old += size * number->value;
}

static void add_samples(struct account *a)
{
	double requested, chunks, born;

	for (uint32_t i = 0; i < a->profile->nr_samples; i++)
		add_sample(a, &a->profile->samples[i]);
	requested = a->sums[IN_ARENA].requested + a->sums[MAPPED].requested;
	chunks = a->sums[IN_ARENA].chunks + a->sums[MAPPED].chunks;
	born = a->sums[IN_ARENA].born + a->sums[MAPPED].born;
	a->weight = (double)a->profile->info.rate_bytes;
	if (requested > 0)
		a->weight = fmax(a->weight,
				 (a->sums[IN_ARENA].ss + a->sums[MAPPED].ss) / requested);
	/* The writer's sum is of whole numbers. */
	if (a->has_figures && a->memory)
		a->freed = max0((double)a->profile->figures.live_bytes - a->old);
	if (a->freed <= (double)a->profile->nr_samples + 1)
		a->freed = 0;
	if (requested > 0)
		a->freed *= chunks / requested;
	a->churn = a->freed + born;
}

/* What is in use in a place according to the figures, which had @then. */
static struct amount from_figures(const struct account *a, enum place place, double then,
				  double total)
{
	double freed = total > 0 ? a->freed * then / total : 0;

	return (struct amount){ max0(then + a->sums[place].born - freed), a->weight * a->churn };
}

/*
 * The caches of threads count as in use. They are between nothing and what they can hold, and
 * they are what the allocator has in use more than the samples say, within the errors of both.
 */
static void estimate_caches(struct account *a, struct amount figures, struct amount samples)
{
	double most = fmin(figures.value, (double)CACHE_MAX * (a->memory ? a->memory->threads : 1));
	struct amount before = { most / 2, most * most / 12 };
	struct amount seen = { figures.value - samples.value, figures.variance + samples.variance };

	if (!a->glibc)
		return;
	a->caches = combine(before, seen);
	a->caches.value = clamp(a->caches.value, 0, most);
}

static void estimate_in_use(struct account *a)
{
	const struct mw_heap_figures *f = &a->profile->figures;
	double total = (double)f->uordblks + (double)f->hblkhd, error;

	for (int place = 0; place < PLACES; place++) {
		struct amount samples = { a->sums[place].chunks, a->sums[place].variance };
		struct amount figures;
		double then = (double)(place == IN_ARENA ? f->uordblks : f->hblkhd);

		a->in_use[place] = samples;
		if (!a->has_figures)
			continue;
		figures = from_figures(a, (enum place)place, then, total);
		error = 4 * sqrt(samples.variance + figures.variance) + SLACK;
		if (place == IN_ARENA) {
			estimate_caches(a, figures, samples);
			samples.value += a->caches.value;
			samples.variance += a->caches.variance;
		}
		if (a->memory && fabs(figures.value - samples.value) > error) {
			a->ret->flags |= MEMWATCH_HEAP_RSS_UNSEEN;
			a->in_use[place] = samples;
			continue;
		}
		a->in_use[place] = combine(samples, figures);
	}
}

static struct memwatch_heap_estimate exact(double value)
{
	return (struct memwatch_heap_estimate){ value, value, value };
}

/* The share of what is in use that was requested, and the error of this ratio. */
static double requested_share(const struct place_sums *sums, double *variance)
{
	double share = sums->chunks > 0 ? sums->requested / sums->chunks : 1;

	*variance = 0;
	if (sums->chunks > 0)
		*variance = max0(sums->ss - 2 * share * sums->sc + share * share * sums->cc) /
			    (sums->chunks * sums->chunks);
	return share;
}

static double resident_share(const struct place_sums *sums)
{
	return sums->requested > 0 ? sums->resident / sums->requested : 1;
}

static void fill_live(struct account *a)
{
	double live = 0, overhead = 0, variance = 0, error;

	for (int place = 0; place < PLACES; place++) {
		double share_variance, share, resident = resident_share(&a->sums[place]);
		struct amount chunks = a->in_use[place];

		if (place == IN_ARENA) {
			chunks.value = max0(chunks.value - a->caches.value);
			chunks.variance += a->caches.variance;
		}
		share = requested_share(&a->sums[place], &share_variance);
		live += chunks.value * share * resident;
		overhead += chunks.value * (1 - share) * resident;
		variance += resident * resident *
			    (share * share * chunks.variance +
			     chunks.value * chunks.value * share_variance);
	}
	error = 1.96 * sqrt(variance);
	a->ret->part[MEMWATCH_HEAP_PART_LIVE] = (struct memwatch_heap_estimate){ live,
										 max0(live - error),
										 live + error };
	a->ret->part[MEMWATCH_HEAP_PART_OVERHEAD] = exact(a->glibc ? overhead : NAN);
	error = 1.96 * sqrt(a->caches.variance);
	a->ret->part[MEMWATCH_HEAP_PART_CACHES] = (struct memwatch_heap_estimate){
		a->caches.value, max0(a->caches.value - error), a->caches.value + error
	};
	if (!a->has_figures)
		a->ret->part[MEMWATCH_HEAP_PART_CACHES] = exact(NAN);
}

/*
 * What is free was that much when the figures were taken; since then it has changed by what was
 * allocated and freed, and the heap may have grown or shrunk because of that.
 */
static void fill_free(struct account *a)
{
	const struct mw_heap_figures *f = &a->profile->figures;
	double absent, limit;

	a->ret->part[MEMWATCH_HEAP_PART_FREE] = exact(NAN);
	if (!a->has_figures)
		return;
	a->free = (double)f->fordblks;
	for (uint32_t i = 0; a->memory && i < a->memory->nr_mappings; i++) {
		const struct mw_memory_mapping *mapping = &a->memory->mappings[i];

		if (!a->is_heap[i])
			continue;
		a->size += (double)(mapping->end - mapping->start);
		a->resident += (double)mapping->resident;
	}
	if (a->memory) {
		limit = a->churn + 3 * sqrt(a->weight * a->churn) + SLACK;
		a->free += clamp(a->size - (double)f->arena, -limit, limit);
	}
	a->free = max0(a->free + (double)f->uordblks - a->in_use[IN_ARENA].value);
	absent = max0(a->in_use[IN_ARENA].value - a->caches.value) *
		 (1 - resident_share(&a->sums[IN_ARENA]));
	a->absent = max0(a->size - a->resident - absent);
	a->ret->part[MEMWATCH_HEAP_PART_FREE] = exact(max0(a->free - a->absent));
	a->ret->arenas = (__u32)f->arenas;
}

static void fill_mappings(struct account *a)
{
	double sum[MW_MEMORY_KINDS] = { 0 }, mapped, found = a->sums[MAPPED].found;
	struct memwatch_heap_rss *ret = a->ret;

	for (uint32_t i = 0; i < a->memory->nr_mappings; i++) {
		const struct mw_memory_mapping *mapping = &a->memory->mappings[i];
		enum mw_memory_kind kind = mapping->kind;

		ret->rss_bytes += mapping->resident;
		ret->swapped_bytes += mapping->swapped;
		if (a->is_heap[i])
			kind = MW_MEMORY_HEAP;
		else if (a->has_mapped[i] || kind == MW_MEMORY_ARENA)
			kind = MW_MEMORY_ANONYMOUS;
		sum[kind] += (double)mapping->resident;
	}
	/* Mapped objects that were not sampled are in these mappings too. */
	mapped = a->in_use[MAPPED].value * resident_share(&a->sums[MAPPED]);
	ret->part[MEMWATCH_HEAP_PART_STACKS] = exact(sum[MW_MEMORY_STACK]);
	ret->part[MEMWATCH_HEAP_PART_ANONYMOUS] = exact(
		max0(sum[MW_MEMORY_ANONYMOUS] - fmax(mapped, found)));
	ret->part[MEMWATCH_HEAP_PART_FILES] = exact(sum[MW_MEMORY_FILE]);
	ret->part[MEMWATCH_HEAP_PART_SHARED] = exact(sum[MW_MEMORY_SHARED]);
	ret->page_table_bytes = a->memory->page_table_bytes;
}

/* The process has ended: the figures have the resident set, and how much of it has files. */
static void fill_ended(struct account *a)
{
	const struct mw_heap_figures *f = &a->profile->figures;
	struct memwatch_heap_rss *ret = a->ret;

	ret->flags |= MEMWATCH_HEAP_RSS_ENDED;
	ret->rss_bytes = f->rss_bytes;
	ret->part[MEMWATCH_HEAP_PART_STACKS] = exact(NAN);
	ret->part[MEMWATCH_HEAP_PART_ANONYMOUS] = exact(NAN);
	ret->part[MEMWATCH_HEAP_PART_FILES] = exact((double)f->shared_bytes);
	ret->part[MEMWATCH_HEAP_PART_SHARED] = exact(NAN);
}

static void fill_unexplained(struct memwatch_heap_rss *ret)
{
	double rest = (double)ret->rss_bytes;

	for (int i = 0; i < MEMWATCH_HEAP_PART_UNEXPLAINED; i++)
		if (!isnan(ret->part[i].value))
			rest -= ret->part[i].value;
	/* The sum of numbers that are not whole. */
	if (fabs(rest) < 1)
		rest = 0;
	ret->part[MEMWATCH_HEAP_PART_UNEXPLAINED] = exact(rest);
}

/*
 * The part of what became free since the figures were taken that is in whole pages, if the objects
 * that are left lie anywhere: an object is on one page, or on more if it is large.
 */
static double whole_share(const struct account *a)
{
	double page = (double)a->memory->page_bytes;
	double on_pages = a->sums[IN_ARENA].number + a->sums[IN_ARENA].chunks / page;

	return a->size > 0 ? exp(-on_pages * page / a->size) : 0;
}

/* The bytes at the ends of arenas that were never used, and in the first arena. */
static double untouched_tops(const struct account *a, double *first)
{
	double tops = 0;

	*first = 0;
	for (uint32_t i = 0; i < a->memory->nr_mappings; i++) {
		const struct mw_memory_mapping *mapping = &a->memory->mappings[i];
		double end;

		if (!a->is_heap[i])
			continue;
		end = (double)mw_memory_untouched_end(a->memory, mapping);
		tops += end;
		if (mapping->kind == MW_MEMORY_HEAP)
			*first += end;
	}
	return tops;
}

/*
 * malloc_trim() returns the whole pages in free chunks, unless they are not resident anyway, and
 * the top of the first arena. The figures know both, as of some time ago.
 */
static void fill_trim(struct account *a)
{
	const struct mw_heap_figures *f = &a->profile->figures;
	double tops, first_top, pages, since, most = a->ret->part[MEMWATCH_HEAP_PART_FREE].value;

	a->ret->trim = exact(NAN);
	if (!a->has_figures || !f->arenas)
		return;
	if (!a->memory) {
		a->ret->trim = exact(fmin((double)f->trim_bytes + (double)f->keepcost, most));
		return;
	}
	tops = untouched_tops(a, &first_top);
	pages = (double)f->trim_bytes;
	since = a->free - (double)f->fordblks;
	if (since < 0)
		pages *= a->free / (double)f->fordblks;
	else
		pages += since * whole_share(a);
	pages = max0(pages - max0(a->absent - tops)) + max0((double)f->keepcost - first_top);
	a->ret->trim = (struct memwatch_heap_estimate){
		.value = fmin(pages, most),
		.low = fmin(max0(pages - a->churn), most),
		.high = fmin(pages + a->churn, most),
	};
}

/* What is resident in arenas other than the first and is not in use. */
static void fill_cap(struct account *a)
{
	double resident = 0;

	for (uint32_t i = 0; a->memory && i < a->memory->nr_mappings; i++)
		if (a->is_heap[i] && a->memory->mappings[i].kind != MW_MEMORY_HEAP)
			resident += (double)a->memory->mappings[i].resident;
	if (a->has_figures)
		a->ret->cap_bytes = (__u64)max0(resident - a->other);
}

/*
 * Whether the live memory has grown until now: a tenth of it is from the last quarter of the
 * time, nearly a third from the last half, and there was less of it when figures were taken.
 */
static bool is_growing(const struct account *a)
{
	const struct mw_prof_profile *profile = a->profile;
	double end = (double)profile->info.end_ns, start = (double)profile->info.start_ns;
	double total = 0, half = 0, quarter = 0, before;

	for (uint32_t i = 0; i < profile->nr_samples; i++) {
		const struct mw_prof_sample *sample = &profile->samples[i];
		double bytes = sample->sum[MEMWATCH_HEAP_LIVE_BYTES].value;

		if (!sample->count)
			continue;
		total += bytes;
		half += (double)sample->birth_ns > start + (end - start) / 2 ? bytes : 0;
		quarter += (double)sample->birth_ns > end - (end - start) / 4 ? bytes : 0;
	}
	before =
		(double)(profile->earlier.time_ns ? profile->earlier : profile->figures).live_bytes;
	return half > 0.3 * total && quarter > 0.1 * total && total > 1.02 * before;
}

static void judge(struct account *a)
{
	const struct memwatch_heap_estimate *part = a->ret->part;
	double used = part[MEMWATCH_HEAP_PART_LIVE].value, unused = 0, heap;
	struct memwatch_heap_rss *ret = a->ret;

	if (a->glibc)
		used += part[MEMWATCH_HEAP_PART_OVERHEAD].value;
	if (a->has_figures)
		unused = part[MEMWATCH_HEAP_PART_FREE].value +
			 part[MEMWATCH_HEAP_PART_CACHES].value;
	heap = used + unused;
	ret->largest = MEMWATCH_HEAP_PART_LIVE;
	for (uint32_t i = MEMWATCH_HEAP_PART_STACKS; i < MEMWATCH_HEAP_PARTS; i++) {
		if (!(part[i].value > heap))
			continue;
		heap = part[i].value;
		ret->largest = i;
	}
	if (ret->largest != MEMWATCH_HEAP_PART_LIVE)
		ret->verdict = MEMWATCH_HEAP_OTHER;
	else if (unused > used)
		ret->verdict = ret->trim.value < unused / 2 ? MEMWATCH_HEAP_FRAGMENTED
							    : MEMWATCH_HEAP_HOARDED;
	else
		ret->verdict = is_growing(a) ? MEMWATCH_HEAP_LEAK : MEMWATCH_HEAP_IN_USE;
}

static void fill_age(struct account *a)
{
	const struct mw_prof_profile *profile = a->profile;
	uint64_t time_ns = profile->figures.time_ns;

	a->ret->figures_age_ns = ~0ULL;
	if (!time_ns)
		return;
	if (a->memory)
		a->ret->figures_age_ns = mw_sub_sat(a->memory->time_ns, time_ns);
	else
		a->ret->figures_age_ns = mw_sub_sat(profile->info.end_ns, profile->figures_ns);
}

static int account_init(struct account *a)
{
	uint32_t nr = a->memory ? a->memory->nr_mappings : 0;

	a->is_heap = calloc(nr + 1UL, sizeof(*a->is_heap));
	a->has_mapped = calloc(nr + 1UL, sizeof(*a->has_mapped));
	if (!a->is_heap || !a->has_mapped)
		return -ENOMEM;
	a->glibc = a->profile->allocator == MW_HEAP_ALLOCATOR_GLIBC;
	a->has_figures = a->glibc && a->profile->figures.time_ns;
	if (!a->has_figures)
		a->ret->flags |= MEMWATCH_HEAP_RSS_NO_FIGURES;
	for (uint32_t i = 0; i < nr; i++)
		a->is_heap[i] = a->glibc && (a->memory->mappings[i].kind == MW_MEMORY_HEAP ||
					     a->memory->mappings[i].kind == MW_MEMORY_ARENA);
	return 0;
}

static void account_fill(struct account *a)
{
	add_samples(a);
	estimate_in_use(a);
	fill_live(a);
	fill_free(a);
	if (a->memory)
		fill_mappings(a);
	else
		fill_ended(a);
	fill_unexplained(a->ret);
	fill_trim(a);
	fill_cap(a);
	fill_age(a);
	judge(a);
}

int memwatch_heap_get_rss(const struct memwatch_heap *heap, unsigned int profile,
			  const struct memwatch_heap_memory *memory, struct memwatch_heap_rss *ret)
{
	struct memwatch_heap_rss out = { .sz = sizeof(out) };
	struct account account = { .memory = memory, .ret = &out };
	int err;

	if (profile >= heap->nr_profiles)
		return mw_fail(heap->ctx, -ENOENT, "heap profile %u: does not exist", profile);
	account.profile = &heap->profiles[profile];
	if (!memory && !account.profile->figures.rss_bytes)
		return mw_fail(heap->ctx, -ENODATA,
			       "the profile says nothing about the resident set");
	err = account_init(&account);
	if (!err)
		account_fill(&account);
	free(account.is_heap);
	free(account.has_mapped);
	if (err)
		return mw_fail_memory(heap->ctx, "heap profile");
	return mw_opts_export(ret, &out, sizeof(out));
}
