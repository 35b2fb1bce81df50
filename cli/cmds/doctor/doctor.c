// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "doctor": runs all checks and prints what was found.
 */
#include <stdarg.h>
#include <string.h>

#include "cmds/doctor/doctor.h"
#include "output/json.h"
#include "common/message.h"
#include "output/table.h"
#include "text/escape.h"

static const struct mw_check *const groups[] = { mw_doctor_kernel, mw_doctor_module,
						 mw_doctor_hardware };

static const char *const result_name[] = { "ok", "warn", "missing" };

enum { NAME, RESULT, REQUIRED, FOUND, COST, REMEDY, NR_COLUMNS };

static const struct mw_column doctor_columns[NR_COLUMNS] = {
	[NAME] = { "name", "CHECK", MW_KIND_TEXT, 0, 0 },
	[RESULT] = { "result", "RESULT", MW_KIND_TEXT, 0, 0 },
	[REQUIRED] = { "required", "REQUIRED", MW_KIND_BOOL, 0, 0 },
	[FOUND] = { "found", "FOUND", MW_KIND_TEXT, 0, 0 },
	[COST] = { "cost", "EFFECT", MW_KIND_TEXT, 0, 0 },
	[REMEDY] = { "remedy", "REMEDY", MW_KIND_TEXT, 0, 0 },
};

struct result_counts {
	unsigned int by_result[3];  /* index: enum mw_result */
	unsigned int blocking;	    /* required, but missing */
	const char *first_blocking; /* title of the check */
};

#define DEFINE_FINDING(name, member, action)                                                       \
	void name(struct mw_finding *f, const char *format, ...)                                   \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		action;                                                                            \
		va_start(args, format);                                                            \
		vsnprintf(f->member, sizeof(f->member), format, args);                             \
		va_end(args);                                                                      \
	}

DEFINE_FINDING(mw_finding_ok, found, (void)0)
DEFINE_FINDING(mw_finding_warn, found, f->result = MW_RESULT_WARN)
DEFINE_FINDING(mw_finding_missing, found, f->result = MW_RESULT_MISSING)
DEFINE_FINDING(mw_finding_cost, cost, (void)0)
DEFINE_FINDING(mw_finding_remedy, remedy, (void)0)

static void print_finding_line(const struct mw_check *check, const struct mw_finding *f)
{
	static const enum mw_colour colour[] = { MW_GREEN, MW_YELLOW, MW_RED };
	enum mw_colour c = colour[f->result];

	/* A missing check that is not required is only a warning. */
	if (f->result == MW_RESULT_MISSING && !check->required)
		c = MW_YELLOW;
	printf("%s%-8s%s ", mw_colour(stdout, c), result_name[f->result],
	       mw_colour(stdout, MW_PLAIN));
	mw_escape_line(stdout, "%-20s %s", check->title, f->found);
	if (f->cost[0])
		mw_escape_line(stdout, "%-29s effect: %s", "", f->cost);
	if (f->remedy[0])
		mw_escape_line(stdout, "%-29s remedy: %s", "", f->remedy);
}

static void print_finding(const struct mw_cli *cli, const struct mw_check *check,
			  const struct mw_finding *f, struct mw_json *json)
{
	struct mw_cell row[NR_COLUMNS] = {
		[NAME] = { .text = check->name },
		[RESULT] = { .text = result_name[f->result] },
		[REQUIRED] = { .truth = check->required },
		[FOUND] = { .text = f->found },
		[COST] = { .text = f->cost, .missing = !f->cost[0] },
		[REMEDY] = { .text = f->remedy, .missing = !f->remedy[0] },
	};

	if (cli->format == MW_FORMAT_JSON)
		mw_row_json(doctor_columns, NR_COLUMNS, row, json);
	else if (cli->format == MW_FORMAT_CSV)
		mw_row_csv(doctor_columns, NR_COLUMNS, row, stdout);
	else if (!cli->quiet || f->result != MW_RESULT_OK)
		print_finding_line(check, f);
}

static void run_check(const struct mw_cli *cli, const struct mw_check *check,
		      struct result_counts *counts, struct mw_json *json)
{
	struct mw_finding finding = { .check = check, .result = MW_RESULT_OK };

	check->look(cli, &finding);
	counts->by_result[finding.result]++;
	if (check->required && finding.result == MW_RESULT_MISSING && !counts->blocking++)
		counts->first_blocking = check->title;
	print_finding(cli, check, &finding, json);
}

static void print_conclusion(const struct result_counts *c)
{
	printf("\n%u ok, %u with a warning, %u missing.\n", c->by_result[MW_RESULT_OK],
	       c->by_result[MW_RESULT_WARN], c->by_result[MW_RESULT_MISSING]);
	if (!c->blocking)
		printf("Live measurement is possible on this machine.\n");
	else if (c->blocking == 1)
		printf("Live measurement is not possible on this machine. Missing: %s.\n",
		       c->first_blocking);
	else
		printf("Live measurement is not possible on this machine. Missing: %s and %u "
		       "more.\n",
		       c->first_blocking, c->blocking - 1);
}

static const char *const doctor_usage[] = {
	"doctor",
	"",
	"Checks everything that memwatch needs or can use on this machine: what is available,",
	"what does not work without it, and what to do about it. Counters, BPF and CPUID are",
	"tried out, and nothing is changed. With --quiet, only checks that are not ok are shown.",
	"The exit status is 0 if live measurement is possible, 3 if it is not.",
	NULL,
};

static int doctor_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct result_counts counts = { 0 };
	struct mw_json json;

	(void)config;
	(void)argc;
	(void)argv;
	if (cli->format == MW_FORMAT_JSON) {
		mw_json_init(&json, stdout);
		mw_json_array(&json, "checks");
	} else if (cli->format == MW_FORMAT_CSV) {
		mw_head_csv(doctor_columns, NR_COLUMNS, stdout);
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (const struct mw_check *check = groups[i]; check->name; check++)
			run_check(cli, check, &counts, &json);
	if (cli->format == MW_FORMAT_JSON) {
		mw_json_array_end(&json);
		mw_json_uint(&json, "ok", counts.by_result[MW_RESULT_OK]);
		mw_json_uint(&json, "warn", counts.by_result[MW_RESULT_WARN]);
		mw_json_uint(&json, "missing", counts.by_result[MW_RESULT_MISSING]);
		mw_json_bool(&json, "ready", !counts.blocking);
		mw_json_finish(&json);
	} else if (cli->format == MW_FORMAT_TABLE) {
		print_conclusion(&counts);
	}
	return counts.blocking ? MW_EXIT_UNSUPPORTED : MW_EXIT_DONE;
}

const struct mw_cmd mw_cmd_doctor = {
	.name = "doctor",
	.summary = "check what memwatch needs on this machine",
	.usage = doctor_usage,
	.run = doctor_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
};
