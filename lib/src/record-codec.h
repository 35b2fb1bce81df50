/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Records in a block: from a row of structures to columns of small numbers, so
 * that the compressor finds what is alike, and back, exactly. The layout is in
 * docs/recording-format.md; a change of it is a change of the format's version.
 */
#ifndef MW_RECORD_CODEC_H
#define MW_RECORD_CODEC_H

#include <stddef.h>
#include <stdint.h>

/* More than this in a block, decoded, is not ours. */
#define MW_CODEC_BYTES_MAX (64U << 20)

struct mw_codec;

int mw_codec_new(struct mw_codec **ret);
void mw_codec_free(struct mw_codec *codec);

/*
 * @records: valid records, one after another. @ret: owned by the codec, valid
 * until the next call. -ENOMEM.
 */
int mw_codec_encode(struct mw_codec *codec, const void *records, size_t bytes, const void **ret,
		    size_t *ret_bytes);

/*
 * The inverse, of bytes from anywhere. @ret is 8-byte aligned and holds whole,
 * valid records only. -EBADMSG, -ENOMEM.
 */
int mw_codec_decode(struct mw_codec *codec, const void *columns, size_t bytes, const void **ret,
		    size_t *ret_bytes);

#endif /* MW_RECORD_CODEC_H */
