// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Views of heap profiles: sums, trees, differences, and whether intervals hold what
 * they promise.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/heap.h>

#include "heap/estimate.h"
#include "heap/model.h"
#include "heap-kit.h"
#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

static struct memwatch_ctx *ctx;

static void add_text(struct memwatch_heap *heap, const char *text)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);

	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || lseek(fd, 0, SEEK_SET) ||
	    memwatch_heap_add_fd(heap, fd, "profile") < 0) {
		tap_note("%s", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	close(fd);
}

/* a (leaf) < b < c, and b < b < c; addresses are one higher than those of the calls */
#define STACKS                                                                                     \
	"heap profile: 0: 0 [0: 0] @ heapprofile\n"                                                \
	"1: 100 [1: 100] @ 0xb 0xc 0xd\n"                                                          \
	"2: 50 [2: 50] @ 0xc 0xc 0xd\n"

static void test_sums(void)
{
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;
	MEMWATCH_OPTS(memwatch_heap_row, row);

	add_text(heap, STACKS);
	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_FUNCTION, 0);
	memwatch_heap_view_get_row(view, 0, &row);
	tap_eq(row.frame->address, 0xa, "the largest flat value comes first");
	memwatch_heap_view_get_row(view, 1, &row);
	tap_eq(row.frame->address, 0xb, "the second largest flat value comes second");
	tap_eq(row.flat[0].value, 50, "flat is what the innermost function allocated");
	tap_eq(row.cum[0].value, 150, "a recursive function counts once in cum");
	memwatch_heap_view_get_row(view, 2, &row);
	tap_eq(row.cum[0].value, 150, "the root has all in cum");
	tap_eq(memwatch_heap_view_get_row(view, 3, &row), 0, "there are three functions");
	memwatch_heap_view_unref(view);

	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_FUNCTION, MEMWATCH_HEAP_CUM);
	memwatch_heap_view_get_row(view, 2, &row);
	tap_eq(row.frame->address, 0xa, "rows can be sorted by cum");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

static void test_tree(void)
{
	static const struct {
		uint64_t address;
		uint32_t depth;
		double cum;
	} expected[] = {
		{ 0xc, 0, 150 },
		{ 0xb, 1, 150 },
		{ 0xa, 2, 100 },
		{ 0xb, 2, 50 },
	};
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;
	MEMWATCH_OPTS(memwatch_heap_row, row);

	add_text(heap, STACKS);
	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_TREE, 0);
	for (uint64_t i = 0; i < 4; i++) {
		memwatch_heap_view_get_row(view, i, &row);
		tap_eq(row.frame->address, expected[i].address, "tree: call %d", (int)i);
		tap_eq(row.depth, expected[i].depth, "tree: depth of call %d", (int)i);
		tap_eq(row.cum[0].value, expected[i].cum, "tree: sum of call %d", (int)i);
	}
	tap_eq(memwatch_heap_view_get_row(view, 4, &row), 0, "the tree has no other calls");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

static void test_change(void)
{
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;
	MEMWATCH_OPTS(memwatch_heap_row, row);
	double p = 1 - exp(-0.1);

	add_text(heap, "heap_v2/1000\n@ 0xb\n t*: 1: 100 [0: 0]\n@ 0xc\n t*: 3: 300 [0: 0]\n");
	add_text(heap, "heap_v2/1000\n@ 0xb\n t*: 1: 100 [0: 0]\n@ 0xd\n t*: 1: 100 [0: 0]\n");
	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_SITE, MEMWATCH_HEAP_BASE);
	memwatch_heap_view_get_row(view, 0, &row);
	tap_eq(row.frame->address, 0xb, "the largest difference comes first");
	tap_ok(fabs(row.flat[0].value - 300 / p) < 1e-6, "a site that is new has all its bytes");
	memwatch_heap_view_get_row(view, 1, &row);
	tap_eq(row.frame->address, 0xc, "a site that is gone is there");
	tap_ok(fabs(row.flat[0].value + 100 / p) < 1e-6, "a site that is gone has lost its bytes");
	tap_ok(fabs(row.base_flat[0].value - 100 / p) < 1e-6, "a row has the value of the base");
	memwatch_heap_view_get_row(view, 2, &row);
	tap_eq(row.flat[0].value, 0, "a site that is the same has no difference");
	tap_ok(row.flat[0].high > 0, "without identities, equal values differ by chance");
	memwatch_heap_view_get_total(view, &row);
	tap_ok(fabs(row.flat[0].value - 200 / p) < 1e-6, "the total is the difference of totals");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

/* How often the interval holds the truth, when objects of all sizes are sampled. */
static unsigned int count_covered(uint64_t objects, double rate, unsigned int runs,
				  struct prng *random, double *bias)
{
	unsigned int covered = 0;
	double sum = 0, truth = 0;

	for (unsigned int run = 0; run < runs; run++) {
		struct mw_prof_sum number = { 0 }, bytes = { 0 };
		struct memwatch_heap_estimate e;

		truth = 0;
		for (uint64_t i = 0; i < objects; i++) {
			double size = 16 << i % 6;

			truth += size;
			if ((double)prng_next(random) / 0x1p64 < -expm1(-size / rate))
				mw_heap_unsample(1, size, rate, &number, &bytes);
		}
		e = mw_estimate_sum(bytes, true);
		covered += e.low <= truth && truth <= e.high;
		sum += e.value;
	}
	*bias = sum / runs / truth - 1;
	return covered;
}

static void test_intervals(void)
{
	/* about 5, 20 and 200 samples */
	static const double rates[] = { 68000, 17000, 1700 };
	struct prng random = { 20261122 };

	tap_note("seed %llu", (unsigned long long)random.state);
	for (int i = 0; i < 3; i++) {
		double bias;
		unsigned int covered = count_covered(2000, rates[i], 2000, &random, &bias);

		tap_note("rate %.0f: %u of 2000 intervals hold the truth, bias %.4f", rates[i],
			 covered, bias);
		tap_ok(covered >= 1860 && covered <= 1940,
		       "rate %.0f: 93 to 97 %% of the intervals hold the truth", rates[i]);
		tap_ok(fabs(bias) < 0.05, "rate %.0f: the estimate is unbiased", rates[i]);
	}
}

static void test_quantiles(void)
{
	static const struct {
		unsigned int df;
		double t;
	} table[] = { { 1, 12.706 }, { 2, 4.303 },  { 3, 3.182 },
		      { 5, 2.571 },  { 30, 2.042 }, { 1000, 1.962 } };

	tap_ok(fabs(mw_quantile_normal(0.975) - 1.959964) < 1e-6, "normal quantile");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		tap_ok(fabs(mw_quantile_t(0.975, table[i].df) - table[i].t) < 0.002,
		       "quantile of t with %u degrees of freedom", table[i].df);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_sums();
	test_tree();
	test_change();
	test_intervals();
	test_quantiles();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
