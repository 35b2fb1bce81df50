/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Shared libraries that are loaded when they are needed first, so that programs that do not need
 * them run without them. A table has a pointer for each function:
 *
 *	#define CALLS(X) X(some_call) X(other_call)
 *	struct table { MW_LIBRARY_POINTERS(CALLS) } table;
 *	static const char *const names[] = { MW_LIBRARY_NAMES(CALLS) };
 */
#ifndef MW_LIBRARY_H
#define MW_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct memwatch_ctx;

#define MW_LIBRARY_POINTER(name)  __typeof__(&(name)) name;
#define MW_LIBRARY_NAME(name)	  #name,
#define MW_LIBRARY_POINTERS(list) list(MW_LIBRARY_POINTER)
#define MW_LIBRARY_NAMES(list)	  list(MW_LIBRARY_NAME)

/**
 * struct mw_library - a library
 * @soname: its name for the dynamic linker
 * @package: package of Debian that has it
 * @names: names of its functions
 * @table: gets their addresses
 * @count: length of both
 * @loaded: @table is valid
 */
struct mw_library {
	const char *soname;
	const char *package;
	const char *const *names;
	void **table;
	size_t count;
	bool loaded;
};

/*
 * Loads a library, for ever. @what is what cannot be done without it; @ctx may be NULL. Returns 0,
 * or -ELIBACC if the library or one of its functions is missing.
 */
int mw_library_load(struct memwatch_ctx *ctx, struct mw_library *library, const char *what);

/*
 * A note in the ELF file that says which library is loaded so, for the tools of distributions that
 * collect dependencies (the FDO specification of ELF notes for dlopen).
 */
#define MW_LIBRARY_NOTE(feature, description, soname)                                              \
	__attribute__((used, section(".note.dlopen"), aligned(4))) static const struct {           \
		struct {                                                                           \
			unsigned int name_size, description_size, type;                            \
		} header;                                                                          \
		char name[4];                                                                      \
		__attribute__((aligned(4))) char                                                   \
			text[sizeof(MW_LIBRARY_NOTE_TEXT(feature, description, soname))];          \
	} library_note = { { 4, sizeof(MW_LIBRARY_NOTE_TEXT(feature, description, soname)),        \
			     0x407c0c0a },                                                         \
			   "FDO",                                                                  \
			   MW_LIBRARY_NOTE_TEXT(feature, description, soname) }

#define MW_LIBRARY_NOTE_TEXT(feature, description, soname)                                         \
	"[{\"feature\":\"" feature "\",\"description\":\"" description                             \
	"\",\"priority\":\"recommended\",\"soname\":[\"" soname "\"]}]"

#endif /* MW_LIBRARY_H */
