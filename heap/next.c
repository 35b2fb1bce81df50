/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The next definitions of the functions that this library interposes. Each pointer begins as
 * a function that looks everything up and then calls what it found.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bootstrap.h"
#include "elf-symbol.h"
#include "next.h"
#include "thread.h"

/* True while this thread looks symbols up; what it allocates then comes from the bootstrap heap. */
static __thread bool resolving __attribute__((tls_model("initial-exec")));

static void *first_malloc(size_t size)
{
	if (resolving)
		return mw_bootstrap_allocate(0, size);
	mw_next_resolve();
	return mw_next.malloc(size);
}

static void first_free(void *address)
{
	if (resolving || !address)
		return;
	mw_next_resolve();
	mw_next.free(address);
}

static void *first_calloc(size_t count, size_t size)
{
	size_t bytes;

	if (!resolving) {
		mw_next_resolve();
		return mw_next.calloc(count, size);
	}
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return mw_bootstrap_allocate(0, bytes);
}

static void *first_realloc(void *address, size_t size)
{
	void *moved;

	if (!resolving) {
		mw_next_resolve();
		return mw_next.realloc(address, size);
	}
	moved = mw_bootstrap_allocate(0, size);
	if (moved && address) {
		size_t old = mw_bootstrap_size(address);

		memcpy(moved, address, old < size ? old : size);
	}
	return moved;
}

static void *first_front_realloc(void *address, size_t size)
{
	if (!mw_next_resolve())
		return first_realloc(address, size);
	return mw_next.front_realloc(address, size);
}

static int first_posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *memory;

	if (!resolving) {
		mw_next_resolve();
		return mw_next.posix_memalign(ret, alignment, size);
	}
	memory = mw_bootstrap_allocate(alignment, size);
	if (!memory)
		return ENOMEM;
	*ret = memory;
	return 0;
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
	if (resolving)
		return mw_bootstrap_allocate(alignment, size);
	mw_next_resolve();
	return mw_next.aligned_alloc(alignment, size);
}

static void *first_memalign(size_t alignment, size_t size)
{
	if (resolving)
		return mw_bootstrap_allocate(alignment, size);
	mw_next_resolve();
	return mw_next.memalign(alignment, size);
}

static void *first_valloc(size_t size)
{
	mw_next_resolve();
	return mw_next.valloc(size);
}

static void *first_pvalloc(size_t size)
{
	mw_next_resolve();
	return mw_next.pvalloc(size);
}

static int first_dlclose(void *handle)
{
	mw_next_resolve();
	return mw_next.dlclose(handle);
}

static int first_pthread_getattr_np(pthread_t thread, pthread_attr_t *ret)
{
	mw_next_resolve();
	return mw_next.pthread_getattr_np(thread, ret);
}

/* The system calls, until it is known who else may define these functions. */
static void *first_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static int first_munmap(void *address, size_t size)
{
	return (int)syscall(SYS_munmap, address, size);
}

static void *first_mremap(void *address, size_t old_size, size_t size, int flags, ...)
{
	void *target;
	va_list arguments;

	va_start(arguments, flags);
	target = va_arg(arguments, void *);
	va_end(arguments);
	return (void *)syscall(SYS_mremap, address, old_size, size, flags, target);
}

struct mw_next mw_next MW_HIDDEN = {
	.malloc = first_malloc,
	.free = first_free,
	.calloc = first_calloc,
	.realloc = first_realloc,
	.front_realloc = first_front_realloc,
	.posix_memalign = first_posix_memalign,
	.aligned_alloc = first_aligned_alloc,
	.memalign = first_memalign,
	.valloc = first_valloc,
	.pvalloc = first_pvalloc,
	.dlclose = first_dlclose,
	.pthread_getattr_np = first_pthread_getattr_np,
	.mmap = first_mmap,
	.munmap = first_munmap,
	.mremap = first_mremap,
};

/* POSIX gives data and functions the same pointers; ISO C has no cast for it. */
static void pointer_set(void *ret, void *found)
{
	if (found)
		memcpy(ret, &found, sizeof(found));
}

static void symbol_find(void *ret, const char *name)
{
	pointer_set(ret, dlsym(RTLD_NEXT, name));
}

bool mw_next_is_allocator(const void *pc)
{
	return mw_next.allocator_map && mw_elf_object(pc) == mw_next.allocator_map;
}

/* Whose malloc is below, by what only that allocator defines next to it. */
static enum mw_heap_allocator allocator_detect(const void *map)
{
	static const struct {
		const char *symbol;
		enum mw_heap_allocator allocator;
	} marks[] = {
		{ "mallinfo2", MW_HEAP_ALLOCATOR_GLIBC },
		{ "mi_malloc", MW_HEAP_ALLOCATOR_MIMALLOC },
		{ "mallctl", MW_HEAP_ALLOCATOR_JEMALLOC },
		{ "tc_malloc", MW_HEAP_ALLOCATOR_TCMALLOC },
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (map && mw_elf_object(dlsym(RTLD_NEXT, marks[i].symbol)) == map)
			return marks[i].allocator;
	return MW_HEAP_ALLOCATOR_UNKNOWN;
}

static void allocator_find(struct mw_next *next)
{
	void *next_malloc;

	memcpy(&next_malloc, &next->malloc, sizeof(next_malloc));
	next->allocator_map = mw_elf_object(next_malloc);
	next->allocator = allocator_detect(next->allocator_map);
	if (next->allocator == MW_HEAP_ALLOCATOR_GLIBC)
		symbol_find(&next->mallinfo2, "mallinfo2");
}

/* What is loaded now is loaded when the program starts: dlopen() allocates before it loads. */
static const struct link_map *last_find(void)
{
	const struct link_map *last = mw_elf_object((const void *)last_find);

	while (last && last->l_next)
		last = last->l_next;
	return last;
}

bool mw_next_resolve(void)
{
	static const char failure[] = "memwatch-heap: no malloc behind this library\n";
	static uint32_t done;
	struct mw_next next = mw_next;

	if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		return true;
	if (resolving)
		return false;
	resolving = true;
	symbol_find(&next.malloc, "malloc");
	symbol_find(&next.free, "free");
	symbol_find(&next.calloc, "calloc");
	symbol_find(&next.realloc, "realloc");
	pointer_set(&next.front_realloc, dlsym(RTLD_DEFAULT, "realloc"));
	symbol_find(&next.posix_memalign, "posix_memalign");
	symbol_find(&next.aligned_alloc, "aligned_alloc");
	symbol_find(&next.memalign, "memalign");
	symbol_find(&next.valloc, "valloc");
	symbol_find(&next.pvalloc, "pvalloc");
	symbol_find(&next.free_sized, "free_sized");
	symbol_find(&next.free_aligned_sized, "free_aligned_sized");
	symbol_find(&next.malloc_usable_size, "malloc_usable_size");
	symbol_find(&next.dlclose, "dlclose");
	symbol_find(&next.pthread_getattr_np, "pthread_getattr_np");
	symbol_find(&next._Fork, "_Fork");
	symbol_find(&next.setuid, "setuid");
	symbol_find(&next.seteuid, "seteuid");
	symbol_find(&next.setreuid, "setreuid");
	symbol_find(&next.setresuid, "setresuid");
	symbol_find(&next.chroot, "chroot");
	symbol_find(&next.mmap, "mmap");
	symbol_find(&next.munmap, "munmap");
	symbol_find(&next.mremap, "mremap");
	allocator_find(&next);
	next.last_map = last_find();
	resolving = false;
	if (next.malloc == first_malloc || next.free == first_free || next.calloc == first_calloc ||
	    next.realloc == first_realloc) {
		if (write(STDERR_FILENO, failure, sizeof(failure) - 1) < 0)
			_exit(126);
		_exit(127);
	}
	mw_next = next;
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return true;
}
