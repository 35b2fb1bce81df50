/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A writer of perf records for the tests of access samples. It is independent of the reader: each
 * record is written number by number, in the order in which perf_event_open(2) lists them.
 */
#ifndef ACCESS_KIT_H
#define ACCESS_KIT_H

#include <linux/perf_event.h>

#include "rings.h"
#include "stale/access-ring.h"

/* A record that is being written. */
struct record {
	uint8_t bytes[65536];
	size_t len;
};

static inline void put32(struct record *record, uint32_t value)
{
	memcpy(record->bytes + record->len, &value, sizeof(value));
	record->len += sizeof(value);
}

static inline void put64(struct record *record, uint64_t value)
{
	memcpy(record->bytes + record->len, &value, sizeof(value));
	record->len += sizeof(value);
}

/* A string with a NUL, filled up to a multiple of 8 as the kernel does it. */
static inline void put_string(struct record *record, const char *text)
{
	size_t len = strlen(text) + 1;

	memset(record->bytes + record->len, 0, len + 8);
	memcpy(record->bytes + record->len, text, len);
	record->len += (len + 7) & ~7UL;
}

static inline void record_begin(struct record *record, uint32_t type, uint16_t misc)
{
	record->len = 0;
	put32(record, type);
	put32(record, misc); /* the size follows in record_end() */
}

static inline void put_trailer(struct record *record, uint32_t pid, uint32_t tid, uint64_t time_ns,
			       uint32_t cpu, uint64_t id)
{
	put32(record, pid);
	put32(record, tid);
	put64(record, time_ns);
	put32(record, cpu);
	put32(record, 0);
	put64(record, id);
}

/* Appends the record to a ring; returns false if there is no room. */
static inline bool record_end(struct record *record, struct writer *writer)
{
	uint16_t size = (uint16_t)record->len;

	memcpy(record->bytes + 6, &size, sizeof(size));
	if (writer_space(writer) < record->len)
		return false;
	writer_put(writer, record->bytes, record->len);
	return true;
}

static inline bool write_sample(struct writer *writer, uint16_t misc,
				const struct mw_access_item *item)
{
	static struct record record;

	record_begin(&record, PERF_RECORD_SAMPLE, misc);
	put64(&record, item->id);
	put64(&record, item->ip);
	put32(&record, item->pid);
	put32(&record, item->tid);
	put64(&record, item->time_ns);
	put64(&record, item->address);
	put32(&record, item->cpu);
	put32(&record, 0);
	put64(&record, item->period);
	put64(&record, item->data_src);
	return record_end(&record, writer);
}

#endif /* ACCESS_KIT_H */
