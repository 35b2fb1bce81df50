// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The frame of a recording, without the records.
 */
#include "recording-format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memwatch/value.h>

uint32_t mw_crc32c(uint32_t crc, const void *bytes, size_t count)
{
	/* Castagnoli, reflected, by half bytes: small, and fast enough for a disk */
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362,
		0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab,
		0xe330a81a, 0xf36e6f75,
	};
	const uint8_t *at = bytes;

	crc = ~crc;
	while (count--) {
		crc ^= *at++;
		crc = table[crc & 15] ^ crc >> 4;
		crc = table[crc & 15] ^ crc >> 4;
	}
	return ~crc;
}

void mw_block_header_seal(struct mw_block_header *header)
{
	header->magic = MW_BLOCK_MAGIC;
	header->header_crc = mw_crc32c(0, header, offsetof(struct mw_block_header, header_crc));
}

bool mw_block_header_valid(const struct mw_block_header *header)
{
	return header->magic == MW_BLOCK_MAGIC &&
	       header->header_crc ==
		       mw_crc32c(0, header, offsetof(struct mw_block_header, header_crc)) &&
	       header->stored_bytes <= MW_BLOCK_STORED_MAX;
}

int mw_read_at(int fd, void *to, size_t count, uint64_t offset)
{
	uint8_t *at = to;

	while (count) {
		ssize_t got = pread(fd, at, count, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		at += got;
		offset += (uint64_t)got;
		count -= (size_t)got;
	}
	return 0;
}

int mw_write_at(int fd, const void *from, size_t count, uint64_t offset)
{
	const uint8_t *at = from;

	while (count) {
		ssize_t put = pwrite(fd, at, count, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -EIO;
		at += put;
		offset += (uint64_t)put;
		count -= (size_t)put;
	}
	return 0;
}

/* ----------------------------------------------------- description as text */

static void put_text(FILE *out, const char *key, const char *text)
{
	fputs(key, out);
	fputs(": ", out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == '\\' || c == 0x7f) {
			fputc('\\', out);
			fputc('0' + (c >> 6), out);
			fputc('0' + (c >> 3 & 7), out);
			fputc('0' + (c & 7), out);
		} else {
			fputc(c, out);
		}
	}
	fputc('\n', out);
}

static void put_number(FILE *out, const char *key, uint64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, number);
	put_text(out, key, digits);
}

static void put_availability(FILE *out, const char *name,
			     const struct memwatch_availability *availability)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_status", name);
	put_text(out, key, memwatch_status_name(availability->status));
	snprintf(key, sizeof(key), "%s_reason", name);
	put_text(out, key, availability->reason);
}

int mw_info_format(const struct memwatch_stream_info *info, char **ret, size_t *ret_bytes)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return -ENOMEM;
	put_text(out, "format", "memwatch recording");
	put_text(out, "version", info->version);
	put_number(out, "schema", info->schema);
	put_text(out, "backend", info->backend);
	put_text(out, "backend_reason", info->backend_reason);
	put_text(out, "hostname", info->hostname);
	put_text(out, "kernel", info->kernel);
	put_number(out, "nr_cpus", info->nr_cpus);
	put_number(out, "nr_rmids", info->nr_rmids);
	put_number(out, "mode", info->mode);
	put_number(out, "period_ns", info->period_ns);
	put_number(out, "start_realtime_ns", info->start_realtime_ns);
	put_number(out, "start_monotonic_ns", info->start_monotonic_ns);
	put_number(out, "start_boottime_ns", info->start_boottime_ns);
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		put_availability(out, memwatch_counter_name(i), &info->counter[i]);
	for (unsigned int i = 0; i < MEMWATCH_RDT_MAX; i++)
		put_availability(out, memwatch_rdt_event_name(i), &info->rdt[i]);
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	*ret_bytes = bytes;
	return 0;
}

static void unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

static uint8_t status_of(const char *name)
{
	for (uint8_t i = 0; i <= MEMWATCH_STATUS_MULTIPLEXED; i++) {
		if (!strcmp(name, memwatch_status_name(i)))
			return i;
	}
	return MEMWATCH_STATUS_ERROR;
}

static bool set_availability(const char *key, const char *value, const char *name,
			     struct memwatch_availability *availability)
{
	size_t length = strlen(name);

	if (strncmp(key, name, length))
		return false;
	if (!strcmp(key + length, "_status"))
		availability->status = status_of(value);
	else if (!strcmp(key + length, "_reason"))
		availability->reason = value;
	else
		return false;
	return true;
}

static int set_number(const char *value, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(value, &end, 10);
	return errno || end == value || *end || *value == '-' || *ret > max ? -EBADMSG : 0;
}

static int set_key(struct memwatch_stream_info *info, const char *key, const char *value)
{
	const struct {
		const char *key;
		const char **text;
	} texts[] = {
		{ "version", &info->version },	 { "backend", &info->backend },
		{ "hostname", &info->hostname }, { "backend_reason", &info->backend_reason },
		{ "kernel", &info->kernel },
	};
	const struct {
		const char *key;
		__u32 *narrow;
		__u64 *wide;
	} numbers[] = {
		{ "schema", &info->schema, NULL },
		{ "nr_cpus", &info->nr_cpus, NULL },
		{ "nr_rmids", &info->nr_rmids, NULL },
		{ "mode", &info->mode, NULL },
		{ "period_ns", NULL, &info->period_ns },
		{ "start_realtime_ns", NULL, &info->start_realtime_ns },
		{ "start_monotonic_ns", NULL, &info->start_monotonic_ns },
		{ "start_boottime_ns", NULL, &info->start_boottime_ns },
	};
	uint64_t number;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (!strcmp(key, texts[i].key)) {
			*texts[i].text = value;
			return 0;
		}
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (strcmp(key, numbers[i].key))
			continue;
		if (set_number(value, numbers[i].narrow ? UINT32_MAX : UINT64_MAX, &number))
			return -EBADMSG;
		if (numbers[i].narrow)
			*numbers[i].narrow = (__u32)number;
		else
			*numbers[i].wide = number;
		return 0;
	}
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		if (set_availability(key, value, memwatch_counter_name(i), &info->counter[i]))
			return 0;
	}
	for (unsigned int i = 0; i < MEMWATCH_RDT_MAX; i++) {
		if (set_availability(key, value, memwatch_rdt_event_name(i), &info->rdt[i]))
			return 0;
	}
	return 0;
}

int mw_info_parse(const char *text, size_t bytes, struct memwatch_stream_info *info,
		  char **text_ret)
{
	char *copy = malloc(bytes + 1);
	char *line, *next;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	/* a NUL inside ends the text early, and what is then missing is missing */
	for (line = copy; line && *line; line = next) {
		char *colon = strstr(line, ": ");

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!colon || (next && colon >= next))
			goto bad;
		*colon = '\0';
		unescape(colon + 2);
		if (set_key(info, line, colon + 2))
			goto bad;
	}
	*text_ret = copy;
	return 0;
bad:
	free(copy);
	return -EBADMSG;
}
