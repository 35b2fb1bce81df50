// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * export: writes every record of a recording as one row, for other programs. Records
 * are written as they are read, so memory use does not depend on the length.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "summary/feed.h"
#include "common/clock.h"
#include "common/library.h"
#include "common/message.h"
#include "common/out-file.h"
#include "summary/recording-info.h"
#include "output/table.h"

enum { TO_CSV, TO_JSON };

struct export_config {
	int to;
	const char *output;
	bool force;
	uint64_t from;
	uint64_t until;
	uint64_t max_memory;
};

static const struct export_config export_defaults = { .to = -1, .until = UINT64_MAX };

#define MEMBER(name) offsetof(struct export_config, name)

static const char *const formats[] = { "csv", "json", NULL };

static const struct mw_option export_options[] = {
	{ "to", 't', MW_OPTION_CHOICE, MEMBER(to), "FORMAT", "format of the output", formats },
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "OUT",
	  "output file; default: standard output", NULL },
	{ "force", 'f', MW_OPTION_FLAG, MEMBER(force), NULL, "replace OUT if it exists", NULL },
	{ "from", 0, MW_OPTION_DURATION, MEMBER(from), "TIME",
	  "skip records before TIME, counted from the start", NULL },
	{ "until", 0, MW_OPTION_DURATION, MEMBER(until), "TIME",
	  "skip records from TIME on, counted from the start", NULL },
	MW_LIMITS_OPTION(struct export_config, max_memory),
	{ 0 },
};

/* The columns that do not come from a field of a record, or that come first for all types. */
enum {
	COLUMN_TIME,
	COLUMN_TYPE,
	COLUMN_CPU,
	COLUMN_LATE,
	COLUMN_FORCED,
	COLUMN_RMID,
	COLUMN_GENERATION,
	COLUMN_TGID,
	COLUMN_START_TIME,
	COLUMN_COMM,
	NR_FIRST_COLUMNS,
};

static const struct mw_column first_columns[NR_FIRST_COLUMNS] = {
	[COLUMN_TIME] = { "time_ns", NULL, MW_KIND_UINT, 0, 0 },
	[COLUMN_TYPE] = { "type", NULL, MW_KIND_TEXT, 0, 0 },
	[COLUMN_CPU] = { "cpu", NULL, MW_KIND_UINT, 0, 0 },
	[COLUMN_LATE] = { "late", NULL, MW_KIND_BOOL, 0, 0 },
	[COLUMN_FORCED] = { "forced", NULL, MW_KIND_BOOL, 0, 0 },
	[COLUMN_RMID] = { "rmid", NULL, MW_KIND_UINT, 0, 0 },
	[COLUMN_GENERATION] = { "generation", NULL, MW_KIND_UINT, 0, 0 },
	[COLUMN_TGID] = { "tgid", NULL, MW_KIND_UINT, 0, 0 },
	[COLUMN_START_TIME] = { "start_time_ns", NULL, MW_KIND_UINT, 0, 0 },
	[COLUMN_COMM] = { "comm", NULL, MW_KIND_TEXT, 0, 0 },
};

/* An RDT record with status FIRST: its occupancy is that of earlier owners of the RMID. */
static const struct mw_column residue_column = { "llc_residue_bytes", NULL, MW_KIND_UINT, 0, 0 };

/* Record types in the order in which their fields become columns. */
static const unsigned int types[] = {
	MEMWATCH_RECORD_SAMPLE,	       MEMWATCH_RECORD_TICK,	  MEMWATCH_RECORD_RMID_ALLOC,
	MEMWATCH_RECORD_RMID_EXISTING, MEMWATCH_RECORD_RMID_EXEC, MEMWATCH_RECORD_RMID_FREE,
	MEMWATCH_RECORD_DUMP_BEGIN,    MEMWATCH_RECORD_DUMP_END,  MEMWATCH_RECORD_CPU_STATE,
	MEMWATCH_RECORD_RDT,	       MEMWATCH_RECORD_NOTICE,	  MEMWATCH_RECORD_LOST,
	MEMWATCH_RECORD_GROWTH,
};

#define NR_TYPES    (sizeof(types) / sizeof(types[0]))
#define COLUMNS_MAX 64
#define FIELDS_MAX  24

/* The fields of a record type that are shown, and the column of each. */
struct type_fields {
	unsigned int type;
	size_t nr_fields;
	struct memwatch_field_info field[FIELDS_MAX];
	size_t column[FIELDS_MAX];
};

/*
 * The columns of all types. Fields of the same key share a column. CSV has all columns,
 * JSON those that a record fills.
 */
struct schema {
	size_t nr_columns;
	struct mw_column columns[COLUMNS_MAX];
	size_t residue;
	struct type_fields types[NR_TYPES];
};

static size_t obtain_column(struct schema *schema, const struct mw_column *column)
{
	size_t i = 0;

	while (i < schema->nr_columns && strcmp(schema->columns[i].key, column->key))
		i++;
	if (i == schema->nr_columns && i < COLUMNS_MAX)
		schema->columns[schema->nr_columns++] = *column;
	return i;
}

static struct mw_column field_column(const struct memwatch_field_info *field)
{
	bool text = field->kind == MEMWATCH_FIELD_TEXT || field->kind == MEMWATCH_FIELD_NAME;
	bool measured = field->kind == MEMWATCH_FIELD_MEASURED;

	return (struct mw_column){
		.key = field->key,
		.kind = text ? MW_KIND_TEXT : MW_KIND_UINT,
		.flags = measured ? MW_COLUMN_MEASURED : 0,
	};
}

static void add_type(struct schema *schema, struct type_fields *fields, unsigned int type)
{
	struct memwatch_field_info field = { .sz = sizeof(field) };

	fields->type = type;
	for (unsigned int i = 0; memwatch_record_get_field(type, i, &field) == 1; i++) {
		struct mw_column column = field_column(&field);
		size_t at;

		if (!field.key || fields->nr_fields == FIELDS_MAX)
			continue;
		at = obtain_column(schema, &column);
		if (at == COLUMNS_MAX)
			continue;
		fields->field[fields->nr_fields] = field;
		fields->column[fields->nr_fields++] = at;
	}
}

static void make_schema(struct schema *schema)
{
	*schema = (struct schema){ .nr_columns = NR_FIRST_COLUMNS };
	memcpy(schema->columns, first_columns, sizeof(first_columns));
	for (size_t i = 0; i < NR_TYPES; i++) {
		add_type(schema, &schema->types[i], types[i]);
		if (types[i] == MEMWATCH_RECORD_RDT)
			schema->residue = obtain_column(schema, &residue_column);
	}
}

static const struct type_fields *find_type(const struct schema *schema, unsigned int type)
{
	for (size_t i = 0; i < NR_TYPES; i++)
		if (schema->types[i].type == type)
			return &schema->types[i];
	return NULL;
}

/* ------------------------------------------------------------------ rows */

struct row {
	struct mw_cell cells[COLUMNS_MAX];
	bool filled[COLUMNS_MAX];
	char text[64]; /* the text of the record, with a NUL that a damaged file may lack */
};

static void put_number(struct row *row, size_t column, uint64_t value)
{
	row->cells[column] = (struct mw_cell){ .number = value };
	row->filled[column] = true;
}

static void put_text(struct row *row, size_t column, const char *text)
{
	row->cells[column] = (struct mw_cell){ .text = text };
	row->filled[column] = true;
}

static void put_truth(struct row *row, size_t column, bool truth)
{
	row->cells[column] = (struct mw_cell){ .truth = truth };
	row->filled[column] = true;
}

/* A sample or an RDT record names its owner by RMID and generation only. */
static void put_owner(struct row *row, uint32_t rmid, uint32_t generation,
		      struct memwatch_tracker *tracker)
{
	const struct memwatch_process *process;

	if (!generation || memwatch_tracker_lookup(tracker, rmid, generation, &process))
		return;
	put_number(row, COLUMN_TGID, process->tgid);
	put_number(row, COLUMN_START_TIME, process->start_time_ns);
	put_text(row, COLUMN_COMM, process->comm);
}

static uint64_t read_number(const uint8_t *from, size_t width)
{
	uint64_t number = 0;

	/* All machines that write recordings are little endian. */
	memcpy(&number, from, width < sizeof(number) ? width : sizeof(number));
	return number;
}

static const char *name_of(const struct memwatch_field_info *field, uint64_t number)
{
	return number < field->nr_names && field->names[number] ? field->names[number] : "unknown";
}

static void put_field(struct row *row, size_t column, const struct memwatch_field_info *field,
		      const uint8_t *record)
{
	uint64_t number = read_number(record + field->offset, field->width);
	size_t len = field->width < sizeof(row->text) ? field->width : sizeof(row->text) - 1;

	switch (field->kind) {
	case MEMWATCH_FIELD_TEXT:
		memcpy(row->text, record + field->offset, len);
		row->text[len] = '\0';
		put_text(row, column, row->text);
		break;
	case MEMWATCH_FIELD_NAME:
		put_text(row, column, name_of(field, number));
		break;
	case MEMWATCH_FIELD_MEASURED:
		put_number(row, column, number);
		row->cells[column].status = record[field->status_offset];
		break;
	case MEMWATCH_FIELD_OPTIONAL:
		put_number(row, column, number);
		row->cells[column].missing = number == UINT64_MAX >> (64 - 8 * field->width);
		break;
	default:
		put_number(row, column, number);
	}
}

static void put_sample_owner(struct row *row, const struct memwatch_record_sample *sample,
			     struct memwatch_tracker *tracker)
{
	put_owner(row, sample->rmid, sample->generation, tracker);
}

static void put_rdt_owner(const struct schema *schema, struct row *row,
			  const struct memwatch_record_rdt *rdt, struct memwatch_tracker *tracker)
{
	put_owner(row, rdt->rmid, rdt->generation, tracker);
	if (rdt->status[MEMWATCH_RDT_OCCUPANCY] == MEMWATCH_STATUS_FIRST)
		put_number(row, schema->residue, rdt->value[MEMWATCH_RDT_OCCUPANCY]);
}

static void fill_export_row(const struct schema *schema, struct row *row,
			    const struct memwatch_record_header *h,
			    struct memwatch_tracker *tracker)
{
	const struct type_fields *fields = find_type(schema, h->type);

	for (size_t i = 0; i < schema->nr_columns; i++) {
		row->cells[i] = (struct mw_cell){ .missing = true };
		row->filled[i] = false;
	}
	put_number(row, COLUMN_TIME, h->time_ns);
	put_text(row, COLUMN_TYPE, memwatch_record_name(h->type));
	put_number(row, COLUMN_CPU, h->cpu);
	put_truth(row, COLUMN_LATE, h->flags & MEMWATCH_RECORD_F_LATE);
	put_truth(row, COLUMN_FORCED, h->flags & MEMWATCH_RECORD_F_FORCED);
	for (size_t i = 0; fields && i < fields->nr_fields; i++)
		put_field(row, fields->column[i], &fields->field[i], (const void *)h);
	if (h->type == MEMWATCH_RECORD_SAMPLE)
		put_sample_owner(row, (const void *)h, tracker);
	if (h->type == MEMWATCH_RECORD_RDT)
		put_rdt_owner(schema, row, (const void *)h, tracker);
}

static void write_json(const struct schema *schema, const struct row *row, struct mw_json *json)
{
	mw_json_row(json, NULL);
	for (size_t i = 0; i < schema->nr_columns; i++)
		if (row->filled[i])
			mw_members_json(&schema->columns[i], 1, &row->cells[i], json);
	mw_json_object_end(json);
}

/* A field that the type of the record does not have is empty, and so is its status. */
static void write_csv(const struct schema *schema, const struct row *row, FILE *out)
{
	for (size_t i = 0; i < schema->nr_columns; i++) {
		if (i)
			fputc(',', out);
		if (row->filled[i])
			mw_cell_csv(&schema->columns[i], &row->cells[i], out);
		else if (schema->columns[i].flags & MW_COLUMN_MEASURED)
			fputc(',', out);
	}
	fputc('\n', out);
}

struct exporter {
	const struct export_config *config;
	const struct mw_cli *cli;
	struct mw_limits limits;
	struct memwatch_stream *stream;
	struct memwatch_tracker *tracker;
	uint64_t from, until;
	struct mw_out_file file;
	FILE *out; /* its stream */
	struct mw_json json;
	struct schema schema;
	uint64_t written;
	uint64_t lost; /* records, in the losses that were written */
};

/*
 * Keeps the tracker up to date, so that the owner of a sample is known. A process is
 * forgotten a minute after its end: readings of its RMID may still come until then.
 */
static int track_record(struct exporter *e, const struct memwatch_record_header *h)
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

static int write_all(struct exporter *e)
{
	const struct memwatch_record_header *h;
	struct row row;
	int rc;

	while ((rc = memwatch_stream_next(e->stream, &h)) == 1) {
		rc = track_record(e, h);
		if (rc)
			return rc;
		if (h->time_ns < e->from || h->time_ns >= e->until)
			continue;
		fill_export_row(&e->schema, &row, h, e->tracker);
		if (e->config->to == TO_JSON)
			write_json(&e->schema, &row, &e->json);
		else
			write_csv(&e->schema, &row, e->out);
		e->written++;
		if (h->type == MEMWATCH_RECORD_LOST)
			e->lost += ((const struct memwatch_record_lost *)(const void *)h)->count;
		if (ferror(e->out))
			return -EIO;
	}
	return rc;
}

static int write_export(struct exporter *e, uint64_t first, uint64_t last)
{
	const struct memwatch_stream_info *info = memwatch_stream_get_info(e->stream);
	int err;

	make_schema(&e->schema);
	if (e->config->to == TO_JSON) {
		mw_json_init(&e->json, e->out);
		mw_recording_json(&e->json, info, first, last);
		mw_json_array(&e->json, "records");
	} else {
		mw_head_csv(e->schema.columns, e->schema.nr_columns, e->out);
	}
	err = write_all(e);
	if (e->config->to == TO_JSON) {
		mw_json_array_end(&e->json);
		mw_json_finish(&e->json);
	}
	return err;
}

static int open_output(struct exporter *e, struct memwatch_ctx *ctx, const char *input)
{
	const char *name = e->config->output;

	if (name && mw_out_file_is(name, input))
		return mw_error(MW_EXIT_USAGE, "export", "%s is the recording itself", name);
	return mw_out_file_open(&e->file, ctx, name, e->config->force);
}

static int export_file(struct exporter *e, struct memwatch_ctx *ctx, const char *path)
{
	uint64_t first = 0, last = 0, origin;
	int err = mw_recording_span(ctx, path, &first, &last), rc;
	bool not_written;

	if (err)
		return mw_file_failed(ctx, err, path);
	origin = mw_feed_origin(memwatch_stream_get_info(e->stream), first);
	e->from = e->config->from ? mw_clock_add(origin, e->config->from) : 0;
	e->until = mw_clock_add(origin, e->config->until);
	err = mw_feed_tracker_new(ctx, &e->limits, &e->tracker);
	if (err)
		return mw_error_errno(err, "export");
	rc = open_output(e, ctx, path);
	if (rc)
		return rc;
	e->out = e->file.stream;
	err = write_export(e, first, last);
	not_written = ferror(e->out); /* who closes the output reports this */
	rc = mw_out_file_close(&e->file);
	if (!rc && err && !not_written)
		rc = mw_file_failed(ctx, err, path);
	if (rc)
		return rc;
	rc = mw_check_damage(e->cli, e->stream, path);
	mw_note(e->cli, "%" PRIu64 " records", e->written);
	if (e->lost)
		mw_warn(e->cli,
			"%s: %" PRIu64
			" records were lost; a sum over the time of a row of type lost "
			"is a lower bound",
			path, e->lost);
	if (!e->written) {
		mw_warn(e->cli, "%s: there is no record in this time range", path);
		return rc ?: MW_EXIT_NOTHING;
	}
	return rc;
}

static const char *const export_usage[] = {
	"export FILE --to csv|json [-o OUT] [--force] [--from TIME] [--until TIME]",
	"",
	"Writes every record of a recording as one row, in the order of time.",
	"memwatchctl-export(8) describes the columns. Memory use does not depend on the",
	"length of the recording. The exit status is 4 if there is no record in the time",
	"between --from and --until.",
	NULL,
};

static int export_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct exporter e = { .config = config, .cli = cli };
	int rc;

	(void)argc;
	if (e.config->to < 0) {
		mw_error(MW_EXIT_USAGE, "export", "--to is missing");
		mw_hint("usage: memwatchctl %s", export_usage[0]);
		return MW_EXIT_USAGE;
	}
	if (e.config->from >= e.config->until)
		return mw_error(MW_EXIT_USAGE, "export", "--from is not before --until");
	rc = mw_limits_init(&e.limits, e.config->max_memory, "export");
	if (!rc)
		rc = mw_library_new(cli, &ctx) ?: mw_open_recording(ctx, argv[0], &e.stream);
	if (!rc)
		rc = export_file(&e, ctx, argv[0]);
	memwatch_tracker_unref(e.tracker);
	memwatch_stream_unref(e.stream);
	return rc;
}

const struct mw_cmd mw_cmd_export = {
	.name = "export",
	.summary = "write every record of a recording as CSV or JSON",
	.usage = export_usage,
	.options = export_options,
	.run = export_run,
	.defaults = &export_defaults,
	.config_size = sizeof(struct export_config),
	.operands_min = 1,
	.operands_max = 1,
};
