// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A library of C++ that relies on what its operators promise. It is linked with the libstdc++ of
 * the system, and with a copy of its own that it exports or hides.
 */
#include <cstdint>
#include <cstdlib>
#include <new>

struct alignas(256) aligned {
	char bytes[256];
};

static bool is_aligned()
{
	aligned *objects[50];
	bool all = true;

	for (aligned *&object : objects) {
		free(malloc(40 + 16 * (static_cast<std::size_t>(&object - objects) % 9)));
		object = new aligned;
		all = all && reinterpret_cast<std::uintptr_t>(object) % alignof(aligned) == 0;
	}
	for (aligned *object : objects)
		delete object;
	return all;
}

static bool throws()
{
	volatile std::size_t huge = static_cast<std::size_t>(1) << 60;

	try {
		char *volatile memory = new char[huge];

		delete[] memory;
	} catch (const std::bad_alloc &) {
		return true;
	}
	return false;
}

/* @strictly: it also throws. */
extern "C" int plugin_check(int strictly)
{
	int *volatile number = new int(7);
	bool right = *number == 7 && is_aligned();

	delete number;
	return !(right && (!strictly || throws()));
}
