// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads whole files into memory. The memory grows with what was read, so that neither the
 * size that a file claims to have nor that of a compressed file is trusted.
 */
#include "heap/input.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/context.h"
#include "base/file-io.h"

#define READ_BYTES (1U << 16)

static int too_large(struct memwatch_ctx *ctx, const char *name, const char *what, uint64_t max)
{
	return mw_fail(ctx, -EFBIG, "%s: %s is larger than the limit of %llu bytes", name, what,
		       (unsigned long long)max);
}

static int read_plain(struct memwatch_ctx *ctx, int fd, const char *name, uint64_t max,
		      struct mw_input *input)
{
	size_t room = 0;
	ssize_t n;

	do {
		if (mw_array_reserve(input->bytes, room, input->len + READ_BYTES + 1))
			return mw_fail_memory(ctx, name);
		n = read(fd, input->bytes + input->len, READ_BYTES);
		if (n < 0 && errno != EINTR)
			return mw_fail(ctx, -errno, "%s: %s", name, strerror(errno));
		if (n > 0)
			input->len += (size_t)n;
		if (input->len > max)
			return too_large(ctx, name, "the file", max);
	} while (n);
	input->bytes[input->len] = 0;
	return 0;
}

/* Uncompresses all members of a gzip file. */
static int inflate_input(struct memwatch_ctx *ctx, z_stream *z, const char *name, uint64_t max,
			 struct mw_input *out)
{
	size_t room = 0;
	int rc = Z_OK;

	do {
		if (mw_array_reserve(out->bytes, room, out->len + READ_BYTES + 1))
			return mw_fail_memory(ctx, name);
		z->next_out = (Bytef *)out->bytes + out->len;
		z->avail_out = READ_BYTES;
		rc = inflate(z, Z_NO_FLUSH);
		out->len += READ_BYTES - z->avail_out;
		if (out->len > max)
			return too_large(ctx, name, "the uncompressed content", max);
		if (rc == Z_STREAM_END && z->avail_in)
			rc = inflateReset(z);
	} while (rc == Z_OK);
	if (rc != Z_STREAM_END)
		return mw_fail(ctx, -EBADMSG, "%s: the compressed data is damaged or cut off",
			       name);
	out->bytes[out->len] = 0;
	return 0;
}

static int uncompress_input(struct memwatch_ctx *ctx, const char *name, uint64_t max,
			    struct mw_input *input)
{
	struct mw_input out = { 0 };
	z_stream z = { .next_in = (Bytef *)input->bytes };
	int err;

	if (input->len > UINT32_MAX)
		return too_large(ctx, name, "the file", UINT32_MAX);
	z.avail_in = (uInt)input->len;
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return mw_fail_memory(ctx, name);
	err = inflate_input(ctx, &z, name, max, &out);
	inflateEnd(&z);
	if (err) {
		mw_input_uninit(&out);
		return err;
	}
	mw_input_uninit(input);
	*input = out;
	return 0;
}

int mw_input_read(struct memwatch_ctx *ctx, int fd, const char *name, uint64_t max,
		  struct mw_input *ret)
{
	struct mw_input input = { 0 };
	int err = read_plain(ctx, fd, name, max, &input);

	if (!err && input.len > 2 && !memcmp(input.bytes, "\x1f\x8b", 2))
		err = uncompress_input(ctx, name, max, &input);
	if (err) {
		mw_input_uninit(&input);
		return err;
	}
	*ret = input;
	return 0;
}

int mw_input_read_head(struct memwatch_ctx *ctx, int fd, const char *name, size_t len,
		       struct mw_input *ret)
{
	struct mw_input input = { .bytes = calloc(1, len + 1) };
	ssize_t n;

	if (!input.bytes)
		return mw_fail_memory(ctx, name);
	n = mw_file_read_at(fd, input.bytes, len, 0);
	if (n < 0) {
		mw_input_uninit(&input);
		return mw_fail(ctx, (int)n, "%s: %s", name, strerror((int)-n));
	}
	input.len = (size_t)n;
	*ret = input;
	return 0;
}

void mw_input_uninit(struct mw_input *input)
{
	free(input->bytes);
	*input = (struct mw_input){ 0 };
}
