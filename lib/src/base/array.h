/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A growing array: a pointer, and how many elements fit behind it. How many are
 * in use is the caller's own count. The caller frees the pointer with free().
 */
#ifndef MW_ARRAY_H
#define MW_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Makes room for @want elements of @size bytes behind *@array, which has room for
 * @capacity. The capacity doubles, so that appending costs constant time on average.
 * Returns the new capacity, or 0 if memory ran out or the size overflows; the array
 * is unchanged then. Use it through mw_array_reserve().
 */
static inline size_t mw_array_grow(void **array, size_t capacity, size_t want, size_t size)
{
	size_t room = capacity ? capacity : 16;
	void *grown;

	while (room < want) {
		if (room > SIZE_MAX / 2)
			return 0;
		room *= 2;
	}
	if (room > SIZE_MAX / size)
		return 0;
	grown = realloc(*array, room * size);
	if (!grown)
		return 0;
	*array = grown;
	return room;
}

/*
 * Makes room for at least @want elements in @array, of which @capacity (an lvalue of
 * any unsigned type) fit now. New elements are not initialised. Evaluates to 0 or
 * -ENOMEM; on failure nothing has changed.
 */
#define mw_array_reserve(array, capacity, want)                                                    \
	({                                                                                         \
		size_t room_ = (capacity);                                                         \
		void *grown_ = (array);                                                            \
		if ((want) > room_)                                                                \
			room_ = mw_array_grow(&grown_, room_, (want), sizeof(*(array)));           \
		(array) = grown_;                                                                  \
		if ((__typeof__(capacity))room_ != room_)                                          \
			room_ = 0;                                                                 \
		if (room_)                                                                         \
			(capacity) = (__typeof__(capacity))room_;                                  \
		room_ || !(want) ? 0 : -ENOMEM;                                                    \
	})

#endif /* MW_ARRAY_H */
