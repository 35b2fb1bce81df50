// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the reader of rings of access samples, and makes lines of what it reads. The first byte
 * chooses the size of the ring, the second one where the ring begins, and the third one how many
 * bytes are written before the ring is read. The rest is the content.
 */
#include <stdlib.h>
#include <string.h>

#include "stale/access-text.h"
#include "fuzz.h"

static void write_ring(uint8_t *ring, size_t size, uint64_t head, const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		ring[(head + i) & (size - 1)] = data[i];
}

static void read_ring(struct mw_access_reader *reader)
{
	char line[MW_ACCESS_LINE_ROOM];
	struct mw_access_item item;
	volatile size_t used = 0;

	while (mw_access_reader_next(reader, &item)) {
		used += mw_access_text_line(&item, line);
		if (item.name)
			used += strlen(item.name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t record[MW_ACCESS_RECORD_ROOM / 8];
	struct mw_access_reader reader;
	struct mw_ring ring;
	uint64_t head, tail;
	size_t room, part, bytes;
	uint8_t *content;

	if (size < 3)
		return 0;
	room = (size_t)8 << data[0] % 15;
	head = tail = data[1];
	part = (size_t)data[2] * 8 + 8;
	content = calloc(1, room);
	if (!content || mw_ring_init(&ring, &head, &tail, content, room))
		abort();
	mw_access_reader_init(&reader, &ring, record);
	for (size_t at = 3; at < size; at += bytes) {
		bytes = part < size - at ? part : size - at;
		write_ring(content, room, head, data + at, bytes);
		head += bytes;
		read_ring(&reader);
		if (tail != head)
			abort();
	}
	free(content);
	return 0;
}
