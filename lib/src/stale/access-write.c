// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The writer of access samples.
 */
#include "stale/access-write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"
#include "base/file-io.h"
#include "base/text.h"
#include "base/timemath.h"

#define NAMES_TRIED 1000

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Without it, samples of another boot could be taken for those of this one. */
static int read_boot_id(struct memwatch_ctx *ctx, uint8_t ret[16])
{
	size_t len, digits = 0;
	char *text;
	int err = mw_text_read_file(ctx, "/proc/sys/kernel/random/boot_id", &text, &len);

	if (err)
		return err;
	for (size_t i = 0; i < len && digits < 32; i++) {
		int digit = hex_digit(text[i]);

		if (digit < 0)
			continue;
		ret[digits / 2] = (uint8_t)(ret[digits / 2] << 4 | digit);
		digits++;
	}
	free(text);
	return 0;
}

static int create_file(struct mw_access_writer *writer, const char *directory)
{
	char path[PATH_MAX], number[16] = "";

	for (int n = 1; n <= NAMES_TRIED && writer->fd < 0; n++) {
		if (n > 1)
			snprintf(number, sizeof(number), "-%d", n);
		if (snprintf(path, sizeof(path), "%s/accesses%s.mwaccess", directory, number) >=
		    (int)sizeof(path))
			return mw_fail(writer->ctx, -ENAMETOOLONG, "%s: the name is too long",
				       directory);
		writer->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (writer->fd < 0 && errno != EEXIST)
			break;
	}
	if (writer->fd < 0)
		return mw_fail(writer->ctx, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

int mw_access_writer_init(struct mw_access_writer *writer, struct memwatch_ctx *ctx,
			  const char *directory)
{
	int err;

	*writer = (struct mw_access_writer){ .ctx = ctx, .fd = -1 };
	writer->blocks = calloc(MW_ACCESS_WRITER_BLOCKS, sizeof(*writer->blocks));
	if (!writer->blocks)
		return mw_fail_memory(ctx, "access samples");
	memcpy(writer->header.magic, MW_ACCESS_FILE_MAGIC, sizeof(writer->header.magic));
	writer->header.version = MW_ACCESS_FILE_VERSION;
	writer->header.header_bytes = sizeof(writer->header);
	writer->header.created_ns = mw_clock(CLOCK_MONOTONIC);
	writer->size = sizeof(writer->header);
	err = read_boot_id(ctx, writer->header.boot_id);
	return err ? err : create_file(writer, directory);
}

void mw_access_writer_uninit(struct mw_access_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	free(writer->blocks);
	*writer = (struct mw_access_writer){ .fd = -1 };
}

/* A part that was written before an error is not counted: the next write begins there again. */
static int write_at(struct mw_access_writer *writer, const void *bytes, size_t len, uint64_t at)
{
	if (!writer->err)
		writer->err = mw_file_write_at(writer->fd, bytes, len, at);
	return writer->err;
}

static void write_block(struct mw_access_writer *writer, struct mw_access_open_block *block)
{
	struct mw_access_block head;

	if (!block->bytes)
		return;
	memcpy(&head, block->content, sizeof(head));
	head.bytes = block->bytes;
	memcpy(block->content, &head, sizeof(head));
	if (!write_at(writer, block->content, block->bytes, writer->size))
		writer->size += block->bytes;
	block->bytes = 0;
}

/* The block of a process, with room for one more record. */
static struct mw_access_open_block *block_of(struct mw_access_writer *writer, uint32_t pid,
					     uint64_t time_ns)
{
	struct mw_access_open_block *block = &writer->blocks[pid % MW_ACCESS_WRITER_BLOCKS];
	struct mw_access_block head = { MW_ACCESS_BLOCK_MAGIC, 0, pid, 0, time_ns };

	if (block->bytes && (block->pid != pid ||
			     block->bytes + MW_ACCESS_RECORD_BYTES_MAX > sizeof(block->content)))
		write_block(writer, block);
	if (block->bytes)
		return block;
	block->pid = pid;
	block->tid = 0;
	block->time_ns = time_ns;
	block->address = block->ip = 0;
	memcpy(block->content, &head, sizeof(head));
	block->bytes = sizeof(head);
	return block;
}

static void put_varint(struct mw_access_open_block *block, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		block->content[block->bytes++] = (uint8_t)(value | 0x80);
	block->content[block->bytes++] = (uint8_t)value;
}

static void put_difference(struct mw_access_open_block *block, uint64_t value, uint64_t *before)
{
	uint64_t distance = value - *before;

	put_varint(block, distance << 1 ^ -(distance >> 63));
	*before = value;
}

static void put_sample(struct mw_access_open_block *block, const struct mw_access_item *item)
{
	bool kernel = item->ip >> 63, thread = item->tid != block->tid;

	block->content[block->bytes++] = (uint8_t)((thread ? MW_ACCESS_RECORD_THREAD : 0) |
						   (kernel ? MW_ACCESS_RECORD_KERNEL : 0));
	if (thread)
		put_varint(block, item->tid);
	block->tid = item->tid;
	put_difference(block, item->time_ns, &block->time_ns);
	put_difference(block, item->address, &block->address);
	if (!kernel)
		put_difference(block, item->ip, &block->ip);
}

void mw_access_writer_add(struct mw_access_writer *writer, const struct mw_access_item *item)
{
	struct mw_access_open_block *block;

	switch (item->kind) {
	case MW_ACCESS_SAMPLE:
		put_sample(block_of(writer, item->pid, item->time_ns), item);
		writer->header.samples++;
		break;
	case MW_ACCESS_EXEC:
		block = block_of(writer, item->pid, item->time_ns);
		block->content[block->bytes++] = MW_ACCESS_RECORD_EXEC;
		put_difference(block, item->time_ns, &block->time_ns);
		break;
	case MW_ACCESS_EXIT:
		block = &writer->blocks[item->pid % MW_ACCESS_WRITER_BLOCKS];
		if (item->pid == item->tid && block->pid == item->pid)
			write_block(writer, block);
		break;
	default:
		break;
	}
}

int mw_access_writer_flush(struct mw_access_writer *writer)
{
	for (uint32_t i = 0; i < MW_ACCESS_WRITER_BLOCKS; i++)
		write_block(writer, &writer->blocks[i]);
	if (write_at(writer, &writer->header, sizeof(writer->header), 0))
		return mw_fail(writer->ctx, writer->err, "the file of accesses: %s",
			       strerror(-writer->err));
	return 0;
}
