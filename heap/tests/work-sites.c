// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Objects of which it is known which stack allocated them, at more stacks than a trace can tell by
 * a byte.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "heap/tests/work.h"
#include "selftests/prng.h"

/* Functions that allocate, and say from where they were called. */
#define SITE(name)                                                                                 \
	__attribute__((noipa)) static void *name(size_t size, void **caller)                       \
	{                                                                                          \
		void *volatile memory = malloc(size);                                              \
                                                                                                   \
		*caller = __builtin_return_address(0);                                             \
		return memory;                                                                     \
	}

SITE(site_a)
SITE(site_b)
SITE(site_c)
SITE(site_d)

#define SITE_THREADS 4
#define SITE_SLOTS   500
#define SITE_TURNS   8 /* calls between the thread and the allocation, each in one of two places */

struct site_slot {
	void *memory;
	void *(*function)(size_t size, void **caller);
	void *caller;
	uint64_t path; /* a bit for each call, the innermost last */
	unsigned int turned;
};

static struct site_slot sites[SITE_THREADS][SITE_SLOTS];

/* What follows each of the two calls differs, so that a compiler cannot make one of them. */
__attribute__((noipa)) static void *site_allocate(struct site_slot *slot, uint64_t place,
						  unsigned int turns, size_t size)
{
	void *volatile memory; /* no call is the last thing that the function does */

	if (turns && slot->path >> (turns - 1) & 1) {
		memory = site_allocate(slot, place, turns - 1, size);
		slot->turned++;
		return memory;
	}
	if (turns) {
		memory = site_allocate(slot, place, turns - 1, size);
		slot->turned += 2;
		return memory;
	}
	slot->function = place < 2 ? site_a : place < 4 ? site_b : place < 5 ? site_c : site_d;
	switch (place) {
	case 0:
		memory = site_a(size, &slot->caller);
		break;
	case 1:
		memory = site_a(size + 1, &slot->caller);
		break;
	case 2:
		memory = site_b(size, &slot->caller);
		break;
	case 3:
		memory = site_b(2 * size, &slot->caller);
		break;
	case 4:
		memory = site_c(size, &slot->caller);
		break;
	default:
		memory = site_d(size, &slot->caller);
	}
	return memory;
}

static void *sites_thread(void *argument)
{
	struct prng prng = { (uintptr_t)argument + 1 };

	for (int i = 0; i < 50000; i++) {
		struct site_slot *slot = &sites[(uintptr_t)argument][prng_below(&prng, SITE_SLOTS)];

		free(slot->memory);
		slot->path = prng_below(&prng, 1 << SITE_TURNS);
		slot->memory = site_allocate(slot, prng_below(&prng, 6), SITE_TURNS,
					     prng_below(&prng, 600));
	}
	return NULL;
}

/*
 * sites: prints the live objects at the end, "ADDRESS FUNCTION CALLER PATH" each: the function
 * that called malloc(), the address that it returned to, and which way led there.
 */
int work_sites(char **argv)
{
	pthread_t threads[SITE_THREADS];

	(void)argv;
	for (size_t n = 0; n < SITE_THREADS; n++)
		pthread_create(&threads[n], NULL, sites_thread, (void *)n);
	for (size_t n = 0; n < SITE_THREADS; n++)
		pthread_join(threads[n], NULL);
	for (size_t n = 0; n < SITE_THREADS; n++)
		for (size_t i = 0; i < SITE_SLOTS; i++)
			if (sites[n][i].memory)
				printf("%" PRIxPTR " %" PRIxPTR " %" PRIxPTR " %" PRIx64 "\n",
				       (uintptr_t)sites[n][i].memory,
				       (uintptr_t)sites[n][i].function,
				       (uintptr_t)sites[n][i].caller, sites[n][i].path);
	fflush(stdout);
	_exit(0);
}
