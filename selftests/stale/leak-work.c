// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A server that knows what it leaks: one of 50 requests is not freed, by a rare error path. It also
 * has a table that is filled once, and a cache of which each entry is replaced some time.
 *
 *	leak-work REQUESTS
 *
 * Prints how many objects it has leaked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLE 500
#define CACHE 64
#define RARE  50

static char *table[TABLE], *cache[CACHE];

/* Requests that are being handled; each one lives as long as three others begin. */
static char *pending[3];

__attribute__((noipa)) static char *request_create(unsigned long number)
{
	char *request = malloc(48);

	snprintf(request, 48, "request %lu", number);
	return request;
}

__attribute__((noipa)) static void request_finish(char *request)
{
	free(request);
}

__attribute__((noipa)) static int request_handle(unsigned long number)
{
	char **slot = &pending[number % 3];
	int leaks = *slot && (number - 3) % RARE == 7;

	if (!leaks)
		request_finish(*slot);
	*slot = request_create(number);
	return leaks;
}

__attribute__((noipa)) static void table_load(void)
{
	for (int i = 0; i < TABLE; i++)
		table[i] = strdup("an entry of the table");
}

__attribute__((noipa)) static void cache_replace(unsigned long number)
{
	free(cache[number % CACHE]);
	cache[number % CACHE] = strdup("an entry of the cache");
}

int main(int argc, char **argv)
{
	unsigned long requests = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000, leaked = 0;

	table_load();
	for (unsigned long n = 0; n < requests; n++) {
		leaked += (unsigned long)request_handle(n);
		cache_replace(n);
		if (n % 100 == 0)
			usleep(100);
	}
	/* Otherwise they would be stale if the process is stopped for a moment before it ends. */
	for (int i = 0; i < 3; i++)
		request_finish(pending[i]);
	printf("{\"leaked\": %lu}\n", leaked);
	return 0;
}
