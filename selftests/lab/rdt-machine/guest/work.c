// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Work of a known size. "work read MIB TIMES" reads a buffer that many times, "work write
 * MIB TIMES" writes it, and "work spin N" executes 2 * N instructions. The first two stop
 * themselves with SIGSTOP when the buffer is prepared, and again when they are done.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64 };

static void spin_times(uint64_t n)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
}

static void walk_buffer(volatile uint64_t *buffer, size_t size, int store)
{
	size_t i, step = LINE / sizeof(*buffer);

	for (i = 0; i < size / sizeof(*buffer); i += step) {
		if (store)
			buffer[i] = i;
		else
			(void)buffer[i];
	}
}

int main(int argc, char **argv)
{
	size_t size;
	void *buffer;
	int times;

	if (argc == 3 && !strcmp(argv[1], "spin")) {
		spin_times(strtoull(argv[2], NULL, 0));
		return 0;
	}
	if (argc != 4 || (strcmp(argv[1], "read") && strcmp(argv[1], "write"))) {
		fprintf(stderr, "Usage: work read|write MIB TIMES, work spin N\n");
		return 2;
	}
	size = strtoull(argv[2], NULL, 0) << 20;
	buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED) {
		perror("work");
		return 1;
	}
	/* If the buffer is larger than the cache, reading it again leaves no dirty line. */
	walk_buffer(buffer, size, 1);
	walk_buffer(buffer, size, 0);
	raise(SIGSTOP);
	for (times = atoi(argv[3]); times; times--)
		walk_buffer(buffer, size, !strcmp(argv[1], "write"));
	raise(SIGSTOP);
	return 0;
}
