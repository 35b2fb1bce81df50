/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * operator new and operator delete of C++, in all their forms, by their mangled names.
 *
 * libstdc++ implements them with malloc() and free(), which come through this library. jemalloc,
 * tcmalloc and mimalloc define them themselves, and these do not. Each form is tried out once to
 * find out: if its call comes through here, it is forwarded by a jump and counted there; if not,
 * it is counted here. Programs and libraries may define some of the forms, and put something in
 * front of an object: so what one form of new has made is only given to a form of delete that the
 * program may call for it.
 *
 * operator new throws std::bad_alloc through these functions. That needs no code: they hold
 * nothing while they call the next definition, and they have unwind tables.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "entry.h"
#include "next.h"
#include "operators.h"

typedef const void *nothrow; /* std::nothrow_t const & */

/* clang-format off */
/*
 * All forms: NEW(NUMBER, MANGLED, PARAMETERS, ARGUMENTS) and DELETE(...). The size is the first
 * parameter of new, the address the first one of delete. std::align_val_t is passed as a size.
 */
#define FORMS(NEW, DELETE)                                                                        \
	NEW(0, _Znwm, (size_t size), (size))                                                      \
	NEW(1, _Znam, (size_t size), (size))                                                      \
	NEW(2, _ZnwmRKSt9nothrow_t, (size_t size, nothrow tag), (size, tag))                      \
	NEW(3, _ZnamRKSt9nothrow_t, (size_t size, nothrow tag), (size, tag))                      \
	NEW(4, _ZnwmSt11align_val_t, (size_t size, size_t align), (size, align))                  \
	NEW(5, _ZnamSt11align_val_t, (size_t size, size_t align), (size, align))                  \
	NEW(6, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, nothrow tag),      \
	    (size, align, tag))                                                                   \
	NEW(7, _ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, nothrow tag),      \
	    (size, align, tag))                                                                   \
	DELETE(8, _ZdlPv, (void *address), (address))                                             \
	DELETE(9, _ZdaPv, (void *address), (address))                                             \
	DELETE(10, _ZdlPvRKSt9nothrow_t, (void *address, nothrow tag), (address, tag))            \
	DELETE(11, _ZdaPvRKSt9nothrow_t, (void *address, nothrow tag), (address, tag))            \
	DELETE(12, _ZdlPvm, (void *address, size_t size), (address, size))                        \
	DELETE(13, _ZdaPvm, (void *address, size_t size), (address, size))                        \
	DELETE(14, _ZdlPvSt11align_val_t, (void *address, size_t align), (address, align))        \
	DELETE(15, _ZdaPvSt11align_val_t, (void *address, size_t align), (address, align))        \
	DELETE(16, _ZdlPvSt11align_val_tRKSt9nothrow_t,                                           \
	       (void *address, size_t align, nothrow tag), (address, align, tag))                 \
	DELETE(17, _ZdaPvSt11align_val_tRKSt9nothrow_t,                                           \
	       (void *address, size_t align, nothrow tag), (address, align, tag))                 \
	DELETE(18, _ZdlPvmSt11align_val_t, (void *address, size_t size, size_t align),            \
	       (address, size, align))                                                            \
	DELETE(19, _ZdaPvmSt11align_val_t, (void *address, size_t size, size_t align),            \
	       (address, size, align))

/*
 * For each form: `next` is the next definition, and `go` is where the exported function jumps:
 * first to a function that looks everything up, then to `next`, or to one that counts.
 */
#define DECLARE_NEW(number, name, parameters, arguments)                                          \
	static void *name##_first parameters;                                                     \
	static void *(*name##_next) parameters;                                                   \
	static void *(*name##_go) parameters = name##_first;                                      \
	MW_EXPORT void *name parameters;                                                          \
	MW_EXPORT void *name parameters                                                           \
	{                                                                                         \
		return name##_go arguments;                                                       \
	}                                                                                         \
	MW_SLOW void *name##_slow parameters                                                      \
	{                                                                                         \
		unsigned int due = mw_record_due(size);                                           \
		void *memory = name##_next arguments;                                             \
                                                                                                  \
		if (due && memory)                                                                \
			mw_record_allocation(due, memory, size, MW_HEAP_SOURCE_NEW, MW_FRAME);    \
		return memory;                                                                    \
	}                                                                                         \
	static void *name##_counting parameters                                                   \
	{                                                                                         \
		if (mw_unlikely(mw_countdown_expires(size)))                                      \
			return name##_slow arguments;                                             \
		return name##_next arguments;                                                     \
	}                                                                                         \
	static void *name##_first parameters                                                      \
	{                                                                                         \
		operators_require();                                                              \
		return name##_go arguments;                                                       \
	}

#define DECLARE_DELETE(number, name, parameters, arguments)                                       \
	static void name##_first parameters;                                                      \
	static void (*name##_next) parameters;                                                    \
	static void (*name##_go) parameters = name##_first;                                       \
	MW_EXPORT void name parameters;                                                           \
	MW_EXPORT void name parameters                                                            \
	{                                                                                         \
		name##_go arguments;                                                              \
	}                                                                                         \
	MW_SLOW void name##_slow parameters                                                       \
	{                                                                                         \
		if (mw_record_free(address, MW_FRAME))                                            \
			name##_next arguments;                                                    \
	}                                                                                         \
	static void name##_counting parameters                                                    \
	{                                                                                         \
		if (mw_unlikely(mw_filter_may_have(address)))                                     \
			name##_slow arguments;                                                    \
		else                                                                              \
			name##_next arguments;                                                    \
	}                                                                                         \
	static void name##_first parameters                                                       \
	{                                                                                         \
		operators_require();                                                              \
		name##_go arguments;                                                              \
	}

static void operators_require(void);

FORMS(DECLARE_NEW, DECLARE_DELETE)

#define FORM_ENTRY(number, name, parameters, arguments)                                           \
	[number] = { #name, (void *)name, (void *)&name##_next, (void *)&name##_go,               \
		     (void *)name##_counting },

static const struct {
	const char *name;
	void *own;
	void **next;
	void **go;
	void *counting;
} forms[] = { FORMS(FORM_ENTRY, FORM_ENTRY) };
/* clang-format on */

enum {
	FORM_NEW_ALIGNED = 4,
	FORM_DELETE = 8,
	FORM_DELETE_ALIGNED = 14,
	FORMS_COUNT = sizeof(forms) / sizeof(forms[0]),
};

/* Where the next definition of each form is. */
static struct code {
	uintptr_t begin, end;
} forms_code[FORMS_COUNT], forms_all; /* from the first to the last of them */

#define TRY_SIZE  64
#define TRY_ALIGN 64

/* The form of new with which an object begins that a form of delete ends. */
static size_t form_new(size_t form)
{
	return form < FORM_DELETE_ALIGNED ? (form - FORM_DELETE) % 4
					  : FORM_NEW_ALIGNED + (form - FORM_DELETE_ALIGNED) % 4;
}

/* The form of delete that programs call for an object. */
static size_t form_delete(size_t form)
{
	return (form < FORM_NEW_ALIGNED ? FORM_DELETE : FORM_DELETE_ALIGNED) + form % 2;
}

/*
 * Whether the program calls @own, which is in this library, by @name. If it is linked to a fixed
 * address, the address of @name may be where the program jumps to it from.
 */
static bool is_called(const char *name, const void *own)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	return found == own || (dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
				symbol->st_shndx == SHN_UNDEF);
}

/* Which definition a call of the program comes to in the end; NULL: none. */
static void *form_called(size_t form)
{
	return is_called(forms[form].name, forms[form].own) ? *forms[form].next
							    : dlsym(RTLD_DEFAULT, forms[form].name);
}

/*
 * The next definition is called with arguments that fit all forms of new: on the machines that
 * this library supports, arguments beyond the parameters are ignored. @ret_memory: what the
 * definition got from this library; NULL: nothing.
 */
static void *object_new(size_t form, void **ret_memory)
{
	static const char tag;
	struct mw_thread *thread = &mw_thread;
	uint64_t countdown = thread->countdown;
	void *(*next)(size_t, const void *, const void *);
	void *object;

	memcpy(&next, forms[form].next, sizeof(next));
	/* The next malloc() goes into its slow path and reports there. */
	thread->countdown = 0;
	thread->probe = (void *)&tag;
	object = next(TRY_SIZE, form < FORM_NEW_ALIGNED ? &tag : (const void *)TRY_ALIGN, &tag);
	*ret_memory = thread->probe == &tag ? NULL : thread->probe;
	thread->probe = NULL;
	thread->countdown = countdown;
	return object;
}

static void object_delete(void *object, size_t form, void *definition)
{
	size_t first = form < FORM_DELETE_ALIGNED ? FORM_DELETE : FORM_DELETE_ALIGNED;
	void (*function)(void *, size_t, size_t);

	memcpy(&function, &definition, sizeof(function));
	function(object, form - first < 4 ? TRY_ALIGN : TRY_SIZE, TRY_ALIGN);
}

static bool new_comes_back(size_t form)
{
	size_t delete = form_delete(form);
	void *definition = form_called(delete), *memory, *object;

	/* The program has other objects than this form makes, or cannot delete them. */
	if (!definition || !is_called(forms[form].name, forms[form].own))
		return true;
	object = object_new(form, &memory);
	object_delete(object, delete, definition);
	return memory;
}

static bool delete_comes_back(size_t form)
{
	size_t new = form_new(form);
	struct mw_thread *thread = &mw_thread;
	void *object, *memory;

	if (!*forms[new].next || !is_called(forms[new].name, forms[new].own))
		return true;
	object = object_new(new, &memory);
	if (!object)
		return true;
	if (!memory)
		memory = object;
	mw_filter_add(memory);
	thread->probe_hit = false;
	thread->probe = memory;
	object_delete(object, form, *forms[form].next);
	thread->probe = NULL;
	mw_filter_remove(memory);
	return thread->probe_hit;
}

/* The library of @address stays loaded. */
static void library_keep(const void *address)
{
	static const struct link_map *kept;
	struct link_map *map = NULL;
	Dl_info info;

	if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || map == kept)
		return;
	if (dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD))
		kept = map;
}

/* A library that was loaded with RTLD_LOCAL is not in the scope of RTLD_NEXT. */
static void *form_find(const char *name)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1",
						 "libc++.so.1" };
	void *found = dlsym(RTLD_NEXT, name);

	if (found)
		library_keep(found);
	for (size_t i = 0; !found && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		/* The handle is kept: what was found must stay loaded. */
		if (library)
			found = dlsym(library, name);
	}
	return found;
}

/* The code of the function at @address, if it is in a table of symbols. */
static struct code code_of(void *address)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (!dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		return (struct code){ 0 };
	return (struct code){ (uintptr_t)address, (uintptr_t)address + symbol->st_size };
}

bool mw_operators_contain(uintptr_t pc)
{
	if (pc - forms_all.begin >= forms_all.end - forms_all.begin)
		return false;
	for (size_t i = 0; i < FORMS_COUNT; i++)
		if (pc >= forms_code[i].begin && pc < forms_code[i].end)
			return true;
	return false;
}

static void forms_code_set(size_t i, struct code code)
{
	forms_code[i] = code;
	if (code.begin && (!forms_all.end || code.begin < forms_all.begin))
		forms_all.begin = code.begin;
	if (code.end > forms_all.end)
		forms_all.end = code.end;
}

/* All that are known are looked up before the first is tried, because one may call another. */
static void forms_resolve(void)
{
	/* The program's own malloc() may not be called before its constructors. */
	bool tries = is_called("malloc", (void *)malloc), is_new[FORMS_COUNT] = { false };

	/* What is allocated here is in no trace. */
	mw_thread.own = true;
	for (size_t i = 0; i < FORMS_COUNT; i++) {
		void *next = *forms[i].next ? NULL : form_find(forms[i].name);

		if (!next)
			continue;
		is_new[i] = true;
		*forms[i].next = *forms[i].go = next;
		forms_code_set(i, code_of(next));
	}
	for (size_t i = 0; tries && i < FORMS_COUNT; i++)
		if (is_new[i] && !(i < FORM_DELETE ? new_comes_back(i) : delete_comes_back(i)))
			*forms[i].go = forms[i].counting;
	mw_thread.own = false;
}

/*
 * At the start of the program. One that defines operators itself is left alone until it calls
 * one of the others: trying these out would run its code before its constructors.
 */
void mw_operators_resolve(void)
{
	if (!dlsym(RTLD_NEXT, forms[0].name))
		return;
	for (size_t i = 0; i < FORMS_COUNT; i++)
		if (!is_called(forms[i].name, forms[i].own))
			return;
	forms_resolve();
}

/* A form was called: it must exist now. Without any definition, it is malloc() or free(). */
static void operators_require(void)
{
	forms_resolve();
	for (size_t i = 0; i < FORMS_COUNT; i++) {
		if (*forms[i].next)
			continue;
		if (i < FORM_DELETE)
			memcpy(forms[i].next, &mw_next.malloc, sizeof(*forms[i].next));
		else
			memcpy(forms[i].next, &mw_next.free, sizeof(*forms[i].next));
		*forms[i].go = forms[i].counting;
	}
}
