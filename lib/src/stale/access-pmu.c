// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * PMUs in sysfs, see access-pmu.h.
 */
#include "stale/access-pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"

/* ------------------------------------------------------------- formats */

/* "7" or "0-7" */
static bool format_add_bits(struct mw_pmu_format *format, struct mw_text range)
{
	struct mw_text number;
	uint64_t first, last;

	if (!mw_text_take(&range, '-', &number) || !mw_text_number(number, 63, &first))
		return false;
	last = first;
	if (mw_text_take(&range, '-', &number) &&
	    (range.at || !mw_text_number(number, 63, &last) || last < first))
		return false;
	for (uint64_t bit = first; bit <= last; bit++)
		format->mask |= 1ULL << bit;
	return true;
}

bool mw_pmu_format_parse(struct mw_text text, struct mw_pmu_format *format)
{
	static const char *const words[MW_PMU_WORDS] = { "config:", "config1:", "config2:" };
	struct mw_text range;

	*format = (struct mw_pmu_format){ 0 };
	if (text.len && text.at[text.len - 1] == '\n')
		text.len--;
	while (format->word < MW_PMU_WORDS && !mw_text_skip(&text, words[format->word]))
		format->word++;
	if (format->word == MW_PMU_WORDS || !text.len)
		return false;
	while (mw_text_take(&text, ',', &range))
		if (!format_add_bits(format, range))
			return false;
	return true;
}

bool mw_pmu_format_put(const struct mw_pmu_format *format, uint64_t value,
		       struct mw_pmu_config *config)
{
	uint64_t *word = &config->word[format->word];

	for (int bit = 0; bit < 64; bit++) {
		if (!(format->mask >> bit & 1))
			continue;
		*word = (*word & ~(1ULL << bit)) | (value & 1) << bit;
		value >>= 1;
	}
	return !value;
}

/* --------------------------------------------------------------- files */

static bool path_of(const struct mw_pmu *pmu, const char *name, char *path)
{
	return snprintf(path, MW_PMU_PATH_ROOM, MW_PMU_DEVICES "/%s/%s", pmu->name, name) <
	       MW_PMU_PATH_ROOM;
}

/* Reads a file without the newline at its end; caller frees. */
static int read_line(const struct mw_pmu *pmu, const char *name, struct mw_text *ret)
{
	char path[MW_PMU_PATH_ROOM], *text;
	int err;

	if (!path_of(pmu, name, path))
		return mw_fail(pmu->ctx, -ENAMETOOLONG, "%s: the name is too long", name);
	err = mw_text_read_file(pmu->ctx, path, &text, &ret->len);
	if (err)
		return err;
	ret->at = text;
	if (ret->len && text[ret->len - 1] == '\n')
		ret->len--;
	return 0;
}

static int read_number(const struct mw_pmu *pmu, const char *name, uint64_t max, uint64_t *ret)
{
	struct mw_text line;
	int err = read_line(pmu, name, &line);

	if (err)
		return err;
	if (!mw_text_number(line, max, ret))
		err = mw_fail(pmu->ctx, -EBADMSG, "%s/%s of the PMU is no number", pmu->name, name);
	free((char *)line.at);
	return err;
}

bool mw_pmu_has(const struct mw_pmu *pmu, const char *name)
{
	char path[MW_PMU_PATH_ROOM], *full;
	bool found;

	if (!path_of(pmu, name, path) || mw_ctx_path(pmu->ctx, path, &full))
		return false;
	found = !access(full, F_OK);
	free(full);
	return found;
}

int mw_pmu_open(struct memwatch_ctx *ctx, const char *name, struct mw_pmu *ret)
{
	struct mw_pmu pmu = { .ctx = ctx, .max_precise = MW_PMU_NO_PRECISE };
	uint64_t number;
	int err;

	if (!mw_text_copy((struct mw_text){ name, strlen(name) }, pmu.name, sizeof(pmu.name)) ||
	    !*name || *name == '.' || strchr(name, '/'))
		return mw_fail(ctx, -EINVAL, "\"%s\" is not the name of a PMU", name);
	err = read_number(&pmu, "type", UINT32_MAX, &number);
	if (err)
		return err;
	pmu.type = (uint32_t)number;
	/* PMUs of cores have the file, ibs_op has none. */
	if (mw_pmu_has(&pmu, "caps/max_precise")) {
		err = read_number(&pmu, "caps/max_precise", 3, &number);
		if (err)
			return err;
		pmu.max_precise = (int)number;
	}
	*ret = pmu;
	return 0;
}

/* --------------------------------------------------------------- terms */

/* Decimal, or hexadecimal with 0x, as events are written in sysfs. */
static bool parse_value(struct mw_text text, uint64_t *ret)
{
	uint64_t value = 0;

	if (!mw_text_skip(&text, "0x"))
		return mw_text_number(text, UINT64_MAX, ret);
	for (size_t i = 0; i < text.len; i++) {
		const char *digits = "0123456789abcdef";
		const char *digit = text.at[i] ? strchr(digits, text.at[i] | 0x20) : NULL;

		if (!digit || value >> 60)
			return false;
		value = value << 4 | (uint64_t)(digit - digits);
	}
	*ret = value;
	return text.len;
}

/* Names of terms become names of files. */
static bool is_file_name(struct mw_text name)
{
	return name.len && name.len < MW_PMU_NAME_ROOM && *name.at != '.' &&
	       !memchr(name.at, '/', name.len) && !memchr(name.at, 0, name.len);
}

static int put_term(const struct mw_pmu *pmu, struct mw_text name, uint64_t value,
		    struct mw_pmu_config *config)
{
	char file[MW_PMU_NAME_ROOM + 8];
	struct mw_pmu_format format;
	struct mw_text line;
	int err = 0;

	snprintf(file, sizeof(file), "format/%.*s", (int)name.len, name.at);
	if (!mw_pmu_has(pmu, file))
		return mw_fail(pmu->ctx, -EINVAL, "the PMU %s has no event or format \"%.*s\"",
			       pmu->name, (int)name.len, name.at);
	err = read_line(pmu, file, &line);
	if (err)
		return err;
	if (!mw_pmu_format_parse(line, &format))
		err = mw_fail(pmu->ctx, -EINVAL, "the PMU %s has an unknown kind of %s: \"%.*s\"",
			      pmu->name, file, (int)line.len, line.at);
	else if (!mw_pmu_format_put(&format, value, config))
		err = mw_fail(pmu->ctx, -EINVAL,
			      "the value of \"%.*s\" is too large for the PMU %s", (int)name.len,
			      name.at, pmu->name);
	free((char *)line.at);
	return err;
}

/* @events: names of events are allowed; in the files of events they are not */
static int put_terms(const struct mw_pmu *pmu, struct mw_text terms, bool events,
		     struct mw_pmu_config *config);

static int put_event(const struct mw_pmu *pmu, const char *file, struct mw_pmu_config *config)
{
	struct mw_text line;
	int err = read_line(pmu, file, &line);

	if (err)
		return err;
	err = put_terms(pmu, line, false, config);
	free((char *)line.at);
	return err;
}

static int put_terms(const struct mw_pmu *pmu, struct mw_text terms, bool events,
		     struct mw_pmu_config *config)
{
	struct mw_text term, name, value;
	char file[MW_PMU_NAME_ROOM + 8];
	uint64_t number = 1;
	int err = 0;

	while (!err && mw_text_take(&terms, ',', &term)) {
		value = term;
		mw_text_take(&value, '=', &name);
		if (!is_file_name(name) || (value.at && !parse_value(value, &number)))
			return mw_fail(pmu->ctx, -EINVAL, "\"%.*s\" is no term of an event",
				       (int)term.len, term.at);
		snprintf(file, sizeof(file), "events/%.*s", (int)name.len, name.at);
		if (value.at)
			err = put_term(pmu, name, number, config);
		else if (events && mw_pmu_has(pmu, file))
			err = put_event(pmu, file, config);
		else
			err = put_term(pmu, name, 1, config);
	}
	return err;
}

int mw_pmu_encode(const struct mw_pmu *pmu, struct mw_text terms, struct mw_pmu_config *config)
{
	return put_terms(pmu, terms, true, config);
}
