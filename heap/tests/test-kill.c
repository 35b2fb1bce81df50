// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A program is killed with SIGKILL, at any moment, and leaves a profile that can be read: it
 * names the site that leaks most, and its interval holds the bytes that were live.
 *
 *	test-kill [KILLS]
 */
#include <time.h>

#include "heap/tests/kit.h"
#include "heap/tests/work.h"
#include "selftests/prng.h"

#define KILLS_DEFAULT 6

struct kill_result {
	bool opened, complete, top_right, covered, sums_agree;
	uint64_t samples, off_by;
};

/* Live bytes of one stack of the program, with its variance. */
struct site {
	double bytes, variance;
};

/* Was the call made in the function of the first site, and not in that of the other one? */
static bool stack_is_top(const struct profile *profile, const struct mw_heap_stack *stack,
			 const struct work_truth *truth)
{
	uint64_t frame, address;

	if (!stack->depth)
		return false;
	frame = profile_frames(profile, stack)[0];
	if (!mw_heap_frame_module(frame))
		return false;
	address = mw_heap_frame_address(frame) +
		  profile_module(profile, mw_heap_frame_module(frame))->bias;
	return address >= truth->top_site && address < truth->top_site + 64 &&
	       (truth->other_site < truth->top_site || address < truth->other_site);
}

static void sites_sum(const struct profile *profile, const struct work_truth *truth,
		      struct site *top, struct site *others)
{
	struct mw_heap_sample sample;

	for (uint64_t slot = 0; slot < profile_slots(profile); slot++) {
		const struct mw_heap_stack *stack;
		struct site *site;
		double p;

		if (!profile_sample(profile, slot, &sample))
			continue;
		stack = profile_stack(profile, sample.stack);
		p = profile_probability(sample.size, sample.rate);
		site = stack_is_top(profile, stack, truth) ? top : others;
		site->bytes += (double)sample.size / p;
		site->variance += (double)sample.size * (double)sample.size * (1 - p) / p / p;
	}
}

static struct work_truth *truth_map(char *path)
{
	struct work_truth *truth;
	int fd;

	snprintf(path, PATH_MAX, "%.4000s/truth", kit.directory);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*truth)))
		exit(1);
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return truth;
}

static struct kill_result kill_once(const char *threads, const char *speed, unsigned int seed,
				    uint64_t bytes)
{
	struct kill_result result = { 0 };
	struct site top = { 0 }, others = { 0 };
	struct timespec pause = { 0, 1000000 };
	char path[PATH_MAX], seed_text[16];
	struct work_truth *truth;
	struct profile profile;
	struct kit_run run;

	kit_empty();
	truth = truth_map(path);
	snprintf(seed_text, sizeof(seed_text), "%u", seed);
	kit_start(&run, NULL, "MEMWATCH_HEAP_RATE=64K",
		  KIT_ARGV(kit.work, "leak", path, threads, speed, "1000000000", seed_text));
	while (__atomic_load_n(&truth->top_bytes, __ATOMIC_RELAXED) < bytes)
		nanosleep(&pause, NULL);
	kill(run.pid, SIGKILL);
	kit_finish(&run);
	result.opened = kit_open(&profile, run.pid);
	if (result.opened) {
		result.complete = profile_is_complete(&profile);
		sites_sum(&profile, truth, &top, &others);
		result.top_right = top.bytes > others.bytes;
		result.covered = fabs(top.bytes - (double)truth->top_bytes) <=
				 1.96 * sqrt(top.variance);
		result.samples = profile_live(&profile).samples;
		result.off_by = (uint64_t)llabs(
			(long long)(profile.header->live_samples - result.samples));
		result.sums_agree = result.off_by <= (uint64_t)atoi(threads);
		profile_close(&profile);
	}
	kit_free(&run);
	munmap(truth, sizeof(*truth));
	return result;
}

static void check_kills(const char *title, const char *threads, const char *speed,
			unsigned int kills, uint64_t bytes)
{
	unsigned int opened = 0, complete = 0, right = 0, covered = 0, agree = 0;
	struct prng prng = { 42 };

	for (unsigned int n = 0; n < kills; n++) {
		struct kill_result result = kill_once(threads, speed, n + 1,
						      bytes + prng_below(&prng, bytes));

		opened += result.opened;
		complete += result.complete;
		right += result.top_right;
		covered += result.covered;
		agree += result.sums_agree;
	}
	tap_eq(opened, kills, "%s: every profile opens", title);
	tap_eq(complete, kills, "%s: every sample has its stack and its modules", title);
	tap_eq(right, kills, "%s: the top site is the true one", title);
	tap_eq(agree, kills, "%s: the sums differ by at most one sample per thread", title);
	/* 95 % of intervals hold the truth; this fails by chance once in 10 000 times. */
	tap_ok(covered + 4 * sqrt(0.95 * 0.05 * kills) >= 0.95 * kills,
	       "%s: %u of %u intervals hold the live bytes", title, covered, kills);
}

int main(int argc, char **argv)
{
	unsigned int kills = argc > 1 ? (unsigned int)atoi(argv[1]) : KILLS_DEFAULT;

	kit_init(argv[0]);
	tap_start();
	check_kills("one thread, 20 MB/s", "1", "20000000", (kills + 2) / 3, 4000000);
	check_kills("one thread, as fast as it goes", "1", "0", (kills + 2) / 3, 100000000);
	check_kills("64 threads", "64", "0", (kills + 2) / 3, 50000000);
	return tap_done();
}
