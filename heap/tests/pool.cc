// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * An allocator that a program has itself. Its memory is in one array, and is never used again.
 */
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

static const std::size_t unit = 64; /* the largest alignment; a unit in front has the size */
alignas(unit) static char pool[64 << 20];
static std::size_t used;

extern "C" void *malloc(std::size_t size)
{
	char *memory = pool + used + unit;

	if (size > sizeof(pool) - used - 2 * unit) {
		errno = ENOMEM;
		return nullptr;
	}
	std::memcpy(pool + used, &size, sizeof(size));
	used += unit + (size + unit - 1) / unit * unit;
	return memory;
}

extern "C" void free(void *)
{
}

extern "C" void *aligned_alloc(std::size_t, std::size_t size)
{
	return malloc(size);
}

extern "C" void *calloc(std::size_t count, std::size_t size)
{
	return malloc(count * size);
}

extern "C" void *realloc(void *memory, std::size_t size)
{
	void *moved = malloc(size);
	std::size_t old;

	if (moved && memory) {
		std::memcpy(&old, static_cast<char *>(memory) - unit, sizeof(old));
		std::memcpy(moved, memory, old < size ? old : size);
	}
	return moved;
}
