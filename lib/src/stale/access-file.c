// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of access samples.
 */
#include "stale/access-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"
#include "base/file-io.h"
#include "stale/varint.h"

_Static_assert(sizeof(struct mw_access_file_header) == 272, "the header has no padding");
_Static_assert(sizeof(struct mw_access_block) == 24, "the head of a block has no padding");

/* A later version may have larger blocks. */
#define BLOCK_BYTES_MOST (1U << 20)

int mw_access_file_init(struct mw_access_file *file, struct memwatch_ctx *ctx, int fd, uint32_t pid)
{
	struct mw_access_file_header *h = &file->header;
	ssize_t n;

	*file = (struct mw_access_file){ .fd = fd, .pid = pid };
	n = mw_file_read_at(fd, h, sizeof(*h), 0);
	if (n < 0)
		return mw_fail(ctx, (int)n, "cannot be read: %s", strerror((int)-n));
	if (n != sizeof(*h) || memcmp(h->magic, MW_ACCESS_FILE_MAGIC, sizeof(h->magic)))
		return mw_fail(ctx, -ENOMSG, "is no file of accesses");
	if (h->version != MW_ACCESS_FILE_VERSION || h->header_bytes < sizeof(*h))
		return mw_fail(ctx, -EPROTO, "its format has version %u", h->version);
	h->event[sizeof(h->event) - 1] = '\0';
	file->offset = h->header_bytes;
	file->buffer = malloc(BLOCK_BYTES_MOST);
	return file->buffer ? 0 : mw_fail_memory(ctx, "reading accesses");
}

void mw_access_file_uninit(struct mw_access_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->buffer);
	*file = (struct mw_access_file){ .fd = -1 };
}

void mw_access_file_refresh(struct mw_access_file *file)
{
	struct mw_access_file_header now;

	if (mw_file_read_at(file->fd, &now, sizeof(now), 0) != sizeof(now))
		return;
	file->header.flags = now.flags;
	file->header.samples = now.samples;
	file->header.lost = now.lost;
	file->header.throttled = now.throttled;
}

/* Reads the next block of the process. Returns 1, 0 at the end, or a negative errno. */
static int read_block(struct mw_access_file *file)
{
	struct mw_access_block head;
	ssize_t n;

	for (;;) {
		n = mw_file_read_at(file->fd, &head, sizeof(head), file->offset);
		if (n < 0)
			return (int)n;
		file->cut_off = n && n < (ssize_t)sizeof(head);
		if (n < (ssize_t)sizeof(head))
			return 0;
		if (head.magic != MW_ACCESS_BLOCK_MAGIC || head.bytes < sizeof(head) ||
		    head.bytes > BLOCK_BYTES_MOST) {
			file->damaged++;
			file->broken = true;
			return 0;
		}
		if (head.pid == file->pid)
			break;
		file->offset += head.bytes;
	}
	n = mw_file_read_at(file->fd, file->buffer, head.bytes, file->offset);
	if (n < 0)
		return (int)n;
	file->cut_off = n < (ssize_t)head.bytes;
	if (file->cut_off)
		return 0;
	file->used = true;
	file->offset += head.bytes;
	file->at = file->buffer + sizeof(head);
	file->end = file->buffer + head.bytes;
	file->last = (struct mw_access_record){ .time_ns = head.base_ns };
	return 1;
}

static bool take_difference(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
	uint64_t code;

	if (!mw_varint_take(at, end, &code))
		return false;
	*value += code >> 1 ^ -(code & 1);
	return true;
}

/* Decodes the record at @file->at. Returns false if it is none. */
static bool decode_record(struct mw_access_file *file, struct mw_access_record *ret)
{
	struct mw_access_record *last = &file->last;
	const uint8_t **at = &file->at, *end = file->end;
	uint8_t control = *(*at)++;
	uint64_t tid = last->tid;

	if (control & ~MW_ACCESS_RECORD_KNOWN ||
	    (control & MW_ACCESS_RECORD_EXEC && control != MW_ACCESS_RECORD_EXEC))
		return false;
	if (control & MW_ACCESS_RECORD_THREAD &&
	    (!mw_varint_take(at, end, &tid) || tid > UINT32_MAX))
		return false;
	last->tid = (uint32_t)tid;
	if (!take_difference(at, end, &last->time_ns))
		return false;
	if (control & MW_ACCESS_RECORD_EXEC) {
		*ret = (struct mw_access_record){ .time_ns = last->time_ns, .is_exec = true };
		return true;
	}
	if (!take_difference(at, end, &last->address) ||
	    (!(control & MW_ACCESS_RECORD_KERNEL) && !take_difference(at, end, &last->ip)))
		return false;
	*ret = *last;
	if (control & MW_ACCESS_RECORD_KERNEL)
		ret->ip = 0;
	return true;
}

int mw_access_file_next(struct mw_access_file *file, struct mw_access_record *ret)
{
	for (;;) {
		int rc;

		if (file->at < file->end) {
			if (decode_record(file, ret))
				return 1;
			file->damaged++;
			file->at = file->end;
		}
		rc = file->broken || file->other_boot ? 0 : read_block(file);
		if (rc <= 0)
			return rc;
	}
}
