// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Compiles only if the UAPI header has the layout of layout.h. check-uapi compiles it as C,
 * as C++ and for BPF. It uses no C library, because not every target has one here.
 */
#include <linux/memwatch.h>

#ifdef __cplusplus
#define ASSERT(condition, text) static_assert(condition, text)
#else
#define ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define SIZE(type, bytes) ASSERT(sizeof(type) == (bytes), "size of " #type)
#define AT(type, member, bytes)                                                                    \
	ASSERT(__builtin_offsetof(type, member) == (bytes), "offset of " #type "." #member)
#define IS(name, value) ASSERT((unsigned long long)(name) == (value), "value of " #name)

#include "layout.h"

/* Readers rely on this: records follow each other without gaps. */
ASSERT(sizeof(struct memwatch_record_sample) % 8 == 0, "records are multiples of 8");
ASSERT(sizeof(struct memwatch_record_tick) % 8 == 0, "records are multiples of 8");
ASSERT(sizeof(struct memwatch_record_rmid) % 8 == 0, "records are multiples of 8");
ASSERT(sizeof(struct memwatch_record_dump) % 8 == 0, "records are multiples of 8");
ASSERT(sizeof(struct memwatch_record_cpu) % 8 == 0, "records are multiples of 8");
ASSERT(sizeof(struct memwatch_record_rdt) % 8 == 0, "records are multiples of 8");
ASSERT(sizeof(struct memwatch_record_lost) % 8 == 0, "records are multiples of 8");
