// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A malloc() that is preloaded behind the profiler and writes down the stack of each call as
 * libgcc unwinds it: an independent opinion about the profiler's own stacks.
 *
 * Records go to the file descriptor in HEAP_ORACLE_FD: a count, and as many addresses.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define FRAMES_MAX 256

static void *(*next_malloc)(size_t size);
static struct range {
	const char *name;
	uintptr_t start, end;
} profiler = { .name = "libmemwatch-heap" }, own = { .name = "oracle.so" };
static int output = -1;
static __thread bool inside __attribute__((tls_model("initial-exec")));

struct stack {
	uint64_t count;
	uint64_t frames[FRAMES_MAX];
};

/* Which frames have been seen: from the inside, those of this library, the profiler, the program.
 */
static __thread enum {
	FRAMES_ORACLE,
	FRAMES_PROFILER,
	FRAMES_PROGRAM,
	FRAMES_MIXED
} part __attribute__((tls_model("initial-exec")));

static _Unwind_Reason_Code frame_add(struct _Unwind_Context *context, void *argument)
{
	struct stack *stack = argument;
	int exact = 0;
	uintptr_t pc = _Unwind_GetIPInfo(context, &exact) - !exact;

	if (part == FRAMES_ORACLE && pc >= own.start && pc < own.end)
		return _URC_NO_REASON;
	if (pc >= profiler.start && pc < profiler.end) {
		/* Once more: the profiler itself allocates, which is no business of the program. */
		part = part >= FRAMES_PROGRAM ? FRAMES_MIXED : FRAMES_PROFILER;
		return _URC_NO_REASON;
	}
	part = part < FRAMES_PROGRAM ? FRAMES_PROGRAM : part;
	if (stack->count < FRAMES_MAX)
		stack->frames[stack->count++] = pc;
	return _URC_NO_REASON;
}

static int object_find(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct range *range = argument;

	(void)size;
	if (!info->dlpi_name || !strstr(info->dlpi_name, range->name))
		return 0;
	range->start = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
				info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && end > range->end)
			range->end = end;
	}
	return 1;
}

static void stack_write(void)
{
	struct stack stack = { 0 };

	inside = true;
	part = FRAMES_ORACLE;
	_Unwind_Backtrace(frame_add, &stack);
	/* The end of a thread's stack is reported as address 0, or as what comes before it. */
	while (stack.count && stack.frames[stack.count - 1] + 1 <= 1)
		stack.count--;
	if (part == FRAMES_PROGRAM &&
	    write(output, &stack, (stack.count + 1) * sizeof(uint64_t)) < 0)
		output = -1;
	inside = false;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	if (!next_malloc) {
		void *found = dlsym(RTLD_NEXT, "malloc");

		memcpy(&next_malloc, &found, sizeof(found));
	}
	if (output >= 0 && !inside)
		stack_write();
	return next_malloc(size);
}

__attribute__((constructor)) static void oracle_begin(void)
{
	const char *fd = getenv("HEAP_ORACLE_FD");
	struct stack stack = { 0 };

	inside = true;
	dl_iterate_phdr(object_find, &profiler);
	dl_iterate_phdr(object_find, &own);
	/* The first call loads what the unwinder needs. */
	_Unwind_Backtrace(frame_add, &stack);
	inside = false;
	if (fd)
		output = atoi(fd);
}
