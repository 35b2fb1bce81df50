// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The parser of lines of a trace. It is strict: a number that is guessed would move an object.
 */
#include "stale/event-text.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Takes the next word off the start of @rest; it is empty at the end. */
static struct mw_text take_word(struct mw_text *rest)
{
	struct mw_text word;

	while (rest->len && is_blank(*rest->at)) {
		rest->at++;
		rest->len--;
	}
	word = (struct mw_text){ rest->at, 0 };
	while (word.len < rest->len && !is_blank(word.at[word.len]))
		word.len++;
	rest->at += word.len;
	rest->len -= word.len;
	return word;
}

static bool parse_decimal(struct mw_text word, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < word.len; i++) {
		unsigned int digit = (unsigned char)word.at[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return word.len && value <= max;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decimal, or hexadecimal with 0x. */
static bool parse_number(struct mw_text word, uint64_t *ret)
{
	uint64_t value = 0;

	if (word.len < 3 || word.at[0] != '0' || (word.at[1] | 0x20) != 'x')
		return parse_decimal(word, UINT64_MAX, ret);
	for (size_t i = 2; i < word.len; i++) {
		int digit = hex_digit(word.at[i]);

		if (digit < 0 || value >> 60)
			return false;
		value = value << 4 | (unsigned int)digit;
	}
	*ret = value;
	return true;
}

bool mw_event_is_comment(struct mw_text line)
{
	struct mw_text word = take_word(&line);

	return !word.len || *word.at == '#';
}

bool mw_event_parse_time(struct mw_text line, uint64_t *time_ns)
{
	take_word(&line);
	return parse_decimal(take_word(&line), UINT64_MAX, time_ns);
}

static const char *parse_kind(struct mw_text word, struct mw_event *event)
{
	static const char letters[] = "mfa";
	const char *letter = word.len == 1 && *word.at ? strchr(letters, *word.at) : NULL;

	if (!letter)
		return "does not begin with m, f or a";
	event->kind = (uint8_t)(letter - letters);
	return NULL;
}

const char *mw_event_parse(struct mw_text line, struct mw_event *event, struct mw_text *place)
{
	const char *why = parse_kind(take_word(&line), event);
	uint64_t tid;

	if (why)
		return why;
	if (!parse_decimal(take_word(&line), UINT64_MAX, &event->time_ns))
		return "has no time in nanoseconds";
	if (!parse_decimal(take_word(&line), UINT32_MAX, &tid))
		return "has no thread number";
	event->tid = (uint32_t)tid;
	if (!parse_number(take_word(&line), &event->address))
		return "has no address; a hexadecimal one begins with 0x";
	event->size = 0;
	if (event->kind == MW_EVENT_MALLOC && !parse_number(take_word(&line), &event->size))
		return "has no size";
	if (event->kind == MW_EVENT_MALLOC && !mw_sim_fits(event->address, event->size))
		return "has an impossible size";
	*place = take_word(&line);
	if (!place->len)
		return event->kind == MW_EVENT_ACCESS ? "has no place" : "has no site";
	if (memchr(place->at, 0, place->len))
		return "contains a NUL byte";
	if (take_word(&line).len)
		return "has too many fields";
	return NULL;
}
