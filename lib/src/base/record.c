// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The sizes of the record types of this schema. A record that is longer comes
 * from a newer schema and is valid; its tail is ignored.
 */
#include "base/record.h"

unsigned int mw_record_size_min(unsigned int type)
{
	switch (type) {
	case MEMWATCH_RECORD_SAMPLE:
		return sizeof(struct memwatch_record_sample);
	case MEMWATCH_RECORD_TICK:
		return sizeof(struct memwatch_record_tick);
	case MEMWATCH_RECORD_RMID_ALLOC:
	case MEMWATCH_RECORD_RMID_EXISTING:
	case MEMWATCH_RECORD_RMID_EXEC:
	case MEMWATCH_RECORD_RMID_FREE:
		return sizeof(struct memwatch_record_rmid);
	case MEMWATCH_RECORD_DUMP_BEGIN:
	case MEMWATCH_RECORD_DUMP_END:
		return sizeof(struct memwatch_record_dump);
	case MEMWATCH_RECORD_CPU_STATE:
		return sizeof(struct memwatch_record_cpu);
	case MEMWATCH_RECORD_RDT:
		return sizeof(struct memwatch_record_rdt);
	case MEMWATCH_RECORD_NOTICE:
		return sizeof(struct memwatch_record_notice);
	case MEMWATCH_RECORD_LOST:
		return sizeof(struct memwatch_record_lost);
	case MEMWATCH_RECORD_GROWTH:
		return sizeof(struct memwatch_record_growth);
	default:
		return sizeof(struct memwatch_record_header);
	}
}

bool mw_record_valid(const struct memwatch_record_header *header, size_t available)
{
	return header->size <= available && header->size % 8 == 0 &&
	       header->size >= mw_record_size_min(header->type);
}
