/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The structures of CPython 3.11 that a walk along its frames needs, up to the last field that
 * is read. They are those of its headers Include/internal/pycore_runtime.h, pycore_gil.h,
 * pycore_frame.h, Include/cpython/pystate.h, code.h, unicodeobject.h, bytesobject.h and
 * initconfig.h, for 64-bit machines with pthreads. heap/tests/cpython-layout.c compares them with
 * the installed headers. Fields that are not read are named as there, or combined as unused.
 */
#ifndef _MW_HEAP_CPYTHON_LAYOUT_H
#define _MW_HEAP_CPYTHON_LAYOUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Py_Version: 0xMMmmppLs; the level of a final release is 0xf. */
#define MW_PY_VERSION_IS_KNOWN(version) ((version) >> 16 == 0x030b && ((version) >> 4 & 15) == 15)

struct mw_py_object {
	intptr_t refcount;
	const void *type;
};

struct mw_py_bytes {
	struct mw_py_object object;
	intptr_t size;
	intptr_t hash;
	uint8_t value[];
};

/* Compact strings: the characters follow the structure. */
struct mw_py_unicode {
	struct mw_py_object object;
	intptr_t length; /* in characters */
	intptr_t hash;
	uint32_t state;
	void *wstr;
	uint8_t ascii[]; /* if the string is ASCII */
};

struct mw_py_unicode_wide {
	struct mw_py_unicode base;
	intptr_t utf8_length;
	uint8_t *utf8;
	intptr_t wstr_length;
	uint8_t data[]; /* characters of mw_py_unicode_width() bytes */
};

static inline uint32_t mw_py_unicode_width(const struct mw_py_unicode *string)
{
	return string->state >> 2 & 7;
}

static inline bool mw_py_unicode_is_compact(const struct mw_py_unicode *string)
{
	return string->state >> 5 & 1;
}

static inline bool mw_py_unicode_is_ascii(const struct mw_py_unicode *string)
{
	return string->state >> 6 & 1;
}

struct mw_py_code {
	struct mw_py_object object;
	intptr_t size; /* code units */
	void *unused_consts[3];
	int unused_flags[6];
	int first_line;
	int unused_counts[5];
	void *unused_names[2];
	const struct mw_py_unicode *filename;
	const struct mw_py_unicode *name;
	const struct mw_py_unicode *qualname;
	const struct mw_py_bytes *linetable;
	void *unused_cached[3];
	int first_traceable; /* code unit */
	void *extra;
	uint16_t code[];
};

enum mw_py_frame_owner {
	MW_PY_OWNED_BY_GENERATOR = 1,
};

struct mw_py_frame {
	void *unused_specials[4];
	const struct mw_py_code *code;
	void *frame_object;
	const struct mw_py_frame *previous;
	const uint16_t *prev_instr; /* the code unit before the next instruction */
	int stacktop;
	bool is_entry; /* the outermost frame of its interpreter loop */
	char owner;    /* enum mw_py_frame_owner */
};

/* A local variable of each interpreter loop. */
struct mw_py_cframe {
	uint8_t use_tracing;
	const struct mw_py_frame *current_frame;
	const struct mw_py_cframe *previous;
};

struct mw_py_thread {
	void *unused_links[3];
	int unused_counts[7];
	const struct mw_py_cframe *cframe;
};

enum mw_py_allocator {
	MW_PY_ALLOCATOR_MALLOC = 3,
	MW_PY_ALLOCATOR_MALLOC_DEBUG = 4,
};

struct mw_py_runtime {
	int unused_initialized[5];
	void *finalizing;
	void *unused_interpreters[4];
	void *unused_registry[2];
	unsigned long main_thread;
	void *unused_exit_functions[32];
	int exit_functions;
	struct {
		int signals_pending;
		struct {
			unsigned long interval;
			void *last_holder;
			int locked;
			unsigned long switch_number;
			pthread_cond_t cond;
			pthread_mutex_t mutex;
			pthread_cond_t switch_cond;
			pthread_mutex_t switch_mutex;
		} gil;
	} ceval;
	struct {
		int check_enabled;
		const struct mw_py_thread *current; /* of the thread that holds the GIL */
		void *interpreter;
		struct {
			int is_initialized;
			pthread_key_t key; /* its value is the struct mw_py_thread of a thread */
		} thread_key;
	} gilstate;
	struct {
		int unused[9];
		int allocator; /* enum mw_py_allocator */
	} preconfig;
};

#endif
