// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the merge with three rings that are written while they are read. The input is a list
 * of steps: one byte for the ring and the action, one byte for a length, then that many bytes
 * for the ring. The merge must not crash or loop forever, and may deliver valid records only,
 * sorted except for those that are flagged late.
 */
#include <stdlib.h>
#include <string.h>

#include "../tests/rings.h"
#include "fuzz.h"
#include "merge/merge.h"

#define RINGS 3

static void read_merge(struct mw_merge *merge, uint64_t now_ns, uint64_t *max_ns)
{
	const struct memwatch_record_header *header;

	do {
		while (mw_merge_next(merge, &header)) {
			if (!mw_record_valid(header, header->size))
				abort();
			if (!(header->flags & MEMWATCH_RECORD_F_LATE) !=
			    (header->time_ns >= *max_ns))
				abort();
			if (header->time_ns > *max_ns)
				*max_ns = header->time_ns;
		}
	} while (mw_merge_round(merge, now_ns) > 0);
}

/* Writes a valid batch of up to four records made from the input. */
static void put_records(struct writer *writer, const uint8_t *data, size_t size)
{
	uint8_t records[4 * 256] = { 0 };
	uint32_t count = size ? 1 + data[0] / 64 : 1;
	uint64_t time_ns = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct memwatch_record_header *header = (void *)(records + at);
		size_t share = size / count;

		memcpy(header, data + i * share, share);
		if (!i)
			time_ns = header->time_ns & 0xffff;
		header->time_ns = time_ns;
		header->type = header->type % 12;
		header->flags = 0;
		header->size = (uint16_t)mw_record_size_min(header->type);
		at += header->size;
	}
	writer_batch(writer, count, records, (uint16_t)at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mw_merge_opts opts = { .grace_ns = 100, .silent_ns = 1000, .quantum = 4 };
	struct writer writers[RINGS];
	struct mw_merge *merge;
	uint64_t now_ns = 1000, max_ns = 0;

	if (mw_merge_new(&opts, &merge))
		return 0;
	for (unsigned int i = 0; i < RINGS; i++) {
		writer_init(&writers[i], 1024);
		mw_merge_ring_add(merge, i, &writers[i].ring);
	}
	while (size >= 2) {
		struct writer *writer = &writers[data[0] % RINGS];
		unsigned int what = data[0] / RINGS % 8;
		size_t count = data[1] < size - 2 ? data[1] : size - 2;

		data += 2;
		size -= 2;
		if (what == 0)
			read_merge(merge, now_ns, &max_ns);
		else if (what == 1)
			now_ns += count * 100;
		else if (what < 5)
			put_records(writer, data, count);
		else if (what == 5)
			mw_merge_ring_detach(merge, (unsigned int)count % RINGS);
		else if (count <= writer_space(writer))
			writer_put(writer, data, count & ~(size_t)(what == 6 ? 7 : 0));
		data += what < 2 ? 0 : count;
		size -= what < 2 ? 0 : count;
	}
	mw_merge_finish(merge, now_ns);
	read_merge(merge, now_ns, &max_ns);
	for (unsigned int i = 0; i < RINGS; i++)
		writer_free(&writers[i]);
	mw_merge_free(merge);
	return 0;
}
