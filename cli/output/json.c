// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The JSON writer.
 */
#include <inttypes.h>
#include <math.h>

#include "output/json.h"
#include "text/escape.h"

static void write_string(FILE *out, const char *s)
{
	fputc('"', out);
	mw_escape_write(out, s, MW_ESCAPE_JSON);
	fputc('"', out);
}

static void write_indent(struct mw_json *json)
{
	if (json->flat[json->depth])
		return;
	fputc('\n', json->out);
	for (int i = 0; i < json->depth; i++)
		fputs("  ", json->out);
}

static void begin_member(struct mw_json *json, const char *key)
{
	if (json->filled[json->depth])
		fputs(json->flat[json->depth] ? ", " : ",", json->out);
	json->filled[json->depth] = true;
	write_indent(json);
	if (!key)
		return;
	write_string(json->out, key);
	fputs(": ", json->out);
}

static void open_level(struct mw_json *json, const char *key, char bracket, bool flat)
{
	flat |= json->flat[json->depth];
	begin_member(json, key);
	fputc(bracket, json->out);
	json->depth++;
	json->filled[json->depth] = false;
	json->flat[json->depth] = flat;
}

static void close_level(struct mw_json *json, char bracket)
{
	bool filled = json->filled[json->depth];
	bool flat = json->flat[json->depth];

	json->depth--;
	if (filled && !flat)
		write_indent(json);
	fputc(bracket, json->out);
}

void mw_json_init(struct mw_json *json, FILE *out)
{
	*json = (struct mw_json){ .out = out };
	fputc('{', out);
	json->depth = 1;
	mw_json_uint(json, "schema", 1);
}

void mw_json_finish(struct mw_json *json)
{
	json->depth = 0;
	fputs("\n}\n", json->out);
}

void mw_json_object(struct mw_json *json, const char *key)
{
	open_level(json, key, '{', false);
}

void mw_json_row(struct mw_json *json, const char *key)
{
	open_level(json, key, '{', true);
}

void mw_json_object_end(struct mw_json *json)
{
	close_level(json, '}');
}

void mw_json_array(struct mw_json *json, const char *key)
{
	open_level(json, key, '[', false);
}

void mw_json_array_end(struct mw_json *json)
{
	close_level(json, ']');
}

void mw_json_uint(struct mw_json *json, const char *key, uint64_t value)
{
	begin_member(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void mw_json_int(struct mw_json *json, const char *key, int64_t value)
{
	begin_member(json, key);
	fprintf(json->out, "%" PRId64, value);
}

void mw_json_double(struct mw_json *json, const char *key, double value)
{
	begin_member(json, key);
	if (isfinite(value))
		fprintf(json->out, "%.10g", value);
	else
		fputs("null", json->out);
}

void mw_json_bool(struct mw_json *json, const char *key, bool value)
{
	begin_member(json, key);
	fputs(value ? "true" : "false", json->out);
}

void mw_json_null(struct mw_json *json, const char *key)
{
	begin_member(json, key);
	fputs("null", json->out);
}

void mw_json_string(struct mw_json *json, const char *key, const char *value)
{
	if (!value) {
		mw_json_null(json, key);
		return;
	}
	begin_member(json, key);
	write_string(json->out, value);
}
