// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From the command line to a command: global options, the table of commands,
 * help. Knows nothing of what the commands do.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cmd.h"
#include "common/message.h"
#include "common/options.h"

static const char *const formats[] = { "table", "json", "csv", NULL };

#define GLOBAL(member) offsetof(struct mw_cli, member)

const struct mw_option mw_global_options[] = {
	{ "format", 0, MW_OPTION_CHOICE, GLOBAL(format), "FORMAT",
	  "table for people, json or csv for programs", formats },
	{ "quiet", 'q', MW_OPTION_FLAG, GLOBAL(quiet), NULL, "no warnings, no progress", NULL },
	{ "verbose", 'v', MW_OPTION_FLAG, GLOBAL(verbose), NULL, "say what is being done", NULL },
	{ "root", 0, MW_OPTION_FILE, GLOBAL(root), "DIR",
	  "read /proc, /sys and /boot below DIR (for tests)", NULL },
	{ "help", 'h', MW_OPTION_FLAG, GLOBAL(help), NULL, "show this help", NULL },
	{ "version", 'V', MW_OPTION_FLAG, GLOBAL(version), NULL, "show the version", NULL },
	{ 0 },
};

/* Edit distance, in one row; words of this program are short. */
static unsigned int distance(const char *a, const char *b)
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
	unsigned int d = distance(word, candidate);

	if (d > 3 || d >= strlen(candidate))
		return best;
	return !best || d < distance(word, best) ? candidate : best;
}

static const char *describe(const struct mw_option *o, char *buf, size_t size)
{
	if (o->letter)
		snprintf(buf, size, "-%c, --%s%s%s", o->letter, o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
	else
		snprintf(buf, size, "    --%s%s%s", o->name, o->arg ? " " : "",
			 o->arg ? o->arg : "");
	return buf;
}

static void help_options(const char *title, const struct mw_option *o, FILE *out)
{
	char left[64];

	if (!o || !o->name)
		return;
	fprintf(out, "\n%s:\n", title);
	for (; o->name; o++) {
		fprintf(out, "  %-28s %s", describe(o, left, sizeof(left)), o->help);
		if (o->kind == MW_OPTION_CHOICE) {
			fputs(" [", out);
			for (int i = 0; o->choices[i]; i++)
				fprintf(out, "%s%s", i ? ", " : "", o->choices[i]);
			fputs("]", out);
		}
		fputc('\n', out);
	}
}

static void help_commands(const struct mw_cmd *cmd, FILE *out)
{
	if (!cmd->sub)
		return;
	fputs("\nCommands:\n", out);
	for (const struct mw_cmd *const *sub = cmd->sub; *sub; sub++)
		if (!((*sub)->flags & MW_CMD_HIDDEN))
			fprintf(out, "  %-10s %s\n", (*sub)->name, (*sub)->summary);
}

void mw_cmd_help(const struct mw_cmd *cmd, FILE *out)
{
	const char *const *line = cmd->usage;
	bool first = true;

	for (; *line && **line; line++, first = false)
		fprintf(out, "%s memwatchctl %s\n", first ? "Usage:" : "      ", *line);
	for (; *line; line++)
		fprintf(out, "%s\n", *line);
	help_commands(cmd, out);
	help_options("Options", cmd->options, out);
	for (const struct mw_cmd *const *sub = cmd == &mw_cmd_main ? NULL : cmd->sub; sub && *sub;
	     sub++) {
		char title[64];

		snprintf(title, sizeof(title), "Options of %s %s", cmd->name, (*sub)->name);
		help_options(title, (*sub)->options, out);
	}
	help_options("Options of every command", mw_global_options, out);
	if (cmd == &mw_cmd_main)
		fputs("\nExit status: 0 done, 1 failed, 2 usage, 3 not supported or not permitted "
		      "here,\n4 nothing found. Each command has a page, as "
		      "memwatchctl-record(8).\n",
		      out);
}

static int check_format(const struct mw_cli *cli, const struct mw_cmd *cmd)
{
	static const unsigned int needed[] = {
		[MW_FORMAT_TABLE] = 0,
		[MW_FORMAT_JSON] = MW_CMD_JSON,
		[MW_FORMAT_CSV] = MW_CMD_CSV,
	};

	if ((cmd->flags & needed[cli->format]) == needed[cli->format])
		return 0;
	return mw_error(MW_EXIT_USAGE, cmd->name, "there is no --format %s here",
			formats[cli->format]);
}

static int check_operands(const struct mw_cmd *cmd, int argc, char **argv)
{
	if (argc < cmd->operands_min)
		mw_error(MW_EXIT_USAGE, cmd->name, "an argument is missing");
	else if (cmd->operands_max >= 0 && argc > cmd->operands_max)
		mw_error(MW_EXIT_USAGE, cmd->name, "unexpected argument '%s'",
			 argv[cmd->operands_max]);
	else
		return 0;
	mw_hint("memwatchctl %s", cmd->usage[0]);
	return MW_EXIT_USAGE;
}

static int show_version(void)
{
	puts("memwatchctl " MW_VERSION);
	return mw_finish_stdout(MW_EXIT_DONE);
}

static int run(struct mw_cli *cli, const struct mw_cmd *cmd, int argc, char **argv)
{
	void *config = calloc(1, cmd->config_size ? cmd->config_size : 1);
	struct mw_option_set sets[] = { { cmd->options, config }, { mw_global_options, cli } };
	int rc;

	if (!config)
		return mw_error(MW_EXIT_FAILED, cmd->name, "out of memory");
	if (cmd->defaults)
		memcpy(config, cmd->defaults, cmd->config_size);
	rc = mw_options_parse(sets, 2, &argc, argv, cmd->flags & MW_CMD_PASS_ARGS, cmd->name);
	if (!rc && cli->help)
		mw_cmd_help(cmd, stdout);
	else if (!rc && cli->version)
		rc = show_version();
	else if (!rc)
		rc = check_format(cli, cmd) ?: check_operands(cmd, argc, argv)
			?: cmd->run(cli, config, argc, argv);
	free(config);
	return mw_finish_stdout(rc);
}

static const struct mw_cmd *find_command(const struct mw_cmd *cmd, const char *name)
{
	const char *best = NULL;

	for (const struct mw_cmd *const *sub = cmd->sub; *sub; sub++) {
		if (!strcmp((*sub)->name, name))
			return *sub;
		if (!((*sub)->flags & MW_CMD_HIDDEN))
			best = mw_nearest(name, best, (*sub)->name);
	}
	mw_error(MW_EXIT_USAGE, name, "no such command");
	if (best)
		mw_hint("did you mean '%s'?", best);
	else
		mw_hint("memwatchctl --help lists the commands");
	return NULL;
}

int mw_cmd_run(int argc, char **argv)
{
	struct mw_cli cli = { 0 };
	struct mw_option_set globals = { mw_global_options, &cli };
	const struct mw_cmd *cmd = &mw_cmd_main;
	int rc;

	argc--;
	argv++;
	rc = mw_options_parse(&globals, 1, &argc, argv, true, "command line");
	if (rc)
		return rc;
	if (cli.version)
		return show_version();
	if (!argc) {
		mw_cmd_help(cmd, cli.help ? stdout : stderr);
		return cli.help ? mw_finish_stdout(MW_EXIT_DONE) : MW_EXIT_USAGE;
	}
	if (!strcmp(argv[0], "help")) {
		if (argc == 1) {
			mw_cmd_help(cmd, stdout);
			return mw_finish_stdout(MW_EXIT_DONE);
		}
		cli.help = true;
		argc--;
		argv++;
	}
	while (cmd && cmd->sub) {
		/* A group has no more options of its own. */
		if (cmd != &mw_cmd_main &&
		    (argc ? !strcmp(argv[0], "--help") || !strcmp(argv[0], "-h") : cli.help)) {
			mw_cmd_help(cmd, stdout);
			return mw_finish_stdout(MW_EXIT_DONE);
		}
		if (!argc)
			return mw_error(MW_EXIT_USAGE, cmd->name, "which command?");
		cmd = find_command(cmd, argv[0]);
		argc--;
		argv++;
	}
	return cmd ? run(&cli, cmd, argc, argv) : MW_EXIT_USAGE;
}
