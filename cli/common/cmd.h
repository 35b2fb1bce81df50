/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a command is. Each command is one file that ends in one constant
 * struct mw_cmd; help, completion, the check of the options and the check of
 * the documentation all come from that table.
 */
#ifndef MW_CMD_H
#define MW_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How the command ends, also documented in memwatchctl(8). */
enum mw_exit {
	MW_EXIT_DONE = 0,
	MW_EXIT_FAILED = 1,
	MW_EXIT_USAGE = 2,
	MW_EXIT_UNSUPPORTED = 3,
	MW_EXIT_NOTHING = 4,
};

enum mw_format {
	MW_FORMAT_TABLE = 0,
	MW_FORMAT_JSON = 1,
	MW_FORMAT_CSV = 2,
};

/* What was said before, or in spite of, the command. */
struct mw_cli {
	int format;
	bool quiet;
	bool verbose;
	const char *root; /* NULL, or a directory that plays "/" in tests */
	bool help;
	bool version;
};

enum mw_option_kind {
	MW_OPTION_FLAG,	    /* bool */
	MW_OPTION_STRING,   /* const char * */
	MW_OPTION_FILE,	    /* const char *, completes to file names */
	MW_OPTION_UINT,	    /* uint64_t */
	MW_OPTION_DURATION, /* uint64_t, nanoseconds */
	MW_OPTION_CHOICE,   /* int, index into choices */
};

/*
 * One option: how it is written, what it means, where it goes. The offset is
 * that of the member in the configuration of the command.
 */
struct mw_option {
	const char *name;
	char letter; /* 0: long form only */
	enum mw_option_kind kind;
	size_t offset;
	const char *arg; /* how the help calls the argument */
	const char *help;
	const char *const *choices;
};

#define MW_CMD_JSON	 (1U << 0) /* accepts --format json */
#define MW_CMD_CSV	 (1U << 1) /* accepts --format csv */
#define MW_CMD_HIDDEN	 (1U << 2) /* not in the help */
#define MW_CMD_PASS_ARGS (1U << 3) /* options end at the first operand */

struct mw_cmd {
	const char *name;
	const char *summary;
	/* Synopsis lines without the program's name, "", paragraphs, NULL. */
	const char *const *usage;
	const struct mw_option *options; /* ends with an empty name */
	int (*run)(const struct mw_cli *cli, void *config, int argc, char **argv);
	const struct mw_cmd *const *sub; /* ends with NULL */
	unsigned int flags;
	const void *defaults;
	size_t config_size;
	int operands_min;
	int operands_max; /* -1: any number */
};

extern const struct mw_cmd mw_cmd_main;
extern const struct mw_cmd mw_cmd_doctor;
extern const struct mw_cmd mw_cmd_status;
extern const struct mw_cmd mw_cmd_dump;
extern const struct mw_cmd mw_cmd_top;
extern const struct mw_cmd mw_cmd_record;
extern const struct mw_cmd mw_cmd_report;
extern const struct mw_cmd mw_cmd_export;
extern const struct mw_cmd mw_cmd_config;
extern const struct mw_cmd mw_cmd_growth;
extern const struct mw_cmd mw_cmd_completion;

/* The options that every command understands. */
extern const struct mw_option mw_global_options[];

int mw_cmd_run(int argc, char **argv);
void mw_cmd_help(const struct mw_cmd *cmd, FILE *out);

/* The member of a list that is closest to a mistyped word, or NULL. */
const char *mw_nearest(const char *word, const char *best, const char *candidate);

#endif
