// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A program is killed with SIGKILL at any moment, or by the kernel when its memory cgroup is full,
 * and leaves a profile that can be read: it names the site that leaks most, and its interval
 * holds the bytes that were live.
 *
 *	test-kill [KILLS]
 *
 * KILLS is the number of kills of each of the two kinds.
 */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include "heap/tests/kit.h"
#include "heap/tests/work.h"
#include "selftests/prng.h"

#define KILLS_DEFAULT 6
#define KILL_LIMIT_S  120
#define OBJECT_BYTES  4016 /* the largest object of the programs */
#define CGROUP_V1     "/sys/fs/cgroup/memory"
#define CGROUP_V2     "/sys/fs/cgroup"
#define CGROUP_MIB(n) ((n) << 20)

/**
 * struct kill_case - a program that is killed
 * @program: NULL: "work leak"
 * @bytes: it is killed when it has leaked so many bytes, or up to twice as many
 * @limit: of its memory cgroup, if that is what kills it
 */
static const struct kill_case {
	const char *title, *program, *threads, *speed;
	uint64_t bytes, limit;
} kill_cases[] = {
	{ "one thread, 20 MB/s", NULL, "1", "20000000", 4000000, CGROUP_MIB(16ul) },
	{ "one thread, as fast as it goes", NULL, "1", "0", 100000000, CGROUP_MIB(160ul) },
	{ "64 threads", NULL, "64", "0", 50000000, CGROUP_MIB(120ul) },
	{ "a forking server", "fork-server", "1", "0", 10000000, CGROUP_MIB(48ul) },
};
#define KILL_CASES   (sizeof(kill_cases) / sizeof(kill_cases[0]))
#define KILL_FORKING (KILL_CASES - 1)

struct kill_result {
	bool killed, opened, complete, top_right, covered, sums_agree;
	uint64_t off_by;
	double off_bytes; /* of the top site, from the truth */
};

/* Over all cases of one kind. */
struct kill_totals {
	unsigned int kills, covered;
};

/* The memory cgroup in which the kernel kills; empty if there is none. */
static char cgroup[PATH_MAX];
static bool cgroup_is_v1;

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

static bool cgroup_write(const char *file, uint64_t value)
{
	char path[PATH_MAX + 64], text[32];
	int fd, length = snprintf(text, sizeof(text), "%lu", (unsigned long)value);
	bool good;

	snprintf(path, sizeof(path), "%s/%s", cgroup, file);
	fd = open(path, O_WRONLY);
	good = fd >= 0 && write(fd, text, (size_t)length) == length;
	close(fd);
	return good;
}

/* Children of a server that was killed may still be about to end. */
static void cgroup_remove(void)
{
	struct timespec pause = { 0, 10000000 };

	for (int tries = 0; *cgroup && tries < 500 && rmdir(cgroup) && errno == EBUSY; tries++)
		nanosleep(&pause, NULL);
}

static bool cgroup_create(void)
{
	cgroup_is_v1 = !access(CGROUP_V1 "/memory.limit_in_bytes", F_OK);
	snprintf(cgroup, sizeof(cgroup), "%s/memwatch-kill-%d",
		 cgroup_is_v1 ? CGROUP_V1 : CGROUP_V2, (int)getpid());
	if (!mkdir(cgroup, 0700) &&
	    cgroup_write(cgroup_is_v1 ? "memory.limit_in_bytes" : "memory.max", CGROUP_MIB(64ul))) {
		atexit(cgroup_remove);
		return true;
	}
	cgroup_remove();
	*cgroup = 0;
	return false;
}

static bool cgroup_limit(uint64_t limit)
{
	if (!cgroup_is_v1) {
		cgroup_write("memory.swap.max", 0);
		return cgroup_write("memory.max", limit);
	}
	/* The limit with swap may not be lower than the other one; either may change first. */
	cgroup_write("memory.memsw.limit_in_bytes", CGROUP_MIB(4096ul));
	return cgroup_write("memory.limit_in_bytes", limit) &&
	       (cgroup_write("memory.memsw.limit_in_bytes", limit) || true);
}

/* How many processes of the cgroup the kernel has killed. */
static unsigned long cgroup_kills(void)
{
	char path[PATH_MAX + 64], line[128];
	unsigned long kills = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", cgroup,
		 cgroup_is_v1 ? "memory.oom_control" : "memory.events");
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "oom_kill %lu", &kills);
	if (file)
		fclose(file);
	return kills;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* Waits until the program has leaked @bytes and kills it, or until the kernel has. */
static bool victim_kill(struct kit_run *run, const struct work_truth *truth, uint64_t bytes,
			bool by_kernel)
{
	struct timespec pause = { 0, 1000000 };
	unsigned long kills = by_kernel ? cgroup_kills() : 0;
	bool entered = !by_kernel || cgroup_write("cgroup.procs", (uint64_t)run->pid);
	time_t limit = time(NULL) + KILL_LIMIT_S;
	bool killed_by_kernel;

	while (entered && __atomic_load_n(&truth->top_bytes, __ATOMIC_RELAXED) < bytes &&
	       time(NULL) < limit && !has_ended(run->pid))
		nanosleep(&pause, NULL);
	killed_by_kernel = by_kernel && cgroup_kills() > kills;
	if (!killed_by_kernel)
		kill(run->pid, SIGKILL);
	kit_finish(run);
	/* A program that has ended, because it could not be started for example, was not killed. */
	return killed_by_kernel == by_kernel && WIFSIGNALED(run->status) &&
	       WTERMSIG(run->status) == SIGKILL;
}

static void profile_judge(struct kill_result *result, pid_t pid, const struct work_truth *truth,
			  const char *threads)
{
	struct site top = { 0 }, others = { 0 };
	struct profile profile;
	uint64_t samples;

	result->opened = kit_open(&profile, pid);
	if (!result->opened)
		return;
	result->complete = profile_is_complete(&profile);
	sites_sum(&profile, truth, &top, &others);
	result->top_right = top.bytes > others.bytes;
	result->off_bytes = fabs(top.bytes - (double)truth->top_bytes);
	result->covered = result->off_bytes <= 1.96 * sqrt(top.variance);
	samples = profile_live(&profile).samples;
	result->off_by = (uint64_t)llabs((long long)(profile.header->live_samples - samples));
	result->sums_agree = result->off_by <= (uint64_t)atoi(threads);
	profile_close(&profile);
}

static struct kill_result kill_once(const struct kill_case *test, const char *rate,
				    unsigned int seed, uint64_t bytes, bool by_kernel)
{
	struct kill_result result = { 0 };
	char path[PATH_MAX], seed_text[16], settings[80], program[PATH_MAX];
	struct work_truth *truth;
	struct kit_run run;

	kit_empty();
	truth = truth_map(path);
	snprintf(seed_text, sizeof(seed_text), "%u", seed);
	snprintf(settings, sizeof(settings), "MEMWATCH_HEAP_RATE=%s MEMWATCH_HEAP_SEED=%u", rate,
		 seed);
	snprintf(program, sizeof(program), "%.3000s/../../selftests/%s", kit.build,
		 test->program ?: "");
	kit_start(&run, NULL, settings,
		  test->program ? KIT_ARGV(program, path, test->threads, test->speed, "1000000000",
					   seed_text)
				: KIT_ARGV(kit.work, "leak", path, test->threads, test->speed,
					   "1000000000", seed_text));
	result.killed = victim_kill(&run, truth, bytes, by_kernel);
	profile_judge(&result, run.pid, truth, test->threads);
	kit_free(&run);
	munmap(truth, sizeof(*truth));
	return result;
}

static void check_kills(const struct kill_case *test, unsigned int kills, bool by_kernel,
			struct kill_totals *totals)
{
	unsigned int killed = 0, opened = 0, complete = 0, right = 0, covered = 0, agree = 0;
	const char *how = by_kernel ? "out of memory" : "SIGKILL";
	struct prng prng = { 42 };

	if (by_kernel && !cgroup_limit(test->limit))
		kills = 0;
	for (unsigned int n = 0; n < kills; n++) {
		uint64_t bytes = test->bytes + prng_below(&prng, test->bytes);
		struct kill_result result = kill_once(test, "64K", n + 1,
						      by_kernel ? UINT64_MAX : bytes, by_kernel);

		killed += result.killed;
		opened += result.opened;
		complete += result.complete;
		right += result.top_right;
		covered += result.covered;
		agree += result.sums_agree;
	}
	tap_ok(kills && killed == kills, "%s, %s: %u of %u are killed", how, test->title, killed,
	       kills);
	tap_eq(opened, kills, "%s, %s: every profile opens", how, test->title);
	tap_eq(complete, kills, "%s, %s: every sample has its stack and its modules", how,
	       test->title);
	tap_eq(right, kills, "%s, %s: the top site is the true one", how, test->title);
	tap_eq(agree, kills, "%s, %s: the sums differ by at most one sample per thread", how,
	       test->title);
	printf("# %s, %s: %u of %u intervals hold the live bytes\n", how, test->title, covered,
	       kills);
	totals->kills += kills;
	totals->covered += covered;
}

/* The least number of intervals that hold, if 95 % do, that chance does not fall below. */
static unsigned int bound_of_chance(unsigned int kills)
{
	double probability = pow(0.05, kills), sum = probability;
	unsigned int bound = 0;

	/* As often as a normal distribution is 4 standard deviations below its mean. */
	while (sum < 3.2e-5) {
		probability *= 19.0 * (kills - bound) / (bound + 1);
		sum += probability;
		bound++;
	}
	return bound;
}

static void check_intervals(const char *how, const struct kill_totals *totals)
{
	double bound = totals->kills >= 100 ? 0.9 * totals->kills : bound_of_chance(totals->kills);

	tap_ok(totals->covered >= bound, "%s: %u of %u intervals hold the live bytes", how,
	       totals->covered, totals->kills);
}

/* If every allocation is a sample, the profile has the truth, but for what was in work. */
static void check_lost(const struct kill_case *test, unsigned int kills)
{
	unsigned int good = 0;
	double worst = 0;

	for (unsigned int n = 0; n < kills; n++) {
		struct kill_result result = kill_once(test, "1", n + 1, 2000000, false);

		good += result.opened &&
			result.off_bytes <= (double)OBJECT_BYTES * atoi(test->threads);
		worst = fmax(worst, result.off_bytes);
	}
	tap_eq(good, kills, "%s: at most one sample per thread is lost (worst: %.0f bytes)",
	       test->title, worst);
}

int main(int argc, char **argv)
{
	unsigned int kills = argc > 1 ? (unsigned int)atoi(argv[1]) : KILLS_DEFAULT;
	struct kill_totals by_signal = { 0 }, by_kernel = { 0 };
	size_t cases = kit_forks_clear_memory() ? KILL_CASES : KILL_FORKING;
	unsigned int each = (unsigned int)((kills + cases - 1) / cases);

	kit_init(argv[0]);
	tap_start();
	if (cases == KILL_FORKING)
		tap_skip("a forking server", "this machine does not clear memory in children");
	for (size_t i = 0; i < cases; i++)
		check_kills(&kill_cases[i], each, false, &by_signal);
	check_intervals("SIGKILL", &by_signal);
	for (size_t i = 0; i < cases; i++)
		check_lost(&kill_cases[i], (each + 1) / 2);
	if (!cgroup_create()) {
		tap_skip("out of memory", "there is no memory cgroup that this user may create");
		return tap_done();
	}
	for (size_t i = 0; i < cases; i++)
		check_kills(&kill_cases[i], each, true, &by_kernel);
	check_intervals("out of memory", &by_kernel);
	return tap_done();
}
