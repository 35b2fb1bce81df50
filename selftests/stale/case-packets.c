// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * After packet-o-matic, a case of the paper of Sniper: a packet analyser starts a thread for each
 * capture file that it reads. The threads are joinable, but those that find a file without an end
 * are not joined. What pthread_create() has allocated for them is never freed.
 *
 *	case-packets FILES
 *
 * The files are generated in memory. Prints how many threads were not joined, and where the objects
 * that they leave are allocated.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKETS	    300
#define CONNECTIONS 32
#define RARE	    4 /* one file in so many has no end */

struct packet {
	uint16_t length, connection;
	uint32_t number;
	char payload[];
};

struct connection {
	uint32_t packets;
	uint64_t bytes;
	struct packet *last;
};

/* What is known of one file. */
struct capture {
	uint32_t seed;
	int has_end;
	uint64_t bytes;
};

static _Atomic unsigned int files_read;

static uint32_t next_random(uint32_t *seed)
{
	return (*seed = *seed * 1664525 + 1013904223) >> 8;
}

static struct packet *packet_read(struct capture *capture, uint32_t number)
{
	uint16_t length = (uint16_t)(40 + next_random(&capture->seed) % 1400);
	struct packet *packet = malloc(sizeof(*packet) + length);

	packet->length = length;
	packet->connection = (uint16_t)(next_random(&capture->seed) % CONNECTIONS);
	packet->number = number;
	memset(packet->payload, (int)number, length);
	return packet;
}

/* A connection keeps its last packet, to compare the next one with it. */
static void connection_feed(struct connection *connection, struct packet *packet)
{
	connection->packets++;
	connection->bytes += packet->length;
	if (connection->last)
		connection->bytes += connection->last->payload[0] == packet->payload[0];
	free(connection->last);
	connection->last = packet;
}

static void *capture_read(void *data)
{
	struct connection *connections = calloc(CONNECTIONS, sizeof(*connections));
	struct capture *capture = data;

	for (uint32_t i = 0; i < PACKETS; i++) {
		struct packet *packet = packet_read(capture, i);

		connection_feed(&connections[packet->connection], packet);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		capture->bytes += connections[i].bytes;
		free(connections[i].last);
	}
	free(connections);
	files_read++;
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int files = argc > 1 ? (unsigned int)atoi(argv[1]) : 400, leaked = 0;
	struct capture *captures = calloc(files, sizeof(*captures));
	uint64_t bytes = 0;
	pthread_t thread;

	for (unsigned int i = 0; i < files; i++) {
		captures[i] = (struct capture){ .seed = i, .has_end = i % RARE != 2 };
		if (pthread_create(&thread, NULL, capture_read, &captures[i]))
			return EXIT_FAILURE;
		/* The analyser joins a thread when it has seen the end of its file. */
		if (captures[i].has_end)
			pthread_join(thread, NULL);
		else
			leaked++;
		bytes += captures[i].bytes;
	}
	printf("{\"leaked\": %u, \"site\": \"pthread_create\", \"bytes\": %llu}\n", leaked,
	       (unsigned long long)bytes);
	fflush(stdout);
	/* A thread that has not read all of its file has packets that are no leaks. */
	while (files_read < files)
		usleep(1000);
	_Exit(0);
}
