// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Conversion of headers, trailer and description between numbers and bytes.
 */
#include "recording/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/memwatch.h>
#include <memwatch/value.h>

/* Half a byte at a time, for processors without an instruction for it. */
static uint32_t crc32c_portable(uint32_t crc, const uint8_t *data, size_t len)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	for (size_t i = 0; i < len; i++) {
		crc ^= data[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return crc;
}

#if defined(__x86_64__) && !defined(__CHECKER__) /* sparse does not know the builtins */
#define HAVE_CRC32C_INSTRUCTION
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const uint8_t *data,
							       size_t len)
{
	uint64_t sum = crc, word;

	for (; len >= sizeof(word); data += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		sum = __builtin_ia32_crc32di(sum, word);
	}
	crc = (uint32_t)sum;
	for (; len; data++, len--)
		crc = __builtin_ia32_crc32qi(crc, *data);
	return crc;
}
#endif

uint32_t mw_crc32c(const void *data, size_t len)
{
#ifdef HAVE_CRC32C_INSTRUCTION
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc32c_sse42(UINT32_MAX, data, len);
#endif
	return ~crc32c_portable(UINT32_MAX, data, len);
}

void mw_block_header_pack(uint8_t *to, const struct mw_block_header *header)
{
	memset(to, 0, MW_BLOCK_HEADER_BYTES);
	memcpy(to, MW_BLOCK_MAGIC, MW_MAGIC_BYTES);
	mw_put16(to + 8, header->version);
	to[10] = header->kind;
	to[11] = header->codec;
	mw_put32(to + 16, header->stored_bytes);
	mw_put32(to + 20, header->plain_bytes);
	mw_put32(to + 24, header->records);
	mw_put32(to + 28, header->record_bytes);
	mw_put64(to + 32, header->first_ns);
	mw_put64(to + 40, header->last_ns);
	mw_put64(to + 48, header->sequence);
	mw_put32(to + 56, header->stored_crc);
	mw_put32(to + 60, mw_crc32c(to, 60));
}

/* Whether a header keeps the limits and does not contradict itself. */
static bool header_plausible(const struct mw_block_header *header)
{
	if (header->stored_bytes > MW_STORED_BYTES_MAX || header->plain_bytes > MW_PLAIN_BYTES_MAX)
		return false;
	if (header->codec == MW_CODEC_STORED && header->stored_bytes != header->plain_bytes)
		return false;
	if (header->kind == MW_BLOCK_INFO)
		return header->plain_bytes <= MW_INFO_BYTES_MAX;
	if (header->kind != MW_BLOCK_RECORDS)
		return true;
	return header->records && header->record_bytes <= MW_RECORD_BYTES_MAX &&
	       header->plain_bytes >= header->records &&
	       header->plain_bytes <= header->record_bytes + MW_PLAIN_OVERHEAD &&
	       header->records <= header->record_bytes / sizeof(struct memwatch_record_header) &&
	       header->first_ns <= header->last_ns;
}

enum mw_header_state mw_block_header_unpack(struct mw_block_header *header, const uint8_t *from)
{
	if (memcmp(from, MW_BLOCK_MAGIC, MW_MAGIC_BYTES) ||
	    mw_get32(from + 60) != mw_crc32c(from, 60))
		return MW_HEADER_INVALID;
	header->version = mw_get16(from + 8);
	header->kind = from[10];
	header->codec = from[11];
	header->stored_bytes = mw_get32(from + 16);
	header->plain_bytes = mw_get32(from + 20);
	header->records = mw_get32(from + 24);
	header->record_bytes = mw_get32(from + 28);
	header->first_ns = mw_get64(from + 32);
	header->last_ns = mw_get64(from + 40);
	header->sequence = mw_get64(from + 48);
	header->stored_crc = mw_get32(from + 56);
	if (header->version > MW_FORMAT_VERSION)
		return MW_HEADER_NEWER;
	return header->version && header_plausible(header) ? MW_HEADER_OK : MW_HEADER_INVALID;
}

void mw_trailer_pack(uint8_t *to, uint64_t index_offset)
{
	mw_put64(to, index_offset);
	mw_put32(to + 8, mw_crc32c(to, 8));
	mw_put32(to + 12, 0);
	memcpy(to + 16, MW_INDEX_MAGIC, MW_MAGIC_BYTES);
}

bool mw_trailer_unpack(uint64_t *index_offset, const uint8_t *from)
{
	if (memcmp(from + 16, MW_INDEX_MAGIC, MW_MAGIC_BYTES) || mw_get32(from + 12) ||
	    mw_get32(from + 8) != mw_crc32c(from, 8))
		return false;
	*index_offset = mw_get64(from);
	return true;
}

/* ------------------------------------------------- description as text */

enum field_kind { FIELD_U32, FIELD_U64, FIELD_STRING };

#define FIELD(kind, member)                                                                        \
	{                                                                                          \
#member, FIELD_##kind, offsetof(struct memwatch_stream_info, member)               \
	}

static const struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
} fields[] = {
	FIELD(U32, schema),
	FIELD(U32, nr_cpus),
	FIELD(U32, nr_rmids),
	FIELD(U32, mode),
	FIELD(STRING, backend),
	FIELD(STRING, backend_reason),
	FIELD(STRING, hostname),
	FIELD(STRING, kernel),
	FIELD(STRING, version),
	FIELD(U64, period_ns),
	FIELD(U64, start_realtime_ns),
	FIELD(U64, start_monotonic_ns),
	FIELD(U64, start_boottime_ns),
};

#define FIELDS (sizeof(fields) / sizeof(*fields))

struct text {
	char *to;
	size_t size, len;
	bool full;
};

static void text_byte(struct text *text, char byte)
{
	if (text->len == text->size)
		text->full = true;
	else
		text->to[text->len++] = byte;
}

static void text_plain(struct text *text, const char *string)
{
	while (*string)
		text_byte(text, *string++);
}

/* A key has one line, so a newline in a value is written as \n, and a backslash as \\. */
static void text_value(struct text *text, const char *string)
{
	for (; string && *string; string++) {
		if (*string == '\n' || *string == '\\')
			text_byte(text, '\\');
		text_byte(text, *string == '\n' ? 'n' : *string);
	}
	text_byte(text, '\n');
}

static void text_number(struct text *text, uint64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, number);
	text_plain(text, digits);
}

static void text_availability(struct text *text, const char *group, const char *name,
			      const struct memwatch_availability *availability)
{
	text_plain(text, group);
	text_plain(text, name);
	text_byte(text, '=');
	text_number(text, availability->status);
	text_byte(text, ' ');
	text_value(text, availability->reason);
}

long mw_info_format(const struct memwatch_stream_info *info, char *to, size_t size)
{
	struct text text = { .to = to, .size = size };

	for (size_t i = 0; i < FIELDS; i++) {
		const char *member = (const char *)info + fields[i].offset;

		text_plain(&text, fields[i].name);
		text_byte(&text, '=');
		if (fields[i].kind == FIELD_STRING) {
			text_value(&text, *(const char *const *)member);
			continue;
		}
		text_number(&text, fields[i].kind == FIELD_U32 ? *(const __u32 *)member
							       : *(const __u64 *)member);
		text_byte(&text, '\n');
	}
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		text_availability(&text, "counter.", memwatch_counter_name(i), &info->counter[i]);
	for (unsigned int i = 0; i < MEMWATCH_RDT_MAX; i++)
		text_availability(&text, "rdt.", memwatch_rdt_event_name(i), &info->rdt[i]);
	return text.full ? -EINVAL : (long)text.len;
}

/* Terminates the line at @text, removes its escapes in place and returns the next line. */
static char *line_end(char *text, char *end)
{
	char *to = text;

	for (; text < end && *text != '\n'; text++) {
		if (*text == '\\' && text + 1 < end) {
			text++;
			*to++ = *text == 'n' ? '\n' : *text;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
	return text < end ? text + 1 : end;
}

static void parse_availability(struct memwatch_availability *all, unsigned int count,
			       const char *(*name_of)(unsigned int), const char *name,
			       const char *value)
{
	char *rest;

	for (unsigned int i = 0; i < count; i++) {
		if (strcmp(name, name_of(i)))
			continue;
		all[i].status = (__u8)strtoul(value, &rest, 10);
		all[i].reason = *rest == ' ' ? rest + 1 : rest;
	}
}

static void parse_field(struct memwatch_stream_info *info, const char *key, const char *value)
{
	if (!strncmp(key, "counter.", 8))
		parse_availability(info->counter, MEMWATCH_COUNTER_MAX, memwatch_counter_name,
				   key + 8, value);
	if (!strncmp(key, "rdt.", 4))
		parse_availability(info->rdt, MEMWATCH_RDT_MAX, memwatch_rdt_event_name, key + 4,
				   value);
	for (size_t i = 0; i < FIELDS; i++) {
		char *member = (char *)info + fields[i].offset;

		if (strcmp(key, fields[i].name))
			continue;
		if (fields[i].kind == FIELD_STRING)
			*(const char **)member = value;
		else if (fields[i].kind == FIELD_U32)
			*(__u32 *)member = (__u32)strtoul(value, NULL, 10);
		else
			*(__u64 *)member = strtoull(value, NULL, 10);
	}
}

void mw_info_parse(struct memwatch_stream_info *info, char *text, size_t len)
{
	char *end = text + len;

	memset(info, 0, sizeof(*info));
	info->sz = sizeof(*info);
	for (size_t i = 0; i < FIELDS; i++) {
		if (fields[i].kind == FIELD_STRING)
			*(const char **)((char *)info + fields[i].offset) = "";
	}
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		info->counter[i].reason = "";
	for (unsigned int i = 0; i < MEMWATCH_RDT_MAX; i++)
		info->rdt[i].reason = "";

	while (text < end) {
		char *next = line_end(text, end);
		char *value = strchr(text, '=');

		if (value) {
			*value = '\0';
			parse_field(info, text, value + 1);
		}
		text = next;
	}
}
