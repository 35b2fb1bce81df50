// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The command "heap": the list of its subcommands.
 */
#include "cmds/heap/heap.h"

static const char *const heap_usage[] = {
	"heap run -o DIR [OPTIONS] -- COMMAND...",
	"heap list [DIR]",
	"heap start PID [--rate BYTES]",
	"heap stop PID",
	"heap stats PID|FILE",
	"heap snapshot PID|FILE -o FILE",
	"heap report FILE|PID... [OPTIONS]",
	"heap export FILE --to FORMAT [OPTIONS]",
	"",
	"Shows which function allocated the memory that is still in use. FILE is a profile",
	"of the memwatch heap profiler, of pprof (Go), of jemalloc or of gperftools.",
	NULL,
};

static const struct mw_cmd *const subs[] = {
	&mw_cmd_heap_run,    &mw_cmd_heap_list,	  &mw_cmd_heap_start,
	&mw_cmd_heap_stop,   &mw_cmd_heap_stats,  &mw_cmd_heap_snapshot,
	&mw_cmd_heap_report, &mw_cmd_heap_export, NULL,
};

const struct mw_cmd mw_cmd_heap = {
	.name = "heap",
	.summary = "show which function allocated the memory in use",
	.usage = heap_usage,
	.sub = subs,
};
