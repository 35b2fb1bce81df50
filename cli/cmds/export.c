// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * export: every record of a recording, one row each, for other programs. It
 * streams: a recording of any length needs the same memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "summary/feed.h"
#include "common/library.h"
#include "common/message.h"
#include "summary/recording-info.h"
#include "output/table.h"

enum { TO_CSV, TO_JSON };

struct export_config {
	int to;
	const char *output;
	uint64_t from;
	uint64_t until;
};

static const struct export_config export_defaults = { .to = -1, .until = UINT64_MAX };

#define MEMBER(name) offsetof(struct export_config, name)

static const char *const formats[] = { "csv", "json", NULL };

static const struct mw_option export_options[] = {
	{ "to", 't', MW_OPTION_CHOICE, MEMBER(to), "FORMAT", "what to write", formats },
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "FILE",
	  "where to; replaced if it exists; standard output if not given", NULL },
	{ "from", 0, MW_OPTION_DURATION, MEMBER(from), "TIME",
	  "start so long after the start of the recording", NULL },
	{ "until", 0, MW_OPTION_DURATION, MEMBER(until), "TIME", "end so long after the start",
	  NULL },
	{ 0 },
};

/* Every column that any record fills. CSV has them all, JSON those that are filled. */
enum {
	TIME,
	TYPE,
	CPU,
	LATE,
	FORCED,
	RMID,
	GENERATION,
	TGID,
	START,
	COMM,
	BEGIN,
	RUN,
	CYCLES,
	INSTRUCTIONS,
	REFERENCES,
	MISSES,
	RUNNING,
	EXPECTED,
	PERIOD,
	OVERRUNS,
	PRODUCED,
	DROPPED,
	PARENT,
	ALLOC,
	CGROUP,
	UID,
	REASON,
	SEQUENCE,
	COUNT,
	UNMEASURED,
	STATE,
	SINCE,
	DOMAIN,
	OCCUPANCY,
	TOTAL,
	LOCAL,
	AGE,
	RESIDUE,
	NR_COLUMNS,
};

#define M MW_COLUMN_MEASURED

static const struct mw_column columns[NR_COLUMNS] = {
	[TIME] = { "time_ns", NULL, MW_KIND_UINT, 0, 0 },
	[TYPE] = { "type", NULL, MW_KIND_TEXT, 0, 0 },
	[CPU] = { "cpu", NULL, MW_KIND_UINT, 0, 0 },
	[LATE] = { "late", NULL, MW_KIND_BOOL, 0, 0 },
	[FORCED] = { "forced", NULL, MW_KIND_BOOL, 0, 0 },
	[RMID] = { "rmid", NULL, MW_KIND_UINT, 0, 0 },
	[GENERATION] = { "generation", NULL, MW_KIND_UINT, 0, 0 },
	[TGID] = { "tgid", NULL, MW_KIND_UINT, 0, 0 },
	[START] = { "start_time_ns", NULL, MW_KIND_UINT, 0, 0 },
	[COMM] = { "comm", NULL, MW_KIND_TEXT, 0, 0 },
	[BEGIN] = { "begin_ns", NULL, MW_KIND_UINT, 0, 0 },
	[RUN] = { "run_ns", NULL, MW_KIND_UINT, 0, 0 },
	[CYCLES] = { "cycles", NULL, MW_KIND_UINT, 0, M },
	[INSTRUCTIONS] = { "instructions", NULL, MW_KIND_UINT, 0, M },
	[REFERENCES] = { "llc_references", NULL, MW_KIND_UINT, 0, M },
	[MISSES] = { "llc_misses", NULL, MW_KIND_UINT, 0, M },
	[RUNNING] = { "running_ppm", NULL, MW_KIND_UINT, 0, 0 },
	[EXPECTED] = { "expected_ns", NULL, MW_KIND_UINT, 0, 0 },
	[PERIOD] = { "period_ns", NULL, MW_KIND_UINT, 0, 0 },
	[OVERRUNS] = { "overruns", NULL, MW_KIND_UINT, 0, 0 },
	[PRODUCED] = { "produced", NULL, MW_KIND_UINT, 0, 0 },
	[DROPPED] = { "dropped", NULL, MW_KIND_UINT, 0, 0 },
	[PARENT] = { "parent_tgid", NULL, MW_KIND_UINT, 0, 0 },
	[ALLOC] = { "alloc_time_ns", NULL, MW_KIND_UINT, 0, 0 },
	[CGROUP] = { "cgroup_id", NULL, MW_KIND_UINT, 0, 0 },
	[UID] = { "uid", NULL, MW_KIND_UINT, 0, 0 },
	[REASON] = { "reason", NULL, MW_KIND_TEXT, 0, 0 },
	[SEQUENCE] = { "sequence", NULL, MW_KIND_UINT, 0, 0 },
	[COUNT] = { "count", NULL, MW_KIND_UINT, 0, 0 },
	[UNMEASURED] = { "unmeasured", NULL, MW_KIND_UINT, 0, 0 },
	[STATE] = { "state", NULL, MW_KIND_TEXT, 0, 0 },
	[SINCE] = { "since_ns", NULL, MW_KIND_UINT, 0, 0 },
	[DOMAIN] = { "domain", NULL, MW_KIND_UINT, 0, 0 },
	[OCCUPANCY] = { "llc_occupancy_bytes", NULL, MW_KIND_UINT, 0, M },
	[TOTAL] = { "mbm_total_bytes", NULL, MW_KIND_UINT, 0, M },
	[LOCAL] = { "mbm_local_bytes", NULL, MW_KIND_UINT, 0, M },
	[AGE] = { "age_ns", NULL, MW_KIND_UINT, 0, 0 },
	[RESIDUE] = { "llc_residue_bytes", NULL, MW_KIND_UINT, 0, 0 },
};

struct row {
	struct mw_cell cells[NR_COLUMNS];
	bool filled[NR_COLUMNS];
	char comm[MEMWATCH_COMM_LEN + 1]; /* a damaged file may lack the NUL */
};

static void put(struct row *row, int column, uint64_t value)
{
	row->cells[column] = (struct mw_cell){ .number = value };
	row->filled[column] = true;
}

static void put_text(struct row *row, int column, const char *text)
{
	row->cells[column] = (struct mw_cell){ .text = text };
	row->filled[column] = true;
}

static void put_measured(struct row *row, int column, uint64_t value, uint8_t status)
{
	row->cells[column] = (struct mw_cell){ .number = value, .status = status };
	row->filled[column] = true;
}

static void put_owner(struct row *row, uint32_t rmid, uint32_t generation,
		      struct memwatch_tracker *tracker)
{
	const struct memwatch_process *process;

	put(row, RMID, rmid);
	put(row, GENERATION, generation);
	if (!rmid || memwatch_tracker_lookup(tracker, rmid, generation, &process))
		return;
	put(row, TGID, process->tgid);
	put(row, START, process->start_time_ns);
	put_text(row, COMM, process->comm);
}

static void put_sample(struct row *row, const struct memwatch_record_sample *s,
		       struct memwatch_tracker *tracker)
{
	put_owner(row, s->rmid, s->generation, tracker);
	put(row, BEGIN, s->begin_ns);
	put(row, RUN, s->run_ns);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		put_measured(row, CYCLES + i, s->counter[i], s->status[i]);
	put(row, RUNNING, s->running_ppm);
}

static void put_tick(struct row *row, const struct memwatch_record_tick *t)
{
	put(row, EXPECTED, t->expected_ns);
	put(row, PERIOD, t->period_ns);
	put(row, OVERRUNS, t->overruns);
	put(row, PRODUCED, t->produced);
	put(row, DROPPED, t->dropped);
}

static void put_rmid(struct row *row, const struct memwatch_record_rmid *r)
{
	put(row, RMID, r->rmid);
	put(row, GENERATION, r->generation);
	put(row, TGID, r->tgid);
	put(row, START, r->start_time_ns);
	memcpy(row->comm, r->comm, MEMWATCH_COMM_LEN);
	row->comm[MEMWATCH_COMM_LEN] = '\0';
	put_text(row, COMM, row->comm);
	put(row, PARENT, r->parent_tgid);
	put(row, ALLOC, r->alloc_time_ns);
	put(row, CGROUP, r->cgroup_id);
	put(row, UID, r->uid);
	put_text(row, REASON, memwatch_reason_name(r->reason));
}

static void put_rdt(struct row *row, const struct memwatch_record_rdt *r,
		    struct memwatch_tracker *tracker)
{
	put_owner(row, r->rmid, r->generation, tracker);
	put(row, DOMAIN, r->domain);
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++)
		put_measured(row, OCCUPANCY + i, r->value[i], r->status[i]);
	put(row, AGE, r->age_ns);
	/* At the allocation: the cache that earlier owners hold. */
	if (r->status[MEMWATCH_RDT_OCCUPANCY] == MEMWATCH_STATUS_FIRST)
		put(row, RESIDUE, r->value[MEMWATCH_RDT_OCCUPANCY]);
}

static const char *state_name(uint32_t state)
{
	static const char *const names[] = { "unknown", "online", "offline",
					     "idle",	"busy",	  "stopped" };

	return names[state <= MEMWATCH_CPU_STOPPED ? state : 0];
}

static void put_other(struct row *row, const struct memwatch_record_header *h)
{
	const struct memwatch_record_dump *dump = (const void *)h;
	const struct memwatch_record_lost *lost = (const void *)h;
	const struct memwatch_record_cpu *cpu = (const void *)h;
	const struct memwatch_record_notice *notice = (const void *)h;

	switch (h->type) {
	case MEMWATCH_RECORD_DUMP_BEGIN:
	case MEMWATCH_RECORD_DUMP_END:
		put(row, SEQUENCE, dump->sequence);
		put(row, COUNT, dump->count);
		put(row, UNMEASURED, dump->unmeasured);
		break;
	case MEMWATCH_RECORD_CPU_STATE:
		put_text(row, STATE, state_name(cpu->state));
		put(row, SINCE, cpu->since_ns);
		break;
	case MEMWATCH_RECORD_NOTICE:
		put_text(row, REASON, memwatch_notice_name(notice->kind));
		put(row, COUNT, notice->count);
		break;
	case MEMWATCH_RECORD_LOST:
		put(row, BEGIN, lost->begin_ns);
		put(row, COUNT, lost->count);
		break;
	default:
		break;
	}
}

static void fill(struct row *row, const struct memwatch_record_header *h,
		 struct memwatch_tracker *tracker)
{
	for (int i = 0; i < NR_COLUMNS; i++) {
		row->cells[i] = (struct mw_cell){ .missing = true };
		row->filled[i] = false;
	}
	put(row, TIME, h->time_ns);
	put_text(row, TYPE, memwatch_record_name(h->type));
	put(row, CPU, h->cpu);
	row->cells[LATE] = (struct mw_cell){ .truth = h->flags & MEMWATCH_RECORD_F_LATE };
	row->cells[FORCED] = (struct mw_cell){ .truth = h->flags & MEMWATCH_RECORD_F_FORCED };
	row->filled[LATE] = row->filled[FORCED] = true;
	switch (h->type) {
	case MEMWATCH_RECORD_SAMPLE:
		put_sample(row, (const void *)h, tracker);
		break;
	case MEMWATCH_RECORD_TICK:
		put_tick(row, (const void *)h);
		break;
	case MEMWATCH_RECORD_RMID_ALLOC:
	case MEMWATCH_RECORD_RMID_EXISTING:
	case MEMWATCH_RECORD_RMID_EXEC:
	case MEMWATCH_RECORD_RMID_FREE:
		put_rmid(row, (const void *)h);
		break;
	case MEMWATCH_RECORD_RDT:
		put_rdt(row, (const void *)h, tracker);
		break;
	default:
		put_other(row, h);
	}
}

static void write_json(const struct row *row, struct mw_json *json)
{
	mw_json_row(json, NULL);
	for (size_t i = 0; i < NR_COLUMNS; i++)
		if (row->filled[i])
			mw_members_json(&columns[i], 1, &row->cells[i], json);
	mw_json_object_end(json);
}

/* The same without "_status" beside fields that this record does not have. */
static void write_csv(const struct row *row, FILE *out)
{
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		if (i)
			fputc(',', out);
		if (row->filled[i])
			mw_cell_csv(&columns[i], &row->cells[i], out);
		else if (columns[i].flags & MW_COLUMN_MEASURED)
			fputc(',', out);
	}
	fputc('\n', out);
}

struct export
{
	const struct export_config *config;
	const struct mw_cli *cli;
	struct memwatch_stream *stream;
	struct memwatch_tracker *tracker;
	uint64_t from, until;
	FILE *out;
	struct mw_json json;
	uint64_t written;
};

/* Names must be known when a sample comes, and forgotten some time after the end. */
static int follow(struct export *e, const struct memwatch_record_header *h)
{
	static const uint64_t keep_ns = 60000000000;
	int rc = memwatch_tracker_feed(e->tracker, h);

	if (rc < 0 && rc != -EINVAL)
		return rc;
	rc = memwatch_tracker_advance(e->tracker, h->time_ns);
	if (rc > 0 && h->time_ns > keep_ns)
		memwatch_tracker_retire(e->tracker, h->time_ns - keep_ns);
	return rc < 0 ? rc : 0;
}

static int write_all(struct export *e)
{
	const struct memwatch_record_header *h;
	struct row row;
	int rc;

	while ((rc = memwatch_stream_next(e->stream, &h)) == 1) {
		rc = follow(e, h);
		if (rc)
			return rc;
		if (h->time_ns < e->from || h->time_ns >= e->until)
			continue;
		fill(&row, h, e->tracker);
		if (e->config->to == TO_JSON)
			write_json(&row, &e->json);
		else
			write_csv(&row, e->out);
		e->written++;
		if (ferror(e->out))
			return -EIO;
	}
	return rc;
}

static int export(struct export *e, uint64_t first, uint64_t last)
{
	const struct memwatch_stream_info *info = memwatch_stream_info(e->stream);
	int err;

	if (e->config->to == TO_JSON) {
		mw_json_init(&e->json, e->out);
		mw_recording_json(&e->json, info, first, last);
		mw_json_array(&e->json, "records");
	} else {
		mw_head_csv(columns, NR_COLUMNS, e->out);
	}
	err = write_all(e);
	if (e->config->to == TO_JSON) {
		mw_json_array_end(&e->json);
		mw_json_finish(&e->json);
	}
	return err;
}

/* Writing the export over the recording would destroy it before it is read. */
static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int open_output(struct export *e, const char *input)
{
	const char *name = e->config->output;

	e->out = stdout;
	if (!name || !strcmp(name, "-"))
		return 0;
	if (is_same_file(name, input))
		return mw_error(MW_EXIT_USAGE, "export", "%s is the recording itself", name);
	e->out = fopen(name, "we");
	return e->out ? 0 : mw_error(mw_exit_of(-errno), name, "%s", strerror(errno));
}

static int close_output(struct export *e)
{
	const char *name = e->config->output;
	bool failed = ferror(e->out);

	if (e->out == stdout)
		return MW_EXIT_DONE; /* checked at the end of the command */
	errno = 0;
	if (fclose(e->out) || failed)
		return mw_error(MW_EXIT_FAILED, name, "%s",
				errno ? strerror(errno) : "could not be written");
	return MW_EXIT_DONE;
}

static int run(struct export *e, struct memwatch_ctx *ctx, const char *path)
{
	uint64_t first = 0, last = 0, origin;
	int err = mw_recording_span(ctx, path, &first, &last), rc;

	if (err)
		return mw_file_failed(ctx, err, path);
	origin = mw_feed_origin(memwatch_stream_info(e->stream), first);
	e->from = e->config->from ? origin + e->config->from : 0;
	if (__builtin_add_overflow(origin, e->config->until, &e->until))
		e->until = UINT64_MAX;
	err = memwatch_tracker_new(ctx, NULL, &e->tracker);
	if (err)
		return mw_error_errno(err, "export");
	rc = open_output(e, path);
	if (rc)
		return rc;
	err = export(e, first, last);
	rc = close_output(e);
	if (!rc && err && !(e->out == stdout && err == -EIO))
		rc = mw_file_failed(ctx, err, path);
	if (rc)
		return rc;
	mw_warn_truncated(e->cli, e->stream, path);
	mw_note(e->cli, "%" PRIu64 " records", e->written);
	if (!e->written) {
		mw_warn(e->cli, "%s: there is no record in this time", path);
		return MW_EXIT_NOTHING;
	}
	return MW_EXIT_DONE;
}

static const char *const export_usage[] = {
	"export FILE --to csv|json [-o OUT] [--from TIME] [--until TIME]",
	"",
	"Writes every record of a recording, one row each, in the order of the stream.",
	"memwatchctl-export(8) describes the columns. Memory use does not depend on the",
	"length. Exit status 4 if there is no record in that time.",
	NULL,
};

static int export_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct export e = { .config = config, .cli = cli };
	int rc;

	(void)argc;
	if (e.config->to < 0) {
		mw_error(MW_EXIT_USAGE, "export", "--to is missing");
		mw_hint("memwatchctl export %s --to csv", argv[0]);
		return MW_EXIT_USAGE;
	}
	if (e.config->from >= e.config->until)
		return mw_error(MW_EXIT_USAGE, "export", "--from is not before --until");
	rc = mw_library_new(cli, &ctx) ?: mw_open_recording(ctx, argv[0], &e.stream);
	if (!rc)
		rc = run(&e, ctx, argv[0]);
	memwatch_tracker_unref(e.tracker);
	memwatch_stream_unref(e.stream);
	return rc;
}

const struct mw_cmd mw_cmd_export = {
	.name = "export",
	.summary = "write every record of a recording as csv or json",
	.usage = export_usage,
	.options = export_options,
	.run = export_run,
	.defaults = &export_defaults,
	.config_size = sizeof(struct export_config),
	.operands_min = 1,
	.operands_max = 1,
};
