/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The shape of an entry point. An allocation that is not sampled is a countdown and a jump; a
 * free of an object that is not sampled is a test of the filter and a jump.
 *
 * The slow half is a function of its own, so that the fast half needs no stack frame and ends
 * in a jump: the allocator below sees the caller of this library as its own caller.
 */
#ifndef _MW_HEAP_ENTRY_H
#define _MW_HEAP_ENTRY_H

#include "filter.h"
#include "isolate.h"
#include "record.h"
#include "thread.h"

/* Not marked as cold: while a trace is on, every call comes here. */
#define MW_SLOW __attribute__((noinline)) static

/* In a slow half: where the return address of the application is. */
#define MW_FRAME __builtin_frame_address(0)

/*
 * MW_ALLOCATOR(NAME, PARAMETERS, ARGUMENTS, NEXT, ALIGNMENT, SIZE, SOURCE) defines the exported
 * function NAME that returns memory of SIZE bytes from NEXT. ALIGNMENT is 1 if it has none.
 */
#define MW_ALLOCATOR(name, parameters, arguments, next, alignment, size, source)                   \
	MW_SLOW void *name##_slow parameters                                                       \
	{                                                                                          \
		unsigned int due = mw_record_due(size);                                            \
		void *memory = mw_isolate(&due, alignment, size);                                  \
                                                                                                   \
		if (!memory)                                                                       \
			memory = next arguments;                                                   \
		if (due && memory)                                                                 \
			mw_record_allocation(due, memory, size, source, MW_FRAME);                 \
		return memory;                                                                     \
	}                                                                                          \
	MW_EXPORT void *name parameters                                                            \
	{                                                                                          \
		if (mw_unlikely(mw_countdown_expires(size)))                                       \
			return name##_slow arguments;                                              \
		return next arguments;                                                             \
	}

/* The same for functions that free their first argument, `address`. */
#define MW_DEALLOCATOR(name, parameters, arguments, next)                                          \
	MW_SLOW void name##_slow parameters                                                        \
	{                                                                                          \
		if (mw_record_free(address, MW_FRAME))                                             \
			next arguments;                                                            \
	}                                                                                          \
	MW_EXPORT void name parameters                                                             \
	{                                                                                          \
		if (mw_unlikely(mw_filter_may_have(address))) {                                    \
			name##_slow arguments;                                                     \
			return;                                                                    \
		}                                                                                  \
		next arguments;                                                                    \
	}

#endif
