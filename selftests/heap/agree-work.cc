// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A deterministic program with sixteen sites, whose live bytes at its end differ by a quarter or a
 * third from one to the next. Each profiler must find the same ones. It prints "SITE BYTES".
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

static const int objects = 2000;
/* Sizes of objects by rank. They are size classes of jemalloc, because its profiler counts those.
 */
static const std::size_t sizes[] = { 16384, 12288, 8192, 6144, 4096, 3072, 2048, 1536,
				     1024,  768,   512,	 384,  256,  192,  128,	 96 };

/* An object of a class with a constructor, as C++ programs have them. */
struct Node {
	Node *next;
	std::string text;
};

/* Live bytes that a site allocated, without what the library adds. */
struct Site {
	const char *name;
	void (*keep)(std::size_t size, int count);
	int rank;
	unsigned long bytes;
};

static void *volatile kept;

/* Every second object is freed, in the order of its allocation. */
#define SITE(name, allocate, release)                                                              \
	__attribute__((noipa)) static void name(std::size_t size, int count)                       \
	{                                                                                          \
		for (int i = 0; i < count; i++) {                                                  \
			void *live = allocate;                                                     \
			void *dead = allocate;                                                     \
                                                                                                   \
			kept = live;                                                               \
			kept = dead;                                                               \
			release(dead);                                                             \
		}                                                                                  \
	}

static void array_release(void *object)
{
	delete[] static_cast<char *>(object);
}

static void plain_release(void *object)
{
	operator delete(object);
}

SITE(site_malloc_a, malloc(size), free)
SITE(site_malloc_b, malloc(size), free)
SITE(site_malloc_c, malloc(size), free)
SITE(site_malloc_d, malloc(size), free)
SITE(site_calloc_a, calloc(1, size), free)
SITE(site_calloc_b, calloc(size, 1), free)
SITE(site_realloc_a, realloc(malloc(8), size), free)
SITE(site_new_a, operator new(size), plain_release)
SITE(site_new_b, operator new(size), plain_release)
SITE(site_new_c, operator new(size, std::nothrow), plain_release)
SITE(site_array_a, new char[size], array_release)
SITE(site_array_b, new char[size], array_release)
SITE(site_array_c, new char[size], array_release)

/* Objects of the standard library: the site is a caller of its allocator. */
__attribute__((noipa)) static void site_vector(std::size_t size, int count)
{
	for (int i = 0; i < count; i++) {
		kept = (new std::vector<char>(size))->data();
		std::vector<char> dead(size);
		kept = dead.data();
	}
}

__attribute__((noipa)) static void site_string(std::size_t size, int count)
{
	for (int i = 0; i < count; i++) {
		kept = (new std::string(size - 1, 'x'))->data();
		std::string dead(size - 1, 'y');
		kept = dead.data();
	}
}

__attribute__((noipa)) static void site_nodes(std::size_t size, int count)
{
	Node *list = nullptr;

	for (int i = 0; i < count; i++) {
		list = new Node{ list, std::string(size - 1, 'z') };
		kept = list;
	}
}

/* The ranks are in no order, so that none is due to the order of the code. */
static Site sites[] = {
	{ "site_malloc_a", site_malloc_a, 3, 0 },   { "site_malloc_b", site_malloc_b, 8, 0 },
	{ "site_malloc_c", site_malloc_c, 13, 0 },  { "site_malloc_d", site_malloc_d, 10, 0 },
	{ "site_calloc_a", site_calloc_a, 1, 0 },   { "site_calloc_b", site_calloc_b, 11, 0 },
	{ "site_realloc_a", site_realloc_a, 6, 0 }, { "site_new_a", site_new_a, 0, 0 },
	{ "site_new_b", site_new_b, 9, 0 },	    { "site_new_c", site_new_c, 5, 0 },
	{ "site_array_a", site_array_a, 2, 0 },	    { "site_array_b", site_array_b, 12, 0 },
	{ "site_array_c", site_array_c, 15, 0 },    { "site_vector", site_vector, 4, 0 },
	{ "site_string", site_string, 7, 0 },	    { "site_nodes", site_nodes, 14, 0 },
};

int main()
{
	for (Site &site : sites) {
		std::size_t size = sizes[site.rank];

		site.keep(size, objects);
		site.bytes = size * objects;
		/* The objects that hold the memory of the standard library's. */
		if (site.keep == site_vector)
			site.bytes += sizeof(std::vector<char>) * objects;
		if (site.keep == site_string)
			site.bytes += sizeof(std::string) * objects;
		if (site.keep == site_nodes)
			site.bytes += sizeof(Node) * objects;
	}
	for (const Site &site : sites)
		std::printf("%s %lu\n", site.name, site.bytes);
	return 0;
}
