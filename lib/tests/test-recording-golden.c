// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings that earlier versions made are read as they were. A new schema or a new version of the
 * format adds a file:
 *
 *	test-recording-golden --write FILE
 */
#include "golden-kit.h"

static int write_golden(struct batch *batch, const char *file)
{
	bool good;

	snprintf(path, sizeof(path), "%s", file);
	good = !memwatch_ctx_new(NULL, &ctx) && write_batch(batch, 0);
	batch_free(batch);
	memwatch_ctx_unref(ctx);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* A record that is shorter than its type ever was is damage. */
static void test_too_short(void)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < GOLDEN_TYPES; i++) {
		uint16_t type = golden_schema_1[i].type, size = golden_schema_1[i].size;

		wrong += !mw_record_readable(type, size) || mw_record_readable(type, size - 8) ||
			 mw_record_size_min(type) < size;
	}
	tap_eq(wrong, 0, "records of the sizes of schema 1 are readable, and no shorter ones");
}

int main(int argc, char **argv)
{
	struct batch batch = { 0 };

	golden_records(&batch);
	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_golden(&batch, argv[2]);
	tap_start();
	if (!kit_open())
		return EXIT_FAILURE;
	tap_eq(golden_compare(&batch, GOLDEN_SCHEMA_1), batch.count,
	       "the recording of schema 1 is read with zeros where a type has grown");
	tap_eq(golden_compare(&batch, GOLDEN_FORMAT_2), batch.count,
	       "the recording of version 2 of the format is read in the same way");
	test_too_short();
	batch_free(&batch);
	kit_close();
	return tap_done();
}
