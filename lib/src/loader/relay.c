// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loads the relay, opens its hardware counters, and explains what failed. Counters are
 * perf events like the rings: they stop working when their CPU goes offline, see rings.h.
 */
#include "loader/relay.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memwatch/metric.h>
#include <memwatch/value.h>

#include "bpf/relay.h"
#include "loader/counters.h"
#include "loader/libbpf.h"
#include "loader/log.h"
#include "loader/metronome.h"
#include "loader/programs.h"
#include "loader/rings.h"
#include "base/context.h"
#include "base/cpus.h"
#include "base/sleep.h"
#include "base/timemath.h"

#define PROGRAMS_MAX 16

/*
 * The programs say when a CPU has no ring. This often, the CPUs are also checked without that.
 */
#define REFRESH_NS 1000000000ULL

/*
 * How long to wait at least for a CPU that is to stop, and how often to look again afterwards: the
 * machine, or a virtual one, may have stood still meanwhile.
 */
#define STOP_NS	   100000000ULL
#define STOP_LOOKS 20

/**
 * struct cpu - a possible CPU
 * @generation: ring generation; when it changes, reopen the counters
 * @metronome: SCHEDULER: the descriptor of the timer, or -1
 */
struct cpu {
	uint32_t generation;
	int metronome;
};

struct mw_bpf_relay {
	struct memwatch_ctx *ctx;
	struct mw_merge *merge;
	struct mw_bpf_relay_opts opts;
	struct mw_bpf_programs programs;
	struct bpf_link *links[PROGRAMS_MAX];
	struct cpu *cpus; /* all possible CPUs */
	unsigned int nr_cpus;
	struct mw_bpf_rings *rings;
	struct mw_bpf_counters *counters;
	uint64_t missing_rings; /* the counter of the programs at the last refresh */
	uint64_t refresh_at_ns; /* when to refresh although it has not changed */
	struct mw_sleep sleep;
	uint8_t *online;			      /* scratch, one element per CPU */
	struct mw_relay_cpu *states;		      /* scratch, one element per CPU */
	uint64_t *counts;			      /* scratch, one element per CPU */
	char read_failures[MEMWATCH_COUNTER_MAX][64]; /* their names */
};

_Static_assert(2 * MW_BPF_RELAY_TICKS <= MW_RELAY_HELD_MAX,
	       "there is room for the batches of two rounds");
_Static_assert(sizeof(struct mw_relay_cpu) % 8 == 0, "the kernel rounds per-CPU values up to 8");
_Static_assert(offsetof(struct mw_relay_batch, sample) - offsetof(struct mw_relay_batch, records) ==
		       MW_FRAME_COUNT_BYTES,
	       "a frame contains a batch as it was sent");
_Static_assert((int)MW_RELAY_SLOT == (int)MEMWATCH_STREAM_SLOT &&
		       (int)MW_RELAY_SWITCH == (int)MEMWATCH_STREAM_SWITCH,
	       "the modes of the relay equal those of the stream");

/* ------------------------------------------------------------------ timers */

/* A timer ends with its CPU, as all perf events do. */
static int cpu_start_ticks(struct mw_bpf_relay *relay, unsigned int cpu)
{
	struct cpu *here = &relay->cpus[cpu];

	if (relay->opts.source != MW_BPF_SOURCE_SCHEDULER)
		return 0;
	if (here->metronome >= 0)
		close(here->metronome);
	here->metronome = mw_metronome_open(cpu, relay->opts.period_ns);
	if (here->metronome >= 0 || here->metronome == -ENODEV)
		return 0;
	return mw_fail(relay->ctx, here->metronome, "cannot open the timer of CPU %u: %s", cpu,
		       mw_bpf_counters_reason(here->metronome));
}

void mw_bpf_relay_counter(const struct mw_bpf_relay *relay, unsigned int counter,
			  struct memwatch_availability *ret)
{
	mw_bpf_counters_available(relay->counters, counter, ret);
}

/* -------------------------------------------------------------------- CPUs */

unsigned int mw_bpf_relay_cpus(const struct mw_bpf_relay *relay)
{
	return mw_bpf_rings_count(relay->rings);
}

void mw_bpf_relay_refresh(struct mw_bpf_relay *relay, uint64_t now_ns)
{
	uint64_t missing = __atomic_load_n(relay->programs.missing_rings, __ATOMIC_RELAXED);
	bool slept;

	if (missing == relay->missing_rings && now_ns < relay->refresh_at_ns)
		return;
	relay->missing_rings = missing;
	relay->refresh_at_ns = mw_add_sat(now_ns, REFRESH_NS);
	mw_bpf_rings_refresh(relay->rings);
	/* The CPU that stayed online lost its PMU registers, and perf does not write them again. */
	slept = mw_sleep_look(&relay->sleep);
	for (unsigned int i = 0; i < relay->nr_cpus; i++) {
		uint32_t generation = mw_bpf_rings_generation(relay->rings, i);
		struct cpu *cpu = &relay->cpus[i];

		if (generation && generation != cpu->generation && cpu_start_ticks(relay, i))
			mw_log(relay->ctx, MEMWATCH_LOG_WARNING, "%s",
			       memwatch_ctx_error(relay->ctx));
		if (generation != cpu->generation || slept) {
			cpu->generation = generation;
			mw_bpf_counters_close(relay->counters, i, now_ns);
		}
		if (generation)
			relay->refresh_at_ns = mw_min_u64(
				relay->refresh_at_ns,
				mw_bpf_counters_reopen(relay->counters, i, now_ns));
	}
}

/* --------------------------------------------------------------- lifetime */

static int load_programs(struct mw_bpf_relay *relay)
{
	struct mw_bpf_programs_opts opts = {
		.source = relay->opts.source,
		.mode = relay->opts.mode,
		.counters = mw_bpf_counters_probe(relay->counters, relay->online),
		.nr_rmids = relay->opts.nr_rmids,
		.cpus = relay->nr_cpus,
		.period_ns = relay->opts.period_ns,
	};

	return mw_bpf_programs_load(relay->ctx, &opts, &relay->programs);
}

static int open_cpus(struct mw_bpf_relay *relay)
{
	struct mw_bpf_rings_opts opts = {
		.map = bpf_map__fd(relay->programs.records),
		.counts = bpf_map__fd(relay->programs.failures),
		.no_ring = MW_RELAY_FAIL_OUTPUT_NO_RING,
		.held = MW_RELAY_FAIL_HELD,
		.pages = relay->opts.ring_pages,
		.wakeup_bytes = relay->opts.ring_pages * (uint32_t)sysconf(_SC_PAGESIZE) / 4,
	};
	int err = mw_bpf_rings_open(relay->ctx, &opts, relay->merge, &relay->rings);

	for (unsigned int cpu = 0; !err && cpu < relay->nr_cpus; cpu++) {
		relay->cpus[cpu].generation = mw_bpf_rings_generation(relay->rings, cpu);
		if (!relay->cpus[cpu].generation)
			continue;
		mw_bpf_counters_open(relay->counters, cpu);
		err = cpu_start_ticks(relay, cpu);
	}
	return err;
}

int mw_bpf_relay_open(struct memwatch_ctx *ctx, const struct mw_bpf_relay_opts *opts,
		      struct mw_merge *merge, struct mw_bpf_relay **ret)
{
	int err = mw_libbpf_load(ctx, "measuring this machine"), cpus;
	struct mw_bpf_relay *relay;

	if (err)
		return err;
	relay = calloc(1, sizeof(*relay));
	if (!relay)
		return mw_fail_memory(ctx, "cannot load the relay");
	cpus = libbpf_num_possible_cpus();
	relay->ctx = ctx;
	relay->merge = merge;
	relay->opts = *opts;
	relay->nr_cpus = cpus > 0 ? (unsigned int)cpus : 0;
	relay->sleep.most_ns = MW_TIME_MAX;
	relay->cpus = calloc(relay->nr_cpus, sizeof(*relay->cpus));
	relay->online = calloc(relay->nr_cpus, sizeof(*relay->online));
	relay->states = calloc(relay->nr_cpus, sizeof(*relay->states));
	relay->counts = calloc(relay->nr_cpus, sizeof(*relay->counts));
	err = -ENOMEM;
	if (!relay->nr_cpus || !relay->cpus || !relay->online || !relay->states || !relay->counts ||
	    mw_bpf_counters_new(ctx, &relay->programs, relay->nr_cpus, &relay->counters)) {
		mw_fail_memory(ctx, "cannot load the relay");
		goto err_close;
	}
	for (unsigned int cpu = 0; cpu < relay->nr_cpus; cpu++)
		relay->cpus[cpu].metronome = -1;
	err = mw_cpus_online(ctx, relay->online, relay->nr_cpus);
	if (!err)
		err = load_programs(relay);
	if (!err)
		err = open_cpus(relay);
	if (err)
		goto err_close;
	*ret = relay;
	return 0;

err_close:
	mw_bpf_relay_close(relay);
	return err;
}

void mw_bpf_relay_close(struct mw_bpf_relay *relay)
{
	if (!relay)
		return;
	mw_bpf_relay_detach(relay);
	for (unsigned int cpu = 0; relay->cpus && cpu < relay->nr_cpus; cpu++)
		if (relay->cpus[cpu].metronome >= 0)
			close(relay->cpus[cpu].metronome);
	mw_bpf_rings_close(relay->rings);
	mw_bpf_counters_free(relay->counters);
	mw_bpf_programs_unload(&relay->programs);
	free(relay->cpus);
	free(relay->online);
	free(relay->states);
	free(relay->counts);
	free(relay);
}

int mw_bpf_relay_attach(struct mw_bpf_relay *relay)
{
	struct bpf_program *prog;
	unsigned int i = 0;
	int err = 0;

	mw_bpf_log_begin(relay->ctx);
	bpf_object__for_each_program (prog, relay->programs.obj) {
		struct bpf_link *link = i < PROGRAMS_MAX ? bpf_program__attach(prog) : NULL;

		if (!link) {
			err = i < PROGRAMS_MAX ? -errno : -E2BIG;
			break;
		}
		relay->links[i++] = link;
	}
	mw_bpf_log_end();
	if (!err)
		return 0;
	if (err == -ENOENT && relay->opts.source == MW_BPF_SOURCE_SCHEDULER)
		mw_fail(relay->ctx, -EOPNOTSUPP,
			"cannot attach %s: this kernel has no such tracepoint",
			bpf_program__section_name(prog));
	else if (err == -ENOENT)
		mw_fail(relay->ctx, -EOPNOTSUPP,
			"cannot attach %s: the module has no such tracepoint: either the "
			"module is of another version, or it was loaded by force, so that the "
			"kernel does not register its tracepoints",
			bpf_program__section_name(prog));
	else
		mw_fail(relay->ctx, err, "cannot attach %s: %s", bpf_program__section_name(prog),
			strerror(-err));
	mw_bpf_relay_detach(relay);
	return err == -ENOENT ? -EOPNOTSUPP : err;
}

void mw_bpf_relay_detach(struct mw_bpf_relay *relay)
{
	bool attached = false;

	/* in reverse order: switches must be seen as long as a CPU can be active */
	for (unsigned int i = PROGRAMS_MAX; i-- > 0;) {
		if (!relay->links[i])
			continue;
		bpf_link__destroy(relay->links[i]);
		relay->links[i] = NULL;
		attached = true;
	}
	/* a program may still run on another CPU: wait for an RCU grace period */
	if (attached && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(20000);
}

int mw_bpf_relay_wait(struct mw_bpf_relay *relay, int timeout_ms)
{
	return mw_bpf_rings_wait(relay->rings, timeout_ms);
}

int mw_bpf_relay_fd(const struct mw_bpf_relay *relay)
{
	return mw_bpf_rings_fd(relay->rings);
}

/* ----------------------------------------------------------------- counts */

static int read_states(struct mw_bpf_relay *relay)
{
	uint32_t key = 0;

	return bpf_map_lookup_elem(bpf_map__fd(relay->programs.current), &key, relay->states);
}

/* One counter of the map "failures" for each CPU, in relay->counts. */
static int read_failures(struct mw_bpf_relay *relay, uint32_t what)
{
	return bpf_map_lookup_elem(bpf_map__fd(relay->programs.failures), &what, relay->counts);
}

void mw_bpf_relay_stop(struct mw_bpf_relay *relay)
{
	uint64_t three = mw_mul_sat(3, relay->opts.period_ns);
	uint64_t end = mw_add_sat(mw_clock(CLOCK_MONOTONIC), mw_max_u64(STOP_NS, three));
	unsigned int looks = 0;
	bool active = true;

	if (!relay->programs.stopping)
		return;
	*relay->programs.stopping = 1;
	while (active && looks < STOP_LOOKS) {
		looks += mw_clock(CLOCK_MONOTONIC) >= end;
		usleep(500);
		active = false;
		if (read_states(relay))
			return;
		for (unsigned int cpu = 0; cpu < relay->nr_cpus; cpu++)
			active |= relay->states[cpu].active;
	}
}

int mw_bpf_relay_totals(struct mw_bpf_relay *relay, uint64_t *produced, uint64_t *dropped)
{
	*produced = 0;
	*dropped = 0;
	if (read_states(relay))
		return -errno;
	for (unsigned int cpu = 0; cpu < relay->nr_cpus; cpu++) {
		*produced += relay->states[cpu].produced;
		*dropped += relay->states[cpu].dropped + relay->states[cpu].held_records;
	}
	return 0;
}

int mw_bpf_relay_cpu_total(struct mw_bpf_relay *relay, unsigned int cpu, uint64_t *produced)
{
	if (cpu >= relay->nr_cpus)
		return -EINVAL;
	if (read_states(relay))
		return -errno;
	*produced = relay->states[cpu].produced;
	return 0;
}

uint64_t mw_bpf_relay_settle(struct mw_bpf_relay *relay)
{
	struct memwatch_stream_cpu_stats stats;
	uint64_t known, missing, sum = 0;
	int index;

	if (read_states(relay))
		return 0;
	for (unsigned int cpu = 0; cpu < relay->nr_cpus; cpu++) {
		known = 0;
		index = mw_bpf_rings_index(relay->rings, cpu);
		if (index >= 0 && mw_merge_cpu_stats(relay->merge, (unsigned int)index, &stats) > 0)
			known = stats.lost;
		/* What still waits for a ring will not be sent any more. */
		missing = mw_sub_sat(relay->states[cpu].dropped + relay->states[cpu].held_records,
				     known);
		if (!missing)
			continue;
		sum += missing;
		if (index >= 0)
			mw_merge_lost_add(relay->merge, (unsigned int)index, missing, 0);
		else
			mw_log(relay->ctx, MEMWATCH_LOG_WARNING,
			       "CPU %u came online when the stream ended: %llu records lost", cpu,
			       (unsigned long long)missing);
	}
	return sum;
}

static const char *const failure_names[MW_RELAY_FAIL_READ] = {
	[MW_RELAY_FAIL_OUTPUT_FULL] = "output_ring_full",
	[MW_RELAY_FAIL_OUTPUT_NO_RING] = "output_no_ring",
	[MW_RELAY_FAIL_OUTPUT] = "output_error",
	[MW_RELAY_FAIL_RECORD_READ] = "record_unreadable",
	[MW_RELAY_FAIL_RECORD_INVALID] = "record_invalid",
	[MW_RELAY_FAIL_OWNER] = "owner_unannounced",
	[MW_RELAY_FAIL_RMID_RANGE] = "rmid_out_of_range",
	[MW_RELAY_FAIL_CLOCK] = "clock_backwards",
	[MW_RELAY_FAIL_COUNTER_BACK] = "counter_backwards",
	[MW_RELAY_FAIL_EARLY] = "slot_split",
	[MW_RELAY_FAIL_HELD] = "output_held",
	[MW_RELAY_FAIL_IDENTITY] = "identity_refused",
};

/* How often the kernel skipped a program because it was running on that CPU already. */
static uint64_t count_skipped_runs(struct mw_bpf_relay *relay)
{
	struct bpf_program *prog;
	uint64_t sum = 0;

	bpf_object__for_each_program (prog, relay->programs.obj) {
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);

		if (!bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			sum += info.recursion_misses;
	}
	return sum;
}

/* Failures to read a counter are named after it: "read_cycles". */
static const char *failure_name(struct mw_bpf_relay *relay, unsigned int index)
{
	unsigned int counter = index - MW_RELAY_FAIL_READ;

	if (index < MW_RELAY_FAIL_READ)
		return failure_names[index];
	snprintf(relay->read_failures[counter], sizeof(relay->read_failures[counter]), "read_%s",
		 memwatch_counter_name(counter));
	return relay->read_failures[counter];
}

int mw_bpf_relay_failure(struct mw_bpf_relay *relay, unsigned int index, const char **name,
			 __u64 *count)
{
	if (index > MW_RELAY_FAIL_MAX)
		return 0;
	if (index == MW_RELAY_FAIL_MAX) {
		*name = "program_skipped";
		*count = count_skipped_runs(relay);
		return 1;
	}
	if (read_failures(relay, index))
		return -errno;
	*name = failure_name(relay, index);
	*count = 0;
	for (unsigned int cpu = 0; cpu < relay->nr_cpus; cpu++)
		*count += relay->counts[cpu];
	return 1;
}

int mw_bpf_relay_program(struct mw_bpf_relay *relay, const char *name)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(relay->programs.obj, name);

	return prog ? bpf_program__fd(prog) : -ENOENT;
}
