// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Samples the cgroups and the machine, see survey.h. The program has read the cgroups; here they
 * get their names and their limits, and go to the detectors.
 */
#include "growth/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/context.h"
#include "base/timemath.h"
#include "growth/governor.h"
#include "growth/host.h"
#include "growth/members.h"
#include "growth/pages.h"

/* The state of a cgroup without processes is kept for this long: a pool may be empty meanwhile. */
#define GONE_NS (600 * MW_GROWTH_SECOND)

/* Type of the handle of a file in cgroupfs, which is its id (FILEID_KERNFS, Linux 5.5). */
#define HANDLE_TYPE 0xfe

static int tell_event(void *userdata, const struct mw_group_class *class, unsigned int event,
		      uint64_t now)
{
	struct mw_survey_event told = { .group = { .sz = sizeof(told.group) },
					.row = { .sz = sizeof(told.row) } };
	struct memwatch_record_growth *record = &told.record;
	struct mw_survey *survey = userdata;
	uint64_t eta_s;

	mw_groups_fill(class, &told.group, &told.row);
	eta_s = told.row.eta_ns / MW_GROWTH_SECOND;
	*record = (struct memwatch_record_growth){
		.h = { .time_ns = now, .type = MEMWATCH_RECORD_GROWTH, .size = sizeof(*record) },
		.start_time_ns = class->key,
		.what = event == MEMWATCH_GROWTH_ALERT	  ? MEMWATCH_GROWTH_ALERTED
			: event == MEMWATCH_GROWTH_CLEAR  ? MEMWATCH_GROWTH_CLEARED
			: event == MEMWATCH_GROWTH_NOTICE ? MEMWATCH_GROWTH_NOTICED
							  : MEMWATCH_GROWTH_SETTLED,
		.verdict = told.row.verdict,
		.confidence = told.row.confidence,
		.reason = told.row.reason,
		.limit = (__u8)told.row.limit,
		.eta_s = eta_s > UINT32_MAX ? UINT32_MAX : (uint32_t)eta_s,
		.signal_bytes = told.row.signal_bytes,
		.slope = told.row.slope,
	};
	memcpy(record->comm, told.row.comm, sizeof(record->comm) - 1);
	told.group.path = strdup(told.group.path);
	if (!told.group.path ||
	    mw_array_reserve(survey->events, survey->max_events, survey->nr_events + 1U)) {
		free((char *)told.group.path);
		return mw_fail_memory(survey->ctx, "growth of cgroups");
	}
	survey->events[survey->nr_events++] = told;
	return 0;
}

static void clear_events(struct mw_survey *survey)
{
	for (uint32_t i = 0; i < survey->nr_events; i++)
		free((char *)survey->events[i].group.path);
	survey->nr_events = survey->taken = 0;
}

bool mw_survey_have_events(const struct mw_survey *survey)
{
	return survey->taken < survey->nr_events;
}

const struct mw_survey_event *mw_survey_take(struct mw_survey *survey)
{
	return mw_survey_have_events(survey) ? &survey->events[survey->taken++] : NULL;
}

/* The mount point of the memory controller, of either version. Returns whether there is one. */
static bool find_mount(struct mw_survey *survey)
{
	static const char *const places[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };
	static const char *const files[] = { "memory.limit_in_bytes", "cgroup.controllers",
					     "cgroup.controllers" };
	char path[128];

	for (unsigned int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", places[i], files[i]);
		if (access(path, F_OK))
			continue;
		snprintf(survey->mount, sizeof(survey->mount), "%s", places[i]);
		survey->legacy = !i;
		survey->mount_fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (survey->mount_fd < 0)
			return false;
		survey->stat_fd = openat(survey->mount_fd, "memory.stat", O_RDONLY | O_CLOEXEC);
		return true;
	}
	return false;
}

static bool blame_process(void *userdata, const struct mw_group_class *class, uint64_t since_ns,
			  uint32_t least, struct mw_group_by *ret)
{
	struct mw_survey *survey = userdata;
	const struct mw_members members = {
		.ctx = survey->ctx,
		.processes = &survey->snapshot,
		.bpf = survey->processes,
		.path = class->group->path,
		.legacy = survey->legacy,
	};

	/* A class whose growth a process holds is never raised, so this comes again at each visit.
	 */
	if (survey->snapshot_ns != survey->groups.now) {
		survey->snapshot_ns = survey->groups.now;
		/* If memory runs out, the processes until then are looked at. */
		mw_snapshot_take(survey->ctx, &survey->snapshot, survey->processes);
	}
	return mw_members_find(&members, class->class, since_ns, least, ret);
}

int mw_survey_open(struct memwatch_ctx *ctx, struct mw_bpf_growth *processes,
		   struct mw_survey **ret)
{
	struct mw_survey *survey = calloc(1, sizeof(*survey));

	if (!survey)
		return mw_fail_memory(ctx, "growth of cgroups");
	survey->ctx = ctx;
	survey->processes = processes;
	survey->mount_fd = survey->stat_fd = -1;
	survey->groups = (struct mw_groups){
		.ctx = ctx,
		.blame = blame_process,
		.tell = tell_event,
		.userdata = survey,
	};
	mw_groups_init(&survey->groups);
	mw_index_init(&survey->by_id);
	/* Without cgroups, or if they cannot be read, the machine is watched alone. */
	if (find_mount(survey) && mw_bpf_groups_open(ctx, &survey->bpf))
		mw_log(ctx, MEMWATCH_LOG_WARNING, "cgroups are not watched: %s",
		       memwatch_ctx_error(ctx));
	*ret = survey;
	return 0;
}

void mw_survey_close(struct mw_survey *survey)
{
	if (!survey)
		return;
	mw_bpf_groups_close(survey->bpf);
	mw_groups_uninit(&survey->groups);
	mw_index_free(&survey->by_id);
	clear_events(survey);
	free(survey->events);
	free(survey->memory);
	free(survey->ids);
	free(survey->snapshot.items);
	if (survey->stat_fd >= 0)
		close(survey->stat_fd);
	if (survey->mount_fd >= 0)
		close(survey->mount_fd);
	free(survey);
}

/* The path of a cgroup below the mount point. Returns whether it exists. */
static bool find_path(const struct mw_survey *survey, uint64_t id, char *path, size_t size)
{
	struct {
		struct file_handle head;
		uint64_t id;
	} handle = { .head = { .handle_bytes = sizeof(id), .handle_type = HANDLE_TYPE } };
	size_t prefix = strlen(survey->mount);
	char link[32];
	ssize_t len;
	int fd;

	memcpy(handle.head.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(survey->mount_fd, &handle.head, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, size - 1);
	close(fd);
	if (len <= (ssize_t)prefix || strncmp(path, survey->mount, prefix) || path[prefix] != '/')
		return false;
	path[len] = '\0';
	memmove(path, path + prefix, (size_t)len - prefix + 1);
	return true;
}

/* The number of a cgroup in @ids, or MW_INDEX_NONE. */
static uint32_t find_id(const struct mw_survey *survey, uint64_t id)
{
	uint32_t at, number;

	mw_index_for_each (&survey->by_id, mw_index_hash(&survey->by_id, id, 0), &at, number)
		if (survey->ids[number].id == id)
			return number;
	return MW_INDEX_NONE;
}

static uint32_t add_id(struct mw_survey *survey, uint64_t id)
{
	char path[4096];
	struct mw_group *group;

	if (!find_path(survey, id, path, sizeof(path)))
		return MW_INDEX_NONE;
	group = mw_groups_get(&survey->groups, path);
	if (!group || mw_array_reserve(survey->ids, survey->max_ids, survey->nr_ids + 1U) ||
	    mw_array_reserve(survey->memory, survey->max_memory, survey->nr_ids + 1U) ||
	    mw_index_insert(&survey->by_id, mw_index_hash(&survey->by_id, id, 0), survey->nr_ids))
		return MW_INDEX_NONE;
	survey->ids[survey->nr_ids] = (struct mw_survey_id){ .id = id, .group = group };
	survey->memory[survey->nr_ids].round = 0;
	return survey->nr_ids++;
}

static int take_memory(void *userdata, const void *key, const void *value)
{
	const struct mw_group_memory *memory = value;
	const uint64_t id = *(const uint64_t *)key;
	struct mw_survey *survey = userdata;
	uint32_t number;

	if (memory->round != mw_bpf_groups_number(survey->bpf)) {
		mw_bpf_groups_delete(survey->bpf, id);
		return 0;
	}
	number = find_id(survey, id);
	if (number == MW_INDEX_NONE)
		number = add_id(survey, id);
	if (number != MW_INDEX_NONE)
		survey->memory[number] = *memory;
	mw_sums_add(&survey->sums, memory->lru, memory->anon + memory->shmem);
	return 0;
}

/*
 * Makes the kernel add up what its CPUs have counted, as any reader of memory.stat does. The kernel
 * does it every two seconds, but with a deferrable timer: on an idle CPU it may come much later.
 */
static void flush_sums(const struct mw_survey *survey)
{
	char byte;

	/* If it cannot be read, the sums are as old as the kernel leaves them. */
	(void)!pread(survey->stat_fd, &byte, 1, 0);
}

/* Says once that some cgroups are not watched. */
static void tell_full(struct mw_survey *survey)
{
	if (survey->told_full || !mw_bpf_groups_are_full(survey->bpf))
		return;
	survey->told_full = true;
	mw_log(survey->ctx, MEMWATCH_LOG_WARNING,
	       "more than %u cgroups have processes: the others are not watched", MW_GROUPS_MAX);
}

static int read_cgroups(struct mw_survey *survey, uint64_t swap_bytes)
{
	int err;

	flush_sums(survey);
	err = mw_bpf_groups_round(survey->bpf,
				  (uint32_t)(swap_bytes / (uint64_t)sysconf(_SC_PAGESIZE)));
	mw_sums_begin(&survey->sums);
	tell_full(survey);
	if (!err)
		err = mw_bpf_groups_each(survey->bpf, take_memory, survey);
	if (err || !mw_sums_compare(&survey->sums))
		return err;
	mw_log(survey->ctx, MEMWATCH_LOG_DEBUG,
	       "the sums of the cgroups have %llu pages, their LRU lists %llu",
	       (unsigned long long)survey->sums.pages, (unsigned long long)survey->sums.lru);
	mw_log(survey->ctx, MEMWATCH_LOG_WARNING,
	       "this kernel keeps the sums of cgroups in an unknown order: tmpfs, sockets and page "
	       "tables are not told apart");
	mw_bpf_groups_set_unsure(survey->bpf);
	return read_cgroups(survey, swap_bytes);
}

/* From pages of the machine to pages of the detectors. */
static uint32_t convert(uint64_t pages)
{
	return mw_pages_from_bytes(mw_mul_sat(pages, (uint64_t)sysconf(_SC_PAGESIZE)));
}

/* Sets the headroom to that of the nearest limit of the cgroup, those above, and the machine. */
static void find_headroom(const struct mw_survey *survey, uint32_t number,
			  const struct mw_group_sample *host, struct mw_group_sample *sample)
{
	struct mw_growth_room room;

	mw_growth_room_init(&room, MW_GROWTH_ROOM_ENDLESS);
	for (unsigned int depth = 0; depth < 64 && number != MW_INDEX_NONE; depth++) {
		const struct mw_group_memory *memory = &survey->memory[number];

		if (!memory->round)
			break;
		mw_growth_room_ascend(&room, &memory->room);
		number = memory->parent ? find_id(survey, memory->parent) : MW_INDEX_NONE;
	}
	sample->headroom = convert(mw_growth_room_pages(&room));
	sample->limit = room.limit;
	if (sample->headroom >= host->headroom) {
		sample->headroom = host->headroom;
		sample->limit = host->limit;
	}
}

static int feed_cgroups(struct mw_survey *survey, const struct mw_group_sample *host)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < survey->nr_ids; i++) {
		const struct mw_group_memory *memory = &survey->memory[i];
		struct mw_group_sample sample = { .time_ns = host->time_ns };

		if (!memory->round)
			continue;
		sample.pages[MEMWATCH_CLASS_ANON] = convert(memory->anon + memory->swap);
		sample.pages[MEMWATCH_CLASS_SHMEM] = convert(memory->shmem);
		sample.pages[MEMWATCH_CLASS_KERNEL] = convert(
			mw_sub_sat(memory->kernel, memory->slab + memory->pagetables));
		sample.pages[MEMWATCH_CLASS_SLAB] = convert(memory->slab);
		sample.pages[MEMWATCH_CLASS_SOCK] = convert(memory->sock);
		sample.pages[MEMWATCH_CLASS_PAGETABLES] = convert(memory->pagetables);
		find_headroom(survey, i, host, &sample);
		survey->ids[i].last_ns = host->time_ns;
		err = mw_groups_feed(&survey->groups, survey->ids[i].group, &sample);
	}
	return err;
}

/* Forgets the cgroups that are gone. */
static int drop_gone(struct mw_survey *survey, uint64_t now)
{
	uint64_t before = mw_sub_sat(now, GONE_NS);
	uint32_t kept = 0;

	mw_index_clear(&survey->by_id);
	for (uint32_t i = 0; i < survey->nr_ids; i++) {
		if (survey->ids[i].last_ns < before)
			continue;
		survey->memory[kept] = survey->memory[i];
		survey->ids[kept] = survey->ids[i];
		mw_index_insert(&survey->by_id,
				mw_index_hash(&survey->by_id, survey->ids[kept].id, 0), kept);
		kept++;
	}
	survey->nr_ids = kept;
	return mw_groups_drop(&survey->groups, before);
}

static bool has_gone(const struct mw_survey *survey, uint64_t now)
{
	for (uint32_t i = 0; i < survey->nr_ids; i++)
		if (survey->ids[i].last_ns < mw_sub_sat(now, GONE_NS))
			return true;
	return false;
}

static int visit_all(struct mw_survey *survey, uint64_t now)
{
	struct mw_group_sample host = { .time_ns = now };
	struct mw_group *machine;
	uint64_t swap_bytes;
	int err = mw_host_sample(survey->ctx, &host, &swap_bytes);

	if (err)
		return err;
	machine = mw_groups_get(&survey->groups, "/");
	err = machine ? mw_groups_feed(&survey->groups, machine, &host) : -ENOMEM;
	for (uint32_t i = 0; i < survey->nr_ids; i++)
		survey->memory[i].round = 0;
	if (!err && survey->bpf) {
		err = read_cgroups(survey, swap_bytes);
		if (!err && !survey->sums.failures)
			err = feed_cgroups(survey, &host);
	}
	if (!err)
		err = mw_groups_judge(&survey->groups);
	return !err && has_gone(survey, now) ? drop_gone(survey, now) : err;
}

int mw_survey_visit(struct mw_survey *survey, uint64_t now, uint64_t period_ns, uint32_t ppm)
{
	uint64_t before = mw_clock(CLOCK_THREAD_CPUTIME_ID), cost;
	int err;

	if (now < survey->next_ns)
		return 0;
	/* A caller that does not take them must not make the list grow. */
	clear_events(survey);
	err = visit_all(survey, now);
	cost = mw_sub_sat(mw_clock(CLOCK_THREAD_CPUTIME_ID), before);
	/* The first visit finds all names, which later ones know. */
	if (survey->next_ns)
		survey->cost_ns = survey->cost_ns ? survey->cost_ns - survey->cost_ns / 8 + cost / 8
						  : cost;
	survey->next_ns = now + mw_governor_visits(survey->cost_ns, period_ns, ppm);
	return err;
}

int mw_survey_sample(const struct mw_survey *survey, unsigned int index,
		     struct memwatch_growth_sample *ret)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample);
	const struct mw_group *group;
	const uint32_t *pages;
	int err;

	if (index >= survey->groups.nr)
		return 0;
	group = survey->groups.groups[index];
	pages = group->last.pages;
	sample.time_ns = group->last.time_ns;
	sample.cgroup = group->path;
	sample.anon_bytes = mw_bytes_from_pages(pages[MEMWATCH_CLASS_ANON]);
	sample.shmem_bytes = mw_bytes_from_pages(pages[MEMWATCH_CLASS_SHMEM]);
	sample.slab_bytes = mw_bytes_from_pages(pages[MEMWATCH_CLASS_SLAB]);
	sample.sock_bytes = mw_bytes_from_pages(pages[MEMWATCH_CLASS_SOCK]);
	sample.pagetables_bytes = mw_bytes_from_pages(pages[MEMWATCH_CLASS_PAGETABLES]);
	sample.kernel_bytes = mw_bytes_from_pages(pages[MEMWATCH_CLASS_KERNEL]) +
			      sample.slab_bytes + sample.pagetables_bytes;
	sample.limit_bytes = MEMWATCH_GROWTH_NONE;
	if (group->last.headroom != MW_GROWTH_NO_LIMIT)
		sample.limit_bytes = mw_bytes_from_pages(group->total) +
				     mw_bytes_from_pages(group->last.headroom);
	err = mw_opts_export(ret, &sample, sizeof(sample));
	return err ? err : 1;
}

int mw_survey_group_of(const struct mw_survey *survey, uint32_t tgid, uint64_t cgroup, char *path,
		       size_t size)
{
	uint32_t number = survey->legacy ? MW_INDEX_NONE : find_id(survey, cgroup);

	if (number == MW_INDEX_NONE)
		return mw_members_path(survey->ctx, survey->legacy, tgid, path, size);
	return (size_t)snprintf(path, size, "%s", survey->ids[number].group->path) < size;
}
