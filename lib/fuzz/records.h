/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Turns the input of a fuzzer into valid records. A record takes 1 byte for its type, 1 byte
 * for how its members are chosen, and what it needs from the bytes behind these. Small numbers
 * make records that have to do with each other.
 */
#ifndef MW_FUZZ_RECORDS_H
#define MW_FUZZ_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/memwatch.h>

struct input {
	const uint8_t *at;
	size_t left;
	uint64_t now_ns;
};

static inline uint8_t take_byte(struct input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->at++;
}

/* A number of one byte, or any number: 0xff and 8 bytes. */
static inline uint64_t take_number(struct input *input)
{
	uint64_t number = take_byte(input);

	if (number != 0xff || input->left < sizeof(number))
		return number;
	memcpy(&number, input->at, sizeof(number));
	input->at += sizeof(number);
	input->left -= sizeof(number);
	return number;
}

union any_record {
	struct memwatch_record_header h;
	struct memwatch_record_sample sample;
	struct memwatch_record_rmid rmid;
	struct memwatch_record_rdt rdt;
	struct memwatch_record_lost lost;
};

static inline void take_sample(struct input *input, struct memwatch_record_sample *sample)
{
	uint64_t back = take_number(input) * 100000;

	sample->h.size = sizeof(*sample);
	sample->rmid = (uint32_t)take_number(input);
	sample->generation = (uint32_t)take_number(input);
	sample->begin_ns = back > sample->h.time_ns ? 0 : sample->h.time_ns - back;
	sample->run_ns = take_number(input);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		MEMWATCH_SAMPLE_COUNTER(sample, i) = i < 2 ? take_number(input) : 0;
		MEMWATCH_SAMPLE_STATUS(sample, i) = take_byte(input);
	}
}

static inline void take_rmid(struct input *input, struct memwatch_record_rmid *rmid)
{
	rmid->h.size = sizeof(*rmid);
	rmid->rmid = (uint32_t)take_number(input);
	rmid->generation = (uint32_t)take_number(input);
	rmid->tgid = (uint32_t)take_number(input);
	rmid->start_time_ns = take_byte(input);
	rmid->alloc_time_ns = rmid->h.time_ns - take_number(input) * 100000;
	rmid->cgroup_id = take_byte(input) % 5;
	memset(rmid->comm, take_byte(input), sizeof(rmid->comm));
}

static inline void take_rdt(struct input *input, struct memwatch_record_rdt *rdt)
{
	rdt->h.size = sizeof(*rdt);
	rdt->rmid = (uint32_t)take_number(input);
	rdt->generation = (uint32_t)take_number(input);
	rdt->domain = (uint32_t)take_number(input);
	rdt->age_ns = take_number(input) * 100000;
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++) {
		rdt->value[i] = take_number(input);
		rdt->status[i] = take_byte(input);
	}
}

/* The next record, or false at the end of the input. */
static inline bool take_record(struct input *input, union any_record *record)
{
	static const uint16_t types[] = { 1, 1, 1, 3, 4, 5, 6, 10, 64 };

	if (input->left < 2)
		return false;
	memset(record, 0, sizeof(*record));
	record->h.type = types[take_byte(input) % (sizeof(types) / sizeof(*types))];
	input->now_ns += take_number(input) * 100000;
	record->h.time_ns = input->now_ns;
	record->h.cpu = take_byte(input) % 4;
	switch (record->h.type) {
	case MEMWATCH_RECORD_SAMPLE:
		take_sample(input, &record->sample);
		break;
	case MEMWATCH_RECORD_RDT:
		take_rdt(input, &record->rdt);
		break;
	case MEMWATCH_RECORD_LOST:
		record->h.size = sizeof(record->lost);
		record->lost.end_ns = record->h.time_ns + take_number(input) * 100000;
		record->lost.count = take_number(input);
		break;
	default:
		take_rmid(input, &record->rmid);
	}
	return true;
}

#endif /* MW_FUZZ_RECORDS_H */
