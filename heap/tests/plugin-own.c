// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A library in C with operators of C++ of its own, which goes when it is unloaded: the dynamic
 * linker keeps a library of C++ if it has unique symbols.
 */
#include <stddef.h>
#include <stdlib.h>

void *_Znwm(size_t size);
void _ZdlPv(void *object);
int plugin_check(int strictly);

void *_Znwm(size_t size)
{
	return malloc(size);
}

void _ZdlPv(void *object)
{
	free(object);
}

int plugin_check(int strictly)
{
	int wrong = 0;

	(void)strictly;
	for (int i = 0; i < 50; i++) {
		void *object = _Znwm(40);

		wrong += !object;
		_ZdlPv(object);
	}
	return wrong;
}
