// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * After usimm, a case of the paper of Sniper: a simulator of memory scheduling takes requests that
 * were served out of its queue, and does not free them. All objects of the site are leaked.
 *
 *	case-memory CYCLES
 *
 * Prints how many requests it has leaked, and where they are allocated.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BANKS 16
#define ROWS  256

struct request {
	uint64_t address, arrival, finish;
	uint32_t bank, row;
	int is_write;
	struct request *next;
};

/* The state of a row buffer, which is replaced when another row is opened. */
struct row_buffer {
	uint32_t row;
	uint64_t opened, lines[8];
};

static struct request *queue, **queue_end = &queue;
static struct row_buffer *open_rows[BANKS];
static uint64_t *row_hits;
static uint32_t seed = 7;

static uint32_t next_random(void)
{
	return (seed = seed * 1664525 + 1013904223) >> 8;
}

__attribute__((noipa)) static void insert_request(uint64_t now)
{
	struct request *request = malloc(sizeof(*request));

	*request = (struct request){
		.address = (uint64_t)next_random() << 6,
		.arrival = now,
		.bank = next_random() % BANKS,
		.row = next_random() % ROWS,
		.is_write = next_random() % 3 == 0,
	};
	*queue_end = request;
	queue_end = &request->next;
}

__attribute__((noipa)) static void open_row(uint32_t bank, uint32_t row, uint64_t now)
{
	free(open_rows[bank]);
	open_rows[bank] = calloc(1, sizeof(*open_rows[bank]));
	open_rows[bank]->row = row;
	open_rows[bank]->opened = now;
}

/* Serves the first request whose row is open, or else the oldest one. */
__attribute__((noipa)) static uint64_t serve_request(uint64_t now)
{
	struct request **chosen = &queue, *request;

	for (struct request **at = &queue; *at; at = &(*at)->next) {
		if (open_rows[(*at)->bank] && open_rows[(*at)->bank]->row == (*at)->row) {
			chosen = at;
			row_hits[(*at)->row]++;
			break;
		}
	}
	request = *chosen;
	if (!open_rows[request->bank] || open_rows[request->bank]->row != request->row)
		open_row(request->bank, request->row, now);
	request->finish = now;
	*chosen = request->next;
	if (queue_end == &request->next)
		queue_end = chosen;
	return request->finish - request->arrival; /* free(request) is missing */
}

int main(int argc, char **argv)
{
	unsigned long cycles = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000, served = 0;
	uint64_t latency = 0, waiting = 0;

	row_hits = calloc(ROWS, sizeof(*row_hits));
	for (unsigned long now = 0; now < cycles; now++) {
		if (waiting < 24) {
			insert_request(now);
			waiting++;
		}
		if (waiting > 16) {
			latency += serve_request(now);
			waiting--;
			served++;
		}
	}
	printf("{\"leaked\": %lu, \"site\": \"insert_request\", \"latency\": %llu}\n", served,
	       (unsigned long long)latency);
	return 0;
}
