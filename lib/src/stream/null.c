// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The null backend generates the records of an imaginary machine. It gives the same
 * guarantees as the module (the run_ns of a CPU add up to wall time, generations,
 * a dump at the start), so that the users of a stream can be tested without the module.
 */
#include "stream/backend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"
#include "base/timemath.h"

#define CPUS_MAX      4096
#define PROCESSES_MAX 1000000
#define START_NS      1000000000000ULL /* 1000 s after boot */
#define LIFE_TICKS    200	       /* average life of a process */

/* A process of the imaginary machine. */
struct actor {
	uint32_t generation;
	uint32_t tgid;
	uint64_t start_ns;
	uint64_t traffic;
	char comm[MEMWATCH_COMM_LEN];
};

struct null_stream {
	struct memwatch_stream stream;
	struct memwatch_null_opts opts;
	struct mw_host_info host;
	uint64_t random;
	struct actor *actors; /* actors[i] has RMID i + 1 */
	uint32_t next_tgid;
	uint64_t tick;	    /* number of the tick that is generated */
	uint64_t *produced; /* per CPU */
	uint64_t delivered;
	uint64_t last_ns;

	/* all records of one tick, in order; positions and sizes in bytes */
	uint8_t *records;
	size_t at, used, size;
};

static uint64_t null_random(struct null_stream *null)
{
	null->random ^= null->random << 13;
	null->random ^= null->random >> 7;
	null->random ^= null->random << 17;
	return null->random;
}

/* Appends a record of @size bytes, all zero behind its header; NULL if memory ran out. */
static void *null_add_record(struct null_stream *null, uint64_t time_ns, uint16_t type,
			     uint16_t size, uint32_t cpu)
{
	struct memwatch_record_header *header;

	if (mw_array_reserve(null->records, null->size, null->used + size))
		return NULL;
	header = (struct memwatch_record_header *)(null->records + null->used);
	memset(header, 0, size);
	header->time_ns = time_ns;
	header->type = type;
	header->size = size;
	header->cpu = (uint16_t)cpu;
	null->used += size;
	null->produced[cpu]++;
	return header;
}

static int null_add_rmid(struct null_stream *null, uint64_t time_ns, uint16_t type, uint32_t index,
			 uint32_t reason)
{
	const struct actor *actor = &null->actors[index];
	struct memwatch_record_rmid *r;

	r = null_add_record(null, time_ns, type, sizeof(*r), index % null->opts.cpus);
	if (!r)
		return -ENOMEM;
	r->rmid = index + 1;
	r->generation = actor->generation;
	r->tgid = actor->tgid;
	r->parent_tgid = 1;
	r->start_time_ns = actor->start_ns;
	r->alloc_time_ns = actor->start_ns;
	r->cgroup_id = 100 + index % 5;
	r->uid = 1000 + index % 3;
	r->reason = reason;
	memcpy(r->comm, actor->comm, sizeof(r->comm));
	return 0;
}

static void actor_start(struct null_stream *null, uint32_t index, uint64_t time_ns)
{
	static const char *const names[] = { "sh",	"stream", "redis-server", "cc1",
					     "python3", "sleep",  "make",	  "a b\\\tc" };
	struct actor *actor = &null->actors[index];

	actor->generation++;
	actor->tgid = null->next_tgid++;
	actor->start_ns = time_ns;
	actor->traffic = 0;
	snprintf(actor->comm, sizeof(actor->comm), "%s",
		 names[null_random(null) % (sizeof(names) / sizeof(*names))]);
}

static int make_dump(struct null_stream *null, uint64_t time_ns)
{
	struct memwatch_record_dump *dump;

	dump = null_add_record(null, time_ns, MEMWATCH_RECORD_DUMP_BEGIN, sizeof(*dump), 0);
	if (!dump)
		return -ENOMEM;
	dump->sequence = 1;
	for (uint32_t i = 0; i < null->opts.processes; i++) {
		if (null_add_rmid(null, time_ns, MEMWATCH_RECORD_RMID_EXISTING, i,
				  MEMWATCH_REASON_SCAN))
			return -ENOMEM;
	}
	dump = null_add_record(null, time_ns, MEMWATCH_RECORD_DUMP_END, sizeof(*dump), 0);
	if (!dump)
		return -ENOMEM;
	dump->sequence = 1;
	dump->count = null->opts.processes;
	return 0;
}

static int make_lives(struct null_stream *null, uint64_t begin_ns)
{
	uint64_t half = null->opts.period_ns / 2;

	for (uint32_t i = 0; i < null->opts.processes; i++) {
		uint64_t dice = null_random(null) % (2 * LIFE_TICKS);

		if (null->tick - 1 < 3 || dice > 1)
			continue;
		if (dice) {
			if (null_add_rmid(null, begin_ns + half, MEMWATCH_RECORD_RMID_EXEC, i,
					  MEMWATCH_REASON_EXEC))
				return -ENOMEM;
			continue;
		}
		/* the RMID is reused without limbo, because nothing is measured here */
		if (null_add_rmid(null, begin_ns, MEMWATCH_RECORD_RMID_FREE, i,
				  MEMWATCH_REASON_EXIT))
			return -ENOMEM;
		actor_start(null, i, begin_ns);
		if (null_add_rmid(null, begin_ns, MEMWATCH_RECORD_RMID_ALLOC, i,
				  MEMWATCH_REASON_FORK))
			return -ENOMEM;
	}
	return 0;
}

static int make_sample(struct null_stream *null, uint32_t cpu, uint64_t begin_ns, uint64_t end_ns,
		       uint32_t rmid, uint64_t run_ns)
{
	struct memwatch_record_sample *sample;

	sample = null_add_record(null, end_ns, MEMWATCH_RECORD_SAMPLE, sizeof(*sample), cpu);
	if (!sample)
		return -ENOMEM;
	sample->rmid = rmid;
	sample->generation = rmid ? null->actors[rmid - 1].generation : 0;
	sample->begin_ns = begin_ns;
	sample->run_ns = run_ns;
	sample->running_ppm = 1000000;
	if (null->opts.pmu) {
		uint64_t cycles = run_ns * 3 + null_random(null) % 1000;

		sample->counter[MEMWATCH_COUNTER_CYCLES] = cycles;
		sample->counter[MEMWATCH_COUNTER_INSTRUCTIONS] = cycles / 2 +
								 null_random(null) % (cycles + 1);
		sample->counter[MEMWATCH_COUNTER_LLC_REFERENCES] = null_random(null) %
								   (cycles / 50 + 1);
		sample->counter[MEMWATCH_COUNTER_LLC_MISSES] = null_random(null) %
							       (cycles / 200 + 1);
		memset(sample->status, MEMWATCH_STATUS_OK, sizeof(sample->status));
	}
	if (rmid)
		null->actors[rmid - 1].traffic += run_ns;
	return 0;
}

static int make_cpu(struct null_stream *null, uint32_t cpu, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t left = end_ns - begin_ns;
	uint32_t count = (uint32_t)(null_random(null) % null->opts.samples_per_tick);
	uint32_t rmid = (uint32_t)(null_random(null) % null->opts.processes);
	struct memwatch_record_tick *tick;

	for (uint32_t i = 0; i < count && left; i++) {
		uint64_t run = null_random(null) % left + 1;

		rmid = (rmid + cpu + 1) % null->opts.processes;
		if (make_sample(null, cpu, begin_ns, end_ns, rmid + 1, run))
			return -ENOMEM;
		left -= run;
	}
	if (left && make_sample(null, cpu, begin_ns, end_ns, 0, left))
		return -ENOMEM;

	tick = null_add_record(null, end_ns, MEMWATCH_RECORD_TICK, sizeof(*tick), cpu);
	if (!tick)
		return -ENOMEM;
	tick->expected_ns = end_ns / null->opts.period_ns * null->opts.period_ns;
	tick->period_ns = (uint32_t)null->opts.period_ns;
	tick->produced = null->produced[cpu];
	return 0;
}

static int make_rdt(struct null_stream *null, uint64_t time_ns)
{
	for (uint32_t i = 0; i < null->opts.processes; i++) {
		struct memwatch_record_rdt *rdt;

		rdt = null_add_record(null, time_ns, MEMWATCH_RECORD_RDT, sizeof(*rdt), 0);
		if (!rdt)
			return -ENOMEM;
		rdt->rmid = i + 1;
		rdt->generation = null->actors[i].generation;
		memset(rdt->status, MEMWATCH_STATUS_OK, sizeof(rdt->status));
		rdt->value[MEMWATCH_RDT_OCCUPANCY] = 65536 * (1 + null_random(null) % 256);
		rdt->value[MEMWATCH_RDT_MBM_TOTAL] = null->actors[i].traffic;
		rdt->value[MEMWATCH_RDT_MBM_LOCAL] = null->actors[i].traffic / 4 * 3;
	}
	return 0;
}

/* All CPUs tick at the same time, so all records but those of make_lives() are sorted. */
static int make_tick(struct null_stream *null)
{
	uint64_t begin_ns = START_NS + null->tick * null->opts.period_ns;
	uint64_t end_ns = begin_ns + null->opts.period_ns;
	int err = 0;

	null->at = 0;
	null->used = 0;
	if (null->tick++ == 0)
		err = make_dump(null, begin_ns);
	/* an exec is in the middle of the period, before the samples at its end */
	err = err ? err : make_lives(null, begin_ns);
	for (uint32_t cpu = 0; cpu < null->opts.cpus && !err; cpu++)
		err = make_cpu(null, cpu, begin_ns, end_ns);
	if (!err && null->opts.rdt && null->tick % 10 == 0)
		err = make_rdt(null, end_ns);
	return err;
}

static int by_time(const void *a, const void *b)
{
	const struct memwatch_record_header *x = *(void *const *)a, *y = *(void *const *)b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x < y ? -1 : x > y; /* stable: in the order of creation */
}

/* Sorts the records before the samples: only these, of forks and execs, are out of order. */
static int sort_lives(struct null_stream *null)
{
	size_t end = 0, count = 0;
	void **order;
	uint8_t *sorted, *to;

	for (size_t at = 0; at < null->used; at = end) {
		struct memwatch_record_header *header = (void *)(null->records + at);

		if (header->type == MEMWATCH_RECORD_SAMPLE || header->type == MEMWATCH_RECORD_TICK)
			break;
		end = at + header->size;
		count++;
	}
	if (count < 2)
		return 0;
	order = calloc(count, sizeof(*order));
	sorted = malloc(end);
	if (!order || !sorted) {
		free(order);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t at = 0, i = 0; i < count; i++) {
		order[i] = null->records + at;
		at += ((struct memwatch_record_header *)order[i])->size;
	}
	qsort(order, count, sizeof(*order), by_time);
	to = sorted;
	for (size_t i = 0; i < count; i++) {
		size_t size = ((struct memwatch_record_header *)order[i])->size;

		memcpy(to, order[i], size);
		to += size;
	}
	memcpy(null->records, sorted, end);
	free(order);
	free(sorted);
	return 0;
}

static int null_next(struct memwatch_stream *stream, const struct memwatch_record_header **ret)
{
	struct null_stream *null = (struct null_stream *)stream;
	const struct memwatch_record_header *header;

	if (null->at == null->used) {
		if (stream->stopped || null->tick * null->opts.period_ns >= null->opts.duration_ns)
			return 0;
		if (make_tick(null) || sort_lives(null))
			return mw_fail_memory(stream->ctx, "null stream");
	}
	header = (const struct memwatch_record_header *)(null->records + null->at);
	null->at += header->size;
	null->delivered++;
	null->last_ns = header->time_ns;
	*ret = header;
	return 1;
}

static int null_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret)
{
	struct null_stream *null = (struct null_stream *)stream;

	ret->produced = null->delivered;
	ret->delivered = null->delivered;
	ret->watermark_ns = null->last_ns;
	ret->memory_bytes = null->size + null->opts.processes * sizeof(*null->actors);
	return 0;
}

static void null_close(struct memwatch_stream *stream)
{
	struct null_stream *null = (struct null_stream *)stream;

	free(null->actors);
	free(null->produced);
	free(null->records);
	free(null);
}

static const struct mw_backend_ops null_ops = {
	.name = "null",
	.next = null_next,
	.stats = null_stats,
	.close = null_close,
};

static void set_null_defaults(struct memwatch_null_opts *opts)
{
	opts->cpus = opts->cpus ? opts->cpus : 4;
	opts->processes = opts->processes ? opts->processes : 32;
	opts->period_ns = opts->period_ns ? opts->period_ns : MEMWATCH_PERIOD_DEFAULT_NS;
	opts->duration_ns = opts->duration_ns ? opts->duration_ns : MW_NSEC_PER_SEC;
	opts->samples_per_tick = opts->samples_per_tick ? opts->samples_per_tick : 4;
}

static void null_describe(struct null_stream *null)
{
	struct memwatch_stream_info *info = &null->stream.info;

	mw_stream_info_host(info, &null->host);
	info->hostname = "nowhere";
	info->kernel = "none";
	info->start_realtime_ns = 1700000000ULL * MW_NSEC_PER_SEC;
	info->start_monotonic_ns = START_NS;
	info->start_boottime_ns = START_NS;
	info->nr_cpus = null->opts.cpus;
	info->nr_rmids = null->opts.processes;
	info->backend = null->opts.rdt ? "simulated" : "emulated";
	info->backend_reason = "generated, not measured";
	info->period_ns = null->opts.period_ns;
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		info->counter[i].status = null->opts.pmu ? MEMWATCH_STATUS_OK
							 : MEMWATCH_STATUS_UNAVAILABLE;
		info->counter[i].reason = null->opts.pmu ? ""
							 : "the generator was told to have none";
	}
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++) {
		info->rdt[i].status = null->opts.rdt ? MEMWATCH_STATUS_OK
						     : MEMWATCH_STATUS_UNAVAILABLE;
		info->rdt[i].reason = null->opts.rdt ? "" : "the generator was told to have none";
	}
}

static int check_null_opts(struct memwatch_ctx *ctx, const struct memwatch_null_opts *opts)
{
	if (opts->cpus > CPUS_MAX)
		return mw_fail(ctx, -EINVAL, "null stream: invalid number of CPUs: %u; at most %d",
			       (unsigned int)opts->cpus, CPUS_MAX);
	if (opts->processes > PROCESSES_MAX)
		return mw_fail(ctx, -EINVAL,
			       "null stream: invalid number of processes: %u; at most %d",
			       (unsigned int)opts->processes, PROCESSES_MAX);
	if (opts->period_ns < MEMWATCH_PERIOD_MIN_NS || opts->period_ns > MEMWATCH_PERIOD_MAX_NS)
		return mw_fail(ctx, -EINVAL,
			       "null stream: invalid period: %" PRIu64 " ns; %llu to %llu ns",
			       (uint64_t)opts->period_ns, MEMWATCH_PERIOD_MIN_NS,
			       MEMWATCH_PERIOD_MAX_NS);
	if (opts->duration_ns > UINT64_MAX / 4)
		return mw_fail(ctx, -EINVAL,
			       "null stream: invalid duration: %" PRIu64 " ns; at most %" PRIu64
			       " ns",
			       (uint64_t)opts->duration_ns, (uint64_t)(UINT64_MAX / 4));
	return 0;
}

int memwatch_stream_open_null(struct memwatch_ctx *ctx, const struct memwatch_null_opts *opts,
			      struct memwatch_stream **ret)
{
	struct memwatch_null_opts full;
	struct null_stream *null;
	int err;

	err = mw_opts_copy(ctx, &full, sizeof(full), opts);
	if (err)
		return err;
	set_null_defaults(&full);
	err = check_null_opts(ctx, &full);
	if (err)
		return err;

	null = calloc(1, sizeof(*null));
	if (!null)
		return mw_fail_memory(ctx, "null stream");
	null->opts = full;
	null->random = (full.seed + 1) * 0x9e3779b97f4a7c15ULL | 1;
	null->next_tgid = 1000;
	null->actors = calloc(full.processes, sizeof(*null->actors));
	null->produced = calloc(full.cpus, sizeof(*null->produced));
	if (!null->actors || !null->produced) {
		null_close(&null->stream);
		return mw_fail_memory(ctx, "null stream");
	}
	for (uint32_t i = 0; i < full.processes; i++)
		actor_start(null, i, START_NS - MW_NSEC_PER_SEC + i);
	null_describe(null);
	mw_stream_init(&null->stream, ctx, &null_ops);
	*ret = &null->stream;
	return 0;
}
