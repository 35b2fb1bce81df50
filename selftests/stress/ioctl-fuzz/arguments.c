// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The commands of the device, and random arguments for them.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "prng.h"

const struct fuzz_command fuzz_commands[FUZZ_COMMANDS] = {
	{ "GET_INFO", MEMWATCH_IOC_GET_INFO, sizeof(struct memwatch_get_info), true },
	{ "START", MEMWATCH_IOC_START, sizeof(struct memwatch_start), false },
	{ "STOP", MEMWATCH_IOC_STOP, sizeof(struct memwatch_stop), false },
	{ "GET_CONFIG", MEMWATCH_IOC_GET_CONFIG, sizeof(struct memwatch_config), true },
	{ "SET_CONFIG", MEMWATCH_IOC_SET_CONFIG, sizeof(struct memwatch_config), false },
	{ "ADD_FILTER", MEMWATCH_IOC_ADD_FILTER, sizeof(struct memwatch_filter), false },
	{ "GET_FILTER", MEMWATCH_IOC_GET_FILTER, sizeof(struct memwatch_filter), true },
	{ "CLEAR_FILTERS", MEMWATCH_IOC_CLEAR_FILTERS, sizeof(struct memwatch_clear_filters),
	  false },
	{ "DUMP", MEMWATCH_IOC_DUMP, sizeof(struct memwatch_dump), true },
};

struct fuzz_memory fuzz_memory;
static struct prng prng;

static unsigned char *map_pages(size_t bytes, int protection)
{
	void *at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

bool fuzz_memory_map(void)
{
	struct fuzz_memory *m = &fuzz_memory;

	m->page = sysconf(_SC_PAGESIZE);
	m->guard = map_pages(2 * m->page, PROT_READ | PROT_WRITE);
	m->mask = map_pages(2 * m->page, PROT_READ | PROT_WRITE);
	m->read_only = map_pages(m->page, PROT_READ);
	if (!m->guard || !m->mask || !m->read_only)
		return false;
	/* Unmap these pages last, so that none of the mappings above can take their addresses. */
	if (munmap(m->guard + m->page, m->page) || munmap(m->mask + m->page, m->page))
		return false;
	m->mask += m->page - FUZZ_MASK_BYTES;
	return true;
}

void fuzz_random_seed(uint64_t seed)
{
	prng.state = seed;
}

uint64_t fuzz_random(void)
{
	return prng_next(&prng);
}

unsigned int fuzz_random_below(unsigned int n)
{
	return prng_below(&prng, n);
}

bool fuzz_one_in(unsigned int n)
{
	return !fuzz_random_below(n);
}

uint64_t fuzz_random_edge(void)
{
	/* clang-format off */
	static const uint64_t edges[] = {
		0, 1, 2, 3, 7, 64,
		MEMWATCH_PERIOD_MIN_NS - 1, MEMWATCH_PERIOD_MIN_NS, 1000000,
		MEMWATCH_PERIOD_MAX_NS, MEMWATCH_PERIOD_MAX_NS + 1,
		0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
		UINT64_MAX, UINT64_MAX - 1, 1ULL << 63,
	};
	/* clang-format on */

	if (fuzz_one_in(3))
		return fuzz_random() >> fuzz_random_below(64);
	return edges[fuzz_random_below(sizeof(edges) / sizeof(edges[0]))];
}

/* A number that is not the address of anything mapped: the kernel may write there. */
static uint64_t random_bad_address(void)
{
	uint64_t n = fuzz_random_edge();

	return n < 4096 ? n : n | 1ULL << 62;
}

bool fuzz_any_byte(const unsigned char *bytes, size_t begin, size_t end)
{
	for (; begin < end; begin++)
		if (bytes[begin])
			return true;
	return false;
}

static unsigned int make_target(void)
{
	return fuzz_one_in(3)	? MEMWATCH_CONFIG_FORCE
	       : fuzz_one_in(3) ? MEMWATCH_CONFIG_DEFAULT
				: 0;
}

static void make_set_config(struct memwatch_config *c)
{
	c->flags = (fuzz_random() & 0xf) | make_target();
	c->period_ns = fuzz_one_in(4) ? fuzz_random_edge() : 100000 + fuzz_random_below(5000000);
	c->limbo_ns = fuzz_one_in(4) ? fuzz_random_edge() : fuzz_random_below(5000000);
	c->policy = fuzz_one_in(4) ? fuzz_random_edge() : fuzz_random_below(3);
	c->idle_stop = fuzz_one_in(4) ? fuzz_random_edge() : fuzz_random_below(2);
	if (!fuzz_one_in(8))
		return;
	memset(fuzz_memory.mask, fuzz_random_below(256), FUZZ_MASK_BYTES);
	c->flags |= MEMWATCH_CONFIG_CPUMASK;
	c->cpumask = fuzz_one_in(4) ? random_bad_address() : (uintptr_t)fuzz_memory.mask;
	c->cpumask_bytes = fuzz_one_in(4) ? fuzz_random_edge() : fuzz_random_below(FUZZ_MASK_BYTES);
}

static void make_get_config(struct memwatch_config *c)
{
	c->flags = make_target() & MEMWATCH_CONFIG_DEFAULT;
	if (!fuzz_one_in(2))
		return;
	c->cpumask = fuzz_one_in(4) ? random_bad_address() : (uintptr_t)fuzz_memory.mask;
	c->cpumask_bytes = fuzz_random_below(FUZZ_MASK_BYTES);
}

static void make_filter(struct memwatch_filter *f)
{
	f->flags = make_target();
	f->kind = fuzz_one_in(8) ? fuzz_random_edge() : 1 + fuzz_random_below(3);
	if (f->kind == MEMWATCH_FILTER_COMM)
		snprintf(f->comm, sizeof(f->comm), "name-%u", fuzz_random_below(100));
	else
		f->value = fuzz_one_in(8) ? fuzz_random_edge() : fuzz_random_below(100);
	if (fuzz_one_in(16))
		memset(f->comm, 'x', sizeof(f->comm));
	f->index = fuzz_one_in(16);
}

/* Each kind of damage is rare, so that most arguments have none. */
static void damage_argument(const struct fuzz_command *command, union fuzz_argument *arg)
{
	bool is_config = command->number == MEMWATCH_IOC_GET_CONFIG ||
			 command->number == MEMWATCH_IOC_SET_CONFIG;

	if (fuzz_one_in(6))
		arg->head.size = fuzz_one_in(2) ? fuzz_random_edge()
						: fuzz_random_below(command->size * 3);
	if (fuzz_one_in(10))
		arg->head.flags ^= 1U << fuzz_random_below(32);
	if (fuzz_one_in(10)) {
		arg->bytes[fuzz_random_below(command->size)] ^= fuzz_random();
		/* The kernel must not write to whatever a damaged pointer points to. */
		if (is_config && arg->config.cpumask &&
		    arg->config.cpumask != (uintptr_t)fuzz_memory.mask)
			arg->config.cpumask |= 1ULL << 62;
	}
	if (fuzz_one_in(10))
		arg->bytes[command->size + fuzz_random_below(64)] = fuzz_random();
	if (fuzz_one_in(20))
		arg->config.reserved = fuzz_random();
	/* Bytes after the argument count only if "size" includes them. */
	if (!is_config && command->size < sizeof(arg->config) && arg->head.size <= command->size)
		memset(arg->bytes + command->size, 0, 64);
}

void fuzz_argument_make(const struct fuzz_command *command, unsigned int nr_filters,
			union fuzz_argument *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->head.size = command->size;
	switch (command->number) {
	case MEMWATCH_IOC_SET_CONFIG:
		make_set_config(&arg->config);
		break;
	case MEMWATCH_IOC_GET_CONFIG:
		make_get_config(&arg->config);
		break;
	case MEMWATCH_IOC_ADD_FILTER:
		make_filter(&arg->filter);
		break;
	case MEMWATCH_IOC_GET_FILTER:
		arg->filter.flags = make_target() & MEMWATCH_CONFIG_DEFAULT;
		arg->filter.index = fuzz_one_in(8) ? fuzz_random_edge()
						   : fuzz_random_below(nr_filters + 1);
		break;
	case MEMWATCH_IOC_CLEAR_FILTERS:
		arg->head.flags = make_target();
		break;
	default:
		break;
	}
	damage_argument(command, arg);
}
