// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A library that calls operators that nothing defines but the profiler.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void *_Znwm(size_t size);
void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag);
void *_ZnwmSt11align_val_t(size_t size, size_t align);
void _ZdlPv(void *object);
void _ZdlPvSt11align_val_t(void *object, size_t align);
int plugin_check(int strictly);

#define ALIGN 256

/* @strictly: allocates more than there is. */
int plugin_check(int strictly)
{
	volatile size_t huge = (size_t)1 << 60;
	int wrong = _ZnwmRKSt9nothrow_t(huge, "") != NULL;

	for (int i = 0; i < 50; i++) {
		void *object = _ZnwmSt11align_val_t(ALIGN, ALIGN), *plain = _Znwm(40);

		wrong += (uintptr_t)object % ALIGN != 0 || !plain;
		free(malloc(40));
		if (i % 2)
			_ZdlPvSt11align_val_t(object, ALIGN);
		else
			_ZdlPv(plain);
	}
	return strictly ? _Znwm(huge) == NULL : wrong;
}
