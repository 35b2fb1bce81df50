// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * SipHash-1-3 of Aumasson and Bernstein, for messages of 16 bytes.
 */
#include <stdbool.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/hash.h"

static uint64_t rotate_left(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate_left(v[1], 13) ^ v[0];
	v[3] = rotate_left(v[3], 16) ^ v[2];
	v[0] = rotate_left(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate_left(v[1], 17) ^ v[2];
	v[3] = rotate_left(v[3], 21) ^ v[0];
	v[2] = rotate_left(v[2], 32);
}

static void read_seed(uint64_t seed[2])
{
	if (getrandom(seed, 2 * sizeof(*seed), GRND_NONBLOCK) == 2 * sizeof(*seed))
		return;
	/* Early at boot there are no random numbers yet, and no files of strangers either. */
	seed[0] = mw_clock_ns(CLOCK_MONOTONIC);
	seed[1] = (uint64_t)(uintptr_t)seed;
}

uint64_t mw_hash_pair(uint64_t a, uint64_t b)
{
	static uint64_t seed[2];
	static bool seeded;
	const uint64_t message[] = { a, b, 16ULL << 56 };
	uint64_t v[4];

	if (!seeded)
		read_seed(seed);
	seeded = true;
	v[0] = seed[0] ^ 0x736f6d6570736575ULL;
	v[1] = seed[1] ^ 0x646f72616e646f6dULL;
	v[2] = seed[0] ^ 0x6c7967656e657261ULL;
	v[3] = seed[1] ^ 0x7465646279746573ULL;
	for (int i = 0; i < 3; i++) {
		v[3] ^= message[i];
		sip_round(v);
		v[0] ^= message[i];
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
