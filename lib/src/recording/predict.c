// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The predictors. docs/recording-format.md defines each of them. There is a loop for each
 * predictor, which copies the column from the records into an array as it predicts: a recorder
 * spends most of its time here.
 *
 * Rows are counted from 1. Row 0 is the one that does not exist; its values are 0.
 */
#include "recording/predict.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* More rows than this are faster to forget all at once. */
#define ROWS_FEW (MW_CONTEXTS / 4)

/* ------------------------------------------------- rows that belong together */

/* Finds for each row the last one with the same number. */
#define FIND_LAST(columns, rows, last, number)                                                     \
	do {                                                                                       \
		uint32_t *slots_ = (columns)->slot;                                                \
		for (uint32_t row = 1; row <= (rows); row++) {                                     \
			uint32_t *slot_ = &slots_[(number) % MW_CONTEXTS];                         \
			(last)[row] = *slot_;                                                      \
			*slot_ = row;                                                              \
		}                                                                                  \
		/* A block may have many classes with few rows: only what was used is emptied. */  \
		if ((rows) > ROWS_FEW)                                                             \
			memset(slots_, 0, sizeof((columns)->slot));                                \
		else                                                                               \
			for (uint32_t row = 1; row <= (rows); row++)                               \
				slots_[(number) % MW_CONTEXTS] = 0;                                \
		(last)[0] = 0;                                                                     \
	} while (0)

/* The last time on the CPU of each record that is not its own: where it began. */
void mw_predict_block(struct mw_columns *columns)
{
	uint64_t *prior = columns->prior, *now = columns->now, *then = columns->then;
	const uint64_t *times = columns->time;
	const uint16_t *cpu = columns->cpu;
	uint32_t rows = columns->rows;

	memset(columns->slot, 0, sizeof(columns->slot));
	memset(columns->now, 0, sizeof(columns->now));
	memset(columns->then, 0, sizeof(columns->then));
	for (uint32_t i = 0; i < rows; i++) {
		unsigned int slot = cpu[i] % MW_CONTEXTS;
		uint64_t time = times[i];

		if (time != now[slot]) {
			then[slot] = now[slot];
			now[slot] = time;
		}
		prior[i] = then[slot] ? then[slot] : time;
	}
}

void mw_predict_class(struct mw_columns *columns, unsigned int number, uint8_t *base,
		      struct mw_class_view *ret)
{
	const struct mw_class *class = &columns->class[number];

	*ret = (struct mw_class_view){
		.columns = columns,
		.class = class,
		.order = columns->order + class->first,
		.at = columns->at + class->first,
		.base = base,
	};
	columns->cpus_known = false;
	columns->key = -1;
	columns->other_column = -1;
}

static void need_last_cpu(const struct mw_class_view *view)
{
	struct mw_columns *columns = view->columns;
	const uint32_t *order = view->order;
	const uint16_t *cpu = columns->cpu;

	if (columns->cpus_known)
		return;
	FIND_LAST(columns, view->class->rows, columns->last_cpu, cpu[order[row]]);
	columns->cpus_known = true;
}

/* Gets a column that was encoded or decoded before into columns.other. */
static void need_other(const struct mw_class_view *view, unsigned int number)
{
	const struct mw_column *column = &view->class->column[number];
	const uint8_t *base = view->base + column->offset;
	uint64_t *other = view->columns->other;
	unsigned int width = column->width;

	if (view->columns->other_column == (int)number)
		return;
	other[0] = 0;
	for (uint32_t row = 1; row <= view->class->rows; row++)
		other[row] = mw_number_load(base + view->at[row], width);
	view->columns->other_column = (int)number;
}

static void need_last_key(const struct mw_class_view *view, unsigned int number)
{
	struct mw_columns *columns = view->columns;

	if (columns->key == (int)number)
		return;
	need_other(view, number);
	FIND_LAST(columns, view->class->rows, columns->last_key, columns->other[row]);
	columns->key = (int)number;
}

/* Prepares what the predictor of a column refers to. */
static void prepare_column(const struct mw_class_view *view, const struct mw_column *column)
{
	switch (column->predictor) {
	case MW_PREDICT_CPU:
	case MW_PREDICT_CPU_LINEAR:
		need_last_cpu(view);
		break;
	case MW_PREDICT_KEY:
		need_last_key(view, column->a);
		break;
	case MW_PREDICT_REST:
		need_last_cpu(view);
		need_other(view, column->a);
		break;
	case MW_PREDICT_SCALE:
		need_last_key(view, column->b);
		need_other(view, column->a);
		break;
	default:
		break;
	}
}

/* The column that was handled last is often the one that the next one refers to. */
static void keep_column(const struct mw_class_view *view, unsigned int number)
{
	struct mw_columns *columns = view->columns;
	uint64_t *value = columns->value;

	columns->value = columns->other;
	columns->other = value;
	columns->other_column = (int)number;
}

/* ------------------------------------------------------------- predictors */

/* What a predictor sees: the values of the rows before, and what was prepared. */
struct scene {
	uint64_t *value;
	const uint64_t *other;
	const uint32_t *last_cpu;
	const uint32_t *last_key;
	const uint32_t *order;
	const uint64_t *time;
	const uint64_t *prior;
	uint64_t *rest;
};

ALWAYS_INLINE uint64_t predict_nothing(const struct scene *s, size_t row)
{
	(void)s;
	(void)row;
	return 0;
}

ALWAYS_INLINE uint64_t predict_last(const struct scene *s, size_t row)
{
	return s->value[row - 1];
}

ALWAYS_INLINE uint64_t predict_cpu(const struct scene *s, size_t row)
{
	return s->value[s->last_cpu[row]];
}

ALWAYS_INLINE uint64_t predict_cpu_linear(const struct scene *s, size_t row)
{
	uint32_t last = s->last_cpu[row], before = s->last_cpu[last];

	return 2 * s->value[last] - s->value[before ? before : last];
}

ALWAYS_INLINE uint64_t predict_key(const struct scene *s, size_t row)
{
	return s->value[s->last_key[row]];
}

ALWAYS_INLINE uint64_t predict_time(const struct scene *s, size_t row)
{
	return s->time[s->order[row]];
}

ALWAYS_INLINE uint64_t predict_begin(const struct scene *s, size_t row)
{
	return s->prior[s->order[row]];
}

ALWAYS_INLINE uint64_t predict_rest(const struct scene *s, size_t row)
{
	uint64_t time = s->time[s->order[row]];
	uint32_t last = s->last_cpu[row];

	if (last && s->time[s->order[last]] == time)
		s->rest[row] = s->rest[last] - s->value[last];
	else
		s->rest[row] = time - s->other[row];
	return s->rest[row];
}

ALWAYS_INLINE uint64_t predict_scale(const struct scene *s, size_t row)
{
	uint32_t last = s->last_key[row];
	uint64_t value = s->value[last], before = s->other[last], now = s->other[row];

	if (!last || !before)
		return value;
	if (!((value | now) >> 32))
		return value * now / before;
	return (uint64_t)((unsigned __int128)value * now / before);
}

/* ----------------------------------------------------------------- loops */

typedef uint64_t (*predictor)(const struct scene *s, size_t row);

/* The values before a row are in @scene when it is predicted, as they are for the decoder. */
ALWAYS_INLINE uint64_t encode_rows(const struct mw_class_view *view, const struct scene *scene,
				   unsigned int offset, unsigned int width, bool folded,
				   predictor predict)
{
	uint64_t *value = scene->value, *residual = view->columns->residual, all = 0;
	const uint8_t *base = view->base + offset;
	const uint32_t *at = view->at;
	size_t rows = view->class->rows;

	value[0] = 0;
#pragma GCC unroll 4
	for (size_t row = 1; row <= rows; row++) {
		uint64_t what = mw_number_load(base + at[row], width);

		value[row] = what;
		if (folded)
			what = mw_fold(what - predict(scene, row), width);
		residual[row - 1] = what;
		all |= what;
	}
	return all;
}

ALWAYS_INLINE uint64_t decode_rows(const struct mw_class_view *view, const struct scene *scene,
				   unsigned int offset, unsigned int width, bool folded,
				   predictor predict)
{
	uint64_t *value = scene->value, mask = UINT64_MAX >> (64 - width * 8);
	const uint64_t *residual = view->columns->residual;
	size_t rows = view->class->rows;

	value[0] = 0;
	for (size_t row = 1; row <= rows; row++) {
		uint64_t what = residual[row - 1];

		if (folded)
			what = predict(scene, row) + mw_unfold(what);
		value[row] = what & mask;
		mw_number_store(view->base + view->at[row] + offset, width, value[row]);
	}
	return 0;
}

typedef uint64_t (*rows_loop)(const struct mw_class_view *view, const struct scene *scene,
			      unsigned int offset, unsigned int width, bool folded,
			      predictor predict);

/* One loop for each predictor. */
ALWAYS_INLINE uint64_t run_predictor(const struct mw_class_view *view,
				     const struct mw_column *column, unsigned int width,
				     rows_loop loop)
{
	struct mw_columns *columns = view->columns;
	unsigned int offset = column->offset;
	struct scene s = {
		.value = columns->value,
		.other = columns->other,
		.last_cpu = columns->last_cpu,
		.last_key = columns->last_key,
		.order = view->order,
		.time = columns->time,
		.prior = columns->prior,
		.rest = columns->rest,
	};

	switch (column->predictor) {
	case MW_PREDICT_LAST:
		return loop(view, &s, offset, width, true, predict_last);
	case MW_PREDICT_CPU:
		return loop(view, &s, offset, width, true, predict_cpu);
	case MW_PREDICT_CPU_LINEAR:
		return loop(view, &s, offset, width, true, predict_cpu_linear);
	case MW_PREDICT_KEY:
		return loop(view, &s, offset, width, true, predict_key);
	case MW_PREDICT_TIME:
		return loop(view, &s, offset, width, true, predict_time);
	case MW_PREDICT_BEGIN:
		return loop(view, &s, offset, width, true, predict_begin);
	case MW_PREDICT_REST:
		return loop(view, &s, offset, width, true, predict_rest);
	case MW_PREDICT_SCALE:
		return loop(view, &s, offset, width, true, predict_scale);
	default:
		return loop(view, &s, offset, width, false, predict_nothing);
	}
}

/* The same for each width: most columns have 8 or 4 bytes. */
ALWAYS_INLINE uint64_t run_column(const struct mw_class_view *view, const struct mw_column *column,
				  rows_loop loop)
{
	if (column->width == 8)
		return run_predictor(view, column, 8, loop);
	if (column->width == 4)
		return run_predictor(view, column, 4, loop);
	return run_predictor(view, column, column->width, loop);
}

uint64_t mw_predict_encode(const struct mw_class_view *view, unsigned int number)
{
	const struct mw_column *column = &view->class->column[number];
	uint64_t all;

	prepare_column(view, column);
	all = run_column(view, column, encode_rows);
	keep_column(view, number);
	return all;
}

void mw_predict_decode(const struct mw_class_view *view, unsigned int number)
{
	const struct mw_column *column = &view->class->column[number];

	prepare_column(view, column);
	run_column(view, column, decode_rows);
	keep_column(view, number);
}
