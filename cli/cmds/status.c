// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "status": shows the state and the overhead of the module, from /proc/memwatch, and the
 * growth monitors of this machine.
 */
#include <errno.h>
#include <string.h>

#include "common/backend.h"
#include "common/library.h"
#include "common/message.h"
#include "common/root.h"
#include "growth/registry.h"
#include "output/table.h"

/* A value of /proc/memwatch/status and the column that shows it. */
struct status_key {
	struct mw_column column;
	size_t offset, size; /* of the member of struct memwatch_proc_status */
	enum {
		PLAIN,
		ZERO_IS_MISSING,
		OF_COUNTERS, /* missing without assignable RDT counters */
		SETTER,	     /* the member points to a struct memwatch_proc_setter */
	} special;
};

/* "COMM (PID)" */
#define SETTER_TEXT 48

/* clang-format off */
#define STATUS_MEMBER(member)                                                                      \
	offsetof(struct memwatch_proc_status, member),                                             \
	sizeof(((struct memwatch_proc_status *)0)->member)
#define STATUS_TEXT(member, title)                                                                 \
	{ { #member, title, MW_KIND_TEXT, 0, 0 }, STATUS_MEMBER(member), PLAIN }
#define STATUS_UINT(member, title)                                                                 \
	{ { #member, title, MW_KIND_UINT, 0, 0 }, STATUS_MEMBER(member), PLAIN }
#define STATUS_TIME(member, title)                                                                 \
	{ { #member, title, MW_KIND_UINT, MW_UNIT_NS, 0 }, STATUS_MEMBER(member), PLAIN }
/* clang-format on */

/* The rows that are also known without the module. */
enum { K_BACKEND = 1, K_BACKEND_REASON, NR_BACKEND = 2 };

static const struct status_key status_keys[] = {
	STATUS_TEXT(version, "module version"),
	[K_BACKEND] = STATUS_TEXT(backend, "backend"),
	[K_BACKEND_REASON] = STATUS_TEXT(backend_reason, "  reason"),
	STATUS_UINT(sessions, "open sessions"),
	STATUS_UINT(sessions_started, "running sessions"),
	STATUS_TIME(period_ns, "tick period"),
	{ { "period_asked_ns", "  asked for", MW_KIND_UINT, MW_UNIT_NS, 0 },
	  STATUS_MEMBER(period_asked_ns),
	  ZERO_IS_MISSING },
	STATUS_TEXT(period_reason, "  reason"),
	STATUS_TIME(limbo_ns, "limbo time"),
	STATUS_TEXT(policy, "RMID policy"),
	{ { "idle_stop", "tick stops when idle", MW_KIND_BOOL, 0, 0 },
	  STATUS_MEMBER(idle_stop),
	  PLAIN },
	STATUS_TEXT(cpumask, "CPUs with a tick"),
	STATUS_UINT(filters, "filters"),
	/* Composed: the process that made them. */
	{ { "settings_by", "settings made by", MW_KIND_TEXT, 0, 0 },
	  STATUS_MEMBER(settings_by),
	  SETTER },
	{ { "defaults_by", "defaults made by", MW_KIND_TEXT, 0, 0 },
	  STATUS_MEMBER(defaults_by),
	  SETTER },
	STATUS_UINT(rmids_total, "RMIDs"),
	STATUS_UINT(rmids_used, "  in use"),
	STATUS_UINT(rmids_limbo, "  in limbo"),
	STATUS_UINT(rmids_free, "  free"),
	STATUS_UINT(processes, "processes"),
	STATUS_UINT(processes_measured, "  measured"),
	/* Computed: processes - processes_measured. */
	{ { "processes_unmeasured", "  not measured", MW_KIND_UINT, 0, 0 }, 0, 0, PLAIN },
	STATUS_UINT(processes_waiting, "    waiting for an RMID"),
	STATUS_UINT(processes_filtered, "    filtered out"),
	STATUS_UINT(allocs, "RMIDs allocated"),
	STATUS_UINT(frees, "RMIDs freed"),
	STATUS_UINT(promotions, "promotions"),
	STATUS_UINT(revocations, "retirements"),
	STATUS_UINT(exhausted, "started without an RMID"),
	STATUS_UINT(untracked, "not tracked: out of memory"),
	STATUS_UINT(foreign_writes, "PQR_ASSOC writes by others"),
	STATUS_UINT(rdt_budget, "RDT operations per tick"),
	STATUS_UINT(rdt_domains, "L3 domains read"),
	{ { "rdt_scale_bytes", "RDT counter unit", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	  STATUS_MEMBER(rdt_scale_bytes),
	  ZERO_IS_MISSING },
	{ { "rdt_width_bits", "RDT counter bits", MW_KIND_UINT, 0, 0 },
	  STATUS_MEMBER(rdt_width_bits),
	  ZERO_IS_MISSING },
	{ { "rdt_counters", "assignable RDT counters", MW_KIND_UINT, 0, 0 },
	  STATUS_MEMBER(rdt_counters),
	  ZERO_IS_MISSING },
	{ { "rdt_counted_rmids", "  RMIDs counted at a time", MW_KIND_UINT, 0, 0 },
	  STATUS_MEMBER(rdt_counted_rmids),
	  ZERO_IS_MISSING },
	{ { "rdt_counter_turns", "  taken from running RMIDs", MW_KIND_UINT, 0, 0 },
	  STATUS_MEMBER(rdt_counter_turns),
	  OF_COUNTERS },
	{ { "abi", "ABI", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN }, STATUS_MEMBER(abi), PLAIN },
	{ { "record_schema", "records", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	  STATUS_MEMBER(schema),
	  PLAIN },
};

#define NR_STATUS (sizeof(status_keys) / sizeof(status_keys[0]))

enum { W_TGID, W_COMM, NR_WAITING };

static const struct mw_column waiting_columns[NR_WAITING] = {
	[W_TGID] = { "tgid", "PID", MW_KIND_UINT, 0, 0 },
	[W_COMM] = { "comm", "COMMAND", MW_KIND_TEXT, 0, 0 },
};

enum { S_TGID, S_COMM, S_STARTED, NR_SESSION };

static const struct mw_column session_columns[NR_SESSION] = {
	[S_TGID] = { "tgid", "PID", MW_KIND_UINT, 0, 0 },
	[S_COMM] = { "comm", "COMMAND", MW_KIND_TEXT, 0, 0 },
	[S_STARTED] = { "started", "RUNNING", MW_KIND_BOOL, 0, 0 },
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
	C_RDT_TIME,
	C_RDT_SYNC,
	C_RDT_BUSY,
	C_RDT_AGE,
	C_IRQS_OFF,
	C_TICK_TIME,
	C_TICK_SHARE,
	NR_CPU
};

static const struct mw_column cpu_columns[NR_CPU] = {
	[C_CPU] = { "cpu", "CPU", MW_KIND_UINT, 0, 0 },
	[C_TICKS] = { "ticks", "TICKS", MW_KIND_UINT, 0, 0 },
	[C_MISSED] = { "ticks_missed", "MISSED", MW_KIND_UINT, 0, 0 },
	[C_JITTER] = { "jitter_max_ns", "MAX DELAY", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[C_SWITCHES] = { "switches", "SWITCHES", MW_KIND_UINT, 0, 0 },
	[C_WRITES] = { "pqr_writes", "PQR WRITES", MW_KIND_UINT, 0, 0 },
	[C_SWITCH] = { "switch_cycles_mean", "CYCLES/SWITCH", MW_KIND_DOUBLE, 0, 0 },
	[C_TICK] = { "tick_cycles_mean", "CYCLES/TICK", MW_KIND_DOUBLE, 0, 0 },
	[C_RDT_MAX] = { "rdt_ops_max", "MAX RDT OPS", MW_KIND_UINT, 0, 0 },
	[C_RDT_READS] = { "rdt_reads", "RDT READS", MW_KIND_UINT, 0, 0 },
	[C_RDT_WAITS] = { "rdt_waits", "RDT DEFERRED", MW_KIND_UINT, 0, 0 },
	[C_RDT_TIME] = { "rdt_ns", "RDT TIME", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[C_RDT_SYNC] = { "rdt_sync_ns", "RDT SYNC", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
	[C_RDT_BUSY] = { "rdt_busy", "RDT BUSY", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[C_RDT_AGE] = { "rdt_age_max_ns", "RDT OLDEST", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[C_IRQS_OFF] = { "irqs_off_max_ns", "MAX IRQS OFF", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[C_TICK_TIME] = { "tick_ns", "TICK TIME", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
	[C_TICK_SHARE] = { "tick_ppm", "TICK SHARE", MW_KIND_UINT, MW_UNIT_PPM, 0 },
};

enum { J_LOW, J_HIGH, J_COUNT, NR_JITTER };

static const struct mw_column jitter_columns[NR_JITTER] = {
	[J_LOW] = { "low_ns", "DELAY FROM", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[J_HIGH] = { "high_ns", "DELAY TO", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[J_COUNT] = { "count", "TICKS", MW_KIND_UINT, 0, 0 },
};

static uint64_t status_number(const struct memwatch_proc_status *s, const struct status_key *key)
{
	const char *member = (const char *)s + key->offset;
	uint64_t number = 0;
	uint32_t small;

	if (!key->size) {
		number = s->processes > s->processes_measured ? s->processes - s->processes_measured
							      : 0;
	} else if (key->size == sizeof(small)) {
		memcpy(&small, member, sizeof(small));
		number = small;
	} else {
		memcpy(&number, member, sizeof(number));
	}
	return number;
}

/* The name is "" if this module does not say it. */
static struct mw_cell setter_cell(const struct memwatch_proc_setter *setter, char *buf)
{
	if (!setter->comm[0])
		return (struct mw_cell){ .missing = true };
	if (!setter->tgid)
		return (struct mw_cell){ .text = "the parameters of the module" };
	snprintf(buf, SETTER_TEXT, "%.15s (%u)", setter->comm, setter->tgid);
	return (struct mw_cell){ .text = buf };
}

/* @text: one buffer for each key */
static void fill_status_cells(const struct memwatch_proc_status *s, struct mw_cell *cells,
			      char (*text)[SETTER_TEXT])
{
	for (size_t i = 0; i < NR_STATUS; i++) {
		const struct status_key *key = &status_keys[i];
		struct mw_cell *cell = &cells[i];

		*cell = (struct mw_cell){ 0 };
		if (key->special == SETTER) {
			*cell = setter_cell(
				*(const struct memwatch_proc_setter *const
					  *)(const void *)((const char *)s + key->offset),
				text[i]);
			continue;
		}
		if (key->column.kind == MW_KIND_TEXT) {
			cell->text = (const char *)s + key->offset;
			continue;
		}
		cell->number = status_number(s, key);
		cell->missing = (key->special == ZERO_IS_MISSING && !cell->number) ||
				(key->special == OF_COUNTERS && !s->rdt_counters);
		if (key->column.kind == MW_KIND_BOOL)
			cell->truth = cell->number;
	}
}

static int fill_waiting_table(const struct memwatch_proc_status *s, struct mw_table *table)
{
	mw_table_init(table, waiting_columns, NR_WAITING);
	for (uint32_t i = 0; i < s->nr_waiting; i++) {
		struct mw_cell *row = mw_table_row(table);

		if (!row)
			return -ENOMEM;
		row[W_TGID] = (struct mw_cell){ .number = memwatch_proc_waiting_at(s, i)->tgid };
		row[W_COMM] = (struct mw_cell){ .text = memwatch_proc_waiting_at(s, i)->comm };
	}
	return 0;
}

static int fill_session_table(const struct memwatch_proc_status *s, struct mw_table *table)
{
	mw_table_init(table, session_columns, NR_SESSION);
	for (uint32_t i = 0; i < s->nr_session; i++) {
		const struct memwatch_proc_session *session = memwatch_proc_session_at(s, i);
		struct mw_cell *row = mw_table_row(table);

		if (!row)
			return -ENOMEM;
		row[S_TGID] = (struct mw_cell){ .number = session->tgid };
		row[S_COMM] = (struct mw_cell){ .text = session->comm };
		row[S_STARTED] = (struct mw_cell){ .truth = session->started };
	}
	return 0;
}

static struct mw_cell mean_cell(uint64_t sum, uint64_t count)
{
	if (!count)
		return (struct mw_cell){ .missing = true };
	return (struct mw_cell){ .real = (double)sum / (double)count };
}

static int fill_cpu_table(const struct memwatch_proc_overhead *o, struct mw_table *table)
{
	mw_table_init(table, cpu_columns, NR_CPU);
	for (size_t i = 0; i < o->nr_cpus; i++) {
		const struct memwatch_proc_overhead_cpu *cpu = memwatch_proc_cpu_at(o, i);
		struct mw_cell *row = mw_table_row(table);

		if (!row)
			return -ENOMEM;
		row[C_CPU] = (struct mw_cell){ .number = cpu->cpu };
		row[C_TICKS] = (struct mw_cell){ .number = cpu->ticks };
		row[C_MISSED] = (struct mw_cell){ .number = cpu->missed };
		row[C_JITTER] = (struct mw_cell){ .number = cpu->jitter_max_ns };
		row[C_SWITCHES] = (struct mw_cell){ .number = cpu->switches };
		row[C_WRITES] = (struct mw_cell){ .number = cpu->pqr_writes };
		row[C_SWITCH] = mean_cell(cpu->switch_cycles, cpu->switch_sampled);
		row[C_TICK] = mean_cell(cpu->tick_cycles, cpu->ticks);
		row[C_RDT_MAX] = (struct mw_cell){ .number = cpu->rdt_ops_max };
		row[C_RDT_READS] = (struct mw_cell){ .number = cpu->rdt_reads };
		row[C_RDT_WAITS] = (struct mw_cell){ .number = cpu->rdt_waits };
		row[C_RDT_TIME] = (struct mw_cell){ .number = cpu->rdt_ns };
		row[C_RDT_SYNC] = (struct mw_cell){ .number = cpu->rdt_sync_ns };
		row[C_RDT_BUSY] = (struct mw_cell){ .number = cpu->rdt_busy };
		row[C_RDT_AGE] = (struct mw_cell){ .number = cpu->rdt_age_max_ns };
		row[C_IRQS_OFF] = (struct mw_cell){ .number = cpu->irqs_off_max_ns };
		row[C_TICK_TIME] = (struct mw_cell){ .number = cpu->tick_ns };
		row[C_TICK_SHARE] = (struct mw_cell){ .number = cpu->tick_ppm };
	}
	return 0;
}

static int fill_jitter_table(const struct memwatch_proc_overhead *o, struct mw_table *table)
{
	mw_table_init(table, jitter_columns, NR_JITTER);
	for (size_t i = 0; i < o->nr_jitter; i++) {
		const struct memwatch_proc_jitter *jitter = memwatch_proc_jitter_at(o, i);
		struct mw_cell *row;

		if (!jitter->count)
			continue;
		row = mw_table_row(table);
		if (!row)
			return -ENOMEM;
		row[J_LOW] = (struct mw_cell){ .number = jitter->low_ns };
		row[J_HIGH] = (struct mw_cell){ .number = jitter->high_ns };
		row[J_COUNT] = (struct mw_cell){ .number = jitter->count };
	}
	return 0;
}

struct answer {
	bool module; /* is loaded; if not, the backend and the growth monitors are shown */
	struct mw_column columns[NR_STATUS];
	struct mw_cell status[NR_STATUS];
	char setters[NR_STATUS][SETTER_TEXT];
	struct mw_table sessions, waiting, cpus, jitter, growth;
	uint64_t memory_bytes; /* of the module; 0: unknown */
	uint64_t foreign;      /* writes to PQR_ASSOC by other programs */
	bool resctrl;	       /* is mounted */
};

static const char foreign_text[] = "another program writes PQR_ASSOC";

static void print_status_json(const struct answer *a)
{
	struct mw_json json;

	mw_json_init(&json, stdout);
	mw_members_json(a->columns, NR_STATUS, a->status, &json);
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
	else
		mw_json_null(&json, "memory_bytes");
	mw_table_json(&a->cpus, &json, "cpus");
	mw_table_json(&a->jitter, &json, "jitter");
	mw_json_object_end(&json);
	mw_table_json(&a->growth, &json, "growth_monitors");
	mw_json_finish(&json);
}

static int print_growth_monitors(const struct answer *a)
{
	printf("\nGrowth monitors:%s\n", a->growth.nr_rows ? "" : " none");
	return a->growth.nr_rows ? mw_table_print(&a->growth) : 0;
}

static int print_section(const char *title, const struct mw_table *table)
{
	if (!table->nr_rows)
		return 0;
	printf("\n%s:\n", title);
	return mw_table_print(table);
}

static int print_status_table(const struct answer *a)
{
	char title[80] = "Overhead by CPU", memory[32];
	int rc;

	if (!a->module) {
		mw_row_print(&a->columns[K_BACKEND], NR_BACKEND, &a->status[K_BACKEND]);
		return print_growth_monitors(a);
	}
	mw_row_print(a->columns, NR_STATUS, a->status);
	printf("%-26s %s%s%s\n", "conflicts", a->resctrl ? "resctrl is mounted" : "",
	       a->resctrl && a->foreign ? ", " : "",
	       a->foreign   ? foreign_text
	       : a->resctrl ? ""
			    : "none");
	if (a->memory_bytes)
		snprintf(title, sizeof(title), "Overhead by CPU; memory of the module: %s",
			 mw_human_uint(a->memory_bytes, MW_UNIT_BYTES, memory, sizeof(memory)));
	rc = print_section("Open sessions", &a->sessions)
		?: print_section("Processes waiting for an RMID, oldest first", &a->waiting)
		?: print_section(title, &a->cpus)
		?: print_section("Number of ticks by delay", &a->jitter);
	return rc ?: print_growth_monitors(a);
}

static int print_answer(const struct mw_cli *cli, const struct answer *a)
{
	if (cli->format == MW_FORMAT_JSON) {
		print_status_json(a);
		return MW_EXIT_DONE;
	}
	if (cli->format == MW_FORMAT_CSV) {
		mw_head_csv(a->columns, NR_STATUS, stdout);
		mw_row_csv(a->columns, NR_STATUS, a->status, stdout);
		return MW_EXIT_DONE;
	}
	return print_status_table(a);
}

static const char *const status_usage[] = {
	"status",
	"",
	"Shows the state of the module: its backend and configuration, how many RMIDs are in",
	"use, which processes wait for one, and the overhead that the module has measured.",
	"Also shows the growth monitors that run, with or without the module, and their cost.",
	"Without the module, shows what \"record\" and \"top\" measure with.",
	NULL,
};

/*
 * Reads the files of the module. The cells point into *@status and *@overhead, which the
 * caller frees. Returns 0 or a negative errno.
 */
static int read_module_status(struct memwatch_ctx *ctx, struct answer *a,
			      struct memwatch_proc_status **status,
			      struct memwatch_proc_overhead **overhead)
{
	int err = memwatch_proc_status_read(ctx, status);

	if (!err)
		err = memwatch_proc_overhead_read(ctx, overhead);
	if (err)
		return err;
	a->module = true;
	fill_status_cells(*status, a->status, a->setters);
	a->memory_bytes = (*overhead)->memory_bytes;
	a->foreign = (*status)->foreign_writes;
	return fill_session_table(*status, &a->sessions) ?: fill_waiting_table(*status, &a->waiting)
		?: fill_cpu_table(*overhead, &a->cpus) ?: fill_jitter_table(*overhead, &a->jitter);
}

/* What "record" and "top" measure with. All other values are those of the module. */
static void fill_without_module(const struct mw_cli *cli, struct answer *a)
{
	bool bpf = mw_backend_has_btf(cli);

	for (size_t i = 0; i < NR_STATUS; i++)
		a->status[i].missing = true;
	if (bpf)
		a->status[K_BACKEND] = (struct mw_cell){ .text = "bpf" };
	a->status[K_BACKEND_REASON] = (struct mw_cell){
		.text = bpf ? "the module is not loaded; it would add " MW_ADDED_BY_MODULE
			    : "there is neither the module nor BTF",
	};
}

static void uninit_answer(struct answer *a)
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
	for (size_t i = 0; i < NR_STATUS; i++)
		a.columns[i] = status_keys[i].column;
	err = mw_registry_read(cli, &a.growth);
	if (!err)
		err = read_module_status(ctx, &a, &status, &overhead);
	if (err == -ENOENT &&
	    (mw_backend_has_btf(cli) || (a.growth.nr_rows && cli->format != MW_FORMAT_CSV))) {
		mw_note(cli, "the kernel module memwatch is not loaded");
		fill_without_module(cli, &a);
		err = 0;
	}
	rc = err ? mw_module_failed(ctx, err, "status", NULL) : print_answer(cli, &a);
	uninit_answer(&a);
	memwatch_proc_overhead_free(overhead);
	memwatch_proc_status_free(status);
	return rc;
}

const struct mw_cmd mw_cmd_status = {
	.name = "status",
	.summary = "show the state of the module, its RMIDs and its overhead",
	.usage = status_usage,
	.run = status_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
};
