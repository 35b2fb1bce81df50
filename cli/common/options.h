/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The option parser. Options are described by struct mw_option and written as
 * --name VALUE, --name=VALUE, -n VALUE or -nVALUE. Abbreviations are not accepted:
 * an option that is added later would make them ambiguous.
 */
#ifndef MW_OPTIONS_H
#define MW_OPTIONS_H

#include "common/cmd.h"

/* A table of options and the structure that receives their values. */
struct mw_option_set {
	const struct mw_option *options;
	void *config;
};

/**
 * mw_options_parse - take the options out of an argument list
 * @sets: tables; the first one that has an option receives its value
 * @nr_sets: number of tables
 * @argc: number of arguments; on return, number of operands
 * @argv: arguments; on return, the operands in their order
 * @stop: stop at the first operand
 * @where: name of the command, for error messages
 *
 * Returns 0, or MW_EXIT_USAGE after an error message.
 */
int mw_options_parse(const struct mw_option_set *sets, size_t nr_sets, int *argc, char **argv,
		     bool stop, const char *where);

#endif
