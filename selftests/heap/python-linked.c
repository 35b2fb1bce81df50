// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A program that is linked with CPython and compares types, as what Cython makes does. If it is
 * linked to a fixed address, it has copies of the types, which all others use.
 */
#include <Python.h>

int main(void)
{
	PyObject *text, *volatile code;

	Py_Initialize();
	text = PyUnicode_FromString("linked");
	code = Py_CompileString("0", "linked", Py_eval_input);
	if (Py_TYPE(text) != &PyUnicode_Type || Py_TYPE(code) != &PyCode_Type ||
	    PyBytes_Type.tp_basicsize <= 0)
		return 1;
	return PyRun_SimpleString("def emb(n): return b'-' * n\n"
				  "kept = [emb(300000) for _ in range(20)]");
}
