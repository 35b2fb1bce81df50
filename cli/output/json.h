/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A JSON writer that streams: nothing is held back, so an export of any length
 * costs no memory. The key is NULL inside an array.
 */
#ifndef MW_JSON_H
#define MW_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct mw_json {
	FILE *out;
	int depth;
	bool filled[16]; /* does this level hold something yet? */
	bool flat[16];	 /* is this level written on one line? */
};

/* Opens the object that is the whole answer, with "schema": 1. */
void mw_json_init(struct mw_json *json, FILE *out);
/* Closes it. */
void mw_json_finish(struct mw_json *json);

void mw_json_object(struct mw_json *json, const char *key);
/* The same, on one line: a row. */
void mw_json_row(struct mw_json *json, const char *key);
void mw_json_object_end(struct mw_json *json);
void mw_json_array(struct mw_json *json, const char *key);
void mw_json_array_end(struct mw_json *json);

void mw_json_uint(struct mw_json *json, const char *key, uint64_t value);
void mw_json_int(struct mw_json *json, const char *key, int64_t value);
void mw_json_double(struct mw_json *json, const char *key, double value);
void mw_json_bool(struct mw_json *json, const char *key, bool value);
void mw_json_null(struct mw_json *json, const char *key);
/* NULL becomes null; bytes that are not UTF-8 become U+FFFD. */
void mw_json_string(struct mw_json *json, const char *key, const char *value);

#endif
