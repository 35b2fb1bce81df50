// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A server that forks a child for each request, and leaks until it is killed. The children
 * allocate too, which must not appear in the profile of the server.
 *
 *	fork-server TRUTH-FILE THREADS BYTES-PER-SECOND STOP-BYTES SEED
 *
 * The arguments are those of "work leak"; THREADS and BYTES-PER-SECOND are ignored.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/tests/work.h"
#include "selftests/prng.h"

#define REQUEST_ALLOCATIONS 1000

__attribute__((noipa)) static void *serve_top(size_t size)
{
	void *volatile memory = malloc(size);

	return memory;
}

__attribute__((noipa)) static void *serve_other(size_t size)
{
	void *volatile memory = malloc(size);

	return memory;
}

static void child_run(struct prng *prng)
{
	for (int i = 0; i < 200; i++)
		if (!serve_top(16 + prng_below(prng, 4000)))
			break;
	_exit(0);
}

static void request_serve(struct work_truth *truth, struct prng *prng)
{
	pid_t child;

	for (int i = 0; i < REQUEST_ALLOCATIONS; i++) {
		size_t size = 16 + prng_below(prng, 4000);

		if (serve_top(size))
			__atomic_fetch_add(&truth->top_bytes, size, __ATOMIC_RELAXED);
		if (i % 4 == 0 && serve_other(size))
			__atomic_fetch_add(&truth->other_bytes, size, __ATOMIC_RELAXED);
		free(serve_other(size));
	}
	child = fork();
	if (!child)
		child_run(prng);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	struct work_truth *truth;
	struct prng prng;
	int fd;

	if (argc < 6)
		return 2;
	fd = open(argv[1], O_RDWR);
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		return 1;
	prng.state = strtoull(argv[5], NULL, 10);
	truth->stop_bytes = strtoull(argv[4], NULL, 10);
	truth->top_site = (uintptr_t)serve_top;
	truth->other_site = (uintptr_t)serve_other;
	while (truth->top_bytes <= truth->stop_bytes)
		request_serve(truth, &prng);
	pause();
	return 0;
}
