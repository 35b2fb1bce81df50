/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Options, as described by struct mw_option: --name VALUE, --name=VALUE,
 * -n VALUE, -nVALUE. No abbreviations: what is written today must mean the
 * same after the next option was added.
 */
#ifndef MW_OPTIONS_H
#define MW_OPTIONS_H

#include "common/cmd.h"

/*
 * A table and the structure that it fills.
 */
struct mw_option_set {
	const struct mw_option *options;
	void *config;
};

/**
 * mw_options_parse - take the options out of an argument list
 * @sets: tables, the first that knows an option takes it
 * @nr_sets: how many
 * @argc: number of arguments; out: number of operands
 * @argv: arguments; out: operands, in order
 * @stop: stop at the first operand
 * @where: the command, for messages
 *
 * Returns 0 or MW_EXIT_USAGE after a message.
 */
int mw_options_parse(const struct mw_option_set *sets, size_t nr_sets, int *argc, char **argv,
		     bool stop, const char *where);

#endif
