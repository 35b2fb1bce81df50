/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The description of a command. Each command defines one constant struct mw_cmd, from
 * which the help, the shell completion, the option parser and the check of the manual
 * pages are derived.
 */
#ifndef MW_CMD_H
#define MW_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes; memwatchctl(8) documents them. */
enum mw_exit {
	MW_EXIT_DONE = 0,
	MW_EXIT_FAILED = 1,
	MW_EXIT_USAGE = 2,	 /* wrong command line */
	MW_EXIT_UNSUPPORTED = 3, /* not supported or not permitted on this machine */
	MW_EXIT_NOTHING = 4,	 /* no data found */
	MW_EXIT_DAMAGED = 5,	 /* a file is damaged; the output has what could be read */
};

enum mw_format {
	MW_FORMAT_TABLE = 0,
	MW_FORMAT_JSON = 1,
	MW_FORMAT_CSV = 2,
};

/* Values of the options that every command accepts. */
struct mw_cli {
	int format;
	bool quiet;
	bool verbose;
	const char *root; /* for tests: directory to use in place of "/"; NULL: none */
	bool help;
	bool version;
};

enum mw_option_kind {
	MW_OPTION_FLAG,	    /* bool */
	MW_OPTION_STRING,   /* const char * */
	MW_OPTION_OPTIONAL, /* const char *, only as --name=VALUE; "" without a value */
	MW_OPTION_FILE,	    /* const char *; the completion offers file names */
	MW_OPTION_UINT,	    /* uint64_t */
	MW_OPTION_COUNT,    /* uint64_t, 1 or more */
	MW_OPTION_DURATION, /* uint64_t, nanoseconds */
	MW_OPTION_BYTES,    /* uint64_t */
	MW_OPTION_CHOICE,   /* int, an index of @choices */
};

struct mw_option {
	const char *name;
	char letter; /* short form; 0: none */
	enum mw_option_kind kind;
	size_t offset;	 /* of the member that receives the value */
	const char *arg; /* name of the value in the help; NULL for a flag */
	const char *help;
	const char *const *choices; /* ends with NULL */
};

#define MW_CMD_JSON	 (1U << 0) /* accepts --format json */
#define MW_CMD_CSV	 (1U << 1) /* accepts --format csv */
#define MW_CMD_HIDDEN	 (1U << 2) /* is not listed in the help */
#define MW_CMD_PASS_ARGS (1U << 3) /* options end at the first operand */

struct mw_cmd {
	const char *name;
	const char *summary;
	/*
	 * Lines of the synopsis without the program's name, "", lines of text, NULL. A line of the
	 * synopsis that begins with a blank continues the one above.
	 */
	const char *const *usage;
	const struct mw_option *options; /* the last one has no name */
	/* Returns an exit code. @config is of @config_size bytes and holds the options. */
	int (*run)(const struct mw_cli *cli, void *config, int argc, char **argv);
	const struct mw_cmd *const *sub; /* subcommands; the last one is NULL */
	unsigned int flags;		 /* MW_CMD_* */
	const void *defaults;		 /* initial configuration; NULL: all zero */
	size_t config_size;
	int operands_min;
	int operands_max; /* -1: no limit */
};

extern const struct mw_cmd mw_cmd_main;
extern const struct mw_cmd mw_cmd_doctor;
extern const struct mw_cmd mw_cmd_status;
extern const struct mw_cmd mw_cmd_dump;
extern const struct mw_cmd mw_cmd_top;
extern const struct mw_cmd mw_cmd_record;
extern const struct mw_cmd mw_cmd_report;
extern const struct mw_cmd mw_cmd_export;
extern const struct mw_cmd mw_cmd_events;
extern const struct mw_cmd mw_cmd_config;
extern const struct mw_cmd mw_cmd_growth;
extern const struct mw_cmd mw_cmd_heap;
extern const struct mw_cmd mw_cmd_stale;
extern const struct mw_cmd mw_cmd_completion;

/* The options that every command accepts. */
extern const struct mw_option mw_global_options[];

/* Runs the command that the arguments of main() name. Returns the exit code. */
int mw_cmd_run(int argc, char **argv);
void mw_cmd_print_help(const struct mw_cmd *cmd, FILE *out);

/*
 * Finds the word that a user most likely meant. Returns @candidate if it is similar to
 * @word and more similar than @best, which may be NULL; otherwise @best.
 */
const char *mw_nearest(const char *word, const char *best, const char *candidate);

#endif
