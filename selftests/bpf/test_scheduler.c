// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live stream without the module, on the machine on which the test runs. What is expected
 * comes from the scheduler and from the arithmetic of time, not from the programs.
 *
 *	test_scheduler [LIVES [timed]]
 *
 * CPU times are compared by default unless the host may take the CPUs away without saying so. It
 * may do so between the clock of the scheduler and that of BPF, and what passes then is charged
 * to one process by the one and to another process by the other. An emulated machine whose clock
 * counts instructions has no such time ("timed").
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>

#include <bpf/bpf.h>

#include <memwatch/stream.h>

#include "../tap.h"
#include "storm.h"

#define CPUS_MAX     256
#define IDENTITIES   (1U << 20)
#define SEED_DEFAULT 20261123

static struct memwatch_ctx *ctx;

/* What the stream says about one generation of RMID 0. */
struct identity {
	uint32_t tgid;
	uint32_t allocs, existing, execs, frees;
	uint64_t start_ns, alloc_ns, free_ns, run_ns, samples, outside;
};

static struct identity identities[IDENTITIES];
static uint32_t newest; /* the highest generation so far */

/* What the stream says about one CPU. */
struct cpu {
	uint64_t online_ns, stopped_ns, run_ns, end_ns, ticks, early, gaps, due_ns;
	uint32_t online, offline; /* records of these states */
};

static struct cpu cpus[CPUS_MAX];

struct seen {
	uint64_t records, lost, late, forced, unsorted, newest_ns, unknown, rmids;
};

static void count_identity(struct seen *s, const struct memwatch_record_rmid *rec)
{
	struct identity *id = &identities[rec->generation % IDENTITIES];

	s->rmids += rec->rmid || !rec->generation;
	if (rec->generation > newest)
		newest = rec->generation;
	switch (rec->h.type) {
	case MEMWATCH_RECORD_RMID_ALLOC:
		id->allocs++;
		id->tgid = rec->tgid;
		id->start_ns = rec->start_time_ns;
		id->alloc_ns = rec->h.time_ns;
		break;
	case MEMWATCH_RECORD_RMID_EXISTING:
		id->existing++;
		id->tgid = rec->tgid;
		id->start_ns = rec->start_time_ns;
		break;
	case MEMWATCH_RECORD_RMID_EXEC:
		id->execs++;
		break;
	case MEMWATCH_RECORD_RMID_FREE:
		id->frees++;
		id->free_ns = rec->h.time_ns;
		break;
	}
	if (id->tgid != rec->tgid || id->start_ns != rec->start_time_ns)
		s->unknown++;
}

static void count_sample(struct seen *s, const struct memwatch_record_sample *sample)
{
	struct cpu *cpu = &cpus[sample->h.cpu % CPUS_MAX];
	struct identity *id = &identities[sample->generation % IDENTITIES];

	cpu->run_ns += sample->run_ns;
	cpu->end_ns = sample->h.time_ns;
	s->rmids += sample->rmid;
	if (!sample->generation)
		return;
	s->unknown += !id->allocs;
	id->run_ns += sample->run_ns;
	id->samples++;
	if (sample->h.time_ns < id->alloc_ns || (id->free_ns && sample->begin_ns > id->free_ns))
		id->outside++;
}

static void count_cpu(const struct memwatch_record_header *h)
{
	const struct memwatch_record_cpu *rec = (const void *)h;
	const struct memwatch_record_tick *tick = (const void *)h;
	struct cpu *cpu = &cpus[h->cpu % CPUS_MAX];

	if (h->type == MEMWATCH_RECORD_TICK) {
		cpu->ticks++;
		/* A tick is due at a multiple of the period, and never early. */
		cpu->early += tick->expected_ns % tick->period_ns ||
			      h->time_ns < tick->expected_ns || tick->expected_ns <= cpu->due_ns;
		cpu->due_ns = tick->expected_ns;
	} else if (rec->state == MEMWATCH_CPU_ONLINE) {
		/* As if it had always been online, but nothing had run for longer. */
		cpu->online_ns = h->time_ns - cpu->run_ns;
		cpu->end_ns = h->time_ns;
		cpu->online++;
	} else if (rec->state == MEMWATCH_CPU_OFFLINE) {
		cpu->offline++;
	} else if (rec->state == MEMWATCH_CPU_STOPPED) {
		cpu->stopped_ns = h->time_ns;
	}
	/* Each tick and each state follows the samples of all the time before it. */
	if (cpu->online_ns && cpu->run_ns != h->time_ns - cpu->online_ns)
		cpu->gaps++;
}

static void count_record(struct seen *s, const struct memwatch_record_header *h)
{
	if (h->time_ns < s->newest_ns)
		s->unsorted += !(h->flags & MEMWATCH_RECORD_F_LATE);
	else
		s->newest_ns = h->time_ns;
	if (h->type == MEMWATCH_RECORD_LOST) {
		s->lost += ((const struct memwatch_record_lost *)h)->count;
		return;
	}
	s->records++;
	s->late += !!(h->flags & MEMWATCH_RECORD_F_LATE);
	s->forced += !!(h->flags & MEMWATCH_RECORD_F_FORCED);
	switch (h->type) {
	case MEMWATCH_RECORD_SAMPLE:
		count_sample(s, (const struct memwatch_record_sample *)h);
		break;
	case MEMWATCH_RECORD_RMID_ALLOC:
	case MEMWATCH_RECORD_RMID_EXISTING:
	case MEMWATCH_RECORD_RMID_EXEC:
	case MEMWATCH_RECORD_RMID_FREE:
		count_identity(s, (const struct memwatch_record_rmid *)h);
		break;
	case MEMWATCH_RECORD_TICK:
	case MEMWATCH_RECORD_CPU_STATE:
		count_cpu(h);
		break;
	}
}

/* Reads a record, or waits for one. Returns 1, or 0 or an error at the end of the stream. */
static int read_record(struct memwatch_stream *stream, struct seen *s)
{
	const struct memwatch_record_header *record;
	int err = memwatch_stream_next(stream, &record);

	if (err == 1)
		count_record(s, record);
	if (err != -EAGAIN)
		return err;
	memwatch_stream_poll(stream, 20);
	return 1;
}

/* Reads until *@done is set, or to the end of the stream if @done is NULL. */
static int read_stream(struct memwatch_stream *stream, struct seen *s, const uint32_t *done)
{
	int err = 1;

	while (err == 1 && !(done && __atomic_load_n(done, __ATOMIC_ACQUIRE)))
		err = read_record(stream, s);
	return err == 1 ? 0 : err;
}

static struct memwatch_stream *new_stream(uint32_t mode, uint32_t pages)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .mode = mode, .ring_pages = pages,
		      .backend = MEMWATCH_LIVE_BPF);
	struct memwatch_stream *stream = NULL;

	return memwatch_stream_open_live(ctx, &opts, &stream) ? NULL : stream;
}

static struct memwatch_stream *open_stream(uint32_t mode, uint32_t pages, const char *what)
{
	struct memwatch_stream *stream = new_stream(mode, pages);

	memset(identities, 0, sizeof(identities));
	memset(cpus, 0, sizeof(cpus));
	newest = 0;
	tap_ok(stream != NULL, "%s: the stream is opened: %s", what,
	       stream ? "yes" : memwatch_ctx_error(ctx));
	return stream;
}

/* The program after that with @id, and what the kernel says about it. @info says what is wanted. */
static bool next_program(__u32 *id, struct bpf_prog_info *info)
{
	const struct bpf_prog_info wanted = *info;

	while (!bpf_prog_get_next_id(*id, id)) {
		__u32 size = sizeof(*info);
		int fd = bpf_prog_get_fd_by_id(*id), err;

		if (fd < 0)
			continue;
		*info = wanted;
		err = bpf_obj_get_info_by_fd(fd, info, &size);
		close(fd);
		if (!err)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------- judging */

/*
 * Some kernels hide the switches of threads of the machine's own manager. Whose time it is that
 * passes between such a switch and the next tick is not known.
 */
#define HIDDEN_NS 1000000ULL
static uint64_t hidden; /* such switches */

static void check_counts(struct memwatch_stream *stream, const struct seen *s, const char *what)
{
	MEMWATCH_OPTS(memwatch_stream_stats, stats);
	const char *name;
	uint64_t failures = 0, missed = 0;
	__u64 count;

	memwatch_stream_get_stats(stream, &stats);
	tap_eq(stats.produced, s->records + s->lost, "%s: produced = delivered + lost", what);
	tap_eq(stats.lost, s->lost, "%s: the statistics count what the records of losses say",
	       what);
	tap_eq(s->unsorted, 0, "%s: records are sorted, or flagged late", what);
	tap_note("%s: %llu records, %llu lost, %llu late, %llu forced", what,
		 (unsigned long long)s->records, (unsigned long long)s->lost,
		 (unsigned long long)s->late, (unsigned long long)s->forced);
	for (unsigned int i = 0; memwatch_stream_get_failure(stream, i, &name, &count) > 0; i++) {
		if (count)
			tap_note("%s: %s: %llu", what, name, (unsigned long long)count);
		/* A timer of a softirq may be interrupted by one that would have been a tick. */
		if (!strcmp(name, "owner_unannounced") || !strcmp(name, "program_skipped"))
			missed += count;
		else if (strcmp(name, "slot_split") && strncmp(name, "output_", 7))
			failures += count;
	}
	tap_eq(failures, 0, "%s: no other failure than a lack of room is counted", what);
	hidden = missed;
	tap_ok(missed * 100 < stats.produced, "%s: nearly all switches are traced", what);
}

static void check_cpus(const char *what)
{
	uint64_t gaps = 0, early = 0, unfinished = 0, wrong = 0;
	unsigned int online = 0;

	for (unsigned int i = 0; i < CPUS_MAX; i++) {
		const struct cpu *cpu = &cpus[i];

		if (!cpu->online_ns)
			continue;
		online++;
		gaps += cpu->gaps;
		early += cpu->early;
		unfinished += !cpu->stopped_ns;
		wrong += cpu->run_ns != cpu->stopped_ns - cpu->online_ns;
	}
	tap_eq(online, sysconf(_SC_NPROCESSORS_ONLN), "%s: each CPU sends ONLINE", what);
	tap_eq(unfinished, 0, "%s: each CPU sends STOPPED", what);
	tap_eq(wrong, 0, "%s: the run times of a CPU add up to the time from ONLINE to STOPPED",
	       what);
	tap_eq(gaps, 0, "%s: they do so up to each tick and each state", what);
	tap_eq(early, 0, "%s: each tick is due at another multiple of the period, and not early",
	       what);
}

static int compare_identities(const void *a, const void *b)
{
	const struct identity *x = *(const struct identity *const *)a;
	const struct identity *y = *(const struct identity *const *)b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* All identities, sorted. Returns how many there are. */
static uint32_t sort_identities(struct identity **sorted)
{
	uint32_t count = 0;

	for (uint32_t i = 1; i <= newest && i < IDENTITIES; i++)
		if (identities[i].allocs)
			sorted[count++] = &identities[i];
	qsort(sorted, count, sizeof(*sorted), compare_identities);
	return count;
}

static void check_identities(const struct seen *s, struct identity **sorted, uint32_t count)
{
	uint64_t twice = 0, repeated = 0, outside = 0, early = 0;

	for (uint32_t i = 0; i < count; i++) {
		twice += i && !compare_identities(&sorted[i - 1], &sorted[i]);
		repeated += sorted[i]->allocs > 1 || sorted[i]->frees > 1;
		outside += sorted[i]->outside;
		early += sorted[i]->frees && sorted[i]->free_ns < sorted[i]->alloc_ns;
	}
	tap_note("%u identities", count);
	tap_ok(newest < IDENTITIES, "storm: the test has room for all identities");
	tap_eq(s->rmids, 0, "storm: all records have RMID 0, and those of identities a generation");
	tap_eq(s->unknown, 0, "storm: records of a generation follow its allocation and agree");
	tap_eq(twice, 0, "storm: no process has two identities");
	tap_eq(repeated, 0, "storm: no generation begins or ends twice");
	tap_eq(early, 0, "storm: no process ends before it begins");
	tap_eq(outside, 0, "storm: samples are about the time between beginning and end");
}

static const struct identity *find_identity(struct identity *const *sorted, uint32_t count,
					    const struct storm_life *life)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (sorted[middle]->tgid < life->pid)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < count && sorted[low]->tgid == life->pid; low++)
		if (sorted[low]->start_ns / NS_PER_TICK == life->start_ticks)
			return sorted[low];
	return NULL;
}

struct verdict {
	uint64_t lives, missing, unfinished, unnamed, short_of, switches;
	uint64_t timed, within, tolerated; /* lives with one thread */
	uint64_t seen_ns, true_ns, worst_ns, excess_ns;
};

static bool untimed;
static uint64_t switch_ns; /* what a switch takes on this machine */

/*
 * A thread is charged for what the scheduler counts. Only at its end something may remain: what
 * did not fit between two tracepoints, for which the last switches in and out may be too close.
 */
static uint64_t tolerance(uint64_t cpu_ns)
{
	return cpu_ns / 1000 + 2 * switch_ns;
}

static void judge_life(const struct storm_life *life, const struct identity *id, struct verdict *v)
{
	bool threads = life->kind == STORM_THREADS || life->kind == STORM_THREAD_EXEC;
	uint64_t off, allowed;

	v->lives++;
	if (!id) {
		v->missing++;
		return;
	}
	v->unfinished += !id->frees;
	v->unnamed += (life->kind == STORM_EXEC || life->kind == STORM_THREAD_EXEC) && !id->execs;
	if (threads) {
		off = id->run_ns + tolerance(life->least.ns);
		if (untimed || off >= life->least.ns)
			return;
		tap_note("%s: %.1f us are missing of %.1f us, %llu switches",
			 storm_names[life->kind], (double)(life->least.ns - off) / 1e3,
			 (double)life->least.ns / 1e3, (unsigned long long)life->least.switches);
		v->short_of++;
		return;
	}
	off = id->run_ns > life->cpu_ns ? id->run_ns - life->cpu_ns : life->cpu_ns - id->run_ns;
	v->seen_ns += id->run_ns;
	v->true_ns += life->cpu_ns;
	v->switches += life->switches;
	v->worst_ns = off > v->worst_ns ? off : v->worst_ns;
	allowed = tolerance(life->cpu_ns);
	v->timed++;
	v->within += off <= life->cpu_ns / 1000;
	v->tolerated += off <= allowed;
	if (off <= allowed)
		return;
	v->excess_ns += off - allowed;
	if (!untimed)
		tap_note("%s %u: %.1f us, the scheduler %.1f us, %llu switches, %llu samples",
			 storm_names[life->kind], life->pid, (double)id->run_ns / 1e3,
			 (double)life->cpu_ns / 1e3, (unsigned long long)life->switches,
			 (unsigned long long)id->samples);
}

static void add_verdict(struct verdict *sum, const struct verdict *v)
{
	sum->lives += v->lives;
	sum->missing += v->missing;
	sum->unfinished += v->unfinished;
	sum->unnamed += v->unnamed;
	sum->short_of += v->short_of;
	sum->switches += v->switches;
	sum->timed += v->timed;
	sum->within += v->within;
	sum->tolerated += v->tolerated;
	sum->seen_ns += v->seen_ns;
	sum->true_ns += v->true_ns;
	sum->excess_ns += v->excess_ns;
}

/* How often the kernel has skipped the programs of this name. */
static uint64_t skipped_runs(const char *name)
{
	uint64_t skipped = 0;
	__u32 id = 0;

	for (;;) {
		struct bpf_prog_info info = { 0 };

		if (!next_program(&id, &info))
			return skipped;
		if (!strcmp(info.name, name))
			skipped += info.recursion_misses;
	}
}

static void judge_lives(const struct storm *storm, struct identity *const *sorted, uint32_t count,
			uint64_t before_ns)
{
	struct verdict kinds[STORM_KINDS] = { 0 }, all = { 0 };
	uint64_t now_ns = storm_stolen_ns(), unsure_ns, off;

	/* Without a host there is none; otherwise the last tick is not complete. */
	unsure_ns = now_ns ? now_ns - before_ns + NS_PER_TICK * (uint64_t)get_nprocs() : 0;
	for (uint32_t i = 0; i < storm->count; i++) {
		const struct storm_life *life = &storm->lives[i];

		judge_life(life, find_identity(sorted, count, life), &kinds[life->kind]);
	}
	for (int k = 0; k < STORM_KINDS; k++) {
		const struct verdict *v = &kinds[k];

		tap_note("%s: %llu lives, %llu switches, CPU time %.3f ms, the scheduler %.3f ms, "
			 "worst %.1f us, beyond the tolerance %.1f us",
			 storm_names[k], (unsigned long long)v->lives,
			 (unsigned long long)v->switches, (double)v->seen_ns / 1e6,
			 (double)v->true_ns / 1e6, (double)v->worst_ns / 1e3,
			 (double)v->excess_ns / 1e3);
		add_verdict(&all, v);
	}
	tap_note("of %llu lives with one thread, %llu are within 0.1 %%, %llu within the tolerance",
		 (unsigned long long)all.timed, (unsigned long long)all.within,
		 (unsigned long long)all.tolerated);
	off = all.seen_ns > all.true_ns ? all.seen_ns - all.true_ns : all.true_ns - all.seen_ns;
	tap_note("all of them: CPU time %.3f ms, the scheduler %.3f ms, %.3f %% apart",
		 (double)all.seen_ns / 1e6, (double)all.true_ns / 1e6,
		 100.0 * (double)off / (double)all.true_ns);
	unsure_ns += hidden * HIDDEN_NS;
	tap_note("stolen by the host, or after hidden switches: at most %.1f ms",
		 (double)unsure_ns / 1e6);
	tap_eq(all.missing, 0, "storm: each process has an identity");
	tap_eq(all.unfinished, 0, "storm: the end of each process is seen");
	tap_eq(all.unnamed, 0, "storm: each new program is seen");
	tap_note("the kernel has skipped on_exec %llu times",
		 (unsigned long long)skipped_runs("on_exec"));
	tap_eq(all.short_of, 0, "storm: the time of threads that outlive their leader is counted");
	if (untimed) {
		tap_skip("storm: CPU times", "the host may take the CPUs away without saying so");
		return;
	}
	tap_ok(all.excess_ns <= unsure_ns,
	       "storm: the CPU time of each process is within 0.1 %% and the time of a switch of "
	       "what the scheduler has counted");
	/* What the host has stolen is known at each tick and switch, but not when between them. */
	tap_ok(off <= all.true_ns / 1000 + unsure_ns / 20,
	       "storm: that of all processes together is within 0.1 %%");
	tap_ok(all.timed - all.within <= all.timed / 50 + hidden,
	       "storm: nearly all processes are within 0.1 %%, without the time of a switch");
}

/* --------------------------------------------------------------- tests */

static void test_storm(uint32_t lives, uint64_t seed)
{
	struct identity **sorted = calloc(IDENTITIES, sizeof(*sorted));
	struct memwatch_stream *stream = open_stream(MEMWATCH_STREAM_SLOT, 1024, "storm");
	struct seen s = { 0 };
	struct storm *storm;
	uint64_t stolen = storm_stolen_ns();
	uint32_t count;
	pid_t pid;

	if (!stream || !sorted)
		return;
	switch_ns = storm_switch_ns();
	tap_note("%u lives, seed %llu, a switch takes %.1f us", lives, (unsigned long long)seed,
		 (double)switch_ns / 1e3);
	storm = storm_start(lives, seed, &pid);
	if (!tap_ok(storm != NULL, "storm: the storm begins"))
		return;
	read_stream(stream, &s, &storm->done);
	waitpid(pid, NULL, 0);
	tap_ok(!memwatch_stream_stop(stream), "storm: the stream is stopped");
	tap_eq(read_stream(stream, &s, NULL), 0, "storm: the stream ends");
	tap_eq(storm->count, lives, "storm: all processes have lived");
	tap_eq(s.lost, 0, "storm: no record is lost");
	check_counts(stream, &s, "storm");
	check_cpus("storm");
	count = sort_identities(sorted);
	check_identities(&s, sorted, count);
	judge_lives(storm, sorted, count, stolen);
	memwatch_stream_unref(stream);
	free(sorted);
}

#include "scheduler-losses.h"

#include "scheduler-ends.h"

int main(int argc, char **argv)
{
	const char *seed = getenv("STORM_SEED");
	uint32_t lives = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
	uint32_t few = lives < 300 ? lives : 300;

	untimed = (argc < 3 || strcmp(argv[2], "timed")) && storm_steals_silently();
	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		tap_skip_all("this kernel has no BTF");
	if (memwatch_ctx_new(NULL, &ctx))
		return 1;
	test_killed();
	test_losses(few);
	test_stalled_reader();
	test_hotplug(few);
	test_storm(lives, seed ? strtoull(seed, NULL, 0) : SEED_DEFAULT);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
