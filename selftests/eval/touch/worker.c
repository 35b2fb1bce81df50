// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
/*
 * Ways of a C program to use the memory that it gains, or not to:
 *
 *	worker KIND RATE_KB CAP_KB SIZE PERCENT AFTER_S
 *
 * KIND:  leak      blocks that are forgotten, beside 2 MiB that are in use
 *        mixed     sessions of two minutes, and blocks of the same sizes that are forgotten
 *        cache     a queue of CAP_KB, of which the oldest entry makes room for the newest
 *        load      data of CAP_KB that stay
 *        wave      sessions of 5 minutes, whose rate follows a wave with a period of CAP_KB seconds
 *        fragment  CAP_KB in blocks that replace each other, of sizes that change
 *        table     a hash table that is doubled when it is full, up to CAP_KB
 *        pool      four forked children that gain RATE_KB and are replaced when they have CAP_KB
 *        ring      buffers of CAP_KB in all that are written in turn
 *
 * It gains RATE_KB a second from AFTER_S on, in blocks of SIZE bytes on average. PERCENT of the
 * blocks are read again, each once in READ_S.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define READ_S	  90.0
#define TTL_S	  300.0
#define SHORT_S	  120.0
#define WORKERS	  4
#define KIB	  1024.0
#define USED	  256
#define USED_SIZE 8192

struct block {
	double born;
	size_t size;
	bool again;
	unsigned char data[];
};

/* A queue. */
static struct block **blocks;
static size_t first, count, room, cursor;
static double held, owed, rate, cap, size_mean, percent, after;
static unsigned int seed;
static volatile unsigned int sum;
static unsigned char *used[USED];

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double random_unit(void)
{
	return (double)rand_r(&seed) / ((double)RAND_MAX + 1);
}

static struct block *make_block(double now, double scale)
{
	size_t size = (size_t)(size_mean * scale * (0.5 + random_unit()));
	struct block *block = malloc(sizeof(*block) + size);

	if (!block)
		exit(1);
	*block = (struct block){ .born = now,
				 .size = size,
				 .again = random_unit() * 100 < percent };
	memset(block->data, 'x', size);
	return block;
}

static double cost_of(const struct block *block)
{
	return (double)(sizeof(*block) + block->size + 16);
}

static void push(struct block *block)
{
	if (count == room) {
		struct block **more = calloc(room ? 2 * room : 1024, sizeof(struct block *));

		if (!more)
			exit(1);
		for (size_t i = 0; i < count; i++)
			more[i] = blocks[(first + i) % room];
		free(blocks);
		blocks = more;
		first = 0;
		room = room ? 2 * room : 1024;
	}
	blocks[(first + count++) % room] = block;
	held += cost_of(block);
}

static void pop(void)
{
	held -= cost_of(blocks[first]);
	free(blocks[first]);
	first = (first + 1) % room;
	count--;
}

static void read_block(const struct block *block)
{
	for (size_t i = 0; i < block->size; i += 512)
		sum += block->data[i];
}

/* Reads the blocks that are read again, each once in READ_S. */
static void read_some(double seconds)
{
	size_t some = (size_t)((double)count * seconds / READ_S) + 1;

	for (; some && count; some--) {
		struct block *block = blocks[(first + cursor++ % count) % room];

		if (block->again)
			read_block(block);
	}
	for (size_t i = 0; i < USED; i += 8)
		sum += used[i][0];
}

static void tick_leak(double now, double due)
{
	(void)now;
	for (; owed < due; owed += cost_of(make_block(now, 1)))
		free(make_block(now, 3));
}

static void tick_mixed(double now, double due)
{
	while (owed < due) {
		owed += cost_of(make_block(now, 1));
		push(make_block(now, 1));
	}
	while (count && now - blocks[first]->born > SHORT_S)
		pop();
}

static void tick_cache(double now, double due)
{
	while (owed < due) {
		struct block *block = make_block(now, 1);

		owed += cost_of(block);
		push(block);
		while (held > cap)
			pop();
	}
}

static void tick_load(double now, double due)
{
	while (owed < due && held < cap) {
		struct block *block = make_block(now, 1);

		owed += cost_of(block);
		push(block);
	}
}

/* The period is CAP_KB in seconds. Begins at its lowest. */
static void tick_wave(double now, double seconds, double since)
{
	double share = (1 - cos(since * 2 * M_PI / (cap / KIB))) / 2;

	for (double made = 0; made < rate * seconds * share;) {
		struct block *block = make_block(now, 1);

		made += cost_of(block);
		push(block);
	}
	while (count && now - blocks[first]->born > TTL_S)
		pop();
}

static void tick_fragment(double now, double due, double since)
{
	static const double scales[] = { 0.4, 1, 0.6, 1.5, 0.8 };
	double scale = scales[(size_t)(since / 400) % 5];

	while (owed < due) {
		struct block *block = make_block(now, scale);
		size_t at = count ? (first + (size_t)(random_unit() * (double)count)) % room : 0;

		owed += cost_of(block);
		if ((double)count * size_mean < cap) {
			push(block);
			continue;
		}
		held += cost_of(block) - cost_of(blocks[at]);
		free(blocks[at]);
		blocks[at] = block;
	}
}

/* A table of 64-byte slots; all of it is in use, by lookups at random places. */
static void tick_table(double due, double seconds)
{
	static unsigned char *table;
	static size_t slots = 4096, filled;

	if (!table)
		table = calloc(slots, 64);
	while (table && (double)filled * 64 < due) {
		if (filled * 4 > slots * 3 && (double)slots * 128 <= cap) {
			unsigned char *more = calloc(2 * slots, 64);

			if (!more)
				exit(1);
			memcpy(more, table, slots * 64);
			free(table);
			table = more;
			slots *= 2;
		}
		filled++;
		table[(size_t)(random_unit() * (double)slots) * 64] = 1;
	}
	for (size_t i = (size_t)((double)slots / 64 * seconds * 2 / READ_S) + 1; table && i; i--)
		sum += table[(size_t)(random_unit() * (double)slots) * 64];
}

static void __attribute__((noreturn)) live_as_worker(double bound)
{
	const struct timespec second = { 1, 0 };
	double start = now_s();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seed = (unsigned int)getpid();
	owed = 0;
	while (held < bound) {
		tick_load(now_s(), (now_s() - start) * rate);
		read_some(1);
		nanosleep(&second, NULL);
	}
	_exit(0);
}

static void tick_pool(void)
{
	static int alive;

	while (alive && waitpid(-1, NULL, WNOHANG) > 0)
		alive--;
	for (; alive < WORKERS; alive++)
		if (!fork())
			live_as_worker(cap * (0.6 + 0.1 * alive));
}

static void tick_ring(double due)
{
	static unsigned char *ring;
	static size_t at;
	size_t bytes = (size_t)cap;

	if (!ring)
		ring = malloc(bytes);
	for (; ring && owed < due; owed += 1024, at = (at + 1024) % (bytes - 1024))
		memset(ring + at, (int)at, 1024);
}

static void tick(const char *kind, double now, double seconds, double since)
{
	double due = since > after ? (since - after) * rate : 0;

	if (!strcmp(kind, "leak"))
		tick_leak(now, due);
	else if (!strcmp(kind, "mixed"))
		tick_mixed(now, due);
	else if (!strcmp(kind, "cache"))
		tick_cache(now, due);
	else if (!strcmp(kind, "load"))
		tick_load(now, due);
	else if (!strcmp(kind, "wave"))
		tick_wave(now, seconds, since);
	else if (!strcmp(kind, "fragment"))
		tick_fragment(now, due, since);
	else if (!strcmp(kind, "table"))
		tick_table(due, seconds);
	else if (!strcmp(kind, "pool"))
		tick_pool();
	else if (!strcmp(kind, "ring"))
		tick_ring(due);
	else
		exit(2);
	read_some(seconds);
}

int main(int argc, char **argv)
{
	const struct timespec second = { 1, 0 };
	double start = now_s(), before = start;

	if (argc != 7)
		return 2;
	rate = atof(argv[2]) * KIB;
	cap = atof(argv[3]) * KIB;
	size_mean = atof(argv[4]);
	percent = atof(argv[5]);
	after = atof(argv[6]);
	seed = (unsigned int)getpid();
	for (size_t i = 0; i < USED; i++) {
		used[i] = malloc(USED_SIZE);
		if (!used[i])
			return 1;
		memset(used[i], 1, USED_SIZE);
	}
	for (;;) {
		double now = now_s();

		tick(argv[1], now, now - before, now - start);
		before = now;
		nanosleep(&second, NULL);
	}
}
