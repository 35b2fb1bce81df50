// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * When each object of a program was accessed last, as its compiler says.
 *
 * The program is compiled for ThreadSanitizer, so that it calls a function before each load and
 * each store; here these functions are not those of ThreadSanitizer. Functions of the C library
 *that get an address are wrapped by the linker. The times are in a table with an entry for each 16
 *bytes of addresses. At its end, the program writes to the file ACCESS_TRUTH what it has allocated
 *and not freed:
 *
 *	object ADDRESS SIZE NS		NS is CLOCK_MONOTONIC of its last access
 *	page ADDRESS NS			a page of a large object
 *	end NS
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Heaps, and what is mapped, differ in these bits of their addresses. */
#define ADDRESS_BITS 44
#define UNIT_BITS    4
#define PAGE_BITS    12
#define PAGES_MOST   (1u << 22)
#define UNITS	     (UINT64_C(1) << (PAGE_BITS - UNIT_BITS))
#define LARGE_BYTES  65536

static uint64_t *last_ns; /* of each unit */
static uint32_t *sizes;	  /* of the object that begins there, and 1 */
static uint8_t *seen;	  /* whether a page is in the list */
static uint64_t pages[PAGES_MOST];
static uint32_t page_count;

static void *table_map(uint64_t bytes)
{
	void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (table == MAP_FAILED)
		abort();
	return table;
}

__attribute__((constructor)) static void tables_map(void)
{
	const uint64_t units = UINT64_C(1) << (ADDRESS_BITS - UNIT_BITS);

	if (last_ns)
		return;
	last_ns = table_map(units * sizeof(*last_ns));
	sizes = table_map(units * sizeof(*sizes));
	seen = table_map(UINT64_C(1) << (ADDRESS_BITS - PAGE_BITS));
}

static uint64_t unit_of(uint64_t address)
{
	return (address & ((UINT64_C(1) << ADDRESS_BITS) - 1)) >> UNIT_BITS;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void range_set(const void *begin, size_t bytes, uint64_t ns)
{
	tables_map();
	for (uint64_t unit = unit_of((uintptr_t)begin);
	     bytes && unit <= unit_of((uintptr_t)begin + bytes - 1); unit++)
		last_ns[unit] = ns;
}

static void range_note(const void *begin, size_t bytes)
{
	range_set(begin, bytes, now_ns());
}

static void object_begin(const void *object, size_t size)
{
	uint64_t page = (uintptr_t)object >> PAGE_BITS;
	uint64_t unit = unit_of((uintptr_t)object);

	tables_map();
	if (!seen[unit / UNITS] && page_count < PAGES_MOST) {
		seen[unit / UNITS] = 1;
		pages[page_count++] = page;
	}
	sizes[unit] = (uint32_t)size + 1;
}

static void object_end(const void *object)
{
	tables_map();
	sizes[unit_of((uintptr_t)object)] = 0;
}

static uint64_t range_last(uint64_t begin, uint64_t bytes)
{
	uint64_t last = 0;

	for (uint64_t at = begin; at < begin + bytes; at += 1u << UNIT_BITS)
		if (last_ns[unit_of(at)] > last)
			last = last_ns[unit_of(at)];
	return last;
}

static void object_write(FILE *file, uint64_t address, uint32_t size)
{
	const uint64_t page = UINT64_C(1) << PAGE_BITS;

	fprintf(file, "object %" PRIx64 " %u %" PRIu64 "\n", address, size,
		range_last(address, size));
	if (size <= LARGE_BYTES)
		return;
	for (uint64_t at = (address + page - 1) & ~(page - 1); at + page <= address + size;
	     at += page)
		fprintf(file, "page %" PRIx64 " %" PRIu64 "\n", at, range_last(at, page));
}

__attribute__((destructor)) static void truth_write(void)
{
	const char *path = getenv("ACCESS_TRUTH");
	uint64_t end = now_ns();
	FILE *file = path ? fopen(path, "w") : NULL;

	for (uint32_t i = 0; file && i < page_count; i++)
		for (uint64_t n = 0; n < UNITS; n++) {
			uint64_t address = (pages[i] * UNITS + n) << UNIT_BITS;
			uint32_t size = sizes[unit_of(address)];

			if (size)
				object_write(file, address, size - 1);
		}
	if (file) {
		fprintf(file, "end %" PRIu64 "\n", end);
		fclose(file);
	}
}

/* What the compiler calls. */
#define ACCESS(name, bytes)                                                                        \
	void __tsan_##name(void *at);                                                              \
	void __tsan_##name(void *at)                                                               \
	{                                                                                          \
		range_note(at, (bytes));                                                           \
	}

ACCESS(read1, 1)
ACCESS(read2, 2)
ACCESS(read4, 4)
ACCESS(read8, 8)
ACCESS(read16, 16)
ACCESS(write1, 1)
ACCESS(write2, 2)
ACCESS(write4, 4)
ACCESS(write8, 8)
ACCESS(write16, 16)
ACCESS(unaligned_read2, 2)
ACCESS(unaligned_read4, 4)
ACCESS(unaligned_read8, 8)
ACCESS(unaligned_read16, 16)
ACCESS(unaligned_write2, 2)
ACCESS(unaligned_write4, 4)
ACCESS(unaligned_write8, 8)
ACCESS(unaligned_write16, 16)

void __tsan_init(void);
void __tsan_init(void)
{
}

/* Functions of the C library that the linker leads here, this file's own calls too; the real ones
 * have "__real_" in front. */
#define WRAPPED(type, name, parameters)                                                            \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters

WRAPPED(void *, malloc, (size_t size))
{
	void *object = __real_malloc(size);

	if (object)
		object_begin(object, size);
	return object;
}

/* The content was perhaps moved, before the new object existed for the program. */
WRAPPED(void *, realloc, (void *old, size_t size))
{
	uint64_t before = now_ns();
	void *object = __real_realloc(old, size);

	if (old && (object || !size))
		object_end(old);
	if (object)
		object_begin(object, size);
	if (object)
		range_set(object, size, before);
	return object;
}

WRAPPED(void, free, (void *object))
{
	if (object)
		object_end(object);
	__real_free(object);
}

WRAPPED(void *, memcpy, (void *to, const void *from, size_t bytes))
{
	range_note(to, bytes);
	range_note(from, bytes);
	return __real_memcpy(to, from, bytes);
}

WRAPPED(void *, memmove, (void *to, const void *from, size_t bytes))
{
	range_note(to, bytes);
	range_note(from, bytes);
	return __real_memmove(to, from, bytes);
}

WRAPPED(void *, memset, (void *to, int byte, size_t bytes))
{
	range_note(to, bytes);
	return __real_memset(to, byte, bytes);
}

WRAPPED(int, memcmp, (const void *a, const void *b, size_t bytes))
{
	range_note(a, bytes);
	range_note(b, bytes);
	return __real_memcmp(a, b, bytes);
}

WRAPPED(void *, memchr, (const void *in, int byte, size_t bytes))
{
	const char *found = __real_memchr(in, byte, bytes);

	range_note(in, found ? (size_t)(found - (const char *)in) + 1 : bytes);
	return (void *)(uintptr_t)found;
}

size_t __real_strlen(const char *text);

static void text_note(const char *text)
{
	range_note(text, __real_strlen(text) + 1);
}

WRAPPED(size_t, strlen, (const char *text))
{
	text_note(text);
	return __real_strlen(text);
}

WRAPPED(char *, strcpy, (char *to, const char *from))
{
	text_note(from);
	range_note(to, __real_strlen(from) + 1);
	return __real_strcpy(to, from);
}

WRAPPED(char *, strchr, (const char *text, int byte))
{
	const char *found = __real_strchr(text, byte);

	range_note(text, (found ? (size_t)(found - text) : __real_strlen(text)) + 1);
	return (char *)(uintptr_t)found;
}

/* Of these, it is not known how far they have looked. */
#define WRAPPED_TEXTS(type, name)                                                                  \
	WRAPPED(type, name, (const char *a, const char *b))                                        \
	{                                                                                          \
		text_note(a);                                                                      \
		text_note(b);                                                                      \
		return __real_##name(a, b);                                                        \
	}

WRAPPED_TEXTS(int, strcmp)
WRAPPED_TEXTS(int, strcoll)
WRAPPED_TEXTS(char *, strpbrk)
WRAPPED_TEXTS(size_t, strspn)

WRAPPED(int, snprintf, (char *to, size_t size, const char *format, ...))
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(to, size, format, arguments);
	va_end(arguments);
	range_note(to, (size_t)length < size ? (size_t)length + 1 : size);
	return length;
}

WRAPPED(size_t, fwrite, (const void *from, size_t size, size_t count, FILE *file))
{
	range_note(from, size * count);
	return __real_fwrite(from, size, count, file);
}

WRAPPED(size_t, fread, (void *to, size_t size, size_t count, FILE *file))
{
	size_t got = __real_fread(to, size, count, file);

	range_note(to, size * got);
	return got;
}

WRAPPED(char *, fgets, (char *to, int size, FILE *file))
{
	char *line = __real_fgets(to, size, file);

	if (line)
		text_note(line);
	return line;
}

/* System calls. */
WRAPPED(ssize_t, read, (int fd, void *to, size_t bytes))
{
	ssize_t got = __real_read(fd, to, bytes);

	if (got > 0)
		range_note(to, (size_t)got);
	return got;
}

WRAPPED(ssize_t, write, (int fd, const void *from, size_t bytes))
{
	range_note(from, bytes);
	return __real_write(fd, from, bytes);
}
