// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The merge against an oracle that just sorts. A machine is played with any
 * number of CPUs: stamps out of order within a bound, equal stamps, CPUs that go
 * offline, idle or silent, rings that overflow, a reader that is away. What
 * comes out is compared record by record with what went in.
 *
 *	test-merge [SEED [ROUNDS]]
 */
#include <stdio.h>

#include "../../selftests/tap.h"
#include "merge/merge.h"
#include "rings.h"
#include "base/timemath.h"

#define CPUS_MAX    12
#define RECORDS_MAX 60000
#define GRACE_NS    2000
#define SILENT_NS   50000

/* What was written, in the order of writing. */
struct written {
	uint64_t time_ns;
	uint32_t cpu;
	uint32_t number;
	bool lost;
	bool seen;
};

struct record {
	struct memwatch_record_header h;
	uint64_t number;
	uint64_t more[6];
};

struct game {
	uint64_t random;
	uint64_t now_ns;
	unsigned int cpus;
	struct writer writers[CPUS_MAX];
	bool quiet[CPUS_MAX];	     /* says nothing, and has not said so */
	bool away[CPUS_MAX];	     /* says nothing, and has said so */
	uint64_t held_ns[CPUS_MAX];  /* a stamp not written yet, 0 if none */
	uint64_t produced[CPUS_MAX]; /* tried */
	uint64_t newest_ns;
	bool over; /* nothing is written any more */
	struct mw_merge *merge;

	/* what may happen */
	bool disorder, states, silence, overflow, delay;

	/* what came out */
	uint64_t max_ns, late, forced, delivered, lost, bad;
	bool sorted;
};

static struct written written[RECORDS_MAX];
static uint32_t nr_written;
static struct written expected[RECORDS_MAX];
static uint32_t order[RECORDS_MAX], nr_order;

static bool dice(struct game *game, unsigned int in)
{
	return next_random(&game->random) % in == 0;
}

static void write_record(struct game *game, unsigned int cpu, uint64_t time_ns, uint16_t type,
			 uint32_t state)
{
	struct record record = { .h = { .time_ns = time_ns, .type = type, .cpu = (uint16_t)cpu } };
	bool done;

	if (nr_written == RECORDS_MAX)
		return;
	record.h.size = type == MEMWATCH_RECORD_CPU_STATE
				? sizeof(struct memwatch_record_cpu)
				: (uint16_t)(24 + 8 * (next_random(&game->random) % 6));
	if (type == MEMWATCH_RECORD_CPU_STATE)
		record.number = (uint64_t)nr_written << 32 | state; /* in "reserved" */
	else
		record.number = (uint64_t)nr_written << 32;
	game->produced[cpu]++;
	done = writer_output(&game->writers[cpu], &record, record.h.size);
	written[nr_written] = (struct written){ time_ns, cpu, nr_written, !done, false };
	nr_written++;
	if (time_ns > game->newest_ns)
		game->newest_ns = time_ns;
}

/*
 * Several records at once, as the relay sends them, all but the last one alike, or of
 * any sizes: if there is no room for all, the first is lost for the kernel's count and
 * the others are tried alone.
 */
static void write_parcel(struct game *game, unsigned int cpu, uint64_t time_ns)
{
	uint32_t count = 2 + (uint32_t)(next_random(&game->random) % 6);
	struct record records[8];
	uint8_t bytes[sizeof(records)];
	uint16_t size = 0;
	bool all, alike = dice(game, 2);

	if (nr_written + count > RECORDS_MAX)
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t more = alike ? 4 + (i == count - 1) : next_random(&game->random) % 6;

		records[i] = (struct record){
			.h = { .time_ns = time_ns,
			       .type = 1000,
			       .cpu = (uint16_t)cpu,
			       .size = (uint16_t)(24 + 8 * more) },
			.number = (uint64_t)(nr_written + i) << 32,
		};
		memcpy(bytes + size, &records[i], records[i].h.size);
		size = (uint16_t)(size + records[i].h.size);
	}
	game->produced[cpu] += count;
	all = writer_parcel(&game->writers[cpu], count, bytes, size);
	for (uint32_t i = 0; i < count; i++) {
		bool done = all || (i && writer_output(&game->writers[cpu], &records[i],
						       records[i].h.size));

		written[nr_written] = (struct written){ time_ns, cpu, nr_written, !done, false };
		nr_written++;
	}
	if (time_ns > game->newest_ns)
		game->newest_ns = time_ns;
}

static void set_state(struct game *game, unsigned int cpu, bool away)
{
	uint32_t state = away ? (dice(game, 2) ? MEMWATCH_CPU_IDLE : MEMWATCH_CPU_OFFLINE)
			      : MEMWATCH_CPU_BUSY;

	game->away[cpu] = away;
	write_record(game, cpu, game->now_ns, MEMWATCH_RECORD_CPU_STATE, state);
}

/* One CPU, one moment. */
static void play_cpu(struct game *game, unsigned int cpu)
{
	unsigned int count = (unsigned int)(next_random(&game->random) % 4);

	if (game->away[cpu]) {
		if (dice(game, 50))
			set_state(game, cpu, false);
		return;
	}
	if (game->quiet[cpu]) {
		game->quiet[cpu] = !dice(game, 200);
		return;
	}
	/* what was interrupted writes at last: late within grace, or far beyond it */
	if (game->held_ns[cpu] && (!game->delay || dice(game, 100))) {
		write_record(game, cpu, game->held_ns[cpu], 1000, 0);
		game->held_ns[cpu] = 0;
	}
	if (dice(game, 4))
		write_parcel(game, cpu, game->now_ns);
	while (count--)
		write_record(game, cpu,
			     game->now_ns - (dice(game, 3) ? 0 : next_random(&game->random) % 2),
			     1000, 0);
	if (game->disorder && !game->held_ns[cpu] && dice(game, 5))
		game->held_ns[cpu] = game->now_ns;
	/* one that goes away has finished what it was about to write */
	if (!game->held_ns[cpu] && game->states && dice(game, 100))
		set_state(game, cpu, true);
	else if (!game->held_ns[cpu] && game->silence && dice(game, 400))
		game->quiet[cpu] = true;
}

static void check_lost(struct game *game, const struct memwatch_record_lost *lost)
{
	uint64_t found = 0;

	game->lost += lost->count;
	if (lost->begin_ns > lost->h.time_ns)
		game->bad++;
	/*
	 * The records it is about lie in the interval, but for the disorder of a ring;
	 * which may also turn round the ends of two losses that follow each other.
	 */
	for (uint32_t i = 0; i < nr_written && found < lost->count; i++) {
		struct written *w = &written[i];

		if (!w->lost || w->seen || w->cpu != lost->h.cpu)
			continue;
		if (!game->delay && (w->time_ns + GRACE_NS < lost->begin_ns ||
				     w->time_ns > lost->h.time_ns + GRACE_NS))
			continue;
		w->seen = true;
		found++;
	}
	if (found != lost->count)
		game->bad++;
}

static void check_record(struct game *game, const struct memwatch_record_header *header)
{
	const struct record *record = (const struct record *)header;
	bool late = header->time_ns < game->max_ns;
	uint32_t number;

	if (late != !!(header->flags & MEMWATCH_RECORD_F_LATE))
		game->bad++;
	game->max_ns = mw_max_u64(game->max_ns, header->time_ns);
	if (header->type == MEMWATCH_RECORD_LOST) {
		check_lost(game, (const struct memwatch_record_lost *)header);
		return;
	}
	game->delivered++;
	game->late += late;
	game->forced += !!(header->flags & MEMWATCH_RECORD_F_FORCED);
	number = (uint32_t)(record->number >> 32);
	if (number >= nr_written || written[number].seen || written[number].lost ||
	    written[number].time_ns != header->time_ns || written[number].cpu != header->cpu) {
		game->bad++;
		return;
	}
	written[number].seen = true;
	order[nr_order++] = number;
}

/* Time goes by, and every CPU may write. */
static void play_step(struct game *game)
{
	game->now_ns += next_random(&game->random) % (GRACE_NS / 4);
	for (unsigned int i = 0; i < game->cpus; i++)
		play_cpu(game, i);
}

/* The CPUs do not wait for the reader: they write between two rounds, too. */
static int read_all(struct game *game)
{
	const struct memwatch_record_header *header;
	int err;

	for (;;) {
		while (mw_merge_next(game->merge, &header))
			check_record(game, header);
		if (!game->over && dice(game, 3))
			play_step(game);
		err = mw_merge_round(game->merge, game->now_ns);
		if (err <= 0)
			return err;
	}
}

/* The oracle: by time, by CPU, by order of writing. */
static int compare_written(const void *a, const void *b)
{
	const struct written *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static bool same_as_oracle(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < nr_written; i++) {
		if (!written[i].lost)
			expected[count++] = written[i];
	}
	qsort(expected, count, sizeof(*expected), compare_written);
	if (count != nr_order)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (expected[i].number != order[i])
			return false;
	}
	return true;
}

static bool counts_agree(const struct game *game)
{
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	uint64_t tried = 0, lost = 0, not_written = 0;

	mw_merge_stats(game->merge, &stats);
	for (unsigned int i = 0; i < game->cpus; i++) {
		struct memwatch_stream_cpu_stats cpu = { .sz = sizeof(cpu) };

		mw_merge_cpu_stats(game->merge, i, &cpu);
		/* per CPU, exactly */
		if (game->produced[cpu.cpu] != cpu.delivered + cpu.lost + cpu.malformed)
			return false;
		tried += game->produced[cpu.cpu];
		lost += cpu.lost;
	}
	for (uint32_t i = 0; i < nr_written; i++) {
		not_written += written[i].lost;
		if (!written[i].seen)
			return false;
	}
	return stats.delivered == game->delivered && stats.late == game->late &&
	       stats.forced == game->forced && stats.lost == lost && lost == game->lost &&
	       lost == not_written && stats.malformed == 0 && tried == stats.delivered + lost &&
	       stats.watermark_ns <= game->max_ns;
}

static void open_game(struct game *game, uint64_t seed)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	size_t size;

	nr_written = 0;
	nr_order = 0;
	game->random = seed * 0x9e3779b97f4a7c15ULL | 1;
	game->cpus = 1 + (unsigned int)(next_random(&game->random) % CPUS_MAX);
	game->now_ns = 1000000;
	if (dice(game, 3))
		opts.quantum = 1 + (uint32_t)(next_random(&game->random) % 2000);
	size = game->overflow ? 512U << next_random(&game->random) % 4 : 1U << 22;
	mw_merge_new(&opts, &game->merge);
	/* not in order of their numbers: ties are by CPU, not by ring */
	for (unsigned int i = game->cpus; i-- > 0;) {
		writer_init(&game->writers[i], size);
		mw_merge_ring_add(game->merge, i, &game->writers[i].ring);
	}
}

static void close_game(struct game *game)
{
	for (unsigned int i = 0; i < game->cpus; i++) {
		/* the kernel tells of a loss with the next record; there is none: we do */
		if (game->writers[i].lost)
			mw_merge_lost_add(game->merge, game->cpus - 1 - i, game->writers[i].lost);
	}
	read_all(game);
	mw_merge_finish(game->merge, game->now_ns);
	read_all(game);
}

static bool play(struct game *game, uint64_t seed, const char *name, bool exact)
{
	unsigned int away = 0;
	bool ok = true;

	open_game(game, seed);
	while (nr_written < RECORDS_MAX / 4) {
		play_step(game);
		/* a reader that looks rarely, or is away for long */
		if (away)
			away--;
		else if (game->overflow && dice(game, 300))
			away = 200;
		else if (dice(game, 3))
			read_all(game);
	}
	game->over = true;
	for (unsigned int i = 0; i < game->cpus; i++) {
		if (game->held_ns[i])
			write_record(game, i, game->held_ns[i], 1000, 0);
	}
	close_game(game);

	if (exact)
		ok = !game->late && same_as_oracle();
	ok = ok && !game->bad && counts_agree(game);
	if (!ok)
		tap_note("%s: seed %llu: bad %llu late %llu forced %llu delivered %llu lost %llu",
			 name, (unsigned long long)seed, (unsigned long long)game->bad,
			 (unsigned long long)game->late, (unsigned long long)game->forced,
			 (unsigned long long)game->delivered, (unsigned long long)game->lost);
	mw_merge_free(game->merge);
	for (unsigned int i = 0; i < game->cpus; i++)
		writer_free(&game->writers[i]);
	return ok;
}

struct scene {
	const char *name;
	struct game may;
	bool exact; /* the output is the sorted input, nothing late */
};

static const struct scene scenes[] = {
	{ "in order", { 0 }, true },
	{ "bounded disorder", { .disorder = true }, true },
	{ "idle and offline CPUs", { .disorder = true, .states = true }, true },
	{ "silent CPUs", { .disorder = true, .silence = true, .states = true }, true },
	{ "overflowing rings", { .overflow = true }, false },
	{ "overflow, disorder, silence",
	  { .disorder = true, .overflow = true, .silence = true, .states = true },
	  false },
	{ "disorder beyond grace", { .disorder = true, .delay = true, .states = true }, false },
	{ "everything",
	  { .disorder = true, .overflow = true, .silence = true, .states = true, .delay = true },
	  false },
};

/* The scenes must contain what they are named after, or they prove nothing. */
static void test_scene(const struct scene *scene, uint64_t seed, unsigned int rounds)
{
	uint64_t late = 0, forced = 0, lost = 0;
	bool ok = true;

	for (unsigned int i = 0; i < rounds && ok; i++) {
		struct game game = scene->may;

		ok = play(&game, seed + i, scene->name, scene->exact);
		late += game.late;
		forced += game.forced;
		lost += game.lost;
	}
	tap_ok(ok, "merge: %s", scene->name);
	if (scene->may.overflow)
		tap_ok(lost > 0, "merge: %s: something was lost", scene->name);
	if (scene->may.delay)
		tap_ok(late > 0, "merge: %s: something was late", scene->name);
	if (scene->may.silence)
		tap_ok(forced > 0, "merge: %s: something was forced", scene->name);
}

/* A silent CPU delays nothing for longer than the time-out, an idle one for grace only. */
static void test_no_stall(void)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	const struct memwatch_record_header *header;
	struct writer writers[2];
	struct record record = { .h = { .time_ns = 1000000, .type = 1000, .size = 24 } };
	struct memwatch_record_cpu idle = {
		.h = { .time_ns = 1000001,
		       .type = MEMWATCH_RECORD_CPU_STATE,
		       .size = sizeof(idle) },
		.state = MEMWATCH_CPU_IDLE,
	};
	struct mw_merge *merge;

	mw_merge_new(&opts, &merge);
	for (unsigned int i = 0; i < 2; i++) {
		writer_init(&writers[i], 4096);
		mw_merge_ring_add(merge, i, &writers[i].ring);
	}
	writer_output(&writers[0], &record, 24);
	tap_ok(!mw_merge_round(merge, 1000000 + SILENT_NS),
	       "a silent CPU: not before the time-out");
	tap_ok(mw_merge_deadline(merge) == 1000000 + SILENT_NS + 1, "the deadline says when");
	tap_ok(mw_merge_round(merge, 1000000 + SILENT_NS + 1) == 1 &&
		       mw_merge_next(merge, &header) && header->flags == MEMWATCH_RECORD_F_FORCED,
	       "a silent CPU: after it, flagged forced");

	record.h.time_ns = 1100000;
	writer_output(&writers[0], &record, 24);
	idle.h.time_ns = 1100001;
	writer_output(&writers[1], &idle, sizeof(idle));
	writer_output(&writers[0], &idle, sizeof(idle));
	tap_ok(!mw_merge_round(merge, 1100000 + GRACE_NS), "an idle CPU: not before grace");
	tap_ok(mw_merge_round(merge, 1100000 + GRACE_NS + 1) == 1 &&
		       mw_merge_next(merge, &header) && !header->flags,
	       "an idle CPU: after it, and not forced");
	mw_merge_free(merge);
	writer_free(&writers[0]);
	writer_free(&writers[1]);
}

/* Whatever comes in, memory has a bound. */
static void test_memory(void)
{
	struct mw_merge_opts opts = { .grace_ns = 1ULL << 40, .silent_ns = 1ULL << 41 };
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	const struct memwatch_record_header *header;
	struct record record = { .h = { .type = 1000, .size = 16 } };
	uint64_t written_here = 0, last = 0;
	struct writer writer;
	bool sorted = true;
	struct mw_merge *merge;

	/* a grace of minutes: everything would have to wait */
	mw_merge_new(&opts, &merge);
	writer_init(&writer, 1U << 20);
	mw_merge_ring_add(merge, 0, &writer.ring);
	for (uint64_t i = 0; i < 500000; i++) {
		record.h.time_ns = i;
		written_here += writer_output(&writer, &record, 16);
		if (i % 1000)
			continue;
		while (mw_merge_round(merge, i) > 0) {
			while (mw_merge_next(merge, &header)) {
				sorted &= header->time_ns >= last;
				last = header->time_ns;
			}
		}
	}
	mw_merge_stats(merge, &stats);
	tap_ok(written_here == 500000, "under overload the ring is emptied, nothing is lost");
	tap_ok(sorted && stats.delivered > 400000, "and what comes out is in order");
	tap_ok(stats.memory_bytes < (1U << 20) + 3 * 2 * MW_MERGE_PENDING_MAX * 16 + 100000,
	       "memory is bounded: %llu bytes", (unsigned long long)stats.memory_bytes);
	mw_merge_free(merge);
	writer_free(&writer);
}

/* A reader that never comes to the end of a ring gives space back all the same. */
static void test_behind(void)
{
	struct mw_merge_opts opts = { .silent_ns = SILENT_NS, .quantum = 40 };
	const struct memwatch_record_header *header;
	struct record record = { .h = { .type = 1000, .size = 24 } };
	struct writer writer;
	struct mw_merge *merge;
	bool ok = true;

	mw_merge_new(&opts, &merge);
	writer_init(&writer, 4096);
	mw_merge_ring_add(merge, 0, &writer.ring);
	for (uint64_t i = 1; i <= 1000; i++) {
		record.h.time_ns = i;
		ok &= writer_output(&writer, &record, 24);
		/* one in, one out, once there are some to look at */
		if (i > 20)
			ok &= mw_merge_round(merge, i) == 1 && mw_merge_next(merge, &header) &&
			      !mw_merge_next(merge, &header);
	}
	tap_ok(ok, "a reader that stays behind gives space back");
	mw_merge_free(merge);
	writer_free(&writer);
}

/* An idle CPU that wakes up while the reader is still at what it wrote before. */
static void test_wakes_up(void)
{
	struct mw_merge_opts opts = { .silent_ns = SILENT_NS, .quantum = 1 << 10 };
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	const struct memwatch_record_header *header;
	struct record record = { .h = { .type = 1000, .size = 24 } };
	struct memwatch_record_cpu idle = {
		.h = { .time_ns = 150, .type = MEMWATCH_RECORD_CPU_STATE, .size = sizeof(idle) },
		.state = MEMWATCH_CPU_IDLE,
	};
	struct writer writers[2];
	struct mw_merge *merge;

	mw_merge_new(&opts, &merge);
	for (unsigned int i = 0; i < 2; i++) {
		writer_init(&writers[i], 1 << 15);
		mw_merge_ring_add(merge, i, &writers[i].ring);
	}
	for (record.h.time_ns = 100; record.h.time_ns < 150; record.h.time_ns++) {
		writer_output(&writers[0], &record, 24);
		if (record.h.time_ns < 110)
			writer_output(&writers[1], &record, 24);
	}
	writer_output(&writers[0], &idle, sizeof(idle));
	for (uint64_t now = 1000; mw_merge_round(merge, now) > 0; now++) {
		while (mw_merge_next(merge, &header))
			;
		if (now > 1000)
			continue;
		record.h.time_ns = 200;
		writer_output(&writers[0], &record, 24);
		for (record.h.time_ns = 300; record.h.time_ns < 320; record.h.time_ns++)
			writer_output(&writers[1], &record, 24);
	}
	mw_merge_finish(merge, 2000);
	while (mw_merge_round(merge, 2000) > 0)
		while (mw_merge_next(merge, &header))
			;
	mw_merge_stats(merge, &stats);
	tap_ok(!stats.late && stats.delivered == 82, "a CPU that wakes up meanwhile is not late");
	mw_merge_free(merge);
	for (unsigned int i = 0; i < 2; i++)
		writer_free(&writers[i]);
}

/* A frame as thousands before it, but for one thing: samples, and a last one that differs. */
static const struct deviant {
	const char *what;
	uint32_t records;
	uint32_t at; /* this record has what follows */
	uint16_t type, size, flags;
	uint64_t later_ns;
	uint32_t good; /* records that make sense */
	bool alone;    /* right before, such a record comes alone, as it may */
} deviants[] = {
	{ "as ever", 4, 1, 1000, 40, 0, 0, 4, false },
	{ "a longer record", 4, 1, 1000, 48, 0, 0, 2, false },
	{ "a record of no size", 4, 1, 1000, 0, 0, 0, 1, false },
	{ "a record beyond the end", 4, 3, 1000, 56, 0, 0, 3, false },
	{ "a last record of another kind", 4, 3, 1001, 48, 0, 0, 4, false },
	{ "a record of another kind", 4, 1, 1001, 40, 0, 0, 4, false },
	{ "a record that is no common one", 4, 2, MEMWATCH_RECORD_LOST, 40, 0, 0, 2, false },
	{ "a last record that is no common one", 4, 3, MEMWATCH_RECORD_NOTICE, 48, 0, 0, 3, true },
	{ "a flag", 4, 2, 1000, 40, MEMWATCH_RECORD_F_LATE, 0, 2, false },
	{ "a flag in the last one", 4, 3, 1000, 48, MEMWATCH_RECORD_F_LATE, 0, 3, false },
	{ "another time", 4, 2, 1000, 40, 0, 1, 2, false },
	{ "another time in the last one", 4, 3, 1000, 48, 0, 1, 3, false },
	{ "one record too many", 5, 1, 1000, 40, 0, 0, 4, false },
	{ "one record less", 3, 1, 1000, 40, 0, 0, 3, false },
};

static bool parcel_alike(struct writer *writer, uint64_t time_ns, const struct deviant *deviant)
{
	uint8_t bytes[3 * 40 + 48] = { 0 };

	for (uint32_t i = 0; i < 4; i++) {
		struct memwatch_record_header h = { .time_ns = time_ns,
						    .type = 1000,
						    .size = i < 3 ? 40 : 48 };

		if (deviant && i == deviant->at) {
			h.time_ns += deviant->later_ns;
			h.type = deviant->type;
			h.size = deviant->size;
			h.flags = deviant->flags;
		}
		memcpy(bytes + (size_t)i * 40, &h, sizeof(h));
	}
	return writer_parcel(writer, deviant ? deviant->records : 4, bytes, sizeof(bytes));
}

static bool output_alone(struct writer *writer, uint64_t time_ns, const struct deviant *deviant)
{
	struct record record = {
		.h = { .time_ns = time_ns, .type = deviant->type, .size = deviant->size }
	};

	return writer_output(writer, &record, record.h.size);
}

static void test_deviant(const struct deviant *deviant)
{
	struct mw_merge_opts opts = { .silent_ns = SILENT_NS };
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	const struct memwatch_record_header *header;
	struct writer writer;
	struct mw_merge *merge;
	uint64_t now = 1000, last = 0;
	bool ok = true;

	mw_merge_new(&opts, &merge);
	writer_init(&writer, 1 << 15);
	mw_merge_ring_add(merge, 0, &writer.ring);
	for (int i = 0; i < 40; i++, now += 10) {
		if (i % 8 == 7 && deviant->alone)
			ok &= output_alone(&writer, now, deviant);
		ok &= parcel_alike(&writer, now, i % 8 == 7 ? deviant : NULL);
	}
	mw_merge_finish(merge, now);
	while (mw_merge_round(merge, now) > 0)
		while (mw_merge_next(merge, &header)) {
			ok &= header->time_ns >= last && header->size >= sizeof(*header);
			last = header->time_ns;
		}
	mw_merge_stats(merge, &stats);
	ok &= stats.delivered == 35 * 4 + 5 * (deviant->good + deviant->alone) &&
	      stats.malformed == 5 * (deviant->records - deviant->good) && !stats.late;
	tap_ok(ok, "among frames that are alike, %s: %llu records, %llu malformed", deviant->what,
	       (unsigned long long)stats.delivered, (unsigned long long)stats.malformed);
	mw_merge_free(merge);
	writer_free(&writer);
}

static void test_detach(void)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	const struct memwatch_record_header *header;
	struct record record = { .h = { .time_ns = 1000, .type = 1000, .size = 24 } };
	struct writer writers[2];
	struct mw_merge *merge;
	bool ok;

	mw_merge_new(&opts, &merge);
	for (unsigned int i = 0; i < 2; i++) {
		writer_init(&writers[i], 4096);
		mw_merge_ring_add(merge, i, &writers[i].ring);
	}
	writer_output(&writers[1], &record, 24);
	record.h.time_ns = 9000;
	writer_output(&writers[0], &record, 24);
	mw_merge_ring_detach(merge, 1);
	ok = !mw_merge_ring_drained(merge, 1);
	ok &= mw_merge_round(merge, 9000) == 1 && mw_merge_next(merge, &header) &&
	      header->time_ns == 1000;
	ok &= !mw_merge_next(merge, &header) && !mw_merge_round(merge, 9000);
	tap_ok(ok && mw_merge_ring_drained(merge, 1), "a detached ring is read to its end");
	mw_merge_free(merge);
	writer_free(&writers[0]);
	writer_free(&writers[1]);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned int rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 12;

	tap_start();
	test_no_stall();
	test_detach();
	test_behind();
	test_wakes_up();
	test_memory();
	for (size_t i = 0; i < sizeof(deviants) / sizeof(*deviants); i++)
		test_deviant(&deviants[i]);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
		test_scene(&scenes[i], seed, rounds);
	return tap_done();
}
