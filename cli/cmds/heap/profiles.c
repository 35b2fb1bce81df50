// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profiles that a command reads, and the names of what is in them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmds/heap/opener.h"
#include "cmds/heap/processes.h"
#include "common/child.h"
#include "common/interrupt.h"
#include "common/message.h"
#include "common/parse.h"

/*
 * The files as the user has named them, the base last, and who opens files for their owners. @order
 * has the number of the file of each profile.
 */
struct heap_open_files {
	int *fds;
	struct heap_owner *owners;
	char **names;
	int *order;
	int nr, count;
	struct heap_opener opener;
};

static int open_file(const char *name, int *fd)
{
	*fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return *fd < 0 ? mw_error_errno(-errno, name) : 0;
}

static int open_process(struct heap_profiles *profiles, const struct heap_choice *choice,
			const char *name, uint32_t pid, int *fd)
{
	int err = memwatch_heap_find(profiles->ctx, pid, 0, fd);

	/* The memory first: the profile is quicker to read, so little changes in between. */
	if (!err && choice->rss)
		err = memwatch_heap_memory_new(profiles->ctx, pid, &profiles->memory);
	return err ? heap_process_failed(profiles->ctx, err, name) : 0;
}

/* Opens a profile, before the program gives up the permission to do so. */
static int open_profile(struct heap_profiles *profiles, const struct heap_choice *choice,
			const char *name, int *fd, struct heap_owner *owner)
{
	struct stat st;
	uint64_t pid;
	int rc;

	*fd = -1;
	if (mw_parse_uint(name, &pid) || pid > INT32_MAX)
		pid = 0;
	rc = pid ? open_process(profiles, choice, name, (uint32_t)pid, fd) : open_file(name, fd);
	if (!rc && fstat(*fd, &st))
		rc = mw_error_errno(-errno, name);
	if (!rc)
		*owner = (struct heap_owner){ (uint32_t)pid, st.st_uid, st.st_gid };
	return rc;
}

static bool is_root(void)
{
	return !geteuid() || !getuid();
}

int heap_profiles_run(int (*work)(void *data), void *data)
{
	struct mw_child child = { 0 };
	int rc;

	if (!is_root())
		return work(data);
	fflush(NULL);
	child.pid = fork();
	if (child.pid < 0)
		return mw_error_errno(-errno, "heap");
	if (!child.pid) {
		rc = mw_finish_stdout(work(data));
		fflush(NULL);
		_exit(rc);
	}
	mw_child_pass_signals(&child);
	mw_child_wait(&child);
	if (WIFEXITED(child.status))
		return WEXITSTATUS(child.status);
	/* Ctrl-C, or nobody reads the output any more: end as a command without a child does. */
	switch (WTERMSIG(child.status)) {
	case SIGINT:
	case SIGQUIT:
	case SIGTERM:
	case SIGHUP:
	case SIGPIPE:
		mw_interrupt_end_by(WTERMSIG(child.status));
	}
	return mw_error(MW_EXIT_FAILED, "heap",
			"the process that reads the profile was killed by %s",
			strsignal(WTERMSIG(child.status)));
}

int heap_give_up_root(struct memwatch_ctx *ctx)
{
	int err;

	if (!is_root())
		return 0;
	err = memwatch_heap_confine(ctx);
	/* The profile of another user must not make root ask a server. */
	if (!err && unsetenv("DEBUGINFOD_URLS"))
		err = -errno;
	/* The process that waits for this one may be killed. A change of the user undoes this. */
	if (!err && prctl(PR_SET_PDEATHSIG, SIGKILL))
		err = -errno;
	return err;
}

static int add_file(struct heap_profiles *profiles, int fd, const char *path)
{
	int number = memwatch_heap_add_fd(profiles->heap, fd, path);
	const char *why = memwatch_ctx_error(profiles->ctx);

	if (number >= 0)
		return number;
	switch (-number) {
	case EISDIR:
		mw_error_errno(number, path);
		mw_hint("\"memwatchctl heap list DIR\" shows the profiles in a directory");
		return -MW_EXIT_FAILED;
	case ENOENT:
	case EACCES:
	case EPERM:
		return -mw_error_errno(number, path);
	case ENOMSG:
		mw_error(MW_EXIT_FAILED, path, "is not a heap profile");
		mw_hint("profiles of memwatch, pprof, jemalloc (heap_v2) and gperftools can be "
			"read");
		return -MW_EXIT_FAILED;
	case EBADMSG:
		return -mw_error(MW_EXIT_FAILED, path, "is damaged: %s", why);
	case EPROTO:
		return -mw_error(MW_EXIT_FAILED, path,
				 "was made by a newer version of memwatch: %s", why);
	default:
		return -mw_error(MW_EXIT_FAILED, path, "%s", why);
	}
}

static void warn_unread(const struct heap_profiles *profiles)
{
	const char *first = memwatch_heap_unread_module(profiles->heap, 0);
	unsigned int count = 0;

	while (memwatch_heap_unread_module(profiles->heap, count))
		count++;
	if (count == 1)
		mw_warn(profiles->cli,
			"%s cannot be read, or was replaced: its functions have no names", first);
	else if (count)
		mw_warn(profiles->cli,
			"%u programs and libraries cannot be read, or were replaced, such as %s: "
			"their functions have no names",
			count, first);
}

static int open_module(void *data, __u32 profile, const char *path)
{
	struct heap_open_files *files = data;

	return heap_opener_open(&files->opener, (__u32)files->order[profile], path);
}

/* A profile without symbols is still useful. */
static void find_symbols(struct heap_profiles *profiles, const struct heap_choice *choice,
			 struct heap_open_files *files)
{
	MEMWATCH_OPTS(memwatch_heap_symbol_opts, opts, .sysroot = choice->sysroot,
		      .open_module = files->opener.socket < 0 ? NULL : open_module, .data = files);
	int err = memwatch_heap_symbolize(profiles->heap, &opts);

	if (err)
		mw_warn(profiles->cli, "%s", memwatch_ctx_error(profiles->ctx));
	/* Without elfutils no file was read at all. */
	if (err != -ELIBACC)
		warn_unread(profiles);
}

/* Reads the files that are open, the base last. Returns 0 or an exit code. */
static int read_files(struct heap_profiles *profiles, const struct heap_choice *choice,
		      const struct heap_open_files *files)
{
	MEMWATCH_OPTS(memwatch_heap_opts, opts, .flags = choice->native ? MEMWATCH_HEAP_NATIVE : 0);
	int err = memwatch_heap_new(profiles->ctx, &opts, &profiles->heap);

	if (err)
		return mw_error_errno(err, "heap");
	for (int i = 0; i < files->count; i++) {
		int file = files->order[i];
		int number = add_file(profiles, files->fds[file], files->names[file]);

		if (number < 0)
			return -number;
		profiles->count++;
	}
	if (choice->diff)
		profiles->base = add_file(profiles, files->fds[files->count], choice->diff);
	return choice->diff && profiles->base < 0 ? -profiles->base : 0;
}

/* Forgets the profiles, so that their files can be read again. Returns 0 or an exit code. */
static int rewind_files(struct heap_profiles *profiles, const struct heap_open_files *files)
{
	profiles->heap = memwatch_heap_unref(profiles->heap);
	profiles->count = 0;
	for (int i = 0; i < files->nr; i++)
		if (lseek(files->fds[i], 0, SEEK_SET))
			return mw_error(MW_EXIT_FAILED, i < files->count ? files->names[i] : "heap",
					"cannot be read a second time: %s", strerror(errno));
	return 0;
}

/* Profiles of other programs do not say whose they are. */
static int check_one_process(const struct heap_profiles *profiles)
{
	MEMWATCH_OPTS(memwatch_heap_info, first);
	MEMWATCH_OPTS(memwatch_heap_info, info);

	memwatch_heap_get_info(profiles->heap, 0, &first);
	for (unsigned int i = 1; i < profiles->count; i++) {
		memwatch_heap_get_info(profiles->heap, i, &info);
		if (!first.pid || !info.pid)
			continue;
		/* The time is 0 before the first sample. */
		if (info.pid != first.pid ||
		    (first.start_ns && info.start_ns && info.start_ns != first.start_ns))
			return mw_error(MW_EXIT_USAGE, "heap report",
					"%s and %s are not snapshots of one process: they are of "
					"%u (%s) and %u (%s)",
					first.name, info.name, first.pid, first.comm, info.pid,
					info.comm);
	}
	return 0;
}

static uint64_t profile_time(const struct heap_profiles *profiles, int number)
{
	MEMWATCH_OPTS(memwatch_heap_info, info);

	memwatch_heap_get_info(profiles->heap, (unsigned int)number, &info);
	return info.end_ns;
}

/* Sorts the files, which were read in the order of the command line. Returns if that is another. */
static bool sort_by_time(const struct heap_profiles *profiles, struct heap_open_files *files)
{
	bool changed = false;

	for (int i = 1; i < files->count; i++) {
		uint64_t time_ns = profile_time(profiles, i);
		int at = i;

		for (; at > 0 && profile_time(profiles, files->order[at - 1]) > time_ns; at--)
			files->order[at] = files->order[at - 1];
		files->order[at] = i;
		changed |= at != i;
	}
	return changed;
}

/* Times are only known when the files were read, and then some were in the wrong order. */
static int order_snapshots(struct heap_profiles *profiles, const struct heap_choice *choice,
			   struct heap_open_files *files)
{
	int rc = check_one_process(profiles);

	if (rc || !sort_by_time(profiles, files))
		return rc;
	return rewind_files(profiles, files) ?: read_files(profiles, choice, files);
}

/* Opens the profiles, the base last. Returns 0 or an exit code. */
static int open_files(struct heap_profiles *profiles, const struct heap_choice *choice, int count,
		      char **files, struct heap_open_files *ret)
{
	int rc = 0;

	for (; !rc && ret->nr < count + !!choice->diff; ret->nr++)
		rc = open_profile(profiles, choice, ret->nr < count ? files[ret->nr] : choice->diff,
				  &ret->fds[ret->nr], &ret->owners[ret->nr]);
	return rc;
}

static void close_files(struct heap_open_files *files)
{
	if (!files)
		return;
	heap_opener_stop(&files->opener);
	while (files->nr-- > 0)
		if (files->fds[files->nr] >= 0)
			close(files->fds[files->nr]);
	free(files->fds);
	free(files->owners);
	free(files->order);
	free(files);
}

static struct heap_open_files *new_files(int count, char **names)
{
	struct heap_open_files *files = calloc(1, sizeof(*files));

	if (!files)
		return NULL;
	*files = (struct heap_open_files){
		.fds = calloc((size_t)count + 1, sizeof(*files->fds)),
		.owners = calloc((size_t)count + 1, sizeof(*files->owners)),
		.order = calloc((size_t)count + 1, sizeof(*files->order)),
		.names = names,
		.count = count,
		.opener = { -1 },
	};
	if (!files->fds || !files->owners || !files->order) {
		close_files(files);
		return NULL;
	}
	for (int i = 0; i <= count; i++)
		files->order[i] = i;
	return files;
}

/* Returns 0 or a negative errno. */
static int drop_privileges(struct heap_profiles *profiles, const struct heap_choice *choice,
			   struct heap_open_files *files)
{
	int err = is_root() ? heap_opener_start(&files->opener, profiles->ctx, choice->sysroot,
						files->owners, (uint32_t)files->nr)
			    : 0;

	return err ?: heap_give_up_root(profiles->ctx);
}

/* Reads what is open, and finds names. Returns 0 or an exit code. */
static int read_profiles(struct heap_profiles *profiles, const struct heap_choice *choice,
			 struct heap_open_files *files)
{
	int rc = read_files(profiles, choice, files);

	if (!rc && choice->snapshots)
		rc = order_snapshots(profiles, choice, files);
	if (!rc && choice->before_symbols)
		rc = choice->before_symbols(choice->data, profiles);
	if (!rc && !choice->no_symbols)
		find_symbols(profiles, choice, files);
	return rc;
}

int heap_profiles_open(struct heap_profiles *profiles, const struct mw_cli *cli,
		       const struct heap_choice *choice, int count, char **files)
{
	struct heap_open_files *open = new_files(count, files);
	int err, rc;

	*profiles = (struct heap_profiles){ .cli = cli, .base = -1 };
	rc = open ? mw_library_new(cli, &profiles->ctx) : mw_error_errno(-ENOMEM, "heap");
	if (!rc)
		rc = open_files(profiles, choice, count, files, open);
	if (!rc) {
		err = drop_privileges(profiles, choice, open);
		rc = err ? mw_error_errno(err, "heap") : read_profiles(profiles, choice, open);
	}
	if (choice->keep)
		profiles->kept = open;
	else
		close_files(open);
	return rc;
}

int heap_profiles_again(struct heap_profiles *profiles, const struct heap_choice *choice)
{
	return rewind_files(profiles, profiles->kept)
		       ?: read_profiles(profiles, choice, profiles->kept);
}

void heap_profiles_close(struct heap_profiles *profiles)
{
	close_files(profiles->kept);
	memwatch_heap_memory_unref(profiles->memory);
	memwatch_heap_unref(profiles->heap);
	memwatch_ctx_unref(profiles->ctx);
}

int heap_metric(const struct heap_profiles *profiles, const struct heap_choice *choice,
		const char *path, uint32_t *ret)
{
	static const uint32_t metrics[2][2] = {
		{ MEMWATCH_HEAP_LIVE_BYTES, MEMWATCH_HEAP_LIVE_OBJECTS },
		{ MEMWATCH_HEAP_ALLOCATED_BYTES, MEMWATCH_HEAP_ALLOCATED_OBJECTS },
	};
	MEMWATCH_OPTS(memwatch_heap_info, info);
	uint32_t wanted = metrics[choice->allocated][choice->objects];

	memwatch_heap_get_info(profiles->heap, 0, &info);
	/* What counts something else than memory, such as goroutines, has no bytes. */
	if (!(info.metrics & 1U << wanted) && info.metrics == 1U << MEMWATCH_HEAP_LIVE_OBJECTS &&
	    !choice->allocated)
		wanted = MEMWATCH_HEAP_LIVE_OBJECTS;
	*ret = wanted;
	if (info.metrics & 1U << wanted)
		return 0;
	return mw_error(MW_EXIT_NOTHING, path, "the profile has no %s %s",
			choice->allocated ? "allocated" : "live",
			choice->objects ? "objects" : "bytes");
}

int heap_view_failed(const struct heap_profiles *profiles, int err, const char *path)
{
	return mw_error(err == -ENODATA ? MW_EXIT_NOTHING : MW_EXIT_FAILED, path, "%s",
			memwatch_ctx_error(profiles->ctx));
}
