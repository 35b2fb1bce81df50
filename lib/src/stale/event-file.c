// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of traces.
 */
#include "stale/event-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/context.h"
#include "base/timemath.h"

#define CHUNK_BYTES_LEAST 256U
#define CHUNK_BYTES_MOST  (1U << 20)

bool mw_event_file_is(int fd)
{
	char magic[8];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, MW_TRACE_MAGIC, sizeof(magic));
}

int mw_event_file_header(struct memwatch_ctx *ctx, int fd, struct mw_trace_header *h)
{
	ssize_t n = pread(fd, h, sizeof(*h), 0);

	if (n < 0)
		return mw_fail(ctx, -errno, "cannot be read: %s", strerror(errno));
	if (n != sizeof(*h))
		return mw_fail(ctx, -EBADMSG, "the header is cut off");
	if (h->version != MW_TRACE_VERSION)
		return mw_fail(ctx, -EPROTO, "its format has version %u", h->version);
	if (h->header_bytes > MW_TRACE_CHUNKS_OFFSET)
		return mw_fail(ctx, -EBADMSG, "the size of the header is impossible");
	/* A shorter header is one of an older version; what follows it is absent. */
	if (h->header_bytes < sizeof(*h))
		memset((char *)h + h->header_bytes, 0, sizeof(*h) - h->header_bytes);
	if (h->chunk_bytes < CHUNK_BYTES_LEAST || h->chunk_bytes > CHUNK_BYTES_MOST)
		return mw_fail(ctx, -EBADMSG, "the size of a chunk is impossible");
	return 0;
}

static int read_header(struct mw_event_file *file, struct memwatch_ctx *ctx)
{
	int err = mw_event_file_header(ctx, file->source.fd, &file->header);

	if (!err)
		file->source.chunk_bytes = file->header.chunk_bytes;
	return err;
}

static void use_moment(const struct mw_trace_moment *moment, struct mw_trace_moment *last)
{
	if (moment->units > last->units && moment->ns > last->ns)
		*last = *moment;
}

/* A straight line through the first moment and the last one. */
static void measure_units(struct mw_event_file *file)
{
	const struct mw_trace_moment *last = &file->last;
	uint64_t units = last->units - file->first.units, ns = last->ns - file->first.ns;
	double horizon;

	file->ns_of_unit = last->units > file->first.units && last->ns > file->first.ns
				   ? (double)ns / (double)units
				   : 1;
	horizon = (double)file->first.units +
		  ((double)file->horizon_ns - (double)file->first.ns) / file->ns_of_unit;
	if (file->header.clock == MW_TRACE_CLOCK_MONOTONIC)
		file->horizon = file->horizon_ns;
	else
		file->horizon = horizon <= 0		       ? 0
				: horizon >= (double)INT64_MAX ? UINT64_MAX
							       : (uint64_t)horizon;
}

/* Chunks that will be looked at again. */
static void forget_chunks(struct mw_event_file *file)
{
	uint64_t end = MW_TRACE_CHUNKS_OFFSET + file->scanned * file->source.chunk_bytes, left = 0;

	for (uint64_t i = 0; i < file->nr_chunks; i++)
		if (file->chunks[i].offset < end)
			file->chunks[left++] = file->chunks[i];
	file->nr_chunks = left;
}

/* Chunks that are not ready: the program may have added them since. */
static int find_chunks(struct mw_event_file *file, struct memwatch_ctx *ctx, uint64_t size)
{
	uint64_t chunk_bytes = file->source.chunk_bytes;
	bool all_ready = true;
	struct mw_trace_chunk head;

	file->cut_off = false;
	for (uint64_t n = file->scanned; n < file->header.chunks; n++) {
		uint64_t offset = MW_TRACE_CHUNKS_OFFSET + n * chunk_bytes;
		struct mw_event_chunk *chunk;

		if (offset >= size || pread(file->source.fd, &head, sizeof(head), (off_t)offset) !=
					      (ssize_t)sizeof(head)) {
			file->cut_off = true;
			break;
		}
		all_ready &= head.ready == MW_TRACE_CHUNK_READY;
		file->scanned += all_ready;
		if (head.ready != MW_TRACE_CHUNK_READY)
			continue;
		if (mw_array_reserve(file->chunks, file->room, file->nr_chunks + 1))
			return mw_fail_memory(ctx, "reading the trace");
		chunk = &file->chunks[file->nr_chunks++];
		*chunk = (struct mw_event_chunk){ head.stream, head.sequence, head.base, offset };
		use_moment(&head.moment, &file->last);
	}
	return 0;
}

static int compare_chunks(const void *a, const void *b)
{
	const struct mw_event_chunk *x = a, *y = b;

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Moves stream @i of the heap down to its place. Streams of one key keep an order. */
static void sift_down(struct mw_event_file *file, uint32_t i)
{
	const struct mw_event_stream *streams = file->streams;
	uint32_t moved = file->heap[i];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < file->live &&
		    streams[file->heap[child + 1]].key < streams[file->heap[child]].key)
			child++;
		if (child >= file->live || streams[file->heap[child]].key >= streams[moved].key)
			break;
		file->heap[i] = file->heap[child];
		i = child;
	}
	file->heap[i] = moved;
}

/* The stream with this number of before, whose chunks begin with those at @chunks now. */
static int resume_stream(struct mw_event_file *file, struct mw_event_stream *before,
			 uint32_t nr_before, uint32_t *at, const struct mw_event_chunk *chunks,
			 uint32_t count)
{
	struct mw_event_stream *stream = &file->streams[file->nr_streams++];

	mw_event_stream_init(stream, chunks, count);
	while (*at < nr_before && before[*at].number < stream->number)
		mw_event_stream_uninit(&before[(*at)++]);
	if (*at == nr_before || before[*at].number != stream->number)
		return 0;
	*stream = before[(*at)++];
	return mw_event_stream_resume(stream, &file->source, chunks, count);
}

/* Makes the streams of the chunks; those of before go on. */
static int make_streams(struct mw_event_file *file)
{
	struct mw_event_stream *before = file->streams;
	uint32_t nr_before = file->nr_streams, at = 0;
	uint64_t first = 0, count = 0;
	int err = 0;

	if (file->nr_chunks)
		qsort(file->chunks, file->nr_chunks, sizeof(*file->chunks), compare_chunks);
	for (uint64_t i = 0; i < file->nr_chunks; i++)
		count += !i || file->chunks[i].stream != file->chunks[i - 1].stream;
	free(file->heap);
	file->streams = calloc(count + 1, sizeof(*file->streams));
	file->heap = calloc(count + 1, sizeof(*file->heap));
	file->nr_streams = file->live = 0;
	if (!file->streams || !file->heap)
		err = -ENOMEM;
	for (uint64_t i = 1; !err && i <= file->nr_chunks; i++) {
		if (i < file->nr_chunks && file->chunks[i].stream == file->chunks[first].stream)
			continue;
		err = resume_stream(file, before, nr_before, &at, file->chunks + first,
				    (uint32_t)(i - first));
		if (!mw_event_stream_has_ended(&file->streams[file->nr_streams - 1]))
			file->heap[file->live++] = file->nr_streams - 1;
		first = i;
	}
	while (at < nr_before)
		mw_event_stream_uninit(&before[at++]);
	free(before);
	for (uint32_t i = file->live / 2; i-- > 0;)
		sift_down(file, i);
	return err;
}

static int read_chunks(struct mw_event_file *file, struct memwatch_ctx *ctx, uint64_t horizon_ns)
{
	struct stat st;
	int err;

	if (fstat(file->source.fd, &st))
		return mw_fail(ctx, -errno, "cannot be read: %s", strerror(errno));
	use_moment(&file->header.second, &file->last);
	use_moment(&file->header.last, &file->last);
	forget_chunks(file);
	err = find_chunks(file, ctx, (uint64_t)st.st_size);
	if (err)
		return err;
	file->horizon_ns = horizon_ns;
	measure_units(file);
	err = make_streams(file);
	if (err == -ENOMEM)
		return mw_fail_memory(ctx, "reading the trace");
	return err ? mw_fail(ctx, err, "cannot be read: %s", strerror(-err)) : 0;
}

int mw_event_file_init(struct mw_event_file *file, struct memwatch_ctx *ctx, int fd)
{
	int err;

	*file = (struct mw_event_file){ .source = { .fd = fd } };
	err = read_header(file, ctx);
	if (err)
		return err;
	file->first = file->last = file->header.first;
	return read_chunks(file, ctx, UINT64_MAX);
}

int mw_event_file_resume(struct mw_event_file *file, struct memwatch_ctx *ctx, uint64_t horizon_ns)
{
	int err = read_header(file, ctx);

	return err ? err : read_chunks(file, ctx, horizon_ns);
}

void mw_event_file_uninit(struct mw_event_file *file)
{
	for (uint32_t i = 0; i < file->nr_streams; i++)
		mw_event_stream_uninit(&file->streams[i]);
	free(file->streams);
	free(file->heap);
	free(file->chunks);
	*file = (struct mw_event_file){ 0 };
}

static uint64_t to_ns(const struct mw_event_file *file, uint64_t units)
{
	double ns = (double)units;

	if (file->header.clock == MW_TRACE_CLOCK_MONOTONIC)
		return units;
	ns = (double)file->first.ns +
	     ((double)units - (double)file->first.units) * file->ns_of_unit;
	return ns <= 0 ? 0 : ns >= (double)INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

/* The lowest key of the other streams. */
static uint64_t second_key(const struct mw_event_file *file)
{
	uint64_t key = UINT64_MAX - 1;

	for (uint32_t i = 1; i < 3 && i < file->live; i++)
		if (file->streams[file->heap[i]].key < key)
			key = file->streams[file->heap[i]].key;
	return key;
}

int mw_event_file_next(struct mw_event_file *file, struct mw_event *events, uint32_t max)
{
	uint32_t n = 0;

	while (file->live && n < max && file->streams[file->heap[0]].key <= file->horizon) {
		struct mw_event_stream *stream = &file->streams[file->heap[0]];
		uint64_t limit = mw_min_u64(second_key(file), file->horizon);
		uint32_t chunk = stream->next;
		int rc = mw_event_stream_take(stream, &file->source, limit, events + n, max - n);

		if (rc < 0)
			return rc;
		n += (uint32_t)rc;
		file->done += stream->next - chunk;
		if (mw_event_stream_has_ended(stream))
			file->heap[0] = file->heap[--file->live];
		if (file->live)
			sift_down(file, 0);
	}
	for (uint32_t i = 0; i < n; i++)
		events[i].time_ns = to_ns(file, events[i].time_ns);
	return (int)n;
}
