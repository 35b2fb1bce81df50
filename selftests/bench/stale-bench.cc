// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the simulation of a heap costs, beside one with the ordered map of the C++ library that
 * keeps nothing but address, size and last access of each object.
 *
 *	stale-bench LIVE EVENTS
 *
 * Prints millions of events a second of the simulation, of the plain one, and of the import of a
 * text trace, in CPU time, and the bytes of the simulation, and of it and the decision, for each
 * object of the largest number that lived at once.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <malloc.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <memwatch/stale.h>
extern "C" {
#include "stale/stale.h"
}
#include "prng.h"

#define SEED  20261123
#define BATCH 4096

struct plain_object {
	uint64_t size, last_ns;
};

static double cpu_seconds()
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t heap_bytes()
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/*
 * A program with @live objects of 16 to 1040 bytes at the addresses that an allocator would give
 * them: half of the events are accesses to random objects, the others replace one by another.
 */
static std::vector<mw_event> make_events(uint64_t live, uint64_t count)
{
	struct prng prng = { SEED };
	std::vector<uint64_t> sizes(live);
	std::vector<mw_event> events;
	uint64_t now = 0;

	events.reserve(live + count);
	for (uint64_t i = 0; i < live + count; i++) {
		uint64_t slot = i < live ? i : prng_below(&prng, live);
		mw_event e = {};

		e.sequence = i;
		e.time_ns = now += 50;
		e.address = 0x7f0000000000 + slot * 1088;
		e.tid = 1;
		e.place = 1 + (uint32_t)(slot % 500);
		if (i < live || !sizes[slot]) {
			e.kind = MW_EVENT_MALLOC;
			sizes[slot] = e.size = 16 + prng_below(&prng, 1024);
		} else if (prng_below(&prng, 3)) {
			e.kind = MW_EVENT_ACCESS;
			e.address += prng_below(&prng, sizes[slot]);
		} else {
			e.kind = MW_EVENT_FREE;
			sizes[slot] = 0;
		}
		events.push_back(e);
	}
	return events;
}

static double rate_of_map(const std::vector<mw_event> &events)
{
	std::map<uint64_t, plain_object> objects;
	double begin = cpu_seconds();
	uint64_t found = 0;

	for (const mw_event &e : events) {
		if (e.kind == MW_EVENT_MALLOC) {
			objects[e.address] = { e.size, e.time_ns };
		} else if (e.kind == MW_EVENT_FREE) {
			found += objects.erase(e.address);
		} else {
			auto at = objects.upper_bound(e.address);

			if (at == objects.begin())
				continue;
			--at;
			if (e.address - at->first < at->second.size)
				at->second.last_ns = e.time_ns;
		}
	}
	return found ? (double)events.size() / 1e6 / (cpu_seconds() - begin) : 0;
}

static double rate_of_sim(const std::vector<mw_event> &events, double *bytes)
{
	size_t before = heap_bytes();
	double begin = cpu_seconds(), seconds;
	struct mw_sim sim;

	mw_sim_init(&sim, true);
	for (size_t i = 0; i < events.size(); i += BATCH)
		if (mw_sim_feed_all(&sim, &events[i],
				    (uint32_t)std::min<size_t>(BATCH, events.size() - i)))
			exit(EXIT_FAILURE);
	seconds = cpu_seconds() - begin;
	*bytes = (double)(heap_bytes() - before) / sim.objects.used;
	mw_sim_uninit(&sim);
	return (double)events.size() / 1e6 / seconds;
}

static int write_trace(const std::vector<mw_event> &events)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	FILE *out = fdopen(dup(fd), "w");

	for (const mw_event &e : events) {
		fprintf(out, "%c %lu 1 %#lx ", "mfa"[e.kind], e.time_ns, e.address);
		if (e.kind == MW_EVENT_MALLOC)
			fprintf(out, "%lu ", e.size);
		fprintf(out, "0x%x\n", 0x401000 + e.place * 16);
	}
	fclose(out);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static double rate_of_import(const std::vector<mw_event> &events, double *bytes)
{
	int fd = write_trace(events);
	size_t before = heap_bytes();
	struct memwatch_stale *stale;
	struct memwatch_ctx *ctx;
	double begin = cpu_seconds(), seconds;

	if (memwatch_ctx_new(nullptr, &ctx) || memwatch_stale_new(ctx, nullptr, &stale) ||
	    mw_stale_open_fd(stale, fd))
		exit(EXIT_FAILURE);
	while (memwatch_stale_step(stale) == 1)
		;
	seconds = cpu_seconds() - begin;
	if (memwatch_stale_judge(stale))
		exit(EXIT_FAILURE);
	*bytes = (double)(heap_bytes() - before) / stale->sim.objects.used;
	memwatch_stale_unref(stale);
	memwatch_ctx_unref(ctx);
	return (double)events.size() / 1e6 / seconds;
}

int main(int argc, char **argv)
{
	uint64_t live = argc > 1 ? strtoull(argv[1], nullptr, 10) : 100000;
	uint64_t count = argc > 2 ? strtoull(argv[2], nullptr, 10) : 5000000;
	std::vector<mw_event> events = make_events(live, count);
	double bytes_sim, bytes_judged;
	double sim = rate_of_sim(events, &bytes_sim), plain = rate_of_map(events);
	double import = rate_of_import(events, &bytes_judged);

	printf("%.2f %.2f %.2f %.0f %.0f\n", sim, plain, import, bytes_sim, bytes_judged);
	return EXIT_SUCCESS;
}
