// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Prints a profile, without symbols: for tests, and for those who work on the writer.
 */
#include <inttypes.h>
#include <stdio.h>

#include "heap/tests/profile-read.h"

static void print_header(const struct profile *profile)
{
	const struct mw_heap_header *h = profile->header;
	const struct mw_heap_counters *c = &h->counters;
	const struct mw_heap_unwinder *u = &h->unwinder;
	const struct mw_heap_figures *f = &h->figures[h->figures_valid & 1];
	struct profile_live live = profile_live(profile);

	printf("pid %u comm %.16s exe %s\n", h->pid, h->comm, h->exe);
	printf("state %u began %u rate %" PRIu64 " limits %#x allocator %u file %zu\n", h->state,
	       h->began, h->rate_bytes, h->limits, h->allocator, profile->bytes);
	printf("samples %" PRIu64 " frees %" PRIu64 " allocated %" PRIu64 " freed %" PRIu64 "\n",
	       c->samples, c->sampled_frees, c->allocated_bytes, c->freed_bytes);
	printf("live samples %" PRIu64 " bytes %.0f +- %.0f objects %.0f\n", live.samples,
	       live.bytes, 1.96 * sqrt(live.bytes_variance), live.objects);
	printf("header live samples %" PRIu64 " bytes %" PRIu64 " peak %" PRIu64 "\n",
	       h->live_samples, h->live_bytes, c->peak_live_bytes);
	printf("thinnings %" PRIu64 " thinned %" PRIu64 " lost %" PRIu64 " no room %" PRIu64
	       " unseen frees %" PRIu64 " false lookups %" PRIu64 "\n",
	       c->thinnings, c->thinned_samples, c->lost_samples, c->lost_no_room, c->unseen_frees,
	       c->false_lookups);
	printf("watches %u refused %" PRIu64 " lost %" PRIu64 " epochs %" PRIu64 " until %" PRIu64
	       " took %" PRIu64 " ns\n",
	       h->watch_max, h->watch_refused, h->watch_lost, h->epochs, h->epoch_ns,
	       h->epoch_cpu_ns);
	printf("ns per sample %" PRIu64 " max %" PRIu64 "\n",
	       c->samples ? c->sample_ns / c->samples : 0, c->sample_ns_max);
	printf("stacks %" PRIu64 " walked %" PRIu64 " frames %" PRIu64 " cfi %" PRIu64
	       " fp %" PRIu64 " complete %" PRIu64 " truncated %" PRIu64 " (depth %" PRIu64
	       " no_cfi %" PRIu64 " bad_cfi %" PRIu64 " memory %" PRIu64 ") misses %" PRIu64
	       " remote %" PRIu64 "\n",
	       h->stacks, u->stacks, u->frames, u->frames_cfi, u->frames_fp, u->stacks_complete,
	       u->stacks_truncated, u->truncated_depth, u->truncated_no_cfi, u->truncated_bad_cfi,
	       u->truncated_memory, u->cache_misses, u->remote_reads);
	if (h->figures_valid)
		printf("figures took %" PRIu64 " ns arena %" PRIu64 " in use %" PRIu64
		       " free %" PRIu64 " mmap %" PRIu64 " rss %" PRIu64 " live %" PRIu64 "\n",
		       f->took_ns, f->arena, f->uordblks, f->fordblks, f->hblkhd, f->rss_bytes,
		       f->live_bytes);
}

static void print_modules(const struct profile *profile)
{
	for (uint32_t n = 1; n <= profile->header->modules; n++) {
		const struct mw_heap_module *module = profile_module(profile, n);

		if (!module->ready)
			continue;
		printf("module %u bias %#" PRIx64 " %.*s build-id ", n, module->bias,
		       (int)module->path_bytes,
		       (const char *)profile_at(profile, MW_HEAP_CHUNK_STRINGS, module->path, 1));
		for (uint32_t i = 0; i < module->build_id_bytes; i++)
			printf("%02x", module->build_id[i]);
		printf("\n");
	}
}

static void print_stacks(const struct profile *profile)
{
	for (uint64_t n = 0; n < profile->header->stacks; n++) {
		const struct mw_heap_stack *stack = profile_stack(profile, n);

		if (!stack || !stack->ready || !stack->alloc_samples)
			continue;
		printf("stack %" PRIu64 " depth %u flags %u allocs %" PRIu64 " bytes %" PRIu64
		       " frees %" PRIu64 " bytes %" PRIu64 ":",
		       n, stack->depth, stack->flags, stack->alloc_samples, stack->alloc_bytes,
		       stack->free_samples, stack->free_bytes);
		for (uint32_t i = 0; i < stack->depth; i++) {
			uint64_t frame = profile_frames(profile, stack)[i];

			printf(" %u+%#" PRIx64, mw_heap_frame_module(frame),
			       mw_heap_frame_address(frame));
		}
		printf("\n");
	}
}

static void print_samples(const struct profile *profile)
{
	struct mw_heap_sample sample;

	for (uint64_t slot = 0; slot < profile_slots(profile); slot++)
		if (profile_sample(profile, slot, &sample))
			printf("sample %" PRIu64 " %#" PRIx64 " size %" PRIu64 " rate %" PRIu64
			       " stack %u tid %u source %u\n",
			       slot, sample.address, sample.size, sample.rate, sample.stack,
			       sample.tid, sample.source);
}

static void print_watches(const struct profile *profile)
{
	struct mw_heap_sample sample;
	struct mw_heap_watch watch;

	for (uint64_t slot = 0; slot < profile_slots(profile); slot++)
		if (profile_sample(profile, slot, &sample) &&
		    profile_watch(profile, &sample, &watch))
			printf("watch %#" PRIx64 " pages %#" PRIx64 " %u since %" PRIu64
			       " touched %" PRIu64 " %" PRIu64 " part %u\n",
			       watch.address, watch.begin, watch.bytes, watch.time_ns,
			       watch.touched_after_ns, watch.touched_ns,
			       watch.flags & MW_HEAP_WATCH_PART);
}

int main(int argc, char **argv)
{
	struct profile profile;

	if (argc < 2 || !profile_open(&profile, argv[1])) {
		fprintf(stderr, "heap-dump: %s: not a profile\n", argc > 1 ? argv[1] : "no file");
		return 1;
	}
	print_header(&profile);
	if (argc > 2) {
		print_modules(&profile);
		print_stacks(&profile);
		print_samples(&profile);
		print_watches(&profile);
	}
	return 0;
}
