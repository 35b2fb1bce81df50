/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A growing array: a pointer and the number of elements for which it has memory.
 * The caller counts the elements in use and frees the pointer with free().
 */
#ifndef MW_CLI_ARRAY_H
#define MW_CLI_ARRAY_H

#include <errno.h>
#include <stdlib.h>

/*
 * Returns @array, reallocated if it has memory for fewer than @want elements of @size
 * bytes. The capacity is a power of two, at least 64. It doubles, so that appending
 * takes constant time on average.
 * Returns NULL, and changes nothing, if there is no memory.
 */
static inline void *mw_array_grow(void *array, size_t *capacity, size_t want, size_t size)
{
	size_t grown = *capacity ? *capacity : 64;

	if (want <= *capacity)
		return array;
	while (grown < want)
		if (__builtin_mul_overflow(grown, 2, &grown))
			return NULL;
	array = reallocarray(array, grown, size);
	if (array)
		*capacity = grown;
	return array;
}

/*
 * Makes room for @want elements, at least 1, in @array; @capacity is a size_t. Both
 * are updated. Evaluates to 0, or to -ENOMEM without any change.
 */
#define mw_array_reserve(array, capacity, want)                                                    \
	({                                                                                         \
		void *grown_ = mw_array_grow((array), &(capacity), (want), sizeof(*(array)));      \
                                                                                                   \
		if (grown_)                                                                        \
			(array) = grown_;                                                          \
		grown_ ? 0 : -ENOMEM;                                                              \
	})

#endif
