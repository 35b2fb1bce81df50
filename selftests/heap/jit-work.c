// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A compiler at run time: a function in memory that belongs to no file allocates, and
 * perf-PID.map has its name. Ends when its input does.
 *
 *	jit-work [OWNER]    number of a user to whom it gives the map
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define UNSUPPORTED  77
#define OBJECTS	     20
#define OBJECT_BYTES 100000

typedef void *compiled_function(size_t size, void *(*allocate)(size_t));

static char map_path[64];

/* A function with a frame pointer that calls @allocate(@size). */
static compiled_function *function_compile(size_t *ret_size)
{
#ifdef __x86_64__
	static const unsigned char code[] = { 0x55,		/* push %rbp */
					      0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
					      0xff, 0xd6,	/* call *%rsi */
					      0x5d,		/* pop %rbp */
					      0xc3 };		/* ret */
	compiled_function *function = NULL;
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	memcpy(memory, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		exit(1);
	memcpy(&function, &memory, sizeof(function));
	*ret_size = sizeof(code);
	return function;
#else
	(void)ret_size;
	exit(UNSUPPORTED);
#endif
}

static void map_remove(void)
{
	unlink(map_path);
}

static void map_write(compiled_function *function, size_t size, const char *owner)
{
	int fd;

	snprintf(map_path, sizeof(map_path), P_tmpdir "/perf-%d.map", (int)getpid());
	fd = open(map_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		exit(1);
	atexit(map_remove);
	dprintf(fd, "%lx %zx compiled_later\n", (unsigned long)(uintptr_t)function, size);
	if (owner && fchown(fd, (uid_t)atoi(owner), (gid_t)-1))
		exit(1);
	close(fd);
}

int main(int argc, char **argv)
{
	compiled_function *function;
	size_t size;
	char end;

	function = function_compile(&size);
	map_write(function, size, argc > 1 ? argv[1] : NULL);
	for (int i = 0; i < OBJECTS; i++)
		if (!function(OBJECT_BYTES, malloc))
			return 1;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	while (read(STDIN_FILENO, &end, 1) > 0)
		;
	return 0;
}
