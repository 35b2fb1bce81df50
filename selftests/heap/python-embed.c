// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A program that loads CPython as a library, runs it and unloads it again, while another thread
 * allocates all the time. The function emb() allocates a known number of bytes in each round. The
 * exit status is 77 if there is no such library.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libpython3.11.so.1.0"
#define ROUNDS	4

static bool stop;

static void *churn(void *argument)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		void *volatile object = malloc(100);

		free(object);
	}
	return argument;
}

static struct {
	void (*Py_Initialize)(void);
	void (*Py_Finalize)(void);
	int (*PyRun_SimpleString)(const char *);
	void *(*Py_NewInterpreter)(void);
	void (*Py_EndInterpreter)(void *);
	void *(*PyThreadState_Swap)(void *);
} python;

static void find(void *library, const char *name, void *ret)
{
	void *found = dlsym(library, name);

	memcpy(ret, &found, sizeof(found));
}

#define FIND(library, name) find(library, #name, &python.name)

static void subinterpreter_run(void)
{
	void *first = python.PyThreadState_Swap(NULL), *second;

	python.PyThreadState_Swap(first);
	second = python.Py_NewInterpreter();
	python.PyRun_SimpleString("def insub(n): return bytearray(n)\n[insub(200000)]");
	python.Py_EndInterpreter(second);
	python.PyThreadState_Swap(first);
}

static bool round_run(int mode)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | mode);

	if (!library)
		return false;
	FIND(library, Py_Initialize);
	FIND(library, Py_Finalize);
	FIND(library, PyRun_SimpleString);
	FIND(library, Py_NewInterpreter);
	FIND(library, Py_EndInterpreter);
	FIND(library, PyThreadState_Swap);
	python.Py_Initialize();
	python.PyRun_SimpleString("def emb(n): return b'-' * n\n[emb(300000) for _ in range(20)]");
	subinterpreter_run();
	python.PyRun_SimpleString("emb(300000)");
	python.Py_Finalize();
	dlclose(library);
	return true;
}

int main(void)
{
	pthread_t thread;
	int rounds = 0;

	pthread_create(&thread, NULL, churn, NULL);
	while (rounds < ROUNDS && round_run(rounds % 2 ? RTLD_GLOBAL : RTLD_LOCAL))
		rounds++;
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return rounds == ROUNDS ? 0 : rounds ? 1 : 77;
}
