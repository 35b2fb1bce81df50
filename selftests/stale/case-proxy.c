// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * After squid, a case of the paper of Sniper: a caching proxy allocates all requests at one place
 * and frees them at one place. A request with an empty URL takes an error path that does not free
 * it. Beside it there are a cache of pages that are replaced after a while, and a table of
 * configuration that is read once and never freed.
 *
 *	case-proxy REQUESTS
 *
 * Prints how many requests it has leaked, and where they are allocated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGES	200
#define OPTIONS 300
#define RARE	100

struct request {
	char *url;
	unsigned long number;
	char header[96];
};

struct page {
	char *url, *content;
};

static struct page pages[PAGES];
static char *options[OPTIONS];
static unsigned int seed = 3;

static unsigned int next_random(void)
{
	return (seed = seed * 1664525 + 1013904223) >> 8;
}

__attribute__((noipa)) static struct request *request_parse(unsigned long number)
{
	struct request *request = malloc(sizeof(*request));
	char url[64] = "";

	/* Some pages are asked for much more often than others. */
	if (number % RARE != 13)
		snprintf(url, sizeof(url), "http://server/%u",
			 next_random() % (next_random() % 2 ? 20 : 1000));
	request->number = number;
	snprintf(request->header, sizeof(request->header), "GET %s", url);
	request->url = *url ? strdup(url) : NULL;
	return request;
}

__attribute__((noipa)) static void request_free(struct request *request)
{
	free(request->url);
	free(request);
}

__attribute__((noipa)) static size_t page_fetch(const char *url)
{
	unsigned int hash = 5381;
	struct page *page;

	for (const char *c = url; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	page = &pages[hash % PAGES];
	if (!page->url || strcmp(page->url, url)) {
		free(page->url);
		free(page->content);
		page->url = strdup(url);
		page->content = malloc(400 + next_random() % 1000);
		sprintf(page->content, "<html>%s</html>", url);
	}
	return strlen(page->content);
}

int main(int argc, char **argv)
{
	unsigned long requests = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000, leaked = 0;
	size_t bytes = 0;

	for (int i = 0; i < OPTIONS; i++)
		options[i] = strdup("an option of the configuration");
	for (unsigned long n = 0; n < requests; n++) {
		struct request *request = request_parse(n);

		if (!request->url) {
			leaked++; /* the error path */
			continue;
		}
		bytes += page_fetch(request->url) + strlen(options[n % OPTIONS]) % 2;
		request_free(request);
	}
	printf("{\"leaked\": %lu, \"site\": \"request_parse\", \"bytes\": %zu}\n", leaked, bytes);
	return 0;
}
