/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the tests of recordings share: making records, writing and reading a file, and
 * changing its bytes.
 */
#ifndef RECORDING_KIT_H
#define RECORDING_KIT_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"
#include "base/record.h"
#include "recording/columns.h"
#include "recording/format.h"

#define NO_SYNC MEMWATCH_RECORDING_NO_SYNC
#define REPLACE (MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE)

static struct memwatch_ctx *ctx;
static char directory[256];
static char path[sizeof(directory) + 16];
static struct prng prng = { 1 };

static inline uint64_t dice(uint64_t sides)
{
	return prng_below(&prng, sides);
}

static MEMWATCH_OPTS(memwatch_stream_info, no_info);

/* ------------------------------------------------- records to be written */

/* Records that follow each other directly, as in a block. */
struct batch {
	uint8_t *bytes;
	size_t len, room;
	unsigned int count;
};

static inline void *batch_add(struct batch *batch, uint16_t type, uint16_t size, uint64_t time_ns,
			      uint16_t cpu)
{
	struct memwatch_record_header *header;

	if (batch->room - batch->len < size) {
		batch->room = batch->room * 2 + 65536;
		batch->bytes = realloc(batch->bytes, batch->room);
		if (!batch->bytes)
			abort();
	}
	header = (void *)(batch->bytes + batch->len);
	memset(header, 0, size);
	header->type = type;
	header->size = size;
	header->time_ns = time_ns;
	header->cpu = cpu;
	batch->len += size;
	batch->count++;
	return header;
}

static inline const struct memwatch_record_header *record_at(const struct batch *batch, size_t at)
{
	return (const void *)(batch->bytes + at);
}

static inline void batch_free(struct batch *batch)
{
	free(batch->bytes);
	memset(batch, 0, sizeof(*batch));
}

static inline uint16_t random_type(void)
{
	static const uint16_t types[] = { 1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 64, 65 };

	if (!dice(30))
		return (uint16_t)dice(65536);
	return types[dice(sizeof(types) / sizeof(*types))];
}

static inline uint16_t random_size(uint16_t type)
{
	uint16_t size = (uint16_t)mw_record_size_min(type);

	if (!dice(20) || size == 16)
		size += 8 * dice(6);
	if (!dice(2000))
		size = 65528 - 8 * dice(4000);
	return size;
}

/* Kind 0: any bytes; 1: small values; 2: mostly 0, some bytes all ones; 3: all 0. */
static inline void random_body(struct memwatch_record_header *record, unsigned int kind)
{
	uint8_t *body = (uint8_t *)(record + 1);
	size_t len = record->size - sizeof(*record);

	for (size_t i = 0; i < len; i++) {
		if (kind == 0)
			body[i] = (uint8_t)dice(256);
		else if (kind == 1 && i % 8 < 2)
			body[i] = (uint8_t)dice(16);
		else if (kind == 2 && !dice(40))
			body[i] = 0xff;
	}
}

static inline void random_batch(struct batch *batch, unsigned int count)
{
	uint64_t time_ns = dice(4) ? dice(1ULL << 40) : UINT64_MAX - dice(1000);

	for (unsigned int i = 0; i < count; i++) {
		uint16_t type = random_type();
		struct memwatch_record_header *record;

		time_ns = dice(50) ? time_ns + dice(1000) : dice(UINT64_MAX);
		if (dice(2))
			record = batch_add(batch, type, random_size(type), time_ns, dice(4));
		else
			record = batch_add(batch, type, random_size(type), time_ns, dice(65536));
		record->flags = dice(10) ? 0 : dice(65536);
		random_body(record, dice(4));
	}
}

/* A sample whose time and values follow from @number. */
static inline void numbered(struct memwatch_record_sample *sample, uint64_t number)
{
	memset(sample, 0, sizeof(*sample));
	sample->h.type = MEMWATCH_RECORD_SAMPLE;
	sample->h.size = sizeof(*sample);
	sample->h.cpu = number % 7;
	sample->h.time_ns = 1000 + number * 10;
	sample->rmid = number % 13;
	sample->begin_ns = number;
	sample->counter[0] = number * 0x9e3779b97f4a7c15ULL;
}

/* ----------------------------------------------------- writing and reading */

static inline struct memwatch_recording *create_recording(uint32_t flags, uint32_t block_bytes,
							  uint64_t block_ns)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = flags, .block_bytes = block_bytes,
		      .block_ns = block_ns);
	struct memwatch_recording *recording = NULL;

	if (memwatch_recording_create(ctx, path, &no_info, &opts, &recording)) {
		tap_note("create: %s", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	return recording;
}

static inline bool write_batch(const struct batch *batch, uint32_t block_bytes)
{
	struct memwatch_recording *recording = create_recording(REPLACE, block_bytes, UINT64_MAX);
	bool good = true;

	for (size_t at = 0; at < batch->len; at += record_at(batch, at)->size)
		good &= !memwatch_recording_write(recording, record_at(batch, at));
	return !memwatch_recording_close(recording) && good;
}

/* Writes numbered records, @each of them in a block. */
static inline void write_numbered(unsigned int blocks, unsigned int each)
{
	struct memwatch_recording *recording = create_recording(REPLACE, 0, UINT64_MAX);
	struct memwatch_record_sample sample;

	for (uint64_t i = 0; i < (uint64_t)blocks * each; i++) {
		numbered(&sample, i);
		memwatch_recording_write(recording, &sample.h);
		if (i % each == each - 1)
			memwatch_recording_flush(recording, 0);
	}
	memwatch_recording_close(recording);
}

struct found {
	int open, end;
	uint64_t count, blocks_lost, wrong;
	struct memwatch_reader_stats stats;
};

/* Reads numbered records, @each of them in a block; only whole blocks may be missing. */
static inline struct found read_numbered(unsigned int each)
{
	struct found found = { .stats.sz = sizeof(found.stats) };
	const struct memwatch_record_header *record;
	struct memwatch_record_sample sample;
	struct memwatch_reader *reader;
	uint64_t number = 0;

	found.open = memwatch_reader_open(ctx, path, &reader);
	if (found.open)
		return found;
	while ((found.end = memwatch_reader_next(reader, &record)) == 1) {
		uint64_t is = (record->time_ns - 1000) / 10;

		if (is != number) {
			found.wrong += is < number || (is - number) % each;
			found.blocks_lost += (is - number) / each;
			number = is;
		}
		numbered(&sample, number++);
		found.wrong += record->size != sizeof(sample) ||
			       memcmp(record, &sample, sizeof(sample));
		found.count++;
	}
	memwatch_reader_get_stats(reader, &found.stats);
	memwatch_reader_close(reader);
	return found;
}

static inline size_t file_load(uint8_t **bytes)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		abort();
	*bytes = malloc((size_t)st.st_size);
	if (!*bytes || read(fd, *bytes, (size_t)st.st_size) != st.st_size)
		abort();
	close(fd);
	return (size_t)st.st_size;
}

static inline void file_store(const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
}

/*
 * Makes a context and an empty folder. The folder is in memory if possible, because the tests
 * write some thousand files.
 */
static inline bool kit_open(void)
{
	const char *base = access("/dev/shm", W_OK) ? getenv("TMPDIR") : "/dev/shm";

	snprintf(directory, sizeof(directory), "%s/memwatch-recording-XXXXXX", base ? base : ".");
	if (memwatch_ctx_new(NULL, &ctx) || !mkdtemp(directory))
		return false;
	snprintf(path, sizeof(path), "%s/recording", directory);
	return true;
}

static inline void kit_close(void)
{
	unlink(path);
	rmdir(directory);
	memwatch_ctx_unref(ctx);
}

#endif /* RECORDING_KIT_H */
