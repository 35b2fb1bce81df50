/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds the callers in a copy of a stack: by the unwind tables of programs and libraries, and by
 * frame pointers in code that has none. It parses files of other users, so it only runs in a
 * confined child.
 */
#ifndef MW_WHERE_UNWIND_H
#define MW_WHERE_UNWIND_H

#include "bpf/where.h"
#include "heap/model.h"
#include "heap/modules.h"

struct mw_unwinder;

/*
 * @heap has the executable mappings of the process, @modules their files. Returns NULL if elfutils
 * is not installed, or there is no memory.
 */
struct mw_unwinder *mw_unwinder_open(const struct memwatch_heap *heap,
				     const struct mw_modules *modules);
void mw_unwinder_close(struct mw_unwinder *unwinder);

/*
 * Writes the addresses of the calls to @to, innermost first, which has room for @max. Returns how
 * many there are: at least one. @unwinder may be NULL.
 */
uint32_t mw_unwinder_run(struct mw_unwinder *unwinder, const struct mw_where_sample *sample,
			 uint64_t *to, uint32_t max);

#endif /* MW_WHERE_UNWIND_H */
