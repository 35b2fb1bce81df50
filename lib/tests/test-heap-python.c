// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the reader of heap profiles does with frames of CPython: the lines of instructions, and
 * which native frames it leaves out.
 */
#include <stdlib.h>
#include <string.h>

#include "heap/interpreter.h"
#include "heap/profile-format.h"
#include "heap/python-lines.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

/* A function with calls and loops over several lines, and what co_lines() of 3.11.2 says of it. */
static const uint8_t table[] = {
	0x80, 0x00, 0xe0, 0x09, 0x0a, 0xd8, 0x09, 0x0a, 0xf1, 0x03, 0x01, 0x0a, 0x0b, 0x80,
	0x41, 0xe5, 0x0d, 0x12, 0x90, 0x31, 0x89, 0x58, 0x8c, 0x58, 0xf0, 0x00, 0x03, 0x05,
	0x0f, 0xf0, 0x00, 0x03, 0x05, 0x0f, 0x88, 0x01, 0xd8, 0x08, 0x09, 0x88, 0x51, 0x89,
	0x06, 0x88, 0x01, 0xd8, 0x0c, 0x0d, 0xd8, 0x0c, 0x0d, 0xf0, 0x05, 0x02, 0x15, 0x0f,
	0x90, 0x01, 0x90, 0x01, 0xf0, 0x06, 0x03, 0x05, 0x11, 0xd8, 0x0f, 0x10, 0xe5, 0x08,
	0x0d, 0x88, 0x61, 0x89, 0x08, 0x8c, 0x08, 0x88, 0x08, 0x88, 0x08, 0xf8, 0x8d, 0x05,
	0x88, 0x61, 0x89, 0x08, 0x8c, 0x08, 0x88, 0x08, 0x88, 0x08, 0xf8, 0xf8, 0xf8,
};

static const uint8_t lines[] = {
	2,  4,	5,  4,	4,  4,	6,  6,	6,  6,	6,  6,	6,  6,	6,  6,	6,  6,
	6,  6,	6,  6,	6,  7,	7,  7,	7,  7,	8,  9,	7,  7,	7,  10, 11, 13,
	13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 0,	13, 13,
	13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 0,  0,	0,
};

static void test_lines(void)
{
	struct mw_line_runs runs = { 0 };
	uint32_t wrong = 0, first;

	/* Not the first one of the profile. */
	if (mw_line_runs_add(&runs, table, 10, 100))
		exit(EXIT_FAILURE);
	first = runs.count;
	if (mw_line_runs_add(&runs, table, sizeof(table), 2))
		exit(EXIT_FAILURE);
	for (uint32_t i = 0; i < sizeof(lines); i++)
		wrong += mw_line_runs_find(&runs, first, runs.count, i) != lines[i];
	tap_eq(wrong, 0, "each of %zu instructions has the line that Python says", sizeof(lines));
	tap_eq(mw_line_runs_find(&runs, first, runs.count, sizeof(lines)), 0,
	       "an instruction behind the end has none");
	tap_eq(mw_line_runs_find(&runs, first, first, 0), 0, "without a table there are no lines");
	free(runs.runs);
}

static uint32_t one_line(const uint8_t *bytes, size_t len, uint32_t instruction)
{
	struct mw_line_runs runs = { 0 };
	uint32_t line;

	if (mw_line_runs_add(&runs, bytes, len, 1000))
		exit(EXIT_FAILURE);
	line = mw_line_runs_find(&runs, 0, runs.count, instruction);
	free(runs.runs);
	return line;
}

static void test_forms(void)
{
	static const uint8_t forward[] = { 0xe8, 0x48, 0x06 }, back[] = { 0xe8, 0x49, 0x06 };
	static const uint8_t large[] = { 0xf0, 0x40, 0x40, 0x40, 0x20, 0, 0, 0 };
	static const uint8_t negative[] = { 0xe8, 0x7f, 0x7f, 0x7f, 0x3f };
	static const uint8_t endless[] = { 0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f };
	static const uint8_t cut_off[] = { 0xe8 }, no_head[] = { 0x01, 0x02, 0x03 };

	tap_eq(one_line(forward, 3, 0), 1196, "a difference has several bytes");
	tap_eq(one_line(back, 3, 0), 804, "a difference may be negative");
	tap_eq(one_line(large, 8, 0), 1000 + (32 << 18) / 2, "a difference may be large");
	tap_eq(one_line(negative, 5, 0), 0, "a negative line is none");
	one_line(endless, sizeof(endless), 0);
	tap_eq(one_line(cut_off, 1, 0), 1000, "a table that is cut off ends there");
	tap_eq(one_line(no_head, 3, 0), 0, "a table without an entry has no lines");
}

static void test_random_tables(void)
{
	struct prng prng = { 7 };
	uint8_t bytes[300];
	bool bounded = true;

	for (int n = 0; n < 20000; n++) {
		struct mw_line_runs runs = { 0 };
		size_t len = prng_below(&prng, sizeof(bytes));

		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)prng_below(&prng, 256);
		if (mw_line_runs_add(&runs, bytes, len, (uint32_t)prng_below(&prng, 1UL << 32)))
			exit(EXIT_FAILURE);
		bounded = bounded && runs.count <= len;
		mw_line_runs_find(&runs, 0, runs.count, (uint32_t)prng_below(&prng, 3000));
		free(runs.runs);
	}
	tap_ok(bounded, "a table has at most as many runs as bytes, whatever they are");
}

#define PYTHON(n)    ((uint64_t)MW_HEAP_FRAME_CODE << 48 | (n))
#define NATIVE(m, n) ((uint64_t)(m) << 48 | (n))

static void check_trim(const char *what, const uint64_t *before, uint32_t depth,
		       const uint64_t *after, uint32_t left)
{
	uint64_t frames[16];
	uint32_t used;

	memcpy(frames, before, depth * sizeof(*frames));
	used = mw_interpreter_trim(frames, depth);
	tap_ok(used == left && !memcmp(frames, after, left * sizeof(*frames)), "%s (%u of %u)",
	       what, used, depth);
}

#define CHECK_TRIM(what, before, after)                                                            \
	check_trim(what, before, sizeof(before) / 8, after, sizeof(after) / 8)

static void test_trim(void)
{
	/* Module 2 is the interpreter, 3 an extension, 4 the C library. */
	static const uint64_t plain[] = { NATIVE(2, 1), NATIVE(2, 2), PYTHON(1),   PYTHON(2),
					  NATIVE(2, 3), NATIVE(2, 4), NATIVE(4, 5) };
	static const uint64_t plain_left[] = { PYTHON(1), PYTHON(2), NATIVE(4, 5) };
	static const uint64_t extension[] = { NATIVE(2, 1), NATIVE(3, 2), NATIVE(2, 3),
					      PYTHON(1),    NATIVE(2, 4), NATIVE(3, 5),
					      NATIVE(2, 6), PYTHON(2),	  NATIVE(2, 7) };
	static const uint64_t extension_left[] = { NATIVE(2, 1), NATIVE(3, 2), PYTHON(1),
						   NATIVE(3, 5), PYTHON(2) };
	static const uint64_t builtin[] = { PYTHON(1), NATIVE(2, 1), NATIVE(2, 2), PYTHON(2),
					    NATIVE(2, 3) };
	static const uint64_t builtin_left[] = { PYTHON(1), PYTHON(2) };
	static const uint64_t native[] = { NATIVE(2, 1), NATIVE(2, 2), NATIVE(4, 3) };
	static const uint64_t cut_off[] = { NATIVE(2, 1), PYTHON(1), PYTHON(2) };

	CHECK_TRIM("the interpreter's own frames are left out", plain, plain_left);
	CHECK_TRIM("frames of extensions stay, with what they call", extension, extension_left);
	CHECK_TRIM("a function of the interpreter between two of Python is left out", builtin,
		   builtin_left);
	CHECK_TRIM("a stack without frames of Python stays", native, native);
	CHECK_TRIM("without the frame of its loop, the interpreter is not known", cut_off, cut_off);
}

int main(void)
{
	tap_start();
	test_lines();
	test_forms();
	test_random_tables();
	test_trim();
	return tap_done();
}
