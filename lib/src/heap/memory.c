// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads /proc/PID/smaps, and what says what a mapping is for: the stack pointers of the threads
 * and the table of mounts.
 */
#include "heap/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "heap/process.h"
#include "base/array.h"
#include "base/context.h"
#include "base/text.h"
#include "base/timemath.h"

/* The C library aligns its arenas to this (HEAP_MAX_SIZE), and reserves as much for each. */
#define ARENA_ALIGN (64ULL << 20)
/* Guard pages of stacks are not larger, unless a program asks for it. */
#define GUARD_MAX (64U << 10)
#define TMPFS_MAX 64

/* How often a thread is asked for its stack pointer, a millisecond apart. */
#define ASKED_MOST 5

/* Bits of an entry of pagemap. */
#define PAGEMAP_PRESENT (1ULL << 63)

/**
 * struct smaps - smaps while it is read
 * @tmpfs: devices of the mounted tmpfs, major << 32 | minor
 * @guard_end: where the last mapping ends if it looks like a guard page; otherwise 0
 */
struct smaps {
	struct memwatch_heap_memory *memory;
	uint64_t tmpfs[TMPFS_MAX];
	uint32_t nr_tmpfs;
	uint64_t guard_end;
};

static int read_proc(struct memwatch_heap_memory *memory, uint32_t pid, const char *name,
		     char **text, size_t *len)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return mw_text_read_file(memory->ctx, path, text, len);
}

/* "36 35 0:32 /mnt1 /mnt2 rw,noatime shared:1 - tmpfs tmpfs rw" */
static void read_mounts(struct smaps *smaps, uint32_t pid)
{
	struct mw_text rest, line, field;
	char *text, device[32];
	size_t len;

	if (read_proc(smaps->memory, pid, "mountinfo", &text, &len))
		return;
	rest = (struct mw_text){ text, len };
	while (smaps->nr_tmpfs < TMPFS_MAX && mw_text_take(&rest, '\n', &line)) {
		unsigned int major, minor;
		bool named;

		if (!mw_text_take(&line, ' ', &field) || !mw_text_take(&line, ' ', &field) ||
		    !mw_text_take(&line, ' ', &field) ||
		    !mw_text_copy(field, device, sizeof(device)) ||
		    sscanf(device, "%u:%u", &major, &minor) != 2)
			continue;
		while ((named = mw_text_take(&line, ' ', &field)) && !mw_text_is(field, "-"))
			;
		if (named && mw_text_take(&line, ' ', &field) && mw_text_is(field, "tmpfs"))
			smaps->tmpfs[smaps->nr_tmpfs++] = (uint64_t)major << 32 | minor;
	}
	free(text);
}

static bool is_shared(const struct smaps *smaps, const char *name, uint64_t device)
{
	static const char *const prefixes[] = { "/memfd:", "/SYSV", "/dev/zero", "[anon_shmem:" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	for (uint32_t i = 0; i < smaps->nr_tmpfs; i++)
		if (smaps->tmpfs[i] == device)
			return true;
	return false;
}

static enum mw_memory_kind kind_of(const struct smaps *smaps, uint64_t start, const char *name,
				   uint64_t device)
{
	if (!strcmp(name, "[heap]"))
		return MW_MEMORY_HEAP;
	if (!strncmp(name, "[stack", 6))
		return MW_MEMORY_STACK;
	if (is_shared(smaps, name, device))
		return MW_MEMORY_SHARED;
	if (!*name || !strncmp(name, "[anon:", 6))
		return smaps->guard_end == start && start % ARENA_ALIGN ? MW_MEMORY_STACK
									: MW_MEMORY_ANONYMOUS;
	return MW_MEMORY_FILE;
}

/* "START-END PERMISSIONS OFFSET MAJOR:MINOR INODE NAME"; the name may be missing. */
static int begin_mapping(struct smaps *smaps, const char *line)
{
	struct memwatch_heap_memory *memory = smaps->memory;
	struct mw_memory_mapping mapping = { 0 };
	unsigned int major, minor;
	char permissions[5], name[16];
	int fields;

	*name = '\0';
	fields = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %x:%x %*u %15[^\n]", &mapping.start,
			&mapping.end, permissions, &major, &minor, name);
	if (fields < 5 || mapping.start >= mapping.end)
		return mw_fail(memory->ctx, -EBADMSG, "smaps: a line is not understood");
	mapping.kind = kind_of(smaps, mapping.start, name, (uint64_t)major << 32 | minor);
	smaps->guard_end = 0;
	if (!strcmp(permissions, "---p") && !*name && mapping.end - mapping.start <= GUARD_MAX)
		smaps->guard_end = mapping.end;
	if (mw_array_reserve(memory->mappings, memory->capacity, memory->nr_mappings + 1U))
		return mw_fail_memory(memory->ctx, "smaps");
	memory->mappings[memory->nr_mappings++] = mapping;
	return 0;
}

/* A line about the last mapping: "Rss:   12 kB". */
static void add_value(struct memwatch_heap_memory *memory, const char *line)
{
	struct mw_memory_mapping *mapping = &memory->mappings[memory->nr_mappings - 1];
	uint64_t kib;

	if (sscanf(line, "Rss: %" SCNu64, &kib) == 1)
		mapping->resident = kib << 10;
	else if (sscanf(line, "Swap: %" SCNu64, &kib) == 1)
		mapping->swapped = kib << 10;
	else if (!strncmp(line, "VmFlags:", 8) && strstr(line, " nr") &&
		 mapping->kind == MW_MEMORY_ANONYMOUS && mapping->start % ARENA_ALIGN == 0)
		mapping->kind = MW_MEMORY_ARENA;
}

static int read_smaps(struct smaps *smaps, uint32_t pid)
{
	struct mw_text rest, line;
	char *text, copy[256];
	size_t len;
	int err = read_proc(smaps->memory, pid, "smaps", &text, &len);

	if (err == -ENOENT)
		return mw_fail(smaps->memory->ctx, err, "there is no process %u", pid);
	if (err)
		return err;
	rest = (struct mw_text){ text, len };
	while (!err && mw_text_take(&rest, '\n', &line)) {
		/* The end of a long name is not needed. */
		size_t part = line.len < sizeof(copy) - 1 ? line.len : sizeof(copy) - 1;

		memcpy(copy, line.at, part);
		copy[part] = '\0';
		if (part && !(*copy >= 'A' && *copy <= 'Z'))
			err = begin_mapping(smaps, copy);
		else if (smaps->memory->nr_mappings)
			add_value(smaps->memory, copy);
	}
	free(text);
	if (!err && !smaps->memory->nr_mappings)
		err = mw_fail(smaps->memory->ctx, -ESRCH, "process %u has no memory", pid);
	return err;
}

/*
 * "NUMBER ARGUMENTS... STACK_POINTER PC" of a thread that waits; otherwise "running", and false is
 * returned.
 */
static bool mark_stack(struct memwatch_heap_memory *memory, uint32_t pid, const char *tid)
{
	struct mw_text rest, field = { 0 }, last = { 0 }, pointer;
	struct mw_memory_mapping *mapping;
	char name[64], *text, number[32];
	size_t len;

	snprintf(name, sizeof(name), "task/%.20s/syscall", tid);
	if (read_proc(memory, pid, name, &text, &len))
		return true;
	rest = (struct mw_text){ text, len };
	do {
		pointer = last;
		last = field;
	} while (mw_text_take(&rest, ' ', &field));
	mapping = pointer.at && mw_text_copy(pointer, number, sizeof(number))
			  ? mw_memory_find(memory, strtoull(number, NULL, 16))
			  : NULL;
	if (mapping && (mapping->kind == MW_MEMORY_ANONYMOUS || mapping->kind == MW_MEMORY_ARENA))
		mapping->kind = MW_MEMORY_STACK;
	free(text);
	return pointer.at;
}

/* Returns the number of threads whose stack is not known because they run. */
static uint32_t mark_all_stacks(struct memwatch_heap_memory *memory, uint32_t pid)
{
	uint32_t threads = 0, running = 0;
	struct dirent *entry;
	char path[64], *full;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	if (mw_ctx_path(memory->ctx, path, &full))
		return 0;
	directory = opendir(full);
	free(full);
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.') {
			threads++;
			running += !mark_stack(memory, pid, entry->d_name);
		}
	if (directory)
		closedir(directory);
	memory->threads = threads;
	return running;
}

/* Most threads that run will wait in a moment, so those that run are asked again. */
static void mark_stacks(struct memwatch_heap_memory *memory, uint32_t pid)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int i = 1; mark_all_stacks(memory, pid) && i < ASKED_MOST; i++)
		nanosleep(&moment, NULL);
}

static void read_status(struct memwatch_heap_memory *memory, uint32_t pid)
{
	struct mw_text rest, line;
	char *text, copy[64];
	uint64_t kib;
	size_t len;

	if (read_proc(memory, pid, "status", &text, &len))
		return;
	rest = (struct mw_text){ text, len };
	while (mw_text_take(&rest, '\n', &line))
		if (mw_text_skip(&line, "VmPTE:") && mw_text_copy(line, copy, sizeof(copy)) &&
		    sscanf(copy, " %" SCNu64, &kib) == 1)
			memory->page_table_bytes = kib << 10;
	free(text);
}

static void open_pagemap(struct memwatch_heap_memory *memory, uint32_t pid)
{
	char path[64], *full;

	memory->pagemap = -1;
	snprintf(path, sizeof(path), "/proc/%u/pagemap", pid);
	if (mw_ctx_path(memory->ctx, path, &full))
		return;
	memory->pagemap = open(full, O_RDONLY | O_CLOEXEC);
	free(full);
}

int memwatch_heap_memory_new(struct memwatch_ctx *ctx, __u32 pid, struct memwatch_heap_memory **ret)
{
	struct memwatch_heap_memory *memory = calloc(1, sizeof(*memory));
	struct smaps smaps = { .memory = memory };
	int err;

	if (!memory)
		return mw_fail_memory(ctx, "smaps");
	memory->ctx = memwatch_ctx_ref(ctx);
	memory->time_ns = mw_clock(CLOCK_MONOTONIC) + (uint64_t)mw_process_clock_ahead(ctx, pid);
	memory->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	open_pagemap(memory, pid);
	read_mounts(&smaps, pid);
	err = read_smaps(&smaps, pid);
	if (err) {
		memwatch_heap_memory_unref(memory);
		return err;
	}
	mark_stacks(memory, pid);
	read_status(memory, pid);
	*ret = memory;
	return 0;
}

struct memwatch_heap_memory *memwatch_heap_memory_unref(struct memwatch_heap_memory *memory)
{
	if (!memory)
		return NULL;
	if (memory->pagemap >= 0)
		close(memory->pagemap);
	free(memory->mappings);
	memwatch_ctx_unref(memory->ctx);
	free(memory);
	return NULL;
}

static int compare_address(const void *key, const void *element)
{
	const struct mw_memory_mapping *mapping = element;
	uint64_t address = *(const uint64_t *)key;

	return address < mapping->start ? -1 : address >= mapping->end;
}

struct mw_memory_mapping *mw_memory_find(const struct memwatch_heap_memory *memory,
					 uint64_t address)
{
	return bsearch(&address, memory->mappings, memory->nr_mappings, sizeof(*memory->mappings),
		       compare_address);
}

/* Reads the entries of @nr pages from the one that contains @address. */
static bool read_pages(const struct memwatch_heap_memory *memory, uint64_t address, uint64_t *pages,
		       uint64_t nr)
{
	ssize_t bytes = (ssize_t)(nr * sizeof(*pages));

	return memory->pagemap >= 0 && pread(memory->pagemap, pages, (size_t)bytes,
					     (off_t)(address / memory->page_bytes * 8)) == bytes;
}

uint64_t mw_memory_resident(const struct memwatch_heap_memory *memory, uint64_t start, uint64_t end)
{
	uint64_t pages[512], resident = 0, page = memory->page_bytes;

	while (start < end) {
		uint64_t first = start / page * page;
		uint64_t nr = mw_min_u64((end - first + page - 1) / page, 512);

		if (!read_pages(memory, first, pages, nr))
			return resident + (end - start);
		for (uint64_t i = 0; i < nr; i++) {
			uint64_t next = mw_min_u64(first + (i + 1) * page, end);

			if (pages[i] & PAGEMAP_PRESENT)
				resident += next - start;
			start = next;
		}
	}
	return resident;
}

uint64_t mw_memory_untouched_end(const struct memwatch_heap_memory *memory,
				 const struct mw_memory_mapping *mapping)
{
	uint64_t pages[512], end = mapping->end, page = memory->page_bytes;

	while (end > mapping->start) {
		uint64_t nr = mw_min_u64((end - mapping->start) / page, 512);

		if (!nr || !read_pages(memory, end - nr * page, pages, nr))
			break;
		for (uint64_t i = nr; i-- > 0; end -= page)
			if (pages[i] & PAGEMAP_PRESENT)
				return mapping->end - end;
	}
	return mapping->end - end;
}
