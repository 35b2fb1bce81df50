// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The option parser. getopt_long() is not used because it accepts abbreviations.
 */
#include <errno.h>
#include <string.h>

#include "common/message.h"
#include "common/options.h"
#include "common/parse.h"

struct parser {
	const struct mw_option_set *sets;
	size_t nr_sets;
	const char *where;
	char **argv;
	int argc;
	int next; /* index of the next argument */
};

/* An option of the command line and the structure that receives its value. */
struct match {
	const struct mw_option *option;
	void *config;
};

static bool is_named(const struct mw_option *option, const char *name, size_t len)
{
	return strlen(option->name) == len && !strncmp(option->name, name, len);
}

static bool find_option(const struct parser *p, const char *name, size_t len, char letter,
			struct match *ret)
{
	for (size_t i = 0; i < p->nr_sets; i++) {
		const struct mw_option *o = p->sets[i].options;

		for (; o && o->name; o++) {
			if (letter ? o->letter != letter : !is_named(o, name, len))
				continue;
			*ret = (struct match){ o, p->sets[i].config };
			return true;
		}
	}
	return false;
}

static int report_unknown(const struct parser *p, const char *arg, const char *name)
{
	const char *best = NULL;

	for (size_t i = 0; i < p->nr_sets; i++)
		for (const struct mw_option *o = p->sets[i].options; o && o->name; o++)
			best = mw_nearest(name, best, o->name);
	mw_error(MW_EXIT_USAGE, p->where, "unknown option '%s'", arg);
	if (best)
		mw_hint("did you mean '--%s'?", best);
	else if (p->nr_sets > 1)
		mw_hint("'memwatchctl %s --help' lists the options", p->where);
	else
		mw_hint("write the options of a command after its name");
	return MW_EXIT_USAGE;
}

static int parse_choice(const struct mw_option *o, const char *value, int *ret, const char *where)
{
	char list[256] = "";

	for (int i = 0; o->choices[i]; i++) {
		if (!strcmp(value, o->choices[i])) {
			*ret = i;
			return 0;
		}
		if (i)
			strncat(list, ", ", sizeof(list) - strlen(list) - 1);
		strncat(list, o->choices[i], sizeof(list) - strlen(list) - 1);
	}
	return mw_error(MW_EXIT_USAGE, where, "--%s: '%s' is not one of %s", o->name, value, list);
}

static int parse_number(const struct mw_option *o, const char *value, uint64_t least, uint64_t *ret,
			const char *where)
{
	uint64_t number;
	int err = mw_parse_uint(value, &number);

	if (err == -ERANGE)
		return mw_error(MW_EXIT_USAGE, where, "--%s: '%s' is too large", o->name, value);
	if (err || number < least)
		return mw_error(MW_EXIT_USAGE, where,
				"--%s: '%s' is not a whole number of %d or more", o->name, value,
				(int)least);
	*ret = number;
	return 0;
}

static int store_value(const struct match *m, const char *value, const char *where)
{
	const struct mw_option *o = m->option;
	void *member = (char *)m->config + o->offset;
	int err;

	switch (o->kind) {
	case MW_OPTION_FLAG:
		*(bool *)member = true;
		return 0;
	case MW_OPTION_STRING:
	case MW_OPTION_FILE:
	case MW_OPTION_OPTIONAL:
		if (!*value && o->kind != MW_OPTION_OPTIONAL)
			return mw_error(MW_EXIT_USAGE, where, "--%s: the value is empty", o->name);
		*(const char **)member = value;
		return 0;
	case MW_OPTION_UINT:
		return parse_number(o, value, 0, member, where);
	case MW_OPTION_COUNT:
		return parse_number(o, value, 1, member, where);
	case MW_OPTION_DURATION:
		err = mw_parse_duration(value, member);
		if (err)
			return mw_error(MW_EXIT_USAGE, where, "--%s: '%s' %s", o->name, value,
					mw_parse_duration_why(err));
		return 0;
	case MW_OPTION_BYTES:
		err = mw_parse_bytes(value, member);
		if (err)
			return mw_error(MW_EXIT_USAGE, where, "--%s: '%s' %s", o->name, value,
					err == -ERANGE ? "is too large"
						       : "is not a size: write a number of bytes, "
							 "or one with the unit K, M, G or T");
		return 0;
	case MW_OPTION_CHOICE:
		return parse_choice(o, value, member, where);
	}
	return MW_EXIT_USAGE;
}

/* Stores the value of an option: @attached, or the next argument if that is NULL. */
static int take_option(struct parser *p, const struct match *m, const char *attached)
{
	if (m->option->kind == MW_OPTION_OPTIONAL && !attached)
		attached = "";
	if (m->option->kind != MW_OPTION_FLAG && !attached) {
		if (p->next >= p->argc)
			return mw_error(MW_EXIT_USAGE, p->where, "--%s needs a value: --%s %s",
					m->option->name, m->option->name, m->option->arg);
		attached = p->argv[p->next++];
	}
	return store_value(m, attached, p->where);
}

static int parse_long_option(struct parser *p, const char *arg)
{
	const char *name = arg + 2;
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	struct match m;

	if (!find_option(p, name, len, 0, &m))
		return report_unknown(p, arg, name);
	if (equals && m.option->kind == MW_OPTION_FLAG)
		return mw_error(MW_EXIT_USAGE, p->where, "--%s takes no value", m.option->name);
	return take_option(p, &m, equals ? equals + 1 : NULL);
}

static int parse_letter_options(struct parser *p, const char *arg)
{
	for (const char *c = arg + 1; *c; c++) {
		struct match m;
		int rc;

		if (!find_option(p, NULL, 0, *c, &m))
			return report_unknown(p, arg, arg + 1);
		if (m.option->kind != MW_OPTION_FLAG)
			return take_option(p, &m, c[1] ? c + 1 : NULL);
		rc = take_option(p, &m, NULL);
		if (rc)
			return rc;
	}
	return 0;
}

int mw_options_parse(const struct mw_option_set *sets, size_t nr_sets, int *argc, char **argv,
		     bool stop, const char *where)
{
	struct parser p = { sets, nr_sets, where, argv, *argc, 0 };
	int operands = 0, rc = 0;

	while (p.next < p.argc && !rc) {
		char *arg = argv[p.next++];

		if (!strcmp(arg, "--")) {
			while (p.next < p.argc)
				argv[operands++] = argv[p.next++];
		} else if (!strncmp(arg, "--", 2)) {
			rc = parse_long_option(&p, arg);
		} else if (arg[0] == '-' && arg[1]) {
			rc = parse_letter_options(&p, arg);
		} else {
			argv[operands++] = arg;
			while (stop && p.next < p.argc)
				argv[operands++] = argv[p.next++];
		}
	}
	/* A command that is run takes its arguments up to this. */
	argv[operands] = NULL;
	*argc = operands;
	return rc;
}
