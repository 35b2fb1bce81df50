/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The frames of CPython 3.11.
 *
 * All is read in place, and only by the thread that holds the GIL: nothing else may free or change
 * what is read. A thread asks for its own thread state (a value of pthread_getspecific()) and
 * compares it with that of the holder of the GIL, so that it never touches the state of another
 * thread, which may be freed at any time.
 *
 * Each interpreter loop has a local variable, the cframe, which is on the native stack and leads
 * to the frames that the loop runs. The native frame in which a cframe lies is that of its loop,
 * whatever the function is called, and however the compiler has split it.
 */
#include <pthread.h>
#include <string.h>

#include "code.h"
#include "config.h"
#include "cpython-layout.h"
#include "cpython.h"
#include "elf-symbol.h"
#include "modules.h"
#include "profile.h"

uint32_t mw_cpython_module MW_HIDDEN = MW_CPYTHON_NONE;

/* Of that module, where it was when it was seen last. Types are only compared. */
static struct {
	uintptr_t bias;
	const struct mw_py_runtime *runtime;
	const void *code_type, *unicode_type, *bytes_type;
} cpython;

/* ------------------------------------------------------------------ finding it */

static void python_say(uint32_t bits)
{
	struct mw_heap_header *header = mw_profile.header;

	if (~__atomic_load_n(&header->python, __ATOMIC_RELAXED) & bits)
		__atomic_fetch_or(&header->python, bits, __ATOMIC_RELAXED);
}

/*
 * A program that uses the types of a library, and is linked to a fixed address, has copies of them
 * that the library uses, too.
 */
static const void *type_find(const struct link_map *map, const char *name)
{
	const struct link_map *program = mw_elf_program();
	const void *copy = program ? mw_elf_symbol(program, name) : NULL;

	return copy ?: mw_elf_symbol(map, name);
}

void mw_cpython_examine(const struct link_map *map, uint32_t module)
{
	const struct mw_py_runtime *runtime = mw_elf_symbol(map, "_PyRuntime");
	const unsigned long *version;

	if (!runtime)
		return;
	version = mw_elf_symbol(map, "Py_Version");
	mw_profile.header->python_version = version ? (uint32_t)*version : 0;
	if (!version || !MW_PY_VERSION_IS_KNOWN(*version)) {
		/* Its own structures are not known here. */
		python_say(MW_HEAP_PYTHON_SEEN |
			   (mw_config.python_malloc ? 0 : MW_HEAP_PYTHON_PYMALLOC));
		return;
	}
	python_say(MW_HEAP_PYTHON_SEEN);
	cpython.bias = map->l_addr;
	cpython.runtime = runtime;
	cpython.code_type = type_find(map, "PyCode_Type");
	cpython.unicode_type = type_find(map, "PyUnicode_Type");
	cpython.bytes_type = type_find(map, "PyBytes_Type");
	__atomic_store_n(&mw_cpython_module, module, __ATOMIC_RELEASE);
}

void mw_cpython_clear(void)
{
	mw_cpython_module = MW_CPYTHON_NONE;
}

/* -------------------------------------------------------------- code objects */

/* The next character of a string as UTF-8. Returns its bytes. */
static uint32_t character_encode(uint32_t c, uint8_t *to)
{
	if (c < 0x80) {
		to[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (uint8_t)(0xc0 | c >> 6);
		to[1] = (uint8_t)(0x80 | (c & 63));
		return 2;
	}
	/* A surrogate is a byte of a file name that is no UTF-8. */
	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	if (c < 0x10000) {
		to[0] = (uint8_t)(0xe0 | c >> 12);
		to[1] = (uint8_t)(0x80 | (c >> 6 & 63));
		to[2] = (uint8_t)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (uint8_t)(0xf0 | (c >> 18 & 7));
	to[1] = (uint8_t)(0x80 | (c >> 12 & 63));
	to[2] = (uint8_t)(0x80 | (c >> 6 & 63));
	to[3] = (uint8_t)(0x80 | (c & 63));
	return 4;
}

static uint32_t character_at(const struct mw_py_unicode *string, intptr_t n)
{
	const uint8_t *data = ((const struct mw_py_unicode_wide *)string)->data;
	uint32_t width = mw_py_unicode_width(string), c = 0;

	memcpy(&c, data + (size_t)n * width, width);
	return c;
}

/* The text of a string, "" if it is none. What is not ASCII is encoded into @buffer. */
static const uint8_t *text_of(const struct mw_py_unicode *string, uint8_t *buffer,
			      uint32_t *ret_length)
{
	uint32_t used = 0;

	*ret_length = 0;
	if (!string || string->object.type != cpython.unicode_type || string->length < 0 ||
	    !mw_py_unicode_is_compact(string) || mw_py_unicode_width(string) > 4)
		return buffer;
	if (mw_py_unicode_is_ascii(string)) {
		*ret_length = string->length < MW_HEAP_PATH_MAX ? (uint32_t)string->length
								: MW_HEAP_PATH_MAX;
		return string->ascii;
	}
	for (intptr_t n = 0; n < string->length && used + 4 <= MW_HEAP_PATH_MAX; n++)
		used += character_encode(character_at(string, n), buffer + used);
	*ret_length = used;
	return buffer;
}

/* A code object that is being destroyed runs callbacks when its names are gone already. */
static bool code_is_alive(const struct mw_py_code *code)
{
	return code && code->object.type == cpython.code_type && code->object.refcount > 0;
}

/* The table of its lines, or NULL. */
static const struct mw_py_bytes *lines_of(const struct mw_py_code *code)
{
	const struct mw_py_bytes *lines = code->linetable;

	if (!lines || lines->object.type != cpython.bytes_type || lines->size <= 0 ||
	    lines->size > (intptr_t)MW_HEAP_LINES_MAX)
		return NULL;
	return lines;
}

static uint32_t code_number(const struct mw_py_code *code, const struct mw_py_bytes *lines)
{
	/* The GIL protects them. */
	static uint8_t file[MW_HEAP_PATH_MAX], name[MW_HEAP_PATH_MAX];
	struct mw_code key = { .first_line = (uint32_t)code->first_line };

	key.file = text_of(code->filename, file, &key.file_bytes);
	key.name = text_of(code->qualname, name, &key.name_bytes);
	if (lines) {
		key.lines = lines->value;
		key.lines_bytes = (uint32_t)lines->size;
	}
	return mw_code_intern(&key, code);
}

/* ------------------------------------------------------------------ frames */

/* Until its first RESUME, a frame is still being made; Python's own tracebacks leave it out. */
static bool frame_is_complete(const struct mw_py_frame *frame)
{
	return frame->owner == MW_PY_OWNED_BY_GENERATOR ||
	       frame->prev_instr >= frame->code->code + frame->code->first_traceable;
}

static uint64_t frame_of(const struct mw_py_frame *frame)
{
	const struct mw_py_bytes *lines = lines_of(frame->code);
	uint64_t number = code_number(frame->code, lines);
	intptr_t place = lines ? frame->prev_instr - frame->code->code + 1 : 0;

	if (place < 0 || place > (intptr_t)MW_HEAP_FRAME_PLACE_MASK)
		place = 0;
	return (uint64_t)MW_HEAP_FRAME_CODE << MW_HEAP_FRAME_ADDRESS_BITS |
	       number << MW_HEAP_FRAME_PLACE_BITS | (uint64_t)place;
}

/* Appends the frames that a loop runs. */
static uint32_t run_add(const struct mw_py_cframe *loop, uint64_t *frames, uint32_t depth,
			uint32_t max)
{
	const struct mw_py_frame *frame = loop->current_frame;

	for (uint32_t n = 0; n < max && depth < max && frame && code_is_alive(frame->code); n++) {
		if (frame_is_complete(frame))
			frames[depth++] = frame_of(frame);
		if (frame->is_entry)
			break;
		frame = frame->previous;
	}
	return depth;
}

/*
 * The innermost loop of this thread, if it holds the GIL. The module is on the stack, so it is not
 * unloaded; but what is remembered of it may be from another place, where it has been before.
 */
static const struct mw_py_cframe *loop_current(uintptr_t pc)
{
	const struct mw_py_runtime *runtime = cpython.runtime;
	const struct mw_py_thread *thread;
	struct mw_module module;
	uint32_t allocator;

	if (!mw_module_find(pc, &module) || module.bias != cpython.bias ||
	    !runtime->gilstate.thread_key.is_initialized)
		return NULL;
	thread = pthread_getspecific(runtime->gilstate.thread_key.key);
	if (!thread || thread != __atomic_load_n(&runtime->gilstate.current, __ATOMIC_RELAXED))
		return NULL;
	allocator = (uint32_t)runtime->preconfig.allocator;
	if (allocator != MW_PY_ALLOCATOR_MALLOC && allocator != MW_PY_ALLOCATOR_MALLOC_DEBUG)
		python_say(MW_HEAP_PYTHON_PYMALLOC);
	return thread->cframe;
}

uint32_t mw_cpython_insert(struct mw_cpython_walk *walk, uintptr_t pc, uintptr_t low,
			   uintptr_t high, uint64_t *frames, uint32_t depth, uint32_t max)
{
	uint64_t native = frames[depth - 1];
	uint32_t inserted;

	if (!walk->begun) {
		walk->begun = true;
		walk->loop = loop_current(pc);
	}
	if ((uintptr_t)walk->loop < low || (uintptr_t)walk->loop >= high ||
	    high - (uintptr_t)walk->loop < sizeof(*walk->loop) ||
	    (uintptr_t)walk->loop % sizeof(uintptr_t))
		return depth;
	/* The loop itself stays behind its frames, also if they are cut off. */
	inserted = run_add(walk->loop, frames, depth - 1, max - 1);
	walk->loop = walk->loop->previous;
	if (inserted == depth - 1)
		return depth;
	walk->added = true;
	python_say(MW_HEAP_PYTHON_FRAMES);
	frames[inserted++] = native;
	return inserted;
}
