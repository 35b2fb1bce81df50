// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The layouts of cpython-layout.h are those of the headers of CPython 3.11. selftests/heap/python
 * compiles this; there is nothing to run.
 */
#define Py_BUILD_CORE
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_runtime.h>

#include "heap/cpython-layout.h"

#define SAME(theirs, their_field, ours, our_field)                                                 \
	_Static_assert(offsetof(theirs, their_field) == offsetof(struct ours, our_field),          \
		       #ours "." #our_field)

SAME(PyBytesObject, ob_base.ob_size, mw_py_bytes, size);
SAME(PyBytesObject, ob_sval, mw_py_bytes, value);
SAME(PyASCIIObject, length, mw_py_unicode, length);
SAME(PyASCIIObject, state, mw_py_unicode, state);
_Static_assert(sizeof(PyASCIIObject) == offsetof(struct mw_py_unicode, ascii), "ascii");
_Static_assert(sizeof(PyCompactUnicodeObject) == offsetof(struct mw_py_unicode_wide, data), "data");
SAME(PyCodeObject, co_firstlineno, mw_py_code, first_line);
SAME(PyCodeObject, co_filename, mw_py_code, filename);
SAME(PyCodeObject, co_name, mw_py_code, name);
SAME(PyCodeObject, co_qualname, mw_py_code, qualname);
SAME(PyCodeObject, co_linetable, mw_py_code, linetable);
SAME(PyCodeObject, _co_firsttraceable, mw_py_code, first_traceable);
SAME(PyCodeObject, co_code_adaptive, mw_py_code, code);
SAME(_PyInterpreterFrame, f_code, mw_py_frame, code);
SAME(_PyInterpreterFrame, previous, mw_py_frame, previous);
SAME(_PyInterpreterFrame, prev_instr, mw_py_frame, prev_instr);
SAME(_PyInterpreterFrame, is_entry, mw_py_frame, is_entry);
SAME(_PyInterpreterFrame, owner, mw_py_frame, owner);
_Static_assert((int)FRAME_OWNED_BY_GENERATOR == (int)MW_PY_OWNED_BY_GENERATOR, "owner");
SAME(_PyCFrame, current_frame, mw_py_cframe, current_frame);
SAME(_PyCFrame, previous, mw_py_cframe, previous);
SAME(PyThreadState, cframe, mw_py_thread, cframe);
SAME(_PyRuntimeState, gilstate.tstate_current, mw_py_runtime, gilstate.current);
SAME(_PyRuntimeState, gilstate.autoTSSkey._is_initialized, mw_py_runtime,
     gilstate.thread_key.is_initialized);
SAME(_PyRuntimeState, gilstate.autoTSSkey._key, mw_py_runtime, gilstate.thread_key.key);
SAME(_PyRuntimeState, preconfig.allocator, mw_py_runtime, preconfig.allocator);
_Static_assert((int)PYMEM_ALLOCATOR_MALLOC == (int)MW_PY_ALLOCATOR_MALLOC, "malloc");
_Static_assert((int)PYMEM_ALLOCATOR_MALLOC_DEBUG == (int)MW_PY_ALLOCATOR_MALLOC_DEBUG, "debug");
