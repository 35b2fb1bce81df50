// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Operators that put the size in front of each object, so that the address of an object is not the
 * one that malloc() has returned. Only some of the forms, as many programs have them.
 */
#include <cstddef>
#include <cstdlib>
#include <new>

static const std::size_t header = 16;

void *operator new(std::size_t size)
{
	char *memory = static_cast<char *>(std::malloc(header + size));

	if (!memory)
		throw std::bad_alloc();
	*reinterpret_cast<std::size_t *>(memory) = size;
	return memory + header;
}

void operator delete(void *object) noexcept
{
	if (object)
		std::free(static_cast<char *>(object) - header);
}

void operator delete(void *object, std::size_t) noexcept
{
	operator delete(object);
}
