/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Numbers of fields in profile.proto of pprof, and its reader. The writer is
 * memwatch_heap_write_pprof().
 */
#ifndef MW_HEAP_PPROF_H
#define MW_HEAP_PPROF_H

#include <stdbool.h>

#include "heap/input.h"
#include "heap/model.h"

enum mw_pprof_profile {
	MW_PPROF_SAMPLE_TYPE = 1,
	MW_PPROF_SAMPLE = 2,
	MW_PPROF_MAPPING = 3,
	MW_PPROF_LOCATION = 4,
	MW_PPROF_FUNCTION = 5,
	MW_PPROF_STRING = 6,
	MW_PPROF_TIME = 9,
	MW_PPROF_DURATION = 10,
	MW_PPROF_PERIOD_TYPE = 11,
	MW_PPROF_PERIOD = 12,
	MW_PPROF_COMMENT = 13,
	MW_PPROF_DEFAULT_TYPE = 14,
};

enum mw_pprof_value_type { MW_PPROF_TYPE_NAME = 1, MW_PPROF_TYPE_UNIT = 2 };

enum mw_pprof_sample { MW_PPROF_SAMPLE_LOCATIONS = 1, MW_PPROF_SAMPLE_VALUES = 2 };

/* Mappings, locations and functions begin with their id. */
#define MW_PPROF_ID 1

enum mw_pprof_mapping {
	MW_PPROF_MAPPING_START = 2,
	MW_PPROF_MAPPING_LIMIT = 3,
	MW_PPROF_MAPPING_OFFSET = 4,
	MW_PPROF_MAPPING_FILE = 5,
	MW_PPROF_MAPPING_BUILD_ID = 6,
	MW_PPROF_MAPPING_HAS_FUNCTIONS = 7,
	MW_PPROF_MAPPING_HAS_FILES = 8,
	MW_PPROF_MAPPING_HAS_LINES = 9,
	MW_PPROF_MAPPING_HAS_INLINES = 10,
};

enum mw_pprof_location {
	MW_PPROF_LOCATION_MAPPING = 2,
	MW_PPROF_LOCATION_ADDRESS = 3,
	MW_PPROF_LOCATION_LINE = 4,
};

enum mw_pprof_line { MW_PPROF_LINE_FUNCTION = 1, MW_PPROF_LINE_NUMBER = 2 };

enum mw_pprof_function { MW_PPROF_FUNCTION_NAME = 2, MW_PPROF_FUNCTION_FILE = 4 };

/* Whether the file can be a profile.proto. */
bool mw_pprof_is(const struct mw_input *input);

/* Adds the samples of a file to the last profile of the heap. Returns 0 or a negative errno. */
int mw_pprof_read(struct memwatch_heap *heap, const struct mw_input *input);

#endif /* MW_HEAP_PPROF_H */
