// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap export": writes a profile in the format of another program.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cmds/heap/calls.h"
#include "cmds/heap/flame.h"
#include "cmds/heap/heap.h"
#include "cmds/heap/speedscope.h"
#include "common/message.h"

enum export_format { EXPORT_PPROF, EXPORT_SPEEDSCOPE, EXPORT_FOLDED, EXPORT_SVG };

static const char *const export_names[] = { "pprof", "speedscope", "folded", "svg", NULL };

struct export_config {
	struct heap_choice choice;
	int to;
	const char *output;
};

static const struct export_config export_defaults = { .to = -1 };

#define MEMBER(name) offsetof(struct export_config, name)

static const struct mw_option export_options[] = {
	{ "to", 't', MW_OPTION_CHOICE, MEMBER(to), "FORMAT", "format of the output", export_names },
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "FILE",
	  "write to FILE, which must not exist, not to standard output", NULL },
	{ "diff", 0, MW_OPTION_FILE, MEMBER(choice.diff), "BASE",
	  "compare with the profile BASE (folded, svg)", NULL },
	{ "objects", 0, MW_OPTION_FLAG, MEMBER(choice.objects), NULL,
	  "numbers of objects, not bytes", NULL },
	{ "allocated", 0, MW_OPTION_FLAG, MEMBER(choice.allocated), NULL,
	  "all that was allocated, also what was freed", NULL },
	{ "sysroot", 0, MW_OPTION_FILE, MEMBER(choice.sysroot), "DIR",
	  "look for programs and libraries below DIR", NULL },
	{ "native", 0, MW_OPTION_FLAG, MEMBER(choice.native), NULL,
	  "show the functions of the Python interpreter, too", NULL },
	{ "no-symbols", 0, MW_OPTION_FLAG, MEMBER(choice.no_symbols), NULL,
	  "do not look for symbols of addresses", NULL },
	{ 0 },
};

struct export
{
	const struct mw_cli *cli;
	const struct export_config *config;
	const char *path;
	const char *where; /* the output, for messages */
	char **files;
	struct heap_profiles profiles;
	uint32_t metric;
	FILE *out;
};

/* Creates the output file. Returns 0 or an exit code after an error message. */
static int open_output(struct export *e)
{
	const char *path = e->config->output;
	int fd, err;

	e->out = stdout;
	e->where = path ?: "standard output";
	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	e->out = fd < 0 ? NULL : fdopen(fd, "w");
	if (e->out)
		return 0;
	err = errno;
	mw_error_errno(-err, path);
	if (err == EEXIST)
		mw_hint("remove the file, or choose another name");
	return MW_EXIT_FAILED;
}

/* A file that is not complete is removed. */
static int close_output(struct export *e, int rc)
{
	if (e->out == stdout)
		return rc;
	fclose(e->out);
	if (rc)
		unlink(e->config->output);
	return rc;
}

static int write_calls(struct export *e)
{
	struct heap_calls calls;
	int rc = heap_calls_open(&calls, &e->profiles, e->metric, e->path);

	if (rc)
		return rc;
	if (e->config->to == EXPORT_SPEEDSCOPE)
		heap_speedscope_write(&calls, e->path, e->out);
	else if (e->config->to == EXPORT_SVG)
		heap_flame_write(&calls, e->path, e->out);
	else
		heap_calls_write_folded(&calls, e->out);
	heap_calls_close(&calls);
	return 0;
}

static int write_pprof(struct export *e)
{
	int err;

	if (isatty(fileno(e->out)))
		return mw_error(MW_EXIT_USAGE, "heap export",
				"pprof is a binary format; use --output FILE");
	fflush(e->out);
	err = memwatch_heap_write_pprof(e->profiles.heap, 0, fileno(e->out));
	return err ? heap_view_failed(&e->profiles, err, err == -ENODATA ? e->path : e->where) : 0;
}

static const char *const export_usage[] = {
	"heap export FILE --to FORMAT [-o FILE] [--diff BASE] [--objects] [--allocated]",
	"",
	"Writes a heap profile for another program: pprof (\"go tool pprof\"), speedscope",
	"(www.speedscope.app), folded stacks, one line each, or a flame graph (svg) that can",
	"be searched and zoomed in a browser. With --diff, folded stacks have two numbers,",
	"and the colours of the flame graph show what grew and what shrank.",
	NULL,
};

static int check_config(const struct export_config *c)
{
	if (c->to < 0)
		return mw_error(MW_EXIT_USAGE, "heap export", "--to FORMAT is missing");
	if (c->choice.diff && (c->to == EXPORT_PPROF || c->to == EXPORT_SPEEDSCOPE))
		return mw_error(MW_EXIT_USAGE, "heap export",
				"--diff is for the formats folded and svg; 'go tool pprof "
				"-diff_base' compares profiles of pprof");
	return 0;
}

static int export_profile(void *data)
{
	struct export *e = data;
	const struct export_config *c = e->config;
	int rc = heap_profiles_open(&e->profiles, e->cli, &c->choice, 1, e->files);

	if (!rc)
		rc = heap_metric(&e->profiles, &c->choice, e->path, &e->metric);
	if (!rc)
		rc = c->to == EXPORT_PPROF ? write_pprof(e) : write_calls(e);
	if (!rc && (fflush(e->out) || ferror(e->out)))
		rc = mw_error(MW_EXIT_FAILED, e->where, "could not be written");
	heap_profiles_close(&e->profiles);
	return rc;
}

static int export_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct export e = { .cli = cli, .config = config, .path = argv[0], .files = argv };
	int rc = check_config(e.config);

	(void)argc;
	if (!rc)
		rc = open_output(&e);
	return rc ? rc : close_output(&e, heap_profiles_run(export_profile, &e));
}

const struct mw_cmd mw_cmd_heap_export = {
	.name = "export",
	.summary = "write a profile in the format of another program",
	.usage = export_usage,
	.options = export_options,
	.run = export_run,
	.defaults = &export_defaults,
	.config_size = sizeof(struct export_config),
	.operands_min = 1,
	.operands_max = 1,
};
