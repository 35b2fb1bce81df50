// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading a trace and judging what it leaves.
 */
#include "stale/stale.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memwatch/stale-process.h>

#include "base/context.h"
#include "base/timemath.h"
#include "heap/model.h"

#define FENCE_DEFAULT	   3.0
#define SHARE_DEFAULT	   0.01
#define SORT_BYTES_DEFAULT (256ULL << 20)
#define BATCH_EVENTS	   4096U
#define STEP_BATCHES	   32U
#define FLAGS_KNOWN	   (MEMWATCH_STALE_WALL_TIME | MEMWATCH_STALE_ANY_GROWTH)

static int check_opts(struct memwatch_ctx *ctx, const struct memwatch_stale_opts *opts)
{
	if (opts->scheme > MEMWATCH_STALE_GLOBAL)
		return mw_fail(ctx, -EINVAL, "there is no scheme %u", opts->scheme);
	if (opts->flags & ~FLAGS_KNOWN)
		return mw_fail(ctx, -EINVAL, "unknown flags %#x", opts->flags & ~FLAGS_KNOWN);
	if (!isfinite(opts->fence) || opts->fence < 0)
		return mw_fail(ctx, -EINVAL, "the coefficient of the fence must not be negative");
	if (!isfinite(opts->share) || opts->share > 1)
		return mw_fail(ctx, -EINVAL, "the share of the memory must be at most 1");
	return 0;
}

int memwatch_stale_new(struct memwatch_ctx *ctx, const struct memwatch_stale_opts *opts,
		       struct memwatch_stale **ret)
{
	struct memwatch_stale_opts o;
	struct memwatch_stale *stale;
	int err = mw_opts_copy(ctx, &o, sizeof(o), opts);

	if (!err)
		err = check_opts(ctx, &o);
	if (err)
		return err;
	stale = calloc(1, sizeof(*stale));
	if (stale)
		stale->directory = strdup(o.directory ? o.directory : "/var/tmp");
	if (!stale || !stale->directory) {
		free(stale);
		return mw_fail_memory(ctx, "stale objects");
	}
	stale->ctx = memwatch_ctx_ref(ctx);
	stale->fd = -1;
	stale->sorting = (struct mw_sorter_place){
		.bytes = o.sort_bytes ? o.sort_bytes : SORT_BYTES_DEFAULT,
		.directory = stale->directory,
		.fd = o.sort_fd,
	};
	stale->rule = (struct mw_decision_rule){
		.scheme = o.scheme,
		.coefficient = o.fence > 0 ? o.fence : FENCE_DEFAULT,
		.share = o.share != 0 ? fmax(o.share, 0) : SHARE_DEFAULT,
		.any_growth = o.flags & MEMWATCH_STALE_ANY_GROWTH,
	};
	mw_sim_init(&stale->sim, !(o.flags & MEMWATCH_STALE_WALL_TIME));
	*ret = stale;
	return 0;
}

static void uninit_recorded(struct memwatch_stale *stale)
{
	mw_event_file_uninit(&stale->file);
	mw_charges_uninit(&stale->charges);
}

struct memwatch_stale *memwatch_stale_unref(struct memwatch_stale *stale)
{
	if (!stale)
		return NULL;
	if (stale->kind == MW_STALE_TEXT)
		mw_import_uninit(&stale->import);
	else if (stale->kind == MW_STALE_RECORDED)
		uninit_recorded(stale);
	mw_site_names_free(stale->names);
	free(stale->places.stacks);
	free(stale->batch);
	mw_decision_uninit(&stale->decision);
	mw_sim_uninit(&stale->sim);
	if (stale->fd >= 0)
		close(stale->fd);
	free(stale->sites);
	free(stale->objects);
	free(stale->directory);
	memwatch_ctx_unref(stale->ctx);
	free(stale);
	return NULL;
}

static int open_recorded(struct memwatch_stale *stale)
{
	int err;

	stale->kind = MW_STALE_RECORDED;
	stale->state = MW_STALE_LOADING;
	stale->batch = malloc(BATCH_EVENTS * sizeof(*stale->batch));
	err = mw_event_file_init(&stale->file, stale->ctx, stale->fd);
	memcpy(stale->comm, stale->file.header.comm, sizeof(stale->file.header.comm));
	if (!stale->batch || mw_charges_init(&stale->charges, stale->ctx, &stale->sorting,
					     stale->file.header.created_ns))
		return mw_fail_memory(stale->ctx, "reading the trace");
	mw_charges_begin(&stale->charges, UINT64_MAX);
	return err;
}

int mw_stale_open_fd(struct memwatch_stale *stale, int fd)
{
	stale->fd = fd;
	if (mw_event_file_is(fd))
		return open_recorded(stale);
	stale->state = MW_STALE_READING;
	stale->kind = MW_STALE_TEXT;
	return mw_import_init(&stale->import, stale->ctx, &stale->sim, fd, &stale->sorting);
}

int memwatch_stale_open_fd(struct memwatch_stale *stale, int fd)
{
	if (stale->state != MW_STALE_EMPTY)
		return mw_fail(stale->ctx, -EBUSY, "there is a trace already");
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return mw_fail(stale->ctx, -errno, "cannot be opened: %s", strerror(errno));
	return mw_stale_open_fd(stale, fd);
}

int memwatch_stale_open(struct memwatch_stale *stale, const char *path)
{
	int fd;

	if (stale->state != MW_STALE_EMPTY)
		return mw_fail(stale->ctx, -EBUSY, "there is a trace already");
	if (strcmp(path, "-"))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	else
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return mw_fail(stale->ctx, -errno, "cannot be opened: %s", strerror(errno));
	return mw_stale_open_fd(stale, fd);
}

int memwatch_stale_get_process(struct memwatch_ctx *ctx, int fd, struct memwatch_stale_process *ret)
{
	struct memwatch_stale_process process = { .sz = sizeof(process) };
	struct mw_trace_header header;
	int err;

	if (!mw_event_file_is(fd))
		return mw_fail(ctx, -ENOMSG, "it is no recorded trace");
	err = mw_event_file_header(ctx, fd, &header);
	if (err)
		return err;
	process.pid = header.pid;
	process.pid_namespace = header.pid_namespace;
	process.start_time_ticks = header.start_time_ticks;
	return mw_opts_export(ret, &process, sizeof(process));
}

int memwatch_stale_add_accesses_fd(struct memwatch_stale *stale, int fd)
{
	if (stale->kind != MW_STALE_RECORDED)
		return mw_fail(stale->ctx, -EINVAL, "it is no recorded trace");
	if (stale->state != MW_STALE_LOADING)
		return mw_fail(stale->ctx, -EBUSY, "the trace is being replayed already");
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return mw_fail(stale->ctx, -errno, "cannot be opened: %s", strerror(errno));
	return mw_charges_add(&stale->charges, fd, stale->file.header.pid,
			      stale->file.header.boot_id);
}

int memwatch_stale_resume(struct memwatch_stale *stale, __u64 until_ns)
{
	int err;

	if (stale->kind != MW_STALE_RECORDED)
		return mw_fail(stale->ctx, -EINVAL, "it is no recorded trace");
	if (stale->state == MW_STALE_READING)
		return mw_fail(stale->ctx, -EBUSY, "the trace is being replayed");
	err = mw_event_file_resume(&stale->file, stale->ctx, until_ns);
	if (err)
		return err;
	mw_charges_begin(&stale->charges, until_ns);
	stale->state = MW_STALE_LOADING;
	return 0;
}

static int fail_replay(struct memwatch_stale *stale, int err)
{
	if (err == -E2BIG)
		return mw_fail(stale->ctx, err, "there are more than %u sites", MW_SIM_SITES_MAX);
	return mw_fail_memory(stale->ctx, "replaying the trace");
}

/* Replays the accesses before @time_ns. */
static int replay_accesses(struct memwatch_stale *stale, uint64_t time_ns)
{
	struct mw_event access;
	int rc;

	while ((rc = mw_charges_next(&stale->charges, time_ns, &access)) == 1) {
		/* It may have been written later than the horizon of the last time allows. */
		access.time_ns = mw_max_u64(access.time_ns, stale->sim.time_ns);
		rc = mw_sim_feed(&stale->sim, &access);
		if (rc)
			return fail_replay(stale, rc);
	}
	return rc;
}

static int replay_batch(struct memwatch_stale *stale, uint32_t count)
{
	uint32_t done = 0;
	int err = 0;

	for (uint32_t i = 0; i < count; i++)
		stale->batch[i].time_ns = mw_max_u64(stale->batch[i].time_ns, stale->sim.time_ns);
	for (uint32_t i = 0; !err && i < count; i++) {
		uint64_t time_ns = stale->batch[i].time_ns;

		if (!stale->charges.has_next || stale->charges.next.time_ns >= time_ns)
			continue;
		err = mw_sim_feed_all(&stale->sim, stale->batch + done, i - done);
		if (err)
			return fail_replay(stale, err);
		err = replay_accesses(stale, time_ns);
		done = i;
	}
	if (err)
		return err;
	err = mw_sim_feed_all(&stale->sim, stale->batch + done, count - done);
	return err ? fail_replay(stale, err) : 0;
}

/* Returns 1, 0 at the end, or an error with a message. */
static int replay_events(struct memwatch_stale *stale)
{
	for (unsigned int i = 0; i < STEP_BATCHES; i++) {
		int n = mw_event_file_next(&stale->file, stale->batch, BATCH_EVENTS), err;

		if (n < 0)
			return mw_fail(stale->ctx, n, "cannot be read: %s", strerror(-n));
		if (!n)
			return replay_accesses(stale, UINT64_MAX);
		err = replay_batch(stale, (uint32_t)n);
		if (err)
			return err;
	}
	return 1;
}

int memwatch_stale_step(struct memwatch_stale *stale)
{
	int rc;

	switch (stale->state) {
	case MW_STALE_EMPTY:
		return mw_fail(stale->ctx, -EINVAL, "there is no trace");
	case MW_STALE_LOADING:
		rc = mw_charges_load(&stale->charges);
		if (!rc)
			stale->state = MW_STALE_READING;
		return rc < 0 ? rc : 1;
	case MW_STALE_READING:
		rc = stale->kind == MW_STALE_TEXT ? mw_import_step(&stale->import)
						  : replay_events(stale);
		if (!rc)
			stale->state = MW_STALE_READ;
		return rc;
	default:
		return 0;
	}
}

int memwatch_stale_get_progress(const struct memwatch_stale *stale,
				struct memwatch_stale_progress *ret)
{
	struct memwatch_stale_progress progress = { .sz = sizeof(progress) };
	uint64_t done = 0, all = 0;

	if (stale->kind == MW_STALE_TEXT) {
		mw_import_progress(&stale->import, &done, &all);
	} else if (stale->kind == MW_STALE_RECORDED) {
		done = stale->file.done;
		all = stale->file.nr_chunks;
	}
	progress.done = done;
	progress.all = all;
	return mw_opts_export(ret, &progress, sizeof(progress));
}

static int check_profile(const struct memwatch_stale *stale, const struct memwatch_heap *heap)
{
	if (stale->kind != MW_STALE_RECORDED)
		return mw_fail(stale->ctx, -EINVAL, "the trace has names itself");
	if (!heap->nr_profiles || heap->damaged ||
	    heap->profiles[0].info.format != MEMWATCH_HEAP_MEMWATCH ||
	    heap->profiles[0].info.pid != stale->file.header.pid)
		return mw_fail(stale->ctx, -EINVAL, "the profile is not that of the process");
	return 0;
}

int memwatch_stale_add_places(struct memwatch_stale *stale, struct memwatch_heap *heap)
{
	int err = check_profile(stale, heap);

	if (err)
		return err;
	free(stale->places.stacks);
	if (mw_place_stacks_add(&stale->places, heap, &stale->charges))
		return mw_fail_memory(stale->ctx, "the names of places");
	return 0;
}

int memwatch_stale_name_sites(struct memwatch_stale *stale, const struct memwatch_heap *heap)
{
	struct mw_site_names *names;
	int err = check_profile(stale, heap);

	if (err)
		return err;
	if (mw_site_names_new(heap, &stale->places, &names))
		return mw_fail_memory(stale->ctx, "the names of sites");
	mw_site_names_free(stale->names);
	stale->names = names;
	return 0;
}

bool mw_stale_is_leaked(const struct memwatch_stale *stale, const struct mw_object *object)
{
	const struct mw_site_decision *site = &stale->decision.sites[object->site];

	return site->leak && (double)(stale->sim.now - object->last) > site->threshold;
}

static int compare_sites(const void *a, const void *b, void *data)
{
	const struct memwatch_stale *stale = data;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct mw_site_decision *x = &stale->decision.sites[i];
	const struct mw_site_decision *y = &stale->decision.sites[j];
	uint64_t live_x = stale->sim.sites[i].live_bytes, live_y = stale->sim.sites[j].live_bytes;

	if (x->leak != y->leak)
		return x->leak ? -1 : 1;
	if (x->stale_bytes != y->stale_bytes)
		return x->stale_bytes > y->stale_bytes ? -1 : 1;
	if (live_x != live_y)
		return live_x > live_y ? -1 : 1;
	return i < j ? -1 : 1;
}

static int compare_objects(const void *a, const void *b, void *data)
{
	const struct memwatch_stale *stale = data;
	const struct mw_object *x = mw_objects_at(&stale->sim.objects, *(const uint32_t *)a);
	const struct mw_object *y = mw_objects_at(&stale->sim.objects, *(const uint32_t *)b);
	bool leak_x = mw_stale_is_leaked(stale, x), leak_y = mw_stale_is_leaked(stale, y);

	if (leak_x != leak_y)
		return leak_x ? -1 : 1;
	if (x->last != y->last)
		return x->last < y->last ? -1 : 1;
	return x->start < y->start ? -1 : 1;
}

static void list_objects(struct memwatch_stale *stale)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < stale->sim.objects.used; i++) {
		const struct mw_object *object = mw_objects_at(&stale->sim.objects, i);

		if (object->site == MW_OBJECT_NONE)
			continue;
		stale->objects[count++] = i;
		if (mw_stale_is_leaked(stale, object)) {
			stale->leaked_objects++;
			stale->leaked_bytes += object->size;
		}
	}
	qsort_r(stale->objects, count, sizeof(*stale->objects), compare_objects, stale);
}

/* A trace that was resumed has an older one. */
static void forget_decision(struct memwatch_stale *stale)
{
	mw_decision_uninit(&stale->decision);
	free(stale->sites);
	free(stale->objects);
	stale->sites = stale->objects = NULL;
	stale->leaked_objects = stale->leaked_bytes = 0;
}

int memwatch_stale_judge(struct memwatch_stale *stale)
{
	struct mw_sim *sim = &stale->sim;

	if (stale->state != MW_STALE_READ)
		return mw_fail(stale->ctx, -EINVAL, "the trace was not read to its end");
	forget_decision(stale);
	stale->sites = malloc((sim->nr_sites + 1UL) * sizeof(*stale->sites));
	stale->objects = malloc((sim->objects.live + 1UL) * sizeof(*stale->objects));
	if (!stale->sites || !stale->objects ||
	    mw_decision_make(&stale->decision, sim, &stale->rule))
		return mw_fail_memory(stale->ctx, "judging the trace");
	for (uint32_t i = 0; i < sim->nr_sites; i++) {
		stale->sites[i] = i;
		mw_places_sort(&sim->sites[i].access);
		mw_places_sort(&sim->sites[i].frees);
	}
	qsort_r(stale->sites, sim->nr_sites, sizeof(*stale->sites), compare_sites, stale);
	for (uint32_t i = 0; i < sim->nr_sites; i++)
		stale->decision.sites[stale->sites[i]].shown = i;
	list_objects(stale);
	stale->state = MW_STALE_JUDGED;
	return 0;
}
