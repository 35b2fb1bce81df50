/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The accesses that go into the replay of a recorded trace: those of its process, from the files
 * beside it, in the order of time.
 *
 * The address space of the trace begins with the trace and ends when the process executes another
 * program: what is before and behind that is left out. The process is known by its number in the
 * namespace of the recorder.
 *
 * A trace that is still written is replayed up to a horizon, and accesses behind it are kept for
 * the next time.
 */
#ifndef MW_STALE_CHARGES_H
#define MW_STALE_CHARGES_H

#include "heap/strings.h"
#include "stale/access-file.h"
#include "stale/event-stream.h"
#include "stale/sorter.h"

/* Places of accesses have numbers behind those of stacks. */
#define MW_CHARGES_PLACE_FIRST MW_EVENT_SITES_MAX
#define MW_CHARGES_PLACES_MAX  (1U << 18)

/**
 * struct mw_charges - the accesses; zero has none
 * @ctx: context, not owned
 * @place: for the sorter
 * @files: owned
 * @nr_files, @files_capacity: number of files, and room for as many
 * @reading: the file that is being read
 * @begin_ns: when the trace begins
 * @end_ns: when the process has executed another program
 * @horizon_ns: later accesses are kept in @kept
 * @sorter: accesses up to the horizon
 * @sorting: the sorter is in use
 * @has_next, @next: the first access that was not taken
 * @kept: owned
 * @nr_kept, @kept_capacity: number of accesses, and room for as many
 * @places: addresses of instructions, as 8 bytes; number 0 stands for the kernel
 * @sequence: of the next access
 */
struct mw_charges {
	struct memwatch_ctx *ctx;
	struct mw_sorter_place place;
	struct mw_access_file *files;
	uint32_t nr_files, files_capacity, reading;
	uint64_t begin_ns, end_ns, horizon_ns;
	struct mw_sorter sorter;
	bool sorting, has_next;
	struct mw_event next;
	struct mw_event *kept;
	size_t nr_kept, kept_capacity;
	struct mw_strings places;
	uint64_t sequence;
};

/* @begin_ns: of the trace. Returns 0 or -ENOMEM; the caller calls mw_charges_uninit() anyway. */
int mw_charges_init(struct mw_charges *charges, struct memwatch_ctx *ctx,
		    const struct mw_sorter_place *place, uint64_t begin_ns);
void mw_charges_uninit(struct mw_charges *charges);

/*
 * Adds a file of a recorder of the boot @boot_id, which is owned from now on. One of another boot
 * has no accesses. Returns 0 or an error of mw_access_file_init().
 */
int mw_charges_add(struct mw_charges *charges, int fd, uint32_t pid, const uint8_t boot_id[16]);

/* Begins to read what was written since, up to @horizon_ns. */
void mw_charges_begin(struct mw_charges *charges, uint64_t horizon_ns);

/* Reads a part of it. Returns 1; 0, this was all; -ENOMEM; or any errno of read() and write(). */
int mw_charges_load(struct mw_charges *charges);

/* Takes the next access before @time_ns. Returns 1, 0 or any errno of read(). */
int mw_charges_next(struct mw_charges *charges, uint64_t time_ns, struct mw_event *ret);

/* The address of the instruction of a place; 0: the kernel. */
uint64_t mw_charges_ip(const struct mw_charges *charges, uint32_t place);

#endif /* MW_STALE_CHARGES_H */
