// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A library to preload in front of the heap profiler. It plants a leak at one call site of any
 * program: it drops a share of the frees of objects that were allocated there. It also copies the
 * profile at fixed numbers of allocations, and the profiler's clock counts allocations. So the
 * load of the machine changes nothing, and a run can be repeated.
 *
 *	LEAK_SITE_TRUTH   file for struct leak_site_truth
 *	LEAK_SITE_RATE    mean number of bytes between two samples of the profiler
 *	LEAK_SITE_SURVEY  file that gets a line for each call site when the program exits:
 *	                  MODULE OFFSET STACK, and then, for each of 64 equal parts of the run,
 *	                  the expected number of samples among the objects freed in it
 *	LEAK_SITE         the call site that leaks: MODULE OFFSET STACK
 *	LEAK_SITE_SHARE   share of its frees to drop, from 0 to 1
 *	LEAK_SITE_SEED    seed of the choice
 *	LEAK_SITE_BEGIN   number of allocations before the first copy, and the first drop
 *	LEAK_SITE_STEP    number of allocations from one copy to the next one
 *	LEAK_SITE_COPIES  number of copies: snapshot-NN.mwheap in MEMWATCH_HEAP_DIR
 *
 * A call site is a return address together with the depth of the stack in bytes. The latter
 * tells the callers of a wrapper apart, and the recursions of an interpreter.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "prng.h"
#include "selftests/heap/leak-site.h"

#define OBJECTS	  (1u << 21)
#define SITES	  (1u << 16)
#define PARTS	  64
#define STACK_MAX (8ul << 20)
#define NO_SITE	  UINT32_MAX

extern void *__libc_stack_end;

struct site {
	uintptr_t call;	   /* return address */
	uintptr_t stack;   /* bytes between the start of the stack and the call */
	float part[PARTS]; /* expected samples among the freed objects */
};

struct object {
	uintptr_t address; /* 0: the entry is free */
	size_t size;
	uint32_t site;
};

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *address, size_t size);
	void (*free)(void *address);
} next;

static struct leak_site_truth own_truth, *truth = &own_truth;
static struct object objects[OBJECTS];
static uint32_t nr_objects;
static struct site sites[SITES]; /* in survey mode */
static uint64_t part_width = 64; /* allocations in one part */
static bool lock;

static struct {
	/* Copies: servers overwrite their environment with a title. */
	char survey[PATH_MAX], directory[PATH_MAX];
	bool inject;
	char module[NAME_MAX];
	uintptr_t offset, stack;
	uintptr_t call; /* the return address, once it was seen */
	double rate, share;
	struct prng prng;
	uint64_t begin, step, copies;
	pid_t pid;
} plan;

static void lock_take(void)
{
	while (__atomic_test_and_set(&lock, __ATOMIC_ACQUIRE))
		;
}

static void lock_release(void)
{
	__atomic_clear(&lock, __ATOMIC_RELEASE);
}

static double probability(size_t size)
{
	return -expm1(-(double)(size ?: 1) / plan.rate);
}

static uint32_t hash_of(uintptr_t address, uint32_t size)
{
	return (uint32_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (size - 1);
}

static void object_add(const void *address, size_t size, uint32_t site)
{
	uint32_t n = hash_of((uintptr_t)address, OBJECTS);

	if (nr_objects > OBJECTS / 4 * 3)
		return;
	while (objects[n].address && objects[n].address != (uintptr_t)address)
		n = (n + 1) % OBJECTS;
	nr_objects += !objects[n].address;
	objects[n] = (struct object){ (uintptr_t)address, size, site };
}

/* Entries behind the removed one move up, so that a search can end at a free one. */
static bool object_remove(const void *address, struct object *ret)
{
	uint32_t n = hash_of((uintptr_t)address, OBJECTS);

	while (objects[n].address != (uintptr_t)address) {
		if (!objects[n].address)
			return false;
		n = (n + 1) % OBJECTS;
	}
	*ret = objects[n];
	nr_objects--;
	for (uint32_t i = (n + 1) % OBJECTS; objects[i].address; i = (i + 1) % OBJECTS) {
		uint32_t home = hash_of(objects[i].address, OBJECTS);

		if (((i - home) & (OBJECTS - 1)) < ((i - n) & (OBJECTS - 1)))
			continue;
		objects[n] = objects[i];
		n = i;
	}
	objects[n].address = 0;
	return true;
}

static uint32_t site_find(uintptr_t call, uintptr_t stack)
{
	uint32_t n = hash_of(call ^ stack << 20, SITES);

	for (uint32_t tries = 0; tries < SITES; tries++, n = (n + 1) % SITES) {
		if (!sites[n].call) {
			sites[n].call = call;
			sites[n].stack = stack;
		}
		if (sites[n].call == call && sites[n].stack == stack)
			return n;
	}
	return NO_SITE;
}

/*
 * The module of an address, and the address as the module's ELF symbols have it. The program
 * itself is "-", because its name is in memory that servers overwrite with a title.
 */
static const char *module_of(uintptr_t address, uintptr_t *offset)
{
	struct link_map *map;
	const char *slash;
	Dl_info info;

	if (!dladdr1((void *)address, &info, (void **)&map, RTLD_DL_LINKMAP))
		return NULL;
	*offset = address - map->l_addr;
	if (!map->l_name[0])
		return "-";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

/* Is this the call site that leaks? Its module may be loaded late, and anywhere. */
static bool is_planned(uintptr_t call, uintptr_t stack)
{
	const char *module;
	uintptr_t offset;

	if (stack != plan.stack || (call - plan.offset) % 4096)
		return false;
	if (plan.call)
		return call == plan.call;
	module = module_of(call, &offset);
	if (!module || offset != plan.offset || strcmp(module, plan.module))
		return false;
	plan.call = call;
	truth->call = offset - 1;
	return true;
}

static void parts_halve(void)
{
	for (uint32_t n = 0; n < SITES; n++) {
		for (uint32_t i = 0; sites[n].call && i < PARTS; i++)
			sites[n].part[i] = i < PARTS / 2
						   ? sites[n].part[2 * i] + sites[n].part[2 * i + 1]
						   : 0;
	}
	part_width *= 2;
}

static void profile_copy(uint64_t number)
{
	static char buffer[1 << 16];
	char path[PATH_MAX], comm[16];
	ssize_t got;
	int from, to;

	prctl(PR_GET_NAME, comm);
	snprintf(path, sizeof(path), "%.4000s/%s.%d.mwheap", plan.directory, comm, (int)plan.pid);
	from = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%.4000s/snapshot-%02u.mwheap", plan.directory,
		 (unsigned int)number);
	to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	while (from >= 0 && to >= 0 && (got = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)got) != got)
			break;
	close(from);
	close(to);
}

/* Counts an allocation; copies the profile when it is time. */
static void allocation_count(void)
{
	uint64_t count = ++truth->allocations, number;

	if (count < plan.begin || (count - plan.begin) % plan.step)
		return;
	number = (count - plan.begin) / plan.step;
	if (number >= plan.copies || getpid() != plan.pid)
		return;
	profile_copy(number);
	truth->snapshots = number + 1;
}

static void allocation_note(const void *address, size_t size, uintptr_t call, uintptr_t frame)
{
	uintptr_t stack = (uintptr_t)__libc_stack_end - frame;
	uint32_t site = 0;

	if (!address || !plan.rate)
		return;
	lock_take();
	allocation_count();
	if (stack >= STACK_MAX) /* another thread */
		site = NO_SITE;
	else if (*plan.survey)
		site = site_find(call, stack);
	else if (!plan.inject || !is_planned(call, stack))
		site = NO_SITE;
	if (site != NO_SITE)
		object_add(address, size, site);
	lock_release();
}

/* True if the call of free() is to be dropped. */
static bool free_note(const void *address)
{
	struct object object;
	bool drop = false;

	if (!address || !plan.rate)
		return false;
	lock_take();
	if (!object_remove(address, &object)) {
		lock_release();
		return false;
	}
	if (*plan.survey) {
		while (truth->allocations / part_width >= PARTS)
			parts_halve();
		sites[object.site].part[truth->allocations / part_width] += (float)probability(
			object.size);
	} else if (truth->allocations >= plan.begin) {
		drop = (double)(prng_next(&plan.prng) >> 11) < plan.share * 0x1p53;
	}
	if (drop) {
		truth->objects++;
		truth->bytes += object.size;
		truth->samples += probability(object.size);
	}
	lock_release();
	return drop;
}

static void next_find(void)
{
	next.calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	next.realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	next.free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	next.malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
}

/* The frame address is that of this function; the caller's stack ends two words above it. */
#define NOTE(address, size)                                                                        \
	allocation_note(address, size, (uintptr_t)__builtin_return_address(0),                     \
			(uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *))

void *malloc(size_t size)
{
	void *memory;

	if (!next.malloc)
		next_find();
	memory = next.malloc(size);
	NOTE(memory, size);
	return memory;
}

void *calloc(size_t count, size_t size)
{
	void *memory;

	if (!next.malloc)
		next_find();
	memory = next.calloc(count, size);
	NOTE(memory, count * size);
	return memory;
}

void *realloc(void *address, size_t size)
{
	struct object object;
	void *memory;

	if (!next.malloc)
		next_find();
	lock_take();
	if (address)
		object_remove(address, &object);
	lock_release();
	memory = next.realloc(address, size);
	NOTE(memory, size);
	return memory;
}

void free(void *address)
{
	if (!next.malloc)
		next_find();
	if (!free_note(address))
		next.free(address);
}

/* A microsecond for each allocation, for the profiler only. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
	uint64_t now = __atomic_load_n(&truth->allocations, __ATOMIC_RELAXED);
	uintptr_t offset;
	const char *module = clock == CLOCK_MONOTONIC
				     ? module_of((uintptr_t)__builtin_return_address(0), &offset)
				     : NULL;

	if (!module || strcmp(module, "libmemwatch-heap.so"))
		return (int)syscall(SYS_clock_gettime, clock, ret);
	*ret = (struct timespec){ (time_t)(now / 1000000), (long)(now % 1000000) * 1000 };
	return 0;
}

static double setting(const char *name)
{
	return strtod(getenv(name) ?: "0", NULL);
}

static void __attribute__((constructor)) plan_make(void)
{
	const char *path = getenv("LEAK_SITE_TRUTH"), *site = getenv("LEAK_SITE");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd >= 0 && !ftruncate(fd, sizeof(*truth))) {
		void *shared = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    0);

		if (shared != MAP_FAILED)
			truth = shared;
	}
	close(fd);
	plan.pid = getpid();
	snprintf(plan.survey, sizeof(plan.survey), "%s", getenv("LEAK_SITE_SURVEY") ?: "");
	snprintf(plan.directory, sizeof(plan.directory), "%s", getenv("MEMWATCH_HEAP_DIR") ?: ".");
	plan.inject = site &&
		      sscanf(site, "%254s %lx %lx", plan.module, &plan.offset, &plan.stack) == 3;
	plan.share = setting("LEAK_SITE_SHARE");
	plan.prng.state = (uint64_t)setting("LEAK_SITE_SEED");
	plan.begin = (uint64_t)setting("LEAK_SITE_BEGIN");
	plan.step = (uint64_t)setting("LEAK_SITE_STEP") ?: 1;
	plan.copies = (uint64_t)setting("LEAK_SITE_COPIES");
	plan.rate = setting("LEAK_SITE_RATE"); /* the last one: it turns the rest on */
}

static void __attribute__((destructor)) survey_write(void)
{
	FILE *file = *plan.survey && getpid() == plan.pid ? fopen(plan.survey, "w") : NULL;

	for (uint32_t n = 0; file && n < SITES; n++) {
		uintptr_t offset;
		const char *module = sites[n].call ? module_of(sites[n].call, &offset) : NULL;

		if (!module)
			continue;
		fprintf(file, "%s %lx %lx", module, offset, sites[n].stack);
		for (uint32_t i = 0; i < PARTS; i++)
			fprintf(file, " %.4g", (double)sites[n].part[i]);
		fprintf(file, "\n");
	}
	if (file)
		fclose(file);
}
