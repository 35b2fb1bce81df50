// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds and runs the command that the command line names, and prints the help.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cmd.h"
#include "common/message.h"
#include "common/options.h"

static const char *const formats[] = { "table", "json", "csv", NULL };

#define GLOBAL(member) offsetof(struct mw_cli, member)

const struct mw_option mw_global_options[] = {
	{ "format", 0, MW_OPTION_CHOICE, GLOBAL(format), "FORMAT",
	  "output for people (table) or for programs (json, csv)", formats },
	{ "quiet", 'q', MW_OPTION_FLAG, GLOBAL(quiet), NULL, "print no warnings and no progress",
	  NULL },
	{ "verbose", 'v', MW_OPTION_FLAG, GLOBAL(verbose), NULL, "print what the command is doing",
	  NULL },
	{ "root", 0, MW_OPTION_FILE, GLOBAL(root), "DIR",
	  "read /proc, /sys, /dev and /boot below DIR (for tests)", NULL },
	{ "help", 'h', MW_OPTION_FLAG, GLOBAL(help), NULL, "show this help and exit", NULL },
	{ "version", 'V', MW_OPTION_FLAG, GLOBAL(version), NULL, "show the version and exit",
	  NULL },
	{ 0 },
};

/* The Levenshtein distance of two short words, computed with one row of the matrix. */
static unsigned int edit_distance(const char *a, const char *b)
{
	unsigned int row[64];
	size_t la = strlen(a), lb = strlen(b);

	if (la > 60 || lb > 60)
		return 99;
	for (size_t j = 0; j <= lb; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned int change = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < change)
				change = row[j] + 1;
			if (row[j - 1] + 1 < change)
				change = row[j - 1] + 1;
			row[j] = change;
		}
	}
	return row[lb];
}

const char *mw_nearest(const char *word, const char *best, const char *candidate)
{
	unsigned int d = edit_distance(word, candidate);

	if (2 * d >= strlen(candidate))
		return best;
	return !best || d < edit_distance(word, best) ? candidate : best;
}

static const char *option_syntax(const struct mw_option *o, char *buf, size_t size)
{
	if (o->kind == MW_OPTION_OPTIONAL)
		snprintf(buf, size, "    --%s[=%s]", o->name, o->arg);
	else if (o->letter)
		snprintf(buf, size, "-%c, --%s%s%s", o->letter, o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
	else
		snprintf(buf, size, "    --%s%s%s", o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
	return buf;
}

static void print_help_options(const char *title, const struct mw_option *o, FILE *out)
{
	char left[64];

	if (!o || !o->name)
		return;
	fprintf(out, "\n%s:\n", title);
	for (; o->name; o++) {
		fprintf(out, "  %-28s %s", option_syntax(o, left, sizeof(left)), o->help);
		if (o->kind == MW_OPTION_CHOICE) {
			fputs(" [", out);
			for (int i = 0; o->choices[i]; i++)
				fprintf(out, "%s%s", i ? ", " : "", o->choices[i]);
			fputs("]", out);
		}
		fputc('\n', out);
	}
}

static void print_help_commands(const struct mw_cmd *cmd, FILE *out)
{
	if (!cmd->sub)
		return;
	fputs("\nCommands:\n", out);
	for (const struct mw_cmd *const *sub = cmd->sub; *sub; sub++)
		if (!((*sub)->flags & MW_CMD_HIDDEN))
			fprintf(out, "  %-10s %s\n", (*sub)->name, (*sub)->summary);
}

void mw_cmd_print_help(const struct mw_cmd *cmd, FILE *out)
{
	const char *const *line = cmd->usage;
	bool first = true;

	/* A line that begins with a blank continues the one above. */
	for (; *line && **line; line++, first = false)
		fprintf(out, "%s %11s %s\n", first ? "Usage:" : "      ",
			**line == ' ' ? "" : "memwatchctl", *line);
	for (; *line; line++)
		fprintf(out, "%s\n", *line);
	print_help_commands(cmd, out);
	print_help_options("Options", cmd->options, out);
	for (const struct mw_cmd *const *sub = cmd == &mw_cmd_main ? NULL : cmd->sub; sub && *sub;
	     sub++) {
		char title[64];

		snprintf(title, sizeof(title), "Options of %s %s", cmd->name, (*sub)->name);
		print_help_options(title, (*sub)->options, out);
	}
	print_help_options("Options of every command", mw_global_options, out);
	if (cmd == &mw_cmd_main)
		fputs("\nExit status: 0 success, 1 failure, 2 wrong command line, 3 not supported "
		      "or not\npermitted on this machine, 4 no data found, 5 a recording is "
		      "damaged, and the output\nhas what could be read. Each command has a "
		      "manual page, for example\nmemwatchctl-record(8).\n",
		      out);
}

static int check_format(const struct mw_cli *cli, const struct mw_cmd *cmd, const char *name)
{
	static const unsigned int needed[] = {
		[MW_FORMAT_TABLE] = 0,
		[MW_FORMAT_JSON] = MW_CMD_JSON,
		[MW_FORMAT_CSV] = MW_CMD_CSV,
	};

	if ((cmd->flags & needed[cli->format]) == needed[cli->format])
		return 0;
	mw_error(MW_EXIT_USAGE, name, "--format %s is not supported by this command",
		 formats[cli->format]);
	mw_hint("it supports table%s%s", cmd->flags & MW_CMD_JSON ? ", json" : "",
		cmd->flags & MW_CMD_CSV ? ", csv" : "");
	return MW_EXIT_USAGE;
}

static int check_operands(const struct mw_cmd *cmd, const char *name, int argc, char **argv)
{
	if (argc < cmd->operands_min)
		mw_error(MW_EXIT_USAGE, name, "an argument is missing");
	else if (cmd->operands_max >= 0 && argc > cmd->operands_max)
		mw_error(MW_EXIT_USAGE, name, "unexpected argument '%s'", argv[cmd->operands_max]);
	else
		return 0;
	mw_hint("usage: memwatchctl %s", cmd->usage[0]);
	return MW_EXIT_USAGE;
}

static int check_root(const struct mw_cli *cli, const char *name)
{
	struct stat st;

	if (!cli->root || (!stat(cli->root, &st) && S_ISDIR(st.st_mode)))
		return 0;
	return mw_error(MW_EXIT_USAGE, name, "--root: '%s' is not a directory", cli->root);
}

static int print_version(void)
{
	puts("memwatchctl " MW_VERSION);
	return mw_finish_stdout(MW_EXIT_DONE);
}

/* @name includes the name of the group: "growth watch". */
static int run_command(struct mw_cli *cli, const struct mw_cmd *cmd, const char *name, int argc,
		       char **argv)
{
	void *config = calloc(1, cmd->config_size ? cmd->config_size : 1);
	struct mw_option_set sets[] = { { cmd->options, config }, { mw_global_options, cli } };
	int rc;

	if (!config)
		return mw_error(MW_EXIT_FAILED, name, "out of memory");
	if (cmd->defaults)
		memcpy(config, cmd->defaults, cmd->config_size);
	rc = mw_options_parse(sets, 2, &argc, argv, cmd->flags & MW_CMD_PASS_ARGS, name);
	if (!rc && cli->help)
		mw_cmd_print_help(cmd, stdout);
	else if (!rc && cli->version)
		rc = print_version();
	else if (!rc)
		rc = check_root(cli, name) ?: check_format(cli, cmd, name) ?: check_operands(cmd, name, argc, argv)
			?: cmd->run(cli, config, argc, argv);
	free(config);
	return mw_finish_stdout(rc);
}

static const struct mw_cmd *find_command(const struct mw_cmd *cmd, const char *word)
{
	bool main = cmd == &mw_cmd_main;
	const char *best = NULL;

	if (*word == '-' && !main) {
		mw_error(MW_EXIT_USAGE, cmd->name, "a subcommand must come before '%s'", word);
		mw_hint("'memwatchctl %s --help' lists the subcommands", cmd->name);
		return NULL;
	}
	for (const struct mw_cmd *const *sub = cmd->sub; *sub; sub++) {
		if (!strcmp((*sub)->name, word))
			return *sub;
		if (!((*sub)->flags & MW_CMD_HIDDEN))
			best = mw_nearest(word, best, (*sub)->name);
	}
	mw_error(MW_EXIT_USAGE, main ? "command line" : cmd->name, "unknown %s '%s'",
		 main ? "command" : "subcommand", word);
	if (best)
		mw_hint("did you mean '%s'?", best);
	else
		mw_hint("'memwatchctl%s%s --help' lists the %scommands", main ? "" : " ",
			main ? "" : cmd->name, main ? "" : "sub");
	return NULL;
}

static int print_help(const struct mw_cmd *cmd)
{
	mw_cmd_print_help(cmd, stdout);
	return mw_finish_stdout(MW_EXIT_DONE);
}

/* Runs a subcommand of the group @group. */
static int run_subcommand(struct mw_cli *cli, const struct mw_cmd *group, int argc, char **argv)
{
	const struct mw_cmd *cmd;
	char name[64];

	if (argc ? !strcmp(argv[0], "--help") || !strcmp(argv[0], "-h") : cli->help)
		return print_help(group);
	if (!argc) {
		mw_error(MW_EXIT_USAGE, group->name, "a subcommand is missing");
		mw_hint("'memwatchctl %s --help' lists the subcommands", group->name);
		return MW_EXIT_USAGE;
	}
	cmd = find_command(group, argv[0]);
	if (!cmd)
		return MW_EXIT_USAGE;
	snprintf(name, sizeof(name), "%s %s", group->name, cmd->name);
	return run_command(cli, cmd, name, argc - 1, argv + 1);
}

int mw_cmd_run(int argc, char **argv)
{
	struct mw_cli cli = { 0 };
	struct mw_option_set globals = { mw_global_options, &cli };
	const struct mw_cmd *cmd;
	int rc;

	argc--;
	argv++;
	rc = mw_options_parse(&globals, 1, &argc, argv, true, "command line");
	if (rc)
		return rc;
	if (cli.version)
		return print_version();
	if (argc && !strcmp(argv[0], "help")) {
		cli.help = true;
		argc--;
		argv++;
	}
	if (!argc) {
		if (cli.help)
			return print_help(&mw_cmd_main);
		mw_cmd_print_help(&mw_cmd_main, stderr);
		return MW_EXIT_USAGE;
	}
	cmd = find_command(&mw_cmd_main, argv[0]);
	if (!cmd)
		return MW_EXIT_USAGE;
	if (cmd->sub)
		return run_subcommand(&cli, cmd, argc - 1, argv + 1);
	return run_command(&cli, cmd, cmd->name, argc - 1, argv + 1);
}
