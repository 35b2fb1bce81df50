/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The call stacks that hold the growth of processes which have a heap profile, and the functions in
 * which other processes take their memory. An alert waits a short time for the answer. Whoever can
 * make processes that leak decides how many there are, so only few searches run at a time; an alert
 * for which there is no room does not wait.
 */
#ifndef MW_GROWTH_SUSPECTS_H
#define MW_GROWTH_SUSPECTS_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "output/json.h"

#define MW_SUSPECTS_MAX 4

/* How long an alert waits. */
#define MW_SUSPECTS_WAIT_NS 5000000000ULL

/* Copies of profiles, which may be large, are made of so many alerts. */
#define MW_SUSPECTS_COPIES_MAX 64

/* With neither @search nor @where it is free. */
struct mw_suspect {
	struct memwatch_heap_suspect *search; /* in the heap profile */
	struct memwatch_where *where;	      /* in sampled stacks */
	uint64_t end_ns;		      /* CLOCK_MONOTONIC */
	char copy[4096];		      /* path of the copy of the profile; "": none */
	struct memwatch_heap_suspect_info info;
	bool answered; /* the search has ended: what grows was found, or nothing grows */
	bool found;    /* what grows was found; in the profile, it is in @info */
};

/* The caller sets the first three, the rest is zero. */
struct mw_suspects {
	const struct mw_cli *cli;
	struct memwatch_ctx *ctx;
	const char *directory; /* for copies of the profiles; NULL: no copies */
	struct mw_suspect list[MW_SUSPECTS_MAX];
	unsigned int copies;
};

/*
 * Begins to search in the profile of the process of an alert, which has grown since @since_ns, or
 * without a profile in what @watch has sampled of its stacks. Of other events, only the latter.
 * Returns NULL if there is neither, or no room.
 */
struct mw_suspect *mw_suspects_add(struct mw_suspects *suspects, struct memwatch_watch *watch,
				   const struct memwatch_record_growth *record, uint64_t since_ns);

/* Returns whether the search has come to an end, with or without an answer. */
bool mw_suspect_is_done(struct mw_suspect *suspect, uint64_t now_ns);

/* Appends the answer to a sentence, or nothing. */
void mw_suspect_append(const struct mw_suspect *suspect, char *sentence, size_t size);

/* Writes the answer as the members "heap" and "where", objects or null. @suspect may be NULL. */
void mw_suspect_json(const struct mw_suspect *suspect, struct mw_json *json);

/* Makes room; the copy stays if it is complete. */
void mw_suspect_end(struct mw_suspect *suspect);

#endif
