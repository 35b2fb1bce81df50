// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap export": writes a profile in the format of another program.
 */
#include <errno.h>
#include <unistd.h>

#include "cmds/heap/calls.h"
#include "cmds/heap/flame.h"
#include "cmds/heap/heap.h"
#include "cmds/heap/speedscope.h"
#include "common/message.h"
#include "common/out-file.h"

enum export_format { EXPORT_PPROF, EXPORT_SPEEDSCOPE, EXPORT_FOLDED, EXPORT_SVG };

static const char *const export_names[] = { "pprof", "speedscope", "folded", "svg", NULL };

struct export_config {
	struct heap_choice choice;
	int to;
	const char *output;
	bool force;
};

static const struct export_config export_defaults = { .to = -1 };

#define MEMBER(name) offsetof(struct export_config, name)

static const struct mw_option export_options[] = {
	{ "to", 't', MW_OPTION_CHOICE, MEMBER(to), "FORMAT", "format of the output", export_names },
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "FILE",
	  "output file; default: standard output", NULL },
	{ "force", 'f', MW_OPTION_FLAG, MEMBER(force), NULL, "replace FILE if it exists", NULL },
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
	char **files;
	struct heap_profiles profiles;
	uint32_t metric;
	struct mw_out_file out;
};

static int write_calls(struct export *e)
{
	struct heap_calls calls;
	int err = 0, rc = heap_calls_open(&calls, &e->profiles, e->metric, e->path);

	if (rc)
		return rc;
	if (e->config->to == EXPORT_SPEEDSCOPE)
		err = heap_speedscope_write(&calls, e->path, e->out.stream);
	else if (e->config->to == EXPORT_SVG)
		err = heap_flame_write(&calls, e->path, e->out.stream);
	else
		err = heap_calls_write_folded(&calls, e->out.stream);
	heap_calls_close(&calls);
	return err ? mw_error_errno(err, "heap export") : 0;
}

static int write_pprof(struct export *e)
{
	FILE *out = e->out.stream;
	const char *where = out == stdout ? "standard output" : e->config->output;
	int err;

	if (isatty(fileno(out)))
		return mw_error(MW_EXIT_USAGE, "heap export",
				"pprof is a binary format; use --output FILE");
	fflush(out);
	err = memwatch_heap_write_pprof(e->profiles.heap, 0, fileno(out));
	return err ? heap_view_failed(&e->profiles, err, err == -ENODATA ? e->path : where) : 0;
}

static const char *const export_usage[] = {
	"heap export FILE --to FORMAT [-o FILE] [--force] [--diff BASE] [--objects] [--allocated]",
	"",
	"Writes a heap profile for another program: pprof (\"go tool pprof\"), speedscope",
	"(www.speedscope.app), folded stacks, one line each, or a flame graph (svg) that can",
	"be searched and zoomed in a browser. With --diff, folded stacks have two numbers,",
	"and the colours of the flame graph show what grew and what shrank.",
	NULL,
};

static int check_config(const struct export *e)
{
	const struct export_config *c = e->config;

	if (c->to < 0)
		return mw_error(MW_EXIT_USAGE, "heap export", "--to FORMAT is missing");
	if (c->choice.diff && (c->to == EXPORT_PPROF || c->to == EXPORT_SPEEDSCOPE))
		return mw_error(MW_EXIT_USAGE, "heap export",
				"--diff is for the formats folded and svg; 'go tool pprof "
				"-diff_base' compares profiles of pprof");
	if (c->output && (mw_out_file_is(c->output, e->path) ||
			  (c->choice.diff && mw_out_file_is(c->output, c->choice.diff))))
		return mw_error(MW_EXIT_USAGE, "heap export", "%s is the profile itself",
				c->output);
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
	if (!rc)
		rc = mw_out_file_flush(&e->out);
	heap_profiles_close(&e->profiles);
	return rc;
}

static int export_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct export e = { .cli = cli, .config = config, .path = argv[0], .files = argv };
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	int rc = check_config(&e) ?: mw_library_new(cli, &ctx);

	(void)argc;
	if (!rc)
		rc = mw_out_file_begin(&e.out, ctx, e.config->output, e.config->force);
	if (rc)
		return rc;
	rc = heap_profiles_run(export_profile, &e);
	if (!rc)
		return mw_out_file_close(&e.out);
	mw_out_file_abandon(&e.out);
	return rc;
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
