// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work of a known size: "work read MIB TIMES" reads a buffer, "work write MIB
 * TIMES" writes it, "work spin N" executes 2 * N instructions. The first two
 * stop themselves (SIGSTOP) when the buffer is there, and when they are done.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64 };

static void spin(uint64_t n)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
}

static void pass(volatile uint64_t *buffer, size_t size, int store)
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
		spin(strtoull(argv[2], NULL, 0));
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
	/* the second pass leaves no line dirty, if it is larger than the cache */
	pass(buffer, size, 1);
	pass(buffer, size, 0);
	raise(SIGSTOP);
	for (times = atoi(argv[3]); times; times--)
		pass(buffer, size, !strcmp(argv[1], "write"));
	raise(SIGSTOP);
	return 0;
}
