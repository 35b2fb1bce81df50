// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * status: what the module says about itself, from /proc/memwatch.
 */
#include <errno.h>
#include <string.h>

#include "growth/registry.h"
#include "common/library.h"
#include "common/message.h"
#include "common/root.h"
#include "output/table.h"

enum {
	VERSION,
	BACKEND,
	REASON,
	SESSIONS,
	STARTED,
	PERIOD,
	LIMBO,
	POLICY,
	IDLE_STOP,
	CPUMASK,
	FILTERS,
	RMIDS_TOTAL,
	RMIDS_USED,
	RMIDS_LIMBO,
	RMIDS_FREE,
	PROCESSES,
	MEASURED,
	UNMEASURED,
	WAITING,
	FILTERED,
	ALLOCS,
	FREES,
	PROMOTIONS,
	REVOCATIONS,
	EXHAUSTED,
	UNTRACKED,
	FOREIGN,
	RDT_BUDGET,
	RDT_DOMAINS,
	RDT_SCALE,
	RDT_WIDTH,
	ABI,
	SCHEMA,
	NR_STATUS,
};

static const struct mw_column status_columns[NR_STATUS] = {
	[VERSION] = { "version", "module", MW_KIND_TEXT, 0, 0 },
	[BACKEND] = { "backend", "backend", MW_KIND_TEXT, 0, 0 },
	[REASON] = { "backend_reason", "  because", MW_KIND_TEXT, 0, 0 },
	[SESSIONS] = { "sessions", "sessions open", MW_KIND_UINT, 0, 0 },
	[STARTED] = { "sessions_started", "sessions started", MW_KIND_UINT, 0, 0 },
	[PERIOD] = { "period_ns", "period", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[LIMBO] = { "limbo_ns", "limbo", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[POLICY] = { "policy", "policy", MW_KIND_TEXT, 0, 0 },
	[IDLE_STOP] = { "idle_stop", "idle CPUs stop", MW_KIND_BOOL, 0, 0 },
	[CPUMASK] = { "cpumask", "CPUs that tick", MW_KIND_TEXT, 0, 0 },
	[FILTERS] = { "filters", "filters", MW_KIND_UINT, 0, 0 },
	[RMIDS_TOTAL] = { "rmids_total", "RMIDs", MW_KIND_UINT, 0, 0 },
	[RMIDS_USED] = { "rmids_used", "  in use", MW_KIND_UINT, 0, 0 },
	[RMIDS_LIMBO] = { "rmids_limbo", "  in limbo", MW_KIND_UINT, 0, 0 },
	[RMIDS_FREE] = { "rmids_free", "  free", MW_KIND_UINT, 0, 0 },
	[PROCESSES] = { "processes", "processes", MW_KIND_UINT, 0, 0 },
	[MEASURED] = { "processes_measured", "  measured", MW_KIND_UINT, 0, 0 },
	[UNMEASURED] = { "processes_unmeasured", "  unmeasured", MW_KIND_UINT, 0, 0 },
	[WAITING] = { "processes_waiting", "    no RMID left", MW_KIND_UINT, 0, 0 },
	[FILTERED] = { "processes_filtered", "    filtered out", MW_KIND_UINT, 0, 0 },
	[ALLOCS] = { "allocs", "RMIDs handed out", MW_KIND_UINT, 0, 0 },
	[FREES] = { "frees", "RMIDs taken back", MW_KIND_UINT, 0, 0 },
	[PROMOTIONS] = { "promotions", "promotions", MW_KIND_UINT, 0, 0 },
	[REVOCATIONS] = { "revocations", "revocations", MW_KIND_UINT, 0, 0 },
	[EXHAUSTED] = { "exhausted", "born without RMID", MW_KIND_UINT, 0, 0 },
	[UNTRACKED] = { "untracked", "missed, no memory", MW_KIND_UINT, 0, 0 },
	[FOREIGN] = { "foreign_writes", "foreign PQR writes", MW_KIND_UINT, 0, 0 },
	[RDT_BUDGET] = { "rdt_budget", "RDT ops per tick", MW_KIND_UINT, 0, 0 },
	[RDT_DOMAINS] = { "rdt_domains", "L3 domains read", MW_KIND_UINT, 0, 0 },
	[RDT_SCALE] = { "rdt_scale_bytes", "RDT unit", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	[RDT_WIDTH] = { "rdt_width_bits", "RDT counter bits", MW_KIND_UINT, 0, 0 },
	[ABI] = { "abi", "ABI", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[SCHEMA] = { "record_schema", "records", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
};

enum { W_TGID, W_COMM, NR_WAITING };

static const struct mw_column waiting_columns[NR_WAITING] = {
	[W_TGID] = { "tgid", "PID", MW_KIND_UINT, 0, 0 },
	[W_COMM] = { "comm", "COMMAND", MW_KIND_TEXT, 0, 0 },
};

enum { S_TGID, S_COMM, S_STARTED, NR_SESSION };

static const struct mw_column session_columns[NR_SESSION] = {
	[S_TGID] = { "tgid", "PID", MW_KIND_UINT, 0, 0 },
	[S_COMM] = { "comm", "COMMAND", MW_KIND_TEXT, 0, 0 },
	[S_STARTED] = { "started", "MEASURES", MW_KIND_BOOL, 0, 0 },
};

enum {
	C_CPU,
	C_TICKS,
	C_MISSED,
	C_JITTER,
	C_SWITCHES,
	C_WRITES,
	C_SWITCH,
	C_TICK,
	C_RDT_MAX,
	C_RDT_READS,
	C_RDT_WAITS,
	NR_CPU
};

static const struct mw_column cpu_columns[NR_CPU] = {
	[C_CPU] = { "cpu", "CPU", MW_KIND_UINT, 0, 0 },
	[C_TICKS] = { "ticks", "TICKS", MW_KIND_UINT, 0, 0 },
	[C_MISSED] = { "ticks_missed", "MISSED", MW_KIND_UINT, 0, 0 },
	[C_JITTER] = { "jitter_max_ns", "LATEST BY", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[C_SWITCHES] = { "switches", "SWITCHES", MW_KIND_UINT, 0, 0 },
	[C_WRITES] = { "pqr_writes", "PQR WRITES", MW_KIND_UINT, 0, 0 },
	[C_SWITCH] = { "switch_cycles_mean", "CYCLES/SWITCH", MW_KIND_DOUBLE, 0, 0 },
	[C_TICK] = { "tick_cycles_mean", "CYCLES/TICK", MW_KIND_DOUBLE, 0, 0 },
	[C_RDT_MAX] = { "rdt_ops_max", "RDT OPS/TICK", MW_KIND_UINT, 0, 0 },
	[C_RDT_READS] = { "rdt_reads", "RDT READS", MW_KIND_UINT, 0, 0 },
	[C_RDT_WAITS] = { "rdt_waits", "WAITED", MW_KIND_UINT, 0, 0 },
};

enum { J_LOW, J_HIGH, J_COUNT, NR_JITTER };

static const struct mw_column jitter_columns[NR_JITTER] = {
	[J_LOW] = { "low_ns", "LATE BY", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[J_HIGH] = { "high_ns", "TO", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[J_COUNT] = { "count", "TICKS", MW_KIND_UINT, 0, 0 },
};

static void fill_status(const struct memwatch_proc_status *s, struct mw_cell *c)
{
	uint64_t measured = s->processes_measured;

	c[VERSION].text = s->version;
	c[BACKEND].text = s->backend;
	c[REASON].text = s->backend_reason;
	c[SESSIONS].number = s->sessions;
	c[STARTED].number = s->sessions_started;
	c[PERIOD].number = s->period_ns;
	c[LIMBO].number = s->limbo_ns;
	c[POLICY].text = s->policy;
	c[IDLE_STOP].truth = s->idle_stop;
	c[CPUMASK].text = s->cpumask;
	c[FILTERS].number = s->filters;
	c[RMIDS_TOTAL].number = s->rmids_total;
	c[RMIDS_USED].number = s->rmids_used;
	c[RMIDS_LIMBO].number = s->rmids_limbo;
	c[RMIDS_FREE].number = s->rmids_free;
	c[PROCESSES].number = s->processes;
	c[MEASURED].number = measured;
	c[UNMEASURED].number = s->processes > measured ? s->processes - measured : 0;
	c[WAITING].number = s->processes_waiting;
	c[FILTERED].number = s->processes_filtered;
	c[ALLOCS].number = s->allocs;
	c[FREES].number = s->frees;
	c[PROMOTIONS].number = s->promotions;
	c[REVOCATIONS].number = s->revocations;
	c[EXHAUSTED].number = s->exhausted;
	c[UNTRACKED].number = s->untracked;
	c[FOREIGN].number = s->foreign_writes;
	c[RDT_BUDGET].number = s->rdt_budget;
	c[RDT_DOMAINS].number = s->rdt_domains;
	c[RDT_SCALE] = (struct mw_cell){ .number = s->rdt_scale_bytes,
					 .missing = !s->rdt_scale_bytes };
	c[RDT_WIDTH] = (struct mw_cell){ .number = s->rdt_width_bits,
					 .missing = !s->rdt_width_bits };
	c[ABI].number = s->abi;
	c[SCHEMA].number = s->schema;
}

static int fill_waiting(const struct memwatch_proc_status *s, struct mw_table *table)
{
	mw_table_init(table, waiting_columns, NR_WAITING);
	for (uint32_t i = 0; i < s->nr_waiting; i++) {
		struct mw_cell *row = mw_table_row(table);

		if (!row)
			return -ENOMEM;
		row[W_TGID] = (struct mw_cell){ .number = s->waiting[i].tgid };
		row[W_COMM] = (struct mw_cell){ .text = s->waiting[i].comm };
	}
	return 0;
}

static int fill_sessions(const struct memwatch_proc_status *s, struct mw_table *table)
{
	mw_table_init(table, session_columns, NR_SESSION);
	for (uint32_t i = 0; i < s->nr_session; i++) {
		struct mw_cell *row = mw_table_row(table);

		if (!row)
			return -ENOMEM;
		row[S_TGID] = (struct mw_cell){ .number = s->session[i].tgid };
		row[S_COMM] = (struct mw_cell){ .text = s->session[i].comm };
		row[S_STARTED] = (struct mw_cell){ .truth = s->session[i].started };
	}
	return 0;
}

static struct mw_cell mean(uint64_t sum, uint64_t count)
{
	if (!count)
		return (struct mw_cell){ .missing = true };
	return (struct mw_cell){ .real = (double)sum / (double)count };
}

static int fill_cpus(const struct memwatch_proc_overhead *o, struct mw_table *table)
{
	mw_table_init(table, cpu_columns, NR_CPU);
	for (size_t i = 0; i < o->nr_cpus; i++) {
		const struct memwatch_proc_overhead_cpu *cpu = &o->cpus[i];
		struct mw_cell *row = mw_table_row(table);

		if (!row)
			return -ENOMEM;
		row[C_CPU] = (struct mw_cell){ .number = cpu->cpu };
		row[C_TICKS] = (struct mw_cell){ .number = cpu->ticks };
		row[C_MISSED] = (struct mw_cell){ .number = cpu->missed };
		row[C_JITTER] = (struct mw_cell){ .number = cpu->jitter_max_ns };
		row[C_SWITCHES] = (struct mw_cell){ .number = cpu->switches };
		row[C_WRITES] = (struct mw_cell){ .number = cpu->pqr_writes };
		row[C_SWITCH] = mean(cpu->switch_cycles, cpu->switch_sampled);
		row[C_TICK] = mean(cpu->tick_cycles, cpu->ticks);
		row[C_RDT_MAX] = (struct mw_cell){ .number = cpu->rdt_ops_max };
		row[C_RDT_READS] = (struct mw_cell){ .number = cpu->rdt_reads };
		row[C_RDT_WAITS] = (struct mw_cell){ .number = cpu->rdt_waits };
	}
	return 0;
}

static int fill_jitter(const struct memwatch_proc_overhead *o, struct mw_table *table)
{
	mw_table_init(table, jitter_columns, NR_JITTER);
	for (size_t i = 0; i < o->nr_jitter; i++) {
		struct mw_cell *row;

		if (!o->jitter[i].count)
			continue;
		row = mw_table_row(table);
		if (!row)
			return -ENOMEM;
		row[J_LOW] = (struct mw_cell){ .number = o->jitter[i].low_ns };
		row[J_HIGH] = (struct mw_cell){ .number = o->jitter[i].high_ns };
		row[J_COUNT] = (struct mw_cell){ .number = o->jitter[i].count };
	}
	return 0;
}

struct answer {
	bool module; /* it is there: without it, monitors of growth are all there is to say */
	struct mw_cell status[NR_STATUS];
	struct mw_table sessions, waiting, cpus, jitter, growth;
	uint64_t memory_bytes;
	uint64_t foreign;
	bool resctrl;
};

static const char foreign_text[] = "another program writes PQR_ASSOC";

static void print_json(const struct answer *a)
{
	struct mw_json json;

	mw_json_init(&json, stdout);
	mw_members_json(status_columns, NR_STATUS, a->status, &json);
	mw_table_json(&a->sessions, &json, "open_sessions");
	mw_table_json(&a->waiting, &json, "waiting");
	mw_json_array(&json, "conflicts");
	if (a->resctrl)
		mw_json_string(&json, NULL, "resctrl is mounted");
	if (a->foreign)
		mw_json_string(&json, NULL, foreign_text);
	mw_json_array_end(&json);
	mw_json_object(&json, "overhead");
	if (a->memory_bytes)
		mw_json_uint(&json, "memory_bytes", a->memory_bytes);
	else /* the module did not say */
		mw_json_null(&json, "memory_bytes");
	mw_table_json(&a->cpus, &json, "cpus");
	mw_table_json(&a->jitter, &json, "jitter");
	mw_json_object_end(&json);
	mw_table_json(&a->growth, &json, "growth_monitors");
	mw_json_finish(&json);
}

static int print_growth(const struct answer *a)
{
	printf("%sGrowth monitors:%s\n", a->module ? "\n" : "", a->growth.nr_rows ? "" : " none");
	return a->growth.nr_rows ? mw_table_print(&a->growth) : 0;
}

static int print_table(const struct answer *a)
{
	char memory[32];
	int rc = 0;

	if (!a->module)
		return print_growth(a);
	mw_row_print(status_columns, NR_STATUS, a->status);
	printf("%-20s %s%s%s\n", "conflicts", a->resctrl ? "resctrl is mounted" : "",
	       a->resctrl && a->foreign ? ", " : "",
	       a->foreign   ? foreign_text
	       : a->resctrl ? ""
			    : "none");
	if (a->sessions.nr_rows) {
		printf("\nSessions:\n");
		rc = mw_table_print(&a->sessions);
	}
	if (a->waiting.nr_rows && !rc) {
		printf("\nWithout an RMID, oldest first:\n");
		rc = mw_table_print(&a->waiting);
	}
	if (a->cpus.nr_rows && !rc) {
		printf("\nOverhead%s%s:\n", a->memory_bytes ? ", memory " : "",
		       a->memory_bytes ? mw_human_uint(a->memory_bytes, MW_UNIT_BYTES, memory,
						       sizeof(memory))
				       : "");
		rc = mw_table_print(&a->cpus);
	}
	if (a->jitter.nr_rows && !rc) {
		printf("\nTick delay:\n");
		rc = mw_table_print(&a->jitter);
	}
	return rc ?: print_growth(a);
}

static int print(const struct mw_cli *cli, const struct answer *a)
{
	if (cli->format == MW_FORMAT_JSON) {
		print_json(a);
		return MW_EXIT_DONE;
	}
	if (cli->format == MW_FORMAT_CSV) {
		mw_head_csv(status_columns, NR_STATUS, stdout);
		mw_row_csv(status_columns, NR_STATUS, a->status, stdout);
		return MW_EXIT_DONE;
	}
	return print_table(a);
}

static const char *const status_usage[] = {
	"status",
	"",
	"Shows the module: where its values come from, how many RMIDs are in use, which",
	"processes have none, and what it costs, as measured by itself. And the growth",
	"monitors that run, which need no module: budget, cost, and what they do without.",
	NULL,
};

/* What the module says of itself. 0 or a negative errno. */
static int ask_module(struct memwatch_ctx *ctx, struct answer *a,
		      struct memwatch_proc_status **status,
		      struct memwatch_proc_overhead **overhead)
{
	int err = memwatch_proc_status_read(ctx, status);

	if (!err)
		err = memwatch_proc_overhead_read(ctx, overhead);
	if (err)
		return err;
	a->module = true;
	fill_status(*status, a->status);
	a->memory_bytes = (*overhead)->memory_bytes;
	a->foreign = (*status)->foreign_writes;
	return fill_sessions(*status, &a->sessions) ?: fill_waiting(*status, &a->waiting)
		?: fill_cpus(*overhead, &a->cpus) ?: fill_jitter(*overhead, &a->jitter);
}

static void uninit(struct answer *a)
{
	mw_table_uninit(&a->sessions);
	mw_table_uninit(&a->waiting);
	mw_table_uninit(&a->cpus);
	mw_table_uninit(&a->jitter);
	mw_table_uninit(&a->growth);
}

static int status_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct memwatch_proc_overhead *overhead = NULL;
	struct memwatch_proc_status *status = NULL;
	struct answer a = { .resctrl = mw_root_is_mounted(cli, "resctrl") };
	int err, rc = mw_library_new(cli, &ctx);

	(void)config;
	(void)argc;
	(void)argv;
	if (rc)
		return rc;
	err = mw_registry_read(cli, &a.growth);
	if (!err)
		err = ask_module(ctx, &a, &status, &overhead);
	if (err == -ENOENT && a.growth.nr_rows && cli->format != MW_FORMAT_CSV) {
		mw_note(cli, "the module memwatch is not loaded");
		for (int i = 0; i < NR_STATUS; i++)
			a.status[i].missing = true;
		err = 0;
	}
	rc = err ? mw_module_failed(ctx, err, "status") : print(cli, &a);
	uninit(&a);
	memwatch_proc_overhead_free(overhead);
	memwatch_proc_status_free(status);
	return rc;
}

const struct mw_cmd mw_cmd_status = {
	.name = "status",
	.summary = "show the module, its RMIDs and its own cost",
	.usage = status_usage,
	.run = status_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
};
