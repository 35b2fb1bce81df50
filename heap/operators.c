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
 * There is one next definition of each form for the whole process, so that an object which one
 * library makes and another one deletes has the same form for both. But a library which is linked
 * with a runtime of C++ of its own keeps its own operators: an exception can only be caught in the
 * runtime that throws it. The caller is looked at only where nothing is defined from the start, as
 * in a program in C that loads plugins.
 *
 * operator new throws std::bad_alloc through these functions. That needs no code: they hold
 * nothing while they call the next definition, and they have unwind tables.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "definition.h"
#include "entry.h"
#include "isolate.h"
#include "modules.h"
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
 * first to a function that asks what the caller should get. That stays so if the definition is not
 * there from the start; otherwise then to `next`, or to a function that counts.
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
		/* What is small is watched in a block, which these have none of. */              \
		if (size <= MW_ISOLATE_OBJECT_MAX)                                                \
			due &= ~MW_DUE_ISOLATE;                                                   \
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
		void *(*next) parameters;                                                         \
		const void *caller = __builtin_return_address(0);                                 \
		void *found = answer_find(number, caller) ?: form_require(number, caller);        \
                                                                                                  \
		memcpy(&next, &found, sizeof(next));                                              \
		return next arguments;                                                            \
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
		void (*next) parameters;                                                           \
		const void *caller = __builtin_return_address(0);                                 \
		void *found = answer_find(number, caller) ?: form_require(number, caller);        \
                                                                                                  \
		memcpy(&next, &found, sizeof(next));                                              \
		next arguments;                                                                   \
	}

static void *form_require(size_t form, const void *caller);

/*
 * What callers get, by the page of their code. An entry is valid until a library is unloaded.
 * `key` is 0 at first, and ANSWER_BUSY while somebody writes.
 */
#define ANSWERS_BITS 9
#define ANSWER_BUSY  1

static struct answer {
	uint64_t key;
	void *function;
} answers[1u << ANSWERS_BITS];

/* 0: there is none, the address has too many bits. */
static inline uint64_t answer_key(size_t form, const void *caller)
{
	uint32_t epoch = __atomic_load_n(&mw_module_epoch, __ATOMIC_ACQUIRE);

	if ((uintptr_t)caller >> 48)
		return 0;
	return (uintptr_t)caller >> 12 << 28 | (epoch & 0x7fffff) << 5 | form;
}

static inline struct answer *answer_at(uint64_t key)
{
	return &answers[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ANSWERS_BITS)];
}

static inline void *answer_find(size_t form, const void *caller)
{
	uint64_t key = answer_key(form, caller);
	const struct answer *answer = answer_at(key);
	void *function;

	if (!key || __atomic_load_n(&answer->key, __ATOMIC_ACQUIRE) != key)
		return NULL;
	/* Pairs with the release in answer_keep(): a newer function comes with another key. */
	function = __atomic_load_n(&answer->function, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&answer->key, __ATOMIC_RELAXED) == key ? function : NULL;
}

static void answer_keep(uint64_t key, void *function)
{
	struct answer *answer = answer_at(key);

	if (!key || __atomic_exchange_n(&answer->key, ANSWER_BUSY, __ATOMIC_ACQUIRE) == ANSWER_BUSY)
		return;
	__atomic_store_n(&answer->function, function, __ATOMIC_RELEASE);
	__atomic_store_n(&answer->key, key, __ATOMIC_RELEASE);
}

FORMS(DECLARE_NEW, DECLARE_DELETE)

#define FORM_ENTRY(number, name, parameters, arguments)                                           \
	[number] = { #name, (void *)&name##_next, (void *)&name##_go, (void *)name##_counting },

static const struct {
	const char *name;
	void **next;
	void **go;
	void *counting;
} forms[] = { FORMS(FORM_ENTRY, FORM_ENTRY) };
/* clang-format on */

enum {
	FORM_NEW_NOTHROW = 2,
	FORM_NEW_ALIGNED = 4,
	FORM_DELETE = 8,
	FORM_DELETE_ALIGNED = 14,
	FORMS_COUNT = sizeof(forms) / sizeof(forms[0]),
};

/* Where the next definition of each form is. */
static struct code {
	uintptr_t begin, end;
} forms_code[FORMS_COUNT], forms_all; /* from the first to the last of them */

static struct {
	bool may_go;   /* the next definition is in a library that may be unloaded */
	bool counts;   /* calls of it are counted here */
	bool is_tried; /* @counts does not change any more */
} forms_state[FORMS_COUNT];

/* How many definitions are in libraries that may be unloaded, and how many of these are kept. */
static uint32_t forms_may_go, forms_kept;

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

/* Whether the program calls the definition of this library. */
static bool is_called(const char *name)
{
	return !mw_definition_before(name);
}

/* Which definition a call of the program comes to in the end; NULL: none. */
static void *form_called(size_t form)
{
	return mw_definition_before(forms[form].name) ?: *forms[form].next;
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
	if (!definition || !is_called(forms[form].name))
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

	if (!*forms[new].next || !is_called(forms[new].name))
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

bool mw_operators_contain(uintptr_t pc)
{
	if (pc - forms_all.begin >= forms_all.end - forms_all.begin)
		return false;
	for (size_t i = 0; i < FORMS_COUNT; i++)
		if (pc >= forms_code[i].begin && pc < forms_code[i].end)
			return true;
	return false;
}

static void form_code_set(size_t form, uintptr_t begin, size_t size)
{
	if (!size)
		return;
	forms_code[form] = (struct code){ begin, begin + size };
	if (!forms_all.end || begin < forms_all.begin)
		forms_all.begin = begin;
	if (begin + size > forms_all.end)
		forms_all.end = begin + size;
}

/* False if another thread has set it before. */
static bool form_set(size_t form, const struct mw_definition *found)
{
	void *none = NULL;

	if (!__atomic_compare_exchange_n(forms[form].next, &none, found->address, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return false;
	forms_state[form].may_go = found->may_go;
	if (!found->may_go)
		*forms[form].go = found->address;
	form_code_set(form, (uintptr_t)found->address, found->size);
	if (found->may_go)
		__atomic_fetch_add(&forms_may_go, 1, __ATOMIC_RELEASE);
	return true;
}

static void form_end_try(size_t form)
{
	__atomic_store_n(&forms_state[form].is_tried, true, __ATOMIC_RELEASE);
}

/*
 * Sets all forms that are defined from the start or near @address. All are set before the first is
 * tried, because one may call another.
 */
static void forms_resolve(const void *address)
{
	/* The program's own malloc() may not be called before its constructors. */
	bool tries = is_called("malloc"), is_new[FORMS_COUNT] = { false };
	struct mw_definition found;

	/* What is allocated here is in no trace. */
	mw_thread.own = true;
	for (size_t i = 0; i < FORMS_COUNT; i++)
		is_new[i] = !*forms[i].next && mw_definition_near(forms[i].name, address, &found) &&
			    form_set(i, &found);
	for (size_t i = 0; tries && i < FORMS_COUNT; i++) {
		if (!is_new[i] || (i < FORM_DELETE ? new_comes_back(i) : delete_comes_back(i)))
			continue;
		forms_state[i].counts = true;
		if (!forms_state[i].may_go)
			*forms[i].go = forms[i].counting;
	}
	for (size_t i = 0; i < FORMS_COUNT; i++)
		if (is_new[i])
			form_end_try(i);
	mw_thread.own = false;
}

/*
 * At the start of the program. One that defines operators itself is left alone until it calls
 * one of the others: trying these out would run its code before its constructors.
 */
void mw_operators_resolve(void)
{
	struct mw_definition found;

	if (!mw_definition_at_start(forms[0].name, &found))
		return;
	for (size_t i = 0; i < FORMS_COUNT; i++)
		if (!is_called(forms[i].name))
			return;
	forms_resolve(NULL);
}

void mw_operators_keep(void)
{
	uint32_t may_go = __atomic_load_n(&forms_may_go, __ATOMIC_ACQUIRE);

	if (mw_likely(__atomic_load_n(&forms_kept, __ATOMIC_ACQUIRE) == may_go))
		return;
	for (size_t i = 0; i < FORMS_COUNT; i++)
		mw_definition_keep(*forms[i].next);
	__atomic_store_n(&forms_kept, may_go, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------- without a definition */

/*
 * Nothing in this process defines the form that is called, as far as this library can find out.
 * Without it, the dynamic linker would have ended the process. So there is memory, with the right
 * alignment; a later call may find a definition.
 *
 * Callers do not expect NULL from a form that throws. The exception is thrown by the runtime of
 * C++; where there is none, the process ends as in one that is built without exceptions.
 */
static void bad_alloc_throw(const void *caller)
{
	static const char failure[] = "memwatch-heap: operator new has no memory, and nothing "
				      "defines std::bad_alloc\n";
	struct mw_definition found;
	void (*throw)(void);

	if (mw_definition_near("_ZSt17__throw_bad_allocv", caller, &found) ||
	    mw_definition_ask("_ZSt17__throw_bad_allocv", &found)) {
		memcpy(&throw, &found.address, sizeof(throw));
		throw();
	}
	if (write(STDERR_FILENO, failure, sizeof(failure) - 1) < 0)
		abort();
	abort();
}

static void *fallback_nothrow(size_t size)
{
	return malloc(size + (size == 0));
}

static void *fallback_aligned_nothrow(size_t size, size_t align)
{
	return memalign(align, size + (size == 0));
}

static void *fallback_new(size_t size)
{
	void *memory = fallback_nothrow(size);

	if (!memory)
		bad_alloc_throw(__builtin_return_address(0));
	return memory;
}

static void *fallback_aligned(size_t size, size_t align)
{
	void *memory = fallback_aligned_nothrow(size, align);

	if (!memory)
		bad_alloc_throw(__builtin_return_address(0));
	return memory;
}

static void *fallback_of(size_t form)
{
	if (form >= FORM_DELETE)
		return (void *)free;
	if (form % FORM_NEW_ALIGNED < FORM_NEW_NOTHROW)
		return form < FORM_NEW_ALIGNED ? (void *)fallback_new : (void *)fallback_aligned;
	return form < FORM_NEW_ALIGNED ? (void *)fallback_nothrow
				       : (void *)fallback_aligned_nothrow;
}

/* Sets the next definition of a form that was called; NULL: there is none. */
static void *form_find(size_t form, const void *caller)
{
	struct mw_definition found;

	if (!mw_definition_near(forms[form].name, caller, &found) &&
	    !mw_definition_ask(forms[form].name, &found))
		return NULL;
	/* What is being tried out has called another form: one at a time. */
	if (mw_thread.probe)
		return found.address;
	/* The others of the same library first: that of the caller may have some of them, too. */
	forms_resolve(found.address);
	if (!*forms[form].next && form_set(form, &found))
		form_end_try(form);
	return *forms[form].next;
}

/* Returns what @caller gets by calling a form. */
static void *form_require(size_t form, const void *caller)
{
	uint64_t key = answer_key(form, caller);
	struct mw_definition found;
	void *function;
	bool is_tried;

	if (mw_definition_own(forms[form].name, caller, &found)) {
		function = found.address;
	} else {
		function = __atomic_load_n(forms[form].next, __ATOMIC_ACQUIRE)
				   ?: form_find(form, caller);
		if (!function)
			return fallback_of(form);
		is_tried = __atomic_load_n(&forms_state[form].is_tried, __ATOMIC_ACQUIRE);
		if (forms_state[form].counts)
			function = forms[form].counting;
		/* Another thread may be trying it out now. */
		if (mw_thread.probe || !is_tried)
			return function;
	}
	answer_keep(key, function);
	return function;
}
