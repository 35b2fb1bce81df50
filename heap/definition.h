/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Where the functions of C++ are defined that this library interposes.
 */
#ifndef _MW_HEAP_DEFINITION_H
#define _MW_HEAP_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>

struct mw_definition {
	void *address;
	size_t size; /* of its code; 0: not known */
	bool may_go; /* it is in a library that may be unloaded */
};

/* The first definition in front of this library, which the program calls instead; NULL: none. */
void *mw_definition_before(const char *name);

/* The next one in what is loaded from the start. */
bool mw_definition_at_start(const char *name, struct mw_definition *ret);

/* The same or, if there is none, the one of the library of @address or of those that it needs. */
bool mw_definition_near(const char *name, const void *address, struct mw_definition *ret);

/*
 * If nothing is defined from the start: the one of the library of @address, if that is linked with
 * a runtime of C++ of its own.
 */
bool mw_definition_own(const char *name, const void *address, struct mw_definition *ret);

/* Asks the dynamic linker, whose lock another thread may hold for long. */
bool mw_definition_ask(const char *name, struct mw_definition *ret);

/* The library of this address stays loaded. Takes the lock of the dynamic linker. */
void mw_definition_keep(const void *address);

#endif
