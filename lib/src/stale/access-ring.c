// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of a ring, see access-ring.h. The layouts are those of <linux/perf_event.h>, enum
 * perf_event_type; perf_event_open(2) describes them too.
 */
#include "stale/access-ring.h"

#include <stddef.h>

#include "base/timemath.h"

/* Behind the body of each record that is no sample: the members of the sample type, in this order.
 */
struct access_trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

struct access_sample {
	struct perf_event_header header;
	uint64_t id;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t address;
	uint32_t cpu, reserved;
	uint64_t period;
	uint64_t data_src;
};

struct access_task { /* FORK, EXIT */
	struct perf_event_header header;
	uint32_t pid, ppid;
	uint32_t tid, ptid;
	uint64_t time_ns;
};

struct access_comm {
	struct perf_event_header header;
	uint32_t pid, tid;
	char name[];
};

struct access_map { /* MMAP2 */
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, length, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char name[];
};

struct access_lost {
	struct perf_event_header header;
	uint64_t id;
	uint64_t lost;
};

struct access_lost_samples {
	struct perf_event_header header;
	uint64_t lost;
};

struct access_throttle {
	struct perf_event_header header;
	uint64_t time_ns;
	uint64_t id;
	uint64_t stream_id;
};

void mw_access_reader_init(struct mw_access_reader *reader, const struct mw_ring *ring,
			   void *record)
{
	uint64_t tail = mw_ring_tail(ring);

	*reader = (struct mw_access_reader){
		.ring = *ring, .at = tail, .limit = tail, .record = record
	};
}

/* ------------------------------------------------------------- records */

/* Addresses of x86-64 and arm64: the kernel has the upper half. */
static bool is_kernel_address(uint64_t address)
{
	return address >> 63;
}

/* Returns whether the sample is an item. */
static bool reader_take_sample(struct mw_access_reader *reader, struct mw_access_item *item)
{
	const struct access_sample *sample = reader->record;
	uint32_t mode = sample->header.misc & PERF_RECORD_MISC_CPUMODE_MASK;

	if (sample->header.size != sizeof(*sample)) {
		reader->counts.malformed++;
		return false;
	}
	if (!sample->address) {
		reader->counts.no_address++;
		return false;
	}
	if (is_kernel_address(sample->address) || mode == PERF_RECORD_MISC_GUEST_KERNEL ||
	    mode == PERF_RECORD_MISC_GUEST_USER) {
		reader->counts.kernel_address++;
		return false;
	}
	reader->counts.samples++;
	*item = (struct mw_access_item){
		.kind = MW_ACCESS_SAMPLE,
		.cpu = sample->cpu,
		.pid = sample->pid,
		.tid = sample->tid,
		.time_ns = sample->time_ns,
		.id = sample->id,
		.address = sample->address,
		.ip = sample->ip,
		.period = sample->period,
		.data_src = sample->data_src,
	};
	return true;
}

static void item_take_task(struct mw_access_item *item, const struct access_task *task)
{
	item->kind = task->header.type == PERF_RECORD_FORK ? MW_ACCESS_FORK : MW_ACCESS_EXIT;
	item->pid = task->pid;
	item->tid = task->tid;
	item->ppid = task->ppid;
	item->ptid = task->ptid;
	item->time_ns = task->time_ns;
}

static void item_take_comm(struct mw_access_item *item, const struct access_comm *comm)
{
	bool exec = comm->header.misc & PERF_RECORD_MISC_COMM_EXEC;

	item->kind = exec ? MW_ACCESS_EXEC : MW_ACCESS_COMM;
	item->pid = comm->pid;
	item->tid = comm->tid;
	item->name = comm->name;
}

static void item_take_map(struct mw_access_item *item, const struct access_map *map)
{
	item->kind = MW_ACCESS_MAP;
	item->pid = map->pid;
	item->tid = map->tid;
	item->start = map->start;
	item->length = map->length;
	item->offset = map->offset;
	item->prot = map->prot;
	item->name = map->name;
	/* otherwise these bytes hold a build id */
	if (map->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return;
	item->major = map->major;
	item->minor = map->minor;
	item->inode = map->inode;
}

/* Where the body of a record of @type ends, and whether a name follows; 0: not such a record. */
static size_t body_size(uint32_t type, bool *named)
{
	*named = type == PERF_RECORD_COMM || type == PERF_RECORD_MMAP2;
	switch (type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return sizeof(struct access_task);
	case PERF_RECORD_COMM:
		return offsetof(struct access_comm, name);
	case PERF_RECORD_MMAP2:
		return offsetof(struct access_map, name);
	case PERF_RECORD_LOST:
		return sizeof(struct access_lost);
	case PERF_RECORD_LOST_SAMPLES:
		return sizeof(struct access_lost_samples);
	case PERF_RECORD_THROTTLE:
		return sizeof(struct access_throttle);
	default:
		return 0;
	}
}

/* Fills in what is special for the kind of the record. */
static void reader_take_body(struct mw_access_reader *reader, struct mw_access_item *item)
{
	const struct perf_event_header *header = reader->record;

	switch (header->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		item_take_task(item, reader->record);
		break;
	case PERF_RECORD_COMM:
		item_take_comm(item, reader->record);
		break;
	case PERF_RECORD_MMAP2:
		item_take_map(item, reader->record);
		break;
	case PERF_RECORD_LOST:
		item->kind = MW_ACCESS_LOST;
		item->lost = ((const struct access_lost *)reader->record)->lost;
		reader->counts.lost = mw_add_sat(reader->counts.lost, item->lost);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		item->kind = MW_ACCESS_LOST;
		item->lost = ((const struct access_lost_samples *)reader->record)->lost;
		reader->counts.lost_in_hardware = mw_add_sat(reader->counts.lost_in_hardware,
							     item->lost);
		break;
	case PERF_RECORD_THROTTLE:
		item->kind = MW_ACCESS_THROTTLED;
		item->id = ((const struct access_throttle *)reader->record)->id;
		reader->counts.throttled++;
		break;
	}
}

/* Returns whether the record is an item. */
static bool reader_take_other(struct mw_access_reader *reader, struct mw_access_item *item)
{
	const struct perf_event_header *header = reader->record;
	const struct access_trailer *trailer;
	bool named;
	size_t body = body_size(header->type, &named);

	if (!body) {
		reader->counts.others++;
		return false;
	}
	if (header->size < body + sizeof(*trailer)) {
		reader->counts.malformed++;
		return false;
	}
	trailer = (const void *)((const char *)reader->record + header->size - sizeof(*trailer));
	/* the name ends before the trailer */
	if (named && !memchr((const char *)reader->record + body, 0,
			     header->size - sizeof(*trailer) - body)) {
		reader->counts.malformed++;
		return false;
	}
	*item = (struct mw_access_item){
		.cpu = trailer->cpu,
		.pid = trailer->pid,
		.tid = trailer->tid,
		.time_ns = trailer->time_ns,
		.id = trailer->id,
	};
	reader_take_body(reader, item);
	return true;
}

/* ---------------------------------------------------------------- ring */

/* Copies the next record to the scratch memory. Returns false if it cannot be found. */
static bool reader_copy_record(struct mw_access_reader *reader)
{
	struct perf_event_header header;
	uint64_t available = reader->limit - reader->at;

	if (available > reader->ring.size || available < sizeof(header) || reader->at % 8)
		return false;
	/* headers are aligned, so they do not wrap */
	mw_ring_copy(&reader->ring, reader->at, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 || header.size > available)
		return false;
	mw_ring_copy(&reader->ring, reader->at, reader->record, header.size);
	/* What was checked must be what is used, even if somebody writes to the ring meanwhile. */
	memcpy(reader->record, &header, sizeof(header));
	reader->at += header.size;
	return true;
}

static void reader_skip_all(struct mw_access_reader *reader)
{
	reader->counts.broken++;
	reader->counts.broken_bytes = mw_add_sat(reader->counts.broken_bytes,
						 reader->limit - reader->at);
	reader->at = reader->limit;
}

int mw_access_reader_next(struct mw_access_reader *reader, struct mw_access_item *item)
{
	const struct perf_event_header *header = reader->record;
	bool is_item;

	for (;;) {
		if (reader->at == reader->limit) {
			reader->limit = mw_ring_head(&reader->ring);
			if (reader->at == reader->limit)
				return 0;
		}
		if (!reader_copy_record(reader)) {
			reader_skip_all(reader);
			mw_ring_release(&reader->ring, reader->at);
			continue;
		}
		mw_ring_release(&reader->ring, reader->at);
		is_item = header->type == PERF_RECORD_SAMPLE ? reader_take_sample(reader, item)
							     : reader_take_other(reader, item);
		if (is_item)
			return 1;
	}
}
