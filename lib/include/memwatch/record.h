/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The fields of every record type, from one table. A program that prints or stores
 * records walks over the fields instead of naming each one.
 */
#ifndef MEMWATCH_RECORD_H
#define MEMWATCH_RECORD_H

#include <stddef.h>

#include <linux/memwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum memwatch_field_kind - how the bytes of a field are read
 * @MEMWATCH_FIELD_UINT: an unsigned number
 * @MEMWATCH_FIELD_NAME: a number with a name, see @names
 * @MEMWATCH_FIELD_TEXT: characters, which end with a NUL or at @width
 * @MEMWATCH_FIELD_MEASURED: an unsigned number with a status, see @status_offset
 * @MEMWATCH_FIELD_STATUS: the statuses of the measured fields of this record
 * @MEMWATCH_FIELD_RESERVED: nothing
 * @MEMWATCH_FIELD_OPTIONAL: an unsigned number; all bits set mean that there is none
 */
enum memwatch_field_kind {
	MEMWATCH_FIELD_UINT = 0,
	MEMWATCH_FIELD_NAME = 1,
	MEMWATCH_FIELD_TEXT = 2,
	MEMWATCH_FIELD_MEASURED = 3,
	MEMWATCH_FIELD_STATUS = 4,
	MEMWATCH_FIELD_RESERVED = 5,
	MEMWATCH_FIELD_OPTIONAL = 6,
};

/**
 * struct memwatch_field_info - the description of a field
 * @sz: sizeof(struct memwatch_field_info), set by the caller
 * @key: name in JSON and CSV; the same in all types that have such a field; NULL for
 *	a field that is not to be shown: a status or a reserved one
 * @kind: &enum memwatch_field_kind
 * @offset: where it is in the record
 * @width: its bytes; a number has 1, 2, 4 or 8
 * @status_offset: where the &enum memwatch_status of a measured field is, one byte
 * @nr_names: length of @names
 * @names: names of the numbers from 0 on; NULL for numbers that are not in use
 */
struct memwatch_field_info {
	size_t sz;
	const char *key;
	__u32 kind;
	__u16 offset;
	__u16 width;
	__u16 status_offset;
	__u16 nr_names;
	const char *const *names;
};

/**
 * memwatch_record_get_field - describe one field of a record type
 * @type: &enum memwatch_record_type
 * @position: counted from 0, in the order of the record; the header is not included
 * @ret: the description; its strings are valid for ever
 *
 * Returns: 1; 0 past the last field, or if the type is not known; -EINVAL, @ret->sz is
 * not set.
 * Since: 0.1
 */
int memwatch_record_get_field(unsigned int type, unsigned int position,
			      struct memwatch_field_info *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_RECORD_H */
