// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "dump": lists the processes that have an RMID.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cgroup.h"
#include "common/library.h"
#include "common/message.h"
#include "output/table.h"
#include "common/pool.h"

enum { RMID, GENERATION, TGID, PARENT, START, ALLOC, CGROUP_ID, CGROUP, UID, COMM, NR_COLUMNS };

static const struct mw_column dump_columns[NR_COLUMNS] = {
	[RMID] = { "rmid", "RMID", MW_KIND_UINT, 0, 0 },
	[GENERATION] = { "generation", "GEN", MW_KIND_UINT, 0, 0 },
	[TGID] = { "tgid", "PID", MW_KIND_UINT, 0, 0 },
	[PARENT] = { "parent_tgid", "PARENT", MW_KIND_UINT, 0, 0 },
	[START] = { "start_time_ns", "STARTED", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
	[ALLOC] = { "alloc_time_ns", "SINCE", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
	[CGROUP_ID] = { "cgroup_id", "CGROUP", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[UID] = { "uid", "UID", MW_KIND_UINT, 0, 0 },
	[COMM] = { "comm", "COMMAND", MW_KIND_TEXT, 0, 0 },
	[CGROUP] = { "cgroup", "CGROUP", MW_KIND_TEXT, 0, MW_COLUMN_LAST },
};

struct dump_config {
	int key;
};

static const char *const sort_keys[] = { "rmid", "tgid", "comm", NULL };

static const struct mw_option dump_options[] = {
	{ "sort", 's', MW_OPTION_CHOICE, offsetof(struct dump_config, key), "KEY",
	  "sort the rows by this column", sort_keys },
	{ 0 },
};

static int compare_processes(const void *a, const void *b, void *arg)
{
	const struct memwatch_process *p = *(const struct memwatch_process *const *)a;
	const struct memwatch_process *q = *(const struct memwatch_process *const *)b;
	int key = *(int *)arg, order = 0;

	if (key == 2)
		order = strcmp(p->comm, q->comm);
	if (!order && key)
		order = (p->tgid > q->tgid) - (p->tgid < q->tgid);
	return order ?: (p->rmid > q->rmid) - (p->rmid < q->rmid);
}

/* Returns false if there is no memory. */
static bool fill_dump_cells(const struct memwatch_process *p, struct mw_cgroups *cgroups,
			    struct mw_pool *pool, struct mw_cell *row)
{
	const char *name = mw_cgroups_path(cgroups, p->cgroup_id);
	const char *path = name ? mw_pool_copy(pool, name) : NULL;

	row[RMID] = (struct mw_cell){ .number = p->rmid };
	row[GENERATION] = (struct mw_cell){ .number = p->generation };
	row[TGID] = (struct mw_cell){ .number = p->tgid };
	row[PARENT] = (struct mw_cell){ .number = p->parent_tgid };
	row[START] = (struct mw_cell){ .number = p->start_time_ns };
	row[ALLOC] = (struct mw_cell){ .number = p->alloc_time_ns };
	row[CGROUP_ID] = (struct mw_cell){ .number = p->cgroup_id, .missing = !p->cgroup_id };
	row[CGROUP] = (struct mw_cell){ .text = path, .missing = !path };
	row[UID] = (struct mw_cell){ .number = p->uid };
	row[COMM] = (struct mw_cell){ .text = p->comm };
	return path || !name;
}

static int print_dump(const struct mw_cli *cli, const struct mw_table *table)
{
	struct mw_json json;

	switch (cli->format) {
	case MW_FORMAT_JSON:
		mw_json_init(&json, stdout);
		mw_table_json(table, &json, "rmids");
		mw_json_finish(&json);
		return MW_EXIT_DONE;
	case MW_FORMAT_CSV:
		mw_table_csv(table, stdout);
		return MW_EXIT_DONE;
	default:
		return table->nr_rows ? mw_table_print(table) : MW_EXIT_DONE;
	}
}

static int show_dump(const struct mw_cli *cli, const struct dump_config *c,
		     const struct memwatch_proc_rmids *rmids)
{
	const struct memwatch_process **sorted;
	struct mw_cgroups *cgroups = NULL;
	struct mw_pool pool = { 0 };
	struct mw_table table;
	int rc = 0;

	sorted = reallocarray(NULL, rmids->count + 1, sizeof(*sorted));
	if (!sorted)
		return mw_error_errno(-ENOMEM, "dump");
	for (size_t i = 0; i < rmids->count; i++)
		sorted[i] = memwatch_proc_rmid_at(rmids, i);
	qsort_r(sorted, rmids->count, sizeof(*sorted), compare_processes, (void *)&c->key);
	mw_cgroups_new(cli, &cgroups);
	mw_table_init(&table, dump_columns, NR_COLUMNS);
	for (size_t i = 0; i < rmids->count && !rc; i++) {
		struct mw_cell *row = mw_table_row(&table);

		if (!row || !fill_dump_cells(sorted[i], cgroups, &pool, row))
			rc = mw_error_errno(-ENOMEM, "dump");
	}
	if (!rc)
		rc = print_dump(cli, &table);
	if (!rc && !rmids->count) {
		mw_warn(cli, "no process has an RMID");
		rc = MW_EXIT_NOTHING;
	}
	mw_table_uninit(&table);
	mw_pool_free(&pool);
	mw_cgroups_free(cgroups);
	free(sorted);
	return rc;
}

/*
 * The module allocates RMIDs only while a session is started. If there is none, this
 * starts one, which ends when the caller closes *@device.
 */
static int start_session_if_idle(const struct mw_cli *cli, struct memwatch_ctx *ctx,
				 struct memwatch_device **device)
{
	struct memwatch_proc_status *status;
	int err = memwatch_proc_status_read(ctx, &status);
	bool idle;

	if (err)
		return mw_module_failed(ctx, err, "dump", NULL);
	idle = !status->sessions_started;
	memwatch_proc_status_free(status);
	if (!idle)
		return 0;
	mw_note(cli, "no session is running: starting one for this dump");
	err = memwatch_device_open(ctx, device);
	if (!err)
		err = memwatch_device_start(*device);
	return err ? mw_module_failed(ctx, err, "dump: starting a session", NULL) : 0;
}

static const char *const dump_usage[] = {
	"dump [--sort KEY]",
	"",
	"Lists the processes that have an RMID now. If no session is running, one is started",
	"for the time of the dump, because RMIDs are allocated only during a session.",
	"The exit status is 4 if no process has an RMID.",
	NULL,
};

static int dump_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct memwatch_device *device = NULL;
	struct memwatch_proc_rmids *rmids = NULL;
	int err, rc = mw_library_new(cli, &ctx);

	(void)argc;
	(void)argv;
	if (!rc)
		rc = start_session_if_idle(cli, ctx, &device);
	if (!rc) {
		err = memwatch_proc_rmids_read(ctx, &rmids);
		rc = err ? mw_module_failed(ctx, err, "dump", NULL) : show_dump(cli, config, rmids);
	}
	memwatch_proc_rmids_free(rmids);
	memwatch_device_close(device);
	return rc;
}

const struct mw_cmd mw_cmd_dump = {
	.name = "dump",
	.summary = "list the processes that have an RMID",
	.usage = dump_usage,
	.options = dump_options,
	.run = dump_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
	.config_size = sizeof(struct dump_config),
};
