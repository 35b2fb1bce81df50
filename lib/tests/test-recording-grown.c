// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings after a record type has grown: this test has a table of record types of its own,
 * in which a TICK has 16 bytes more. The rest of the library is linked with this table.
 */
#include "golden-kit.h"

struct memwatch_record_tick_grown {
	struct memwatch_record_header h;
	__u64 expected_ns;
	__u32 period_ns;
	__u32 overruns;
	__u64 produced;
	__u64 dropped;
	__u64 more[2];
};

#define memwatch_record_tick memwatch_record_tick_grown
#include "base/record.c"
#undef memwatch_record_tick

#define GROWN sizeof(struct memwatch_record_tick_grown)

/* The last member of the longer type is kept. */
static void test_new_recording(void)
{
	const struct memwatch_record_header *record;
	struct memwatch_record_tick_grown *tick;
	struct memwatch_reader *reader;
	struct batch batch = { 0 };

	tick = batch_add(&batch, MEMWATCH_RECORD_TICK, GROWN, 5, 0);
	tick->more[1] = 4711;
	tap_ok(write_batch(&batch, 0), "a recording with the longer type is written");
	if (memwatch_reader_open(ctx, path, &reader))
		abort();
	tap_ok(memwatch_reader_next(reader, &record) == 1 && record->size == GROWN &&
		       !memcmp(record, batch.bytes, GROWN),
	       "a recording with the longer type is read as it was written");
	memwatch_reader_close(reader);
	batch_free(&batch);
}

int main(void)
{
	struct batch batch = { 0 };

	tap_start();
	if (!kit_open())
		return EXIT_FAILURE;
	golden_records(&batch);
	tap_eq(mw_record_size_min(MEMWATCH_RECORD_TICK), GROWN, "the table has the longer type");
	tap_eq(golden_compare(&batch, GOLDEN_SCHEMA_1), batch.count,
	       "the recording of schema 1 is read with zeros at the end of the longer type");
	test_new_recording();
	batch_free(&batch);
	kit_close();
	return tap_done();
}
