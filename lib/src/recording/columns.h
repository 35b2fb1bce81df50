/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The records of a block as columns. Each value is predicted from earlier values, and the
 * differences are stored in planes: the lowest bytes of all values, then the second bytes, and
 * so on (planes.h). Such data compresses well. The block itself says how each column is predicted,
 * so a reader does not need to know any record type, and records of unknown types are kept.
 *
 * Compression and files are the business of block.h.
 */
#ifndef MW_COLUMNS_H
#define MW_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/memwatch.h>

#include "base/record.h"

#define MW_RECORD_HEADER_BYTES sizeof(struct memwatch_record_header)
#define MW_CLASS_BYTES	       10 /* size of a class in the class table: type, size, rows, columns */
#define MW_COLUMN_BYTES	       6  /* size of a column of a class there: predictor, a, b, 0, width */

#define MW_CLASSES_MAX	       64   /* classes of a block */
#define MW_COLUMNS_MAX	       32   /* columns of a class, without the header */
#define MW_CONTEXTS	       1024 /* CPUs and keys are taken modulo this number */

/**
 * struct mw_column - a column of a class
 * @predictor: &enum mw_predictor
 * @a: number of a column before this one, see &enum mw_predictor
 * @b: likewise
 * @width: bytes of a value: 1, 2, 4 or 8; any number for RAW
 * @offset: where the value is in the record
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
 * @type: type of the records
 * @size: size of the records
 * @rows: number of records
 * @first: how many records other classes have before them in mw_columns.order
 * @count: length of @column
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
 * struct mw_columns - a block that is being encoded or decoded
 * @classes: number of classes
 * @rows: number of records
 * @rows_max: length of the arrays by record and by row
 * @bytes: size of all records
 * @first_ns: smallest time of a record
 * @last_ns: largest time of a record
 * @flags: flags that any record has
 * @dense: the block that is decoded has version 1 of the format, without sparse planes
 * @memory: the memory of all arrays below
 * @time: by record: its time
 * @prior: by record: the last other time on its CPU
 * @residual: by row of a class: what is stored of the current column
 * @rest: by row of a class: prediction of REST
 * @value: by row of a class: the current column
 * @other: by row of a class: column @other_column
 * @offset: by record: where it begins
 * @order: from 1 on: numbers of the records, sorted by class
 * @at: from 1 on: where the records begin, sorted by class
 * @last_cpu: by row of a class: the last row of the same CPU, if @cpus_known
 * @last_key: by row of a class: the last row with the same value in column @key
 * @cpu: by record: its CPU
 * @class_of: by record: its class
 * @planes: scratch: 8 bytes by row of a class: the planes of the current column
 * @cpus_known: @last_cpu is that of the current class
 * @key: the column for which @last_key is valid, or -1
 * @other_column: the column in @other, or -1
 * @slot: scratch: by CPU or key: the last row; none outside of the functions that use it
 * @now: scratch: by CPU: time of the last record
 * @then: scratch: by CPU: the last time before @now
 * @class: the classes
 *
 * Rows of a class are counted from 1: row 0 is the one that does not exist, with the value 0.
 */
struct mw_columns {
	unsigned int classes;
	uint32_t rows;
	uint32_t rows_max;
	uint32_t bytes;
	uint64_t first_ns;
	uint64_t last_ns;
	uint16_t flags;
	bool dense;
	void *memory;
	uint64_t *time;
	uint64_t *prior;
	uint64_t *residual;
	uint64_t *rest;
	uint64_t *value;
	uint64_t *other;
	uint32_t *offset;
	uint32_t *order;
	uint32_t *at;
	uint32_t *last_cpu;
	uint32_t *last_key;
	uint16_t *cpu;
	uint8_t *class_of;
	uint8_t *planes;
	bool cpus_known;
	int key;
	int other_column;
	uint32_t slot[MW_CONTEXTS];
	uint64_t now[MW_CONTEXTS];
	uint64_t then[MW_CONTEXTS];
	struct mw_class class[MW_CLASSES_MAX];
};

/* Makes room for @rows records. The contents are lost. Returns 0 or -ENOMEM. */
int mw_columns_reserve(struct mw_columns *columns, uint32_t rows);
void mw_columns_uninit(struct mw_columns *columns);

/* Begins an empty block. */
void mw_columns_reset(struct mw_columns *columns);

/* The number of bytes that the arrays need. */
size_t mw_columns_memory(const struct mw_columns *columns);

/*
 * Begins a block with the valid records at @records, which lie directly behind each other. Stops
 * before a record that would be one too many, or of one class too many: columns.bytes tells
 * how far it came.
 */
void mw_columns_index(struct mw_columns *columns, const uint8_t *records, uint32_t bytes);

/* Sorts columns.order and columns.at by class; within a class, the records keep their order. */
void mw_columns_sort(struct mw_columns *columns);

/* An upper bound of the length that mw_columns_encode() writes for @bytes of records. */
size_t mw_columns_bound(size_t bytes);

/* Encodes the records of mw_columns_index(). Returns the number of bytes written. */
size_t mw_columns_encode(struct mw_columns *columns, const uint8_t *records, uint8_t *to);

/*
 * Decodes @len bytes at @from into @rows records of @bytes bytes in total, at @records, which
 * is 8-byte aligned. mw_columns_reserve() has made room for @rows. The input may be hostile:
 * returns -EBADMSG if anything does not fit or a record is too short for its type.
 */
int mw_columns_decode(struct mw_columns *columns, const uint8_t *from, size_t len, uint32_t rows,
		      uint8_t *records, uint32_t bytes);

#endif /* MW_COLUMNS_H */
