// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The file backend: replays a recording. It delivers the records unchanged, except that a
 * text without an end gets one, and counts them.
 */
#include <memwatch/stream.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/backend.h"
#include "base/array.h"
#include "base/context.h"
#include "recording/delivery.h"
#include "recording/reader.h"
#include "base/timemath.h"

/**
 * struct file_stream - a recording that is replayed
 * @stream: common part
 * @reader: reader of the file
 * @stats: sums over all CPUs
 * @cpu: statistics of each CPU that was seen, in order of appearance
 * @index: by number of the CPU, its index in @cpu plus 1; 0: not seen yet
 * @index_size: capacity of @index
 * @cpu_size: capacity of @cpu
 */
struct file_stream {
	struct memwatch_stream stream;
	struct memwatch_reader *reader;
	struct memwatch_stream_stats stats;
	struct memwatch_stream_cpu_stats *cpu;
	uint32_t *index;
	uint32_t index_size;
	uint32_t cpu_size;
};

static struct file_stream *file_stream(struct memwatch_stream *stream)
{
	return (struct file_stream *)stream; /* its first member */
}

/* Grows the index up to the number @cpu, and the statistics by one CPU. */
static int file_reserve_cpu(struct file_stream *file, uint32_t cpu)
{
	uint32_t before = file->index_size;

	if (mw_array_reserve(file->index, file->index_size, cpu + 1))
		return -ENOMEM;
	memset(file->index + before, 0, (file->index_size - before) * sizeof(*file->index));
	return mw_array_reserve(file->cpu, file->cpu_size, file->stats.rings + 1);
}

/* Finds or adds the statistics of a CPU; NULL if memory ran out. */
static struct memwatch_stream_cpu_stats *file_find_cpu(struct file_stream *file, uint32_t cpu)
{
	struct memwatch_stream_cpu_stats *stats;

	if (cpu < file->index_size && file->index[cpu])
		return &file->cpu[file->index[cpu] - 1];
	if (file_reserve_cpu(file, cpu))
		return NULL;
	stats = &file->cpu[file->stats.rings++];
	memset(stats, 0, sizeof(*stats));
	stats->cpu = cpu;
	file->index[cpu] = file->stats.rings;
	return stats;
}

static void count_lost(struct file_stream *file, struct memwatch_stream_cpu_stats *cpu,
		       const struct memwatch_record_lost *record)
{
	file->stats.lost = mw_add_sat(file->stats.lost, record->count);
	cpu->lost = mw_add_sat(cpu->lost, record->count);
}

static void count_replayed(struct file_stream *file, struct memwatch_stream_cpu_stats *cpu,
			   const struct memwatch_record_header *record)
{
	bool late = record->flags & MEMWATCH_RECORD_F_LATE;

	if (record->type == MEMWATCH_RECORD_CPU_STATE)
		cpu->state = ((const struct memwatch_record_cpu *)(const void *)record)->state;
	if (record->type == MEMWATCH_RECORD_TICK)
		cpu->produced =
			((const struct memwatch_record_tick *)(const void *)record)->produced;
	file->stats.delivered++;
	file->stats.late += late;
	file->stats.forced += !!(record->flags & MEMWATCH_RECORD_F_FORCED);
	cpu->delivered++;
	cpu->late += late;
	cpu->newest_ns = mw_max_u64(cpu->newest_ns, record->time_ns);
	if (!late)
		file->stats.watermark_ns = record->time_ns;
}

static int file_next(struct memwatch_stream *stream, const struct memwatch_record_header **ret)
{
	struct file_stream *file = file_stream(stream);
	struct memwatch_record_header *record;
	struct memwatch_stream_cpu_stats *cpu;
	int found;

	if (stream->stopped)
		return 0;
	found = mw_reader_next(file->reader, &record);
	if (found <= 0)
		return found;
	cpu = file_find_cpu(file, record->cpu);
	if (!cpu)
		return mw_fail_memory(stream->ctx, "replay");
	mw_delivery_end_text(record);
	if (record->type == MEMWATCH_RECORD_LOST)
		count_lost(file, cpu, (const struct memwatch_record_lost *)(const void *)record);
	else
		count_replayed(file, cpu, record);
	*ret = record;
	return 1;
}

static int file_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret)
{
	struct file_stream *file = file_stream(stream);
	MEMWATCH_OPTS(memwatch_reader_stats, in_file);
	size_t sz = ret->sz;
	int err = memwatch_reader_get_stats(file->reader, &in_file);

	if (err)
		return err;
	*ret = file->stats;
	ret->sz = sz;
	ret->produced = ret->delivered;
	ret->malformed = in_file.damaged;
	ret->truncated = in_file.truncated || in_file.damaged;
	ret->memory_bytes = sizeof(*file) + mw_reader_memory(file->reader) +
			    file->cpu_size * sizeof(*file->cpu) +
			    file->index_size * sizeof(*file->index);
	return 0;
}

static int file_cpu_stats(struct memwatch_stream *stream, unsigned int index,
			  struct memwatch_stream_cpu_stats *ret)
{
	struct file_stream *file = file_stream(stream);
	size_t sz = ret->sz;

	if (index >= file->stats.rings)
		return 0;
	*ret = file->cpu[index];
	ret->sz = sz;
	return 1;
}

static void file_close(struct memwatch_stream *stream)
{
	struct file_stream *file = file_stream(stream);

	memwatch_reader_close(file->reader);
	free(file->cpu);
	free(file->index);
	free(file);
}

static const struct mw_backend_ops file_ops = {
	.name = "file",
	.next = file_next,
	.stats = file_stats,
	.cpu_stats = file_cpu_stats,
	.close = file_close,
};

int memwatch_stream_open_file(struct memwatch_ctx *ctx, const char *path,
			      struct memwatch_stream **ret)
{
	struct file_stream *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return mw_fail_memory(ctx, "replay");
	err = memwatch_reader_open(ctx, path, &file->reader);
	if (err) {
		free(file);
		return err;
	}
	file->stream.info = *memwatch_reader_get_info(file->reader);
	mw_stream_init(&file->stream, ctx, &file_ops);
	*ret = &file->stream;
	return 0;
}
