// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings with a queue: the caller does not wait for a disk that is slow, stands still or is
 * full, and what does not fit into the queue is counted and recorded as lost.
 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "recording-kit.h"

/* Of the address sanitizer, whose header is not installed with every compiler. */
size_t __sanitizer_get_current_allocated_bytes(void);

#define CPUS  7		   /* as numbered() chooses them */
#define BLOCK (256U << 10) /* the default */
#define QUEUE (4 * BLOCK)

/*
 * A disk that stands still while @closed, is full while @full, cannot sync while @broken, and says
 * only once that it could not if it @forgets, as Linux does.
 */
static atomic_bool closed, full, broken, forgets;

/* It goes on after that time, so that a caller that does wait for it fails instead of hanging. */
#define STANDS_STILL_S 30

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
	for (int ms = 0; atomic_load(&closed); ms++) {
		if (ms >= STANDS_STILL_S * 1000)
			atomic_store(&closed, false);
		usleep(1000);
	}
	if (atomic_load(&full)) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, data, len, offset);
}

int fdatasync(int fd)
{
	if (atomic_load(&broken)) {
		atomic_store(&broken, !atomic_load(&forgets));
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

static struct memwatch_recording *create_with(uint32_t flags, uint64_t queue_bytes,
					      uint32_t block_bytes)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = flags, .queue_bytes = queue_bytes,
		      .block_bytes = block_bytes);
	struct memwatch_recording *recording;

	if (memwatch_recording_create(ctx, path, &no_info, &opts, &recording)) {
		tap_note("create: %s", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	return recording;
}

static struct memwatch_recording *create_queued(void)
{
	return create_with(REPLACE, QUEUE, 0);
}

static int write_numbers(struct memwatch_recording *recording, uint64_t from, uint64_t to)
{
	struct memwatch_record_sample sample;
	int err = 0;

	for (uint64_t i = from; i < to && !err; i++) {
		numbered(&sample, i);
		err = memwatch_recording_write(recording, &sample.h);
	}
	return err;
}

/* What a reader finds: samples in order, and the losses between them. */
struct result {
	uint64_t samples, lost, unsorted, unexplained;
	uint64_t lost_by_cpu[CPUS];
	bool complete;
};

/*
 * Each sample that is missing must lie in the interval of a loss of its CPU. A loss comes before
 * the next sample of its CPU.
 */
static struct result read_result(uint64_t count)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	uint64_t next[CPUS], begin[CPUS] = { 0 }, end[CPUS] = { 0 }, newest = 0;
	const struct memwatch_record_header *record;
	struct memwatch_reader *reader;
	struct result r = { 0 };

	for (unsigned int cpu = 0; cpu < CPUS; cpu++)
		next[cpu] = cpu;
	if (memwatch_reader_open(ctx, path, &reader))
		return r;
	while (memwatch_reader_next(reader, &record) == 1) {
		const struct memwatch_record_lost *lost = (const void *)record;
		uint64_t number = (record->time_ns - 1000) / 10;

		r.unsorted += record->time_ns < newest && !(record->flags & MEMWATCH_RECORD_F_LATE);
		if (record->time_ns > newest)
			newest = record->time_ns;
		if (record->type == MEMWATCH_RECORD_LOST) {
			r.lost += lost->count;
			r.lost_by_cpu[record->cpu] += lost->count;
			begin[record->cpu] = record->time_ns;
			end[record->cpu] = lost->end_ns;
			continue;
		}
		for (r.samples++; next[record->cpu] < number; next[record->cpu] += CPUS) {
			uint64_t missing = 1000 + next[record->cpu] * 10;

			r.unexplained += missing <= begin[record->cpu] ||
					 missing > end[record->cpu];
		}
		next[record->cpu] = number + CPUS;
	}
	memwatch_reader_get_stats(reader, &stats);
	memwatch_reader_close(reader);
	r.complete = stats.indexed && r.samples + r.lost == count;
	return r;
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void test_all_written(void)
{
	struct memwatch_recording *recording = create_queued();
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct result r;

	/* Small pieces, each of them written before the next one: the queue is never full. */
	for (uint64_t i = 0; i < 100; i++) {
		write_numbers(recording, i * 1000, (i + 1) * 1000);
		memwatch_recording_flush(recording, 1);
	}
	memwatch_recording_get_stats(recording, &stats);
	tap_eq(stats.pending, 0, "after a flush with sync nothing is pending");
	tap_eq(stats.lost, 0, "no record is dropped if the queue is never full");
	tap_eq(memwatch_recording_close(recording), 0, "the recording is closed");
	r = read_result(100000);
	tap_eq(r.samples, 100000, "all records are in the file");
	tap_ok(r.complete, "the file is complete");
}

static void test_disk_stands_still(void)
{
	struct memwatch_recording *recording = create_queued();
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	uint64_t begin, took;
	struct result r;
	int err;

	write_numbers(recording, 0, 1000);
	memwatch_recording_flush(recording, 1);
	atomic_store(&closed, true);
	begin = clock_ns();
	err = write_numbers(recording, 1000, 101000);
	took = clock_ns() - begin;
	memwatch_recording_get_stats(recording, &stats);
	tap_eq(err, 0, "records are taken while the disk stands still");
	tap_ok(took < STANDS_STILL_S * 1000000000ULL,
	       "the caller did not wait for the disk (%llu ms)",
	       (unsigned long long)took / 1000000);
	tap_ok(stats.lost > 0, "records that do not fit into the queue are counted: %llu",
	       (unsigned long long)stats.lost);
	tap_ok(stats.pending * sizeof(struct memwatch_record_sample) <= QUEUE + 2 * BLOCK,
	       "the memory of the queue is bounded");
	atomic_store(&closed, false);
	memwatch_recording_flush(recording, 1);
	err = write_numbers(recording, 101000, 102000);
	memwatch_recording_get_stats(recording, &stats);
	tap_ok(!err && !memwatch_recording_close(recording), "it goes on when the disk does");
	r = read_result(102000);
	tap_ok(r.complete, "records and losses in the file add up to what was written");
	tap_eq(r.lost, stats.lost, "the file has records of loss for all that was dropped");
	tap_eq(r.unexplained, 0, "each record that is missing is in the interval of a loss");
	tap_eq(r.unsorted, 0, "records of loss are in order or flagged late");
	tap_ok(r.lost_by_cpu[0] && r.lost_by_cpu[CPUS - 1], "each CPU has its own losses");
}

/* A record that no block of this size holds. */
static int write_large(struct memwatch_recording *recording, uint64_t number)
{
	union {
		struct memwatch_record_header h;
		uint8_t bytes[40000];
	} large = { .h = { .type = 999, .size = sizeof(large), .time_ns = 1000 + number * 10 } };

	return memwatch_recording_write(recording, &large.h);
}

/* The smallest blocks, and a record that is larger than they are now and then. */
static void test_small_blocks(void)
{
	struct memwatch_recording *recording = create_with(REPLACE, QUEUE, 4096);
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	size_t before = __sanitizer_get_current_allocated_bytes(), queued;
	int err = 0;

	atomic_store(&closed, true);
	for (uint64_t i = 0; i < 200 && !err; i++) {
		err = write_numbers(recording, i * 100, (i + 1) * 100);
		if (!err && i % 25 == 0)
			err = write_large(recording, (i + 1) * 100);
	}
	queued = __sanitizer_get_current_allocated_bytes() - before;
	memwatch_recording_get_stats(recording, &stats);
	tap_eq(err, 0, "small blocks: records are taken while the disk stands still");
	tap_ok(stats.lost > 0, "small blocks: the queue has become full");
	tap_ok(queued <= QUEUE + (64 << 10), "small blocks: the memory is that of the queue: %zu",
	       queued);
	tap_ok(stats.pending * sizeof(struct memwatch_record_sample) > QUEUE / 2,
	       "small blocks: most of the memory holds records: %llu of them",
	       (unsigned long long)stats.pending);
	atomic_store(&closed, false);
	tap_eq(memwatch_recording_close(recording), 0, "small blocks: the recording is closed");

	/* Less than the large record, which then waits alone. */
	recording = create_with(REPLACE, 1, 4096);
	for (uint64_t i = 0; i < 4; i++) {
		write_numbers(recording, i * 10, (i + 1) * 10);
		memwatch_recording_flush(recording, 1);
		write_large(recording, (i + 1) * 10);
		memwatch_recording_flush(recording, 1);
	}
	memwatch_recording_get_stats(recording, &stats);
	tap_eq(stats.lost, 0, "a record that is larger than the queue is taken if nothing waits");
	tap_eq(memwatch_recording_close(recording), 0, "a recording of large records is closed");
}

static void test_lost_at_end(void)
{
	struct memwatch_recording *recording = create_queued();
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct result r;

	atomic_store(&closed, true);
	write_numbers(recording, 0, 50000);
	memwatch_recording_get_stats(recording, &stats);
	atomic_store(&closed, false);
	tap_eq(memwatch_recording_close(recording), 0, "a recording that lost its end is closed");
	r = read_result(50000);
	tap_ok(stats.lost && r.complete, "losses at the end are in the file");
}

static void test_disk_full(void)
{
	struct memwatch_recording *recording = create_queued();
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct result r;
	uint64_t i = 0;
	int err = 0;

	write_numbers(recording, 0, 1000);
	memwatch_recording_flush(recording, 1);
	atomic_store(&full, true);
	/* The thread finds out, and the caller hears of it with a later record. */
	for (i = 1000; i < 10000000 && !err; i++) {
		err = write_numbers(recording, i, i + 1);
		if (i % 1000 == 0)
			usleep(100);
	}
	tap_eq(err, -ENOSPC, "the caller is told that the disk is full");
	tap_ok(strstr(memwatch_ctx_error(ctx), "No space left"), "the error has a text: %s",
	       memwatch_ctx_error(ctx));
	memwatch_recording_get_stats(recording, &stats);
	tap_eq(stats.records - stats.pending, 1000, "what is in the file is known");
	atomic_store(&full, false);
	memwatch_recording_flush(recording, 1);
	memwatch_recording_get_stats(recording, &stats);
	tap_eq(stats.pending, 0, "when there is room, nothing that was taken is lost");
	tap_eq(memwatch_recording_close(recording), 0, "the recording is closed");
	r = read_result(i - 1);
	tap_ok(r.complete && !r.unexplained, "the file is complete");

	recording = create_queued();
	write_numbers(recording, 0, 1000);
	atomic_store(&full, true);
	memwatch_recording_flush(recording, 1);
	tap_eq(memwatch_recording_close(recording), -ENOSPC, "close() tells that the disk is full");
	atomic_store(&full, false);
	r = read_result(1000);
	tap_ok(!r.complete && !r.samples, "the file does not look complete");
}

/* The disk takes all writes, and says afterwards that it could not keep them. */
static void check_sync_fails(const char *how, uint64_t queue_bytes)
{
	struct memwatch_recording *recording = create_with(MEMWATCH_RECORDING_OVERWRITE,
							   queue_bytes, 0);

	write_numbers(recording, 0, 1000);
	atomic_store(&broken, true);
	tap_eq(memwatch_recording_flush(recording, 1), -EIO, "%s: a flush that cannot sync fails",
	       how);
	atomic_store(&broken, false);
	/* With a queue, the failure of the thread is told once more. */
	memwatch_recording_flush(recording, 1);
	tap_eq(memwatch_recording_flush(recording, 1), 0, "%s: a later flush syncs again", how);
	write_numbers(recording, 1000, 2000);
	atomic_store(&broken, true);
	tap_eq(memwatch_recording_close(recording), -EIO, "%s: an end that cannot be synced fails",
	       how);
	tap_ok(strstr(memwatch_ctx_error(ctx), "sync: Input/output error"), "%s: it says why: %s",
	       how, memwatch_ctx_error(ctx));
	atomic_store(&broken, false);
	tap_eq(read_result(2000).samples, 2000, "%s: what was written is still read", how);
}

/* The sync that fails is that of the last block, before the file is ended. */
static void test_failure_told_once(void)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = MEMWATCH_RECORDING_OVERWRITE,
		      .sync_bytes = 1);
	struct memwatch_recording *recording;

	if (memwatch_recording_create(ctx, path, &no_info, &opts, &recording))
		exit(EXIT_FAILURE);
	write_numbers(recording, 0, 1000);
	atomic_store(&forgets, true);
	atomic_store(&broken, true);
	tap_eq(memwatch_recording_close(recording), -EIO,
	       "an end whose last block cannot be synced fails, although it is told only once");
	atomic_store(&forgets, false);
	atomic_store(&broken, false);
	tap_ok(!read_result(1000).complete, "the file does not look complete after that");
}

static void test_discard(void)
{
	struct memwatch_recording *recording = create_queued();

	write_numbers(recording, 0, 1000);
	memwatch_recording_discard(recording);
	tap_ok(access(path, F_OK), "a recording with a queue can be discarded");
}

int main(void)
{
	tap_start();
	if (!kit_open())
		return EXIT_FAILURE;
	test_all_written();
	test_disk_stands_still();
	test_small_blocks();
	test_lost_at_end();
	test_disk_full();
	check_sync_fails("with a queue", QUEUE);
	check_sync_fails("without a queue", 0);
	test_failure_told_once();
	test_discard();
	kit_close();
	return tap_done();
}
