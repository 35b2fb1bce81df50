/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A JSON writer. It writes each value at once, so the memory it needs does not depend
 * on the length of the output. The key of a member of an array is NULL.
 */
#ifndef MW_JSON_H
#define MW_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct mw_json {
	FILE *out;
	int depth;
	bool filled[16]; /* the level has a member */
	bool flat[16];	 /* the level is written on one line */
};

/* Opens the outermost object and writes "schema": 1. */
void mw_json_init(struct mw_json *json, FILE *out);
/* Closes the outermost object. */
void mw_json_finish(struct mw_json *json);

void mw_json_object(struct mw_json *json, const char *key);
/* Opens an object that is written on one line. */
void mw_json_row(struct mw_json *json, const char *key);
void mw_json_object_end(struct mw_json *json);
void mw_json_array(struct mw_json *json, const char *key);
void mw_json_array_end(struct mw_json *json);

void mw_json_uint(struct mw_json *json, const char *key, uint64_t value);
void mw_json_int(struct mw_json *json, const char *key, int64_t value);
void mw_json_double(struct mw_json *json, const char *key, double value);
void mw_json_bool(struct mw_json *json, const char *key, bool value);
void mw_json_null(struct mw_json *json, const char *key);
/*
 * Writes null if @value is NULL. The string is valid UTF-8 and has no hidden character, see
 * text/escape.h. It decodes to @value, with U+FFFD for each byte that is not valid UTF-8.
 */
void mw_json_string(struct mw_json *json, const char *key, const char *value);

#endif
