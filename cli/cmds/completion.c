// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "completion": prints completion scripts for shells, and the list of commands and
 * options that scripts/check-docs compares with the manual pages.
 */
#include <string.h>

#include "common/message.h"

static const char *const completion_usage[] = {
	"completion [bash | zsh | fish | list]",
	"",
	"Prints the completion script for a shell. \"list\" prints all commands and options,",
	"one on each line.",
	NULL,
};

struct visitor {
	void (*command)(const struct mw_cmd *cmd);
	void (*option)(const struct mw_cmd *cmd, const struct mw_option *option);
	void (*command_end)(const struct mw_cmd *cmd);
};

/* Calls @fn for each option. A group has the options of its subcommands, each name once. */
static void visit_options(const struct mw_cmd *cmd,
			  void (*fn)(const struct mw_cmd *cmd, const struct mw_option *option))
{
	for (const struct mw_option *o = cmd->options; o && o->name; o++)
		fn(cmd, o);
	for (const struct mw_cmd *const *sub = cmd->sub; sub && *sub; sub++) {
		for (const struct mw_option *o = (*sub)->options; o && o->name; o++) {
			bool seen = false;

			for (const struct mw_cmd *const *before = cmd->sub; before != sub; before++)
				for (const struct mw_option *p = (*before)->options; p && p->name;
				     p++)
					seen |= !strcmp(p->name, o->name);
			if (!seen)
				fn(cmd, o);
		}
	}
}

static void visit_commands(const struct visitor *v)
{
	for (const struct mw_cmd *const *c = mw_cmd_main.sub; *c; c++) {
		if ((*c)->flags & MW_CMD_HIDDEN)
			continue;
		v->command(*c);
		visit_options(*c, v->option);
		for (const struct mw_option *o = mw_global_options; o->name; o++)
			v->option(*c, o);
		if (v->command_end)
			v->command_end(*c);
	}
}

static void print_list_command(const struct mw_cmd *cmd)
{
	printf("%s\n", cmd->name);
}

static void print_list_option(const struct mw_cmd *cmd, const struct mw_option *o)
{
	printf("%s --%s", cmd->name, o->name);
	if (o->letter)
		printf(" -%c", o->letter);
	putchar('\n');
}

static void print_command_names(void)
{
	for (const struct mw_cmd *const *c = mw_cmd_main.sub; *c; c++)
		if (!((*c)->flags & MW_CMD_HIDDEN))
			printf("%s ", (*c)->name);
}

static void print_bash_command(const struct mw_cmd *cmd)
{
	printf("\t%s) words=\"", cmd->name);
	for (const struct mw_cmd *const *sub = cmd->sub; sub && *sub; sub++)
		printf("%s ", (*sub)->name);
}

static void print_bash_option(const struct mw_cmd *cmd, const struct mw_option *o)
{
	(void)cmd;
	printf("--%s ", o->name);
}

static void print_bash_command_end(const struct mw_cmd *cmd)
{
	(void)cmd;
	printf("\" ;;\n");
}

static void print_bash_value(const char *command, const struct mw_option *o)
{
	if (o->kind == MW_OPTION_FLAG || o->kind == MW_OPTION_OPTIONAL)
		return;
	printf("\t%s:--%s", command, o->name);
	if (o->letter)
		printf("|%s:-%c", command, o->letter);
	printf(") ");
	if (o->kind != MW_OPTION_CHOICE && o->kind != MW_OPTION_FILE) {
		printf(":");
	} else if (o->kind == MW_OPTION_CHOICE) {
		printf("COMPREPLY=($(compgen -W \"");
		for (int i = 0; o->choices[i]; i++)
			printf("%s ", o->choices[i]);
		printf("\" -- \"$cur\"))");
	} else {
		printf("compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\"))");
	}
	printf("; return ;;\n");
}

static void print_bash_option_value(const struct mw_cmd *cmd, const struct mw_option *o)
{
	print_bash_value(cmd->name, o);
}

static void print_bash_completion(void)
{
	static const struct visitor words = { print_bash_command, print_bash_option,
					      print_bash_command_end };

	printf("# bash completion of memwatchctl, made by \"memwatchctl completion bash\"\n"
	       "_memwatchctl() {\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	       "\tlocal command= words= i\n"
	       "\tCOMPREPLY=()\n"
	       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "\t\tcase ${COMP_WORDS[i]} in\n"
	       "\t\t--format|--root) i=$((i + 1)) ;;\n"
	       "\t\t-*) ;;\n"
	       "\t\t*) command=${COMP_WORDS[i]}; break ;;\n"
	       "\t\tesac\n"
	       "\tdone\n"
	       "\tcase $command:$prev in\n");
	for (const struct mw_cmd *const *c = mw_cmd_main.sub; *c; c++)
		visit_options(*c, print_bash_option_value);
	for (const struct mw_option *o = mw_global_options; o->name; o++)
		print_bash_value("*", o);
	printf("\tesac\n\tcase $command in\n\t'') words=\"");
	print_command_names();
	for (const struct mw_option *o = mw_global_options; o->name; o++)
		printf("--%s ", o->name);
	printf("\" ;;\n");
	visit_commands(&words);
	printf("\tesac\n"
	       "\tif [[ $cur == -* || -z $command");
	for (const struct mw_cmd *const *c = mw_cmd_main.sub; *c; c++)
		if ((*c)->sub)
			printf(" || $prev == %s", (*c)->name);
	printf(" ]]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	       "\telse\n"
	       "\t\tcompopt -o filenames 2>/dev/null\n"
	       "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
	       "\tfi\n"
	       "}\n"
	       "complete -F _memwatchctl memwatchctl\n");
}

/* Escapes the characters that are special in single quotes and to _arguments of zsh. */
static void print_zsh_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr("[]:", *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void print_zsh_command(const struct mw_cmd *cmd)
{
	printf("\t%s)\n\t\t_arguments", cmd->name);
	if (!cmd->sub)
		return;
	printf(" \\\n\t\t\t'1:command:(");
	for (const struct mw_cmd *const *sub = cmd->sub; *sub; sub++)
		printf("%s ", (*sub)->name);
	printf(")'");
}

static void print_zsh_option(const struct mw_cmd *cmd, const struct mw_option *o)
{
	(void)cmd;
	printf(" \\\n\t\t\t'--%s[", o->name);
	print_zsh_text(o->help);
	putchar(']');
	if (o->kind == MW_OPTION_CHOICE) {
		printf(":%s:(", o->arg);
		for (int i = 0; o->choices[i]; i++)
			printf("%s ", o->choices[i]);
		putchar(')');
	} else if (o->kind == MW_OPTION_FILE) {
		printf(":%s:_files", o->arg);
	} else if (o->kind != MW_OPTION_FLAG && o->kind != MW_OPTION_OPTIONAL) {
		printf(":%s: ", o->arg);
	}
	putchar('\'');
}

static void print_zsh_command_end(const struct mw_cmd *cmd)
{
	(void)cmd;
	printf(" \\\n\t\t\t'*:file:_files' ;;\n");
}

static void print_zsh_completion(void)
{
	static const struct visitor v = { print_zsh_command, print_zsh_option,
					  print_zsh_command_end };

	printf("#compdef memwatchctl\n"
	       "# zsh completion of memwatchctl, made by \"memwatchctl completion zsh\"\n"
	       "_memwatchctl() {\n"
	       "\tlocal -a commands\n"
	       "\tcommands=(\n");
	for (const struct mw_cmd *const *c = mw_cmd_main.sub; *c; c++) {
		if ((*c)->flags & MW_CMD_HIDDEN)
			continue;
		printf("\t\t'%s:", (*c)->name);
		print_zsh_text((*c)->summary);
		printf("'\n");
	}
	printf("\t)\n"
	       "\tif ((CURRENT == 2)); then\n"
	       "\t\t_describe command commands\n"
	       "\t\treturn\n"
	       "\tfi\n"
	       "\tlocal command=$words[2]\n"
	       "\tshift words\n"
	       "\t((CURRENT--))\n"
	       "\tcase $command in\n");
	visit_commands(&v);
	printf("\tesac\n}\n_memwatchctl \"$@\"\n");
}

static void print_fish_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

static void print_fish_command(const struct mw_cmd *cmd)
{
	printf("complete -c memwatchctl -n __fish_use_subcommand -f -a %s -d '", cmd->name);
	print_fish_text(cmd->summary);
	printf("'\n");
	for (const struct mw_cmd *const *sub = cmd->sub; sub && *sub; sub++) {
		printf("complete -c memwatchctl -n '__fish_seen_subcommand_from %s' -f -a %s -d '",
		       cmd->name, (*sub)->name);
		print_fish_text((*sub)->summary);
		printf("'\n");
	}
}

static void print_fish_option(const struct mw_cmd *cmd, const struct mw_option *o)
{
	printf("complete -c memwatchctl -n '__fish_seen_subcommand_from %s' -l %s", cmd->name,
	       o->name);
	if (o->letter)
		printf(" -s %c", o->letter);
	if (o->kind == MW_OPTION_CHOICE) {
		printf(" -x -a '");
		for (int i = 0; o->choices[i]; i++)
			printf("%s ", o->choices[i]);
		putchar('\'');
	} else if (o->kind == MW_OPTION_FILE) {
		printf(" -r");
	} else if (o->kind != MW_OPTION_FLAG && o->kind != MW_OPTION_OPTIONAL) {
		printf(" -x");
	}
	printf(" -d '");
	print_fish_text(o->help);
	printf("'\n");
}

static void print_fish_completion(void)
{
	static const struct visitor v = { print_fish_command, print_fish_option, NULL };

	printf("# fish completion of memwatchctl, made by \"memwatchctl completion fish\"\n");
	visit_commands(&v);
}

static void print_command_list(void)
{
	static const struct visitor v = { print_list_command, print_list_option, NULL };

	visit_commands(&v);
}

static int completion_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = {
		{ "bash", print_bash_completion },
		{ "zsh", print_zsh_completion },
		{ "fish", print_fish_completion },
		{ "list", print_command_list },
	};

	(void)cli;
	(void)config;
	(void)argc;
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(argv[0], shells[i].name))
			continue;
		shells[i].print();
		return MW_EXIT_DONE;
	}
	mw_error(MW_EXIT_USAGE, "completion", "unknown shell '%s'", argv[0]);
	mw_hint("usage: memwatchctl %s", completion_usage[0]);
	return MW_EXIT_USAGE;
}

const struct mw_cmd mw_cmd_completion = {
	.name = "completion",
	.summary = "print the completion script for a shell",
	.usage = completion_usage,
	.run = completion_run,
	.flags = MW_CMD_HIDDEN,
	.operands_min = 1,
	.operands_max = 1,
};
