// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The server of the demonstration. It answers requests, for which it allocates and frees, and it
 * remembers each order: nobody ever removes one from the list.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct order {
	struct order *next;
	char text[8000];
};

static struct order *orders;

static void __attribute__((noinline)) remember_order(unsigned int number)
{
	struct order *order = malloc(sizeof(*order));

	if (!order)
		exit(1);
	memset(order->text, '0' + (int)(number % 10), sizeof(order->text));
	order->next = orders;
	orders = order;
}

static void __attribute__((noinline)) answer_request(unsigned int number)
{
	size_t size = 1000 + number % 64 * 1000;
	char *page;

	remember_order(number);
	page = malloc(size);
	if (!page)
		exit(1);
	memset(page, 'a' + (int)(number % 26), size);
	free(page);
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (unsigned int number = 0;; number++) {
		answer_request(number);
		if (number % 10 == 9)
			nanosleep(&pause, NULL);
	}
}
