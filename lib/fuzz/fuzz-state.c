// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the checks of a state file. The first byte of the input says where the rest comes
 * in, because boot ids and checksums are not found by guessing:
 *
 *	'F'	a file
 *	'S'	keys, states and histories, one after another
 *
 * A state that passes is used as the monitor uses it: its row is computed, and samples are
 * fed to it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/growth.h>

#include "growth/row.h"
#include "growth/state-check.h"
#include "growth/state-file.h"
#include "fuzz.h"

struct state {
	struct mw_growth_key key;
	struct mw_growth_process process;
	struct mw_growth_history history;
};

static int use_state(void *userdata, const struct mw_growth_key *key,
		     const struct mw_growth_process *process,
		     const struct mw_growth_history *history)
{
	struct memwatch_growth_row row = { .sz = sizeof(row) };
	struct mw_growth_history changed;
	struct mw_growth g = process->growth;
	struct mw_growth_sample sample = {
		.time_ns = g.last_ns,
		.anon = g.signal,
		.headroom = g.headroom,
	};

	(void)userdata;
	(void)key;
	if (history)
		changed = *history;
	mw_growth_row_fill(&row, &g, history);
	if (row.confidence > 100 || row.verdict > MEMWATCH_GROWTH_LEAK)
		abort();
	for (int i = 0; i < 40; i++) {
		sample.time_ns += 7 * MW_GROWTH_SECOND << (i % 8);
		sample.anon = mw_growth_add_sat(sample.anon, i % 5 * 100);
		mw_growth_feed(&g, history ? &changed : NULL, &sample);
		mw_growth_row_fill(&row, &g, history ? &changed : NULL);
	}
	return 0;
}

static int use_class(void *userdata, const struct mw_state_class *class, const char *path,
		     const struct mw_growth_history *history)
{
	const struct mw_growth_key key = { .tgid = 1 };
	const struct mw_growth_process process = { .growth = class->state };

	if (path[0] != '/')
		abort();
	return use_state(userdata, &key, &process, history);
}

static void fuzz_states(const uint8_t *data, size_t size)
{
	struct state state;

	for (; size >= sizeof(state); data += sizeof(state), size -= sizeof(state)) {
		const struct mw_growth_history *history = &state.history;

		memcpy(&state, data, sizeof(state));
		if (!(state.process.growth.flags & MW_GROWTH_F_HISTORY))
			history = NULL;
		/* A time of which the detectors can still add a few days. */
		if (!mw_state_check(&state.key, &state.process, history, 1ULL << 62))
			use_state(NULL, &state.key, &state.process, history);
	}
}

static void fuzz_file(const uint8_t *data, size_t size)
{
	const struct mw_state_reader reader = { use_state, use_class, NULL };
	struct memwatch_ctx *ctx = NULL;
	FILE *file;

	if (memwatch_ctx_new(NULL, &ctx))
		return;
	file = fmemopen((void *)data, size, "r");
	if (file) {
		mw_state_file_read(ctx, file, "fuzz", &reader);
		fclose(file);
	}
	memwatch_ctx_unref(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	if (data[0] == 'F')
		fuzz_file(data + 1, size - 1);
	else if (data[0] == 'S')
		fuzz_states(data + 1, size - 1);
	return 0;
}
