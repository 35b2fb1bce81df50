/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The records of a block as columns: every field is predicted from what comes
 * before it, and what is left is stored byte plane by byte plane, all lowest
 * bytes first. That is what a compressor likes. The block says itself how each
 * column was predicted, so that the reader needs to know no record type, and
 * types that nobody knows yet are kept as they are.
 *
 * Nothing here compresses, allocates for a record, or touches a file.
 */
#ifndef MW_COLUMNS_H
#define MW_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/memwatch.h>

#include "base/record.h"

#define MW_RECORD_HEADER_BYTES sizeof(struct memwatch_record_header)
#define MW_CLASS_BYTES	       10 /* of a class in the class table: type, size, rows, columns */
#define MW_COLUMN_BYTES	       6  /* of a column in it: predictor, a, b, 0, width */

#define MW_CLASSES_MAX	       64   /* pairs of type and size in a block */
#define MW_COLUMNS_MAX	       32   /* fields of a record, header excluded */
#define MW_CONTEXTS	       1024 /* CPUs, or keys, told apart */

/**
 * struct mw_column - a field of a class
 * @predictor: &enum mw_predictor
 * @a: another column, before this one
 * @b: another column, before this one
 * @width: bytes: 1, 2, 4 or 8; anything for RAW
 * @offset: in the record
 */
struct mw_column {
	uint8_t predictor;
	uint8_t a;
	uint8_t b;
	uint16_t width;
	uint16_t offset;
};

/**
 * struct mw_class - records of the same type and size
 * @type: of the records
 * @size: of the records
 * @rows: how many there are
 * @first: where they begin in mw_columns.order
 * @count: columns
 * @column: the columns
 */
struct mw_class {
	uint16_t type;
	uint16_t size;
	uint32_t rows;
	uint32_t first;
	unsigned int count;
	struct mw_column column[MW_COLUMNS_MAX];
};

/**
 * struct mw_columns - a block in work
 * @classes: how many of @class are used
 * @rows: records in the block
 * @rows_max: room in the arrays below
 * @bytes: of the records
 * @offset: by record: where it is
 * @class_of: by record
 * @prior: by record: last other time on its CPU
 * @order: records, sorted by class
 * @last_cpu: by row of a class: the row of the same CPU before it
 * @last_key: the same for column @key
 * @rest: by row of a class
 * @residual: by row of a class
 * @key: column that @last_key is valid for, or -1
 * @slot: last row, by CPU or key
 * @now: by CPU
 * @then: by CPU
 * @class: the classes
 */
struct mw_columns {
	unsigned int classes;
	uint32_t rows;
	uint32_t rows_max;
	uint32_t bytes;
	uint32_t *offset;
	uint8_t *class_of;
	uint64_t *prior;
	uint32_t *order;
	uint32_t *last_cpu;
	uint32_t *last_key;
	uint64_t *rest;
	uint64_t *residual;
	int key;
	uint32_t slot[MW_CONTEXTS];
	uint64_t now[MW_CONTEXTS];
	uint64_t then[MW_CONTEXTS];
	struct mw_class class[MW_CLASSES_MAX];
};

/* Room for @rows records; keeps nothing. Returns 0 or -ENOMEM. */
int mw_columns_reserve(struct mw_columns *columns, uint32_t rows);
void mw_columns_uninit(struct mw_columns *columns);

/* An empty block. */
void mw_columns_reset(struct mw_columns *columns);

/* Can a record with this header be added to this block? */
bool mw_columns_fit(struct mw_columns *columns, const struct memwatch_record_header *header);

/* Notes the next record, which fits; it lies directly behind the last one. */
void mw_columns_add(struct mw_columns *columns, const struct memwatch_record_header *header);

/* Sorts the records by class into columns.order; within a class they keep their order. */
void mw_columns_sort(struct mw_columns *columns);

/* What mw_columns_encode() needs at most for @bytes of records. */
size_t mw_columns_bound(size_t bytes);

/* Encodes all that was added and lies at @records. Returns bytes written to @to. */
size_t mw_columns_encode(struct mw_columns *columns, const uint8_t *records, uint8_t *to);

/*
 * Decodes @len bytes at @from into exactly @rows records of exactly @bytes in
 * all, at @records, 8-byte aligned. There is room for @rows. Trusts nothing:
 * -EBADMSG if anything does not fit, or if a record is too short for its type.
 */
int mw_columns_decode(struct mw_columns *columns, const uint8_t *from, size_t len, uint32_t rows,
		      uint8_t *records, uint32_t bytes);

#endif /* MW_COLUMNS_H */
