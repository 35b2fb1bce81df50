// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The replay backend: a recording as a stream. It counts what goes by and
 * changes nothing.
 */
#include <memwatch/stream.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/backend.h"
#include "base/context.h"
#include "recording/reader.h"
#include "base/timemath.h"

/**
 * struct file_stream - a recording being replayed
 * @stream: common part
 * @reader: of the file
 * @stats: of all CPUs
 * @cpu: statistics, of each CPU that was seen, in order of appearance
 * @index: by CPU: its place in @cpu + 1, 0 if it was not seen
 * @index_size: room in @index
 * @cpu_size: room in @cpu
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

/* Room for one CPU more than there is, and for the number @cpu in the index. */
static int cpu_reserve(struct file_stream *file, uint32_t cpu)
{
	struct memwatch_stream_cpu_stats *stats;
	uint32_t size, *index;

	if (cpu >= file->index_size) {
		size = (cpu | 63) + 1;
		index = realloc(file->index, size * sizeof(*index));
		if (!index)
			return -ENOMEM;
		memset(index + file->index_size, 0, (size - file->index_size) * sizeof(*index));
		file->index = index;
		file->index_size = size;
	}
	if (file->stats.rings == file->cpu_size) {
		size = file->cpu_size ? file->cpu_size * 2 : 16;
		stats = realloc(file->cpu, size * sizeof(*stats));
		if (!stats)
			return -ENOMEM;
		file->cpu = stats;
		file->cpu_size = size;
	}
	return 0;
}

/* Statistics of a CPU; NULL if there is no memory for them. */
static struct memwatch_stream_cpu_stats *cpu_of(struct file_stream *file, uint32_t cpu)
{
	struct memwatch_stream_cpu_stats *stats;

	if (cpu < file->index_size && file->index[cpu])
		return &file->cpu[file->index[cpu] - 1];
	if (cpu_reserve(file, cpu))
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

static void count_record(struct file_stream *file, struct memwatch_stream_cpu_stats *cpu,
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
	const struct memwatch_record_header *record;
	struct memwatch_stream_cpu_stats *cpu;
	int found;

	if (stream->stopped)
		return 0;
	found = memwatch_reader_next(file->reader, &record);
	if (found <= 0)
		return found;
	cpu = cpu_of(file, record->cpu);
	if (!cpu)
		return mw_fail(stream->ctx, -ENOMEM, "replay: no memory");
	if (record->type == MEMWATCH_RECORD_LOST)
		count_lost(file, cpu, (const struct memwatch_record_lost *)(const void *)record);
	else
		count_record(file, cpu, record);
	*ret = record;
	return 1;
}

static int file_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret)
{
	struct file_stream *file = file_stream(stream);
	MEMWATCH_OPTS(memwatch_reader_stats, in_file);
	size_t sz = ret->sz;
	int err = memwatch_reader_stats(file->reader, &in_file);

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
		return mw_fail(ctx, -ENOMEM, "replay: no memory");
	err = memwatch_reader_open(ctx, path, &file->reader);
	if (err) {
		free(file);
		return err;
	}
	file->stream.info = *memwatch_reader_info(file->reader);
	mw_stream_init(&file->stream, ctx, &file_ops);
	*ret = &file->stream;
	return 0;
}
