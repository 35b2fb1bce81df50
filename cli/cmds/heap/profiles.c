// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profiles that a command reads, and the names of what is in them.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmds/heap/processes.h"
#include "common/message.h"
#include "common/parse.h"
#include "text/escape.h"

#define NOBODY 65534

const char *heap_text(const char *text, char *buf, size_t size)
{
	return mw_escape(text, buf, size);
}

/* Opens a profile, before the program gives up the permission to do so. */
static int open_profile(struct heap_profiles *profiles, const struct heap_choice *choice,
			const char *name, int *fd)
{
	uint64_t pid;
	int err;

	*fd = -1;
	if (mw_parse_uint(name, &pid) || pid > INT32_MAX) {
		*fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		return *fd < 0 ? mw_error_errno(-errno, name) : 0;
	}
	err = memwatch_heap_find(profiles->ctx, (uint32_t)pid, 0, fd);
	/* The memory first: the profile is quicker to read, so little changes in between. */
	if (!err && choice->rss)
		err = memwatch_heap_memory_new(profiles->ctx, (uint32_t)pid, &profiles->memory);
	return err ? heap_process_failed(profiles->ctx, err, name) : 0;
}

static bool is_root(void)
{
	return !geteuid() || !getuid();
}

int heap_profiles_run(int (*work)(void *data), void *data)
{
	int status, rc;
	pid_t pid;

	if (!is_root())
		return work(data);
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return mw_error_errno(-errno, "heap");
	if (!pid) {
		rc = mw_finish_stdout(work(data));
		fflush(NULL);
		_exit(rc);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return mw_error_errno(-errno, "heap");
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return mw_error(MW_EXIT_FAILED, "heap",
			"the process that reads the profile was killed by %s",
			strsignal(WTERMSIG(status)));
}

int heap_become_nobody(void)
{
	if (!is_root())
		return 0;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* The profile of another user must not make root ask a server. */
	return unsetenv("DEBUGINFOD_URLS") ? -errno : 0;
}

static int add_file(struct heap_profiles *profiles, int fd, const char *path)
{
	int number = memwatch_heap_add_fd(profiles->heap, fd, path);
	const char *why = memwatch_ctx_error(profiles->ctx);

	if (number >= 0)
		return number;
	switch (-number) {
	case ENOENT:
	case EISDIR:
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

/* A profile without symbols is still useful. */
static void find_symbols(struct heap_profiles *profiles, const struct heap_choice *choice)
{
	MEMWATCH_OPTS(memwatch_heap_symbol_opts, opts, .sysroot = choice->sysroot);

	if (memwatch_heap_symbolize(profiles->heap, &opts))
		mw_warn(profiles->cli, "%s", memwatch_ctx_error(profiles->ctx));
}

/* Reads the files that are open, the base last. Returns 0 or an exit code. */
static int read_files(struct heap_profiles *profiles, const int *fds, int count, char **files,
		      const char *base)
{
	for (int i = 0; i < count; i++) {
		int number = add_file(profiles, fds[i], files[i]);

		if (number < 0)
			return -number;
		profiles->count++;
	}
	if (base)
		profiles->base = add_file(profiles, fds[count], base);
	return base && profiles->base < 0 ? -profiles->base : 0;
}

int heap_profiles_open(struct heap_profiles *profiles, const struct mw_cli *cli,
		       const struct heap_choice *choice, int count, char **files)
{
	int *fds = calloc((size_t)count + 1, sizeof(*fds)), open_files = 0, err, rc;

	*profiles = (struct heap_profiles){ .cli = cli, .base = -1 };
	rc = fds ? mw_library_new(cli, &profiles->ctx) : mw_error_errno(-ENOMEM, "heap");
	for (; !rc && open_files < count + !!choice->diff; open_files++)
		rc = open_profile(profiles, choice,
				  open_files < count ? files[open_files] : choice->diff,
				  &fds[open_files]);
	if (!rc) {
		err = heap_become_nobody()
			      ?: memwatch_heap_new(profiles->ctx, NULL, &profiles->heap);
		rc = err ? mw_error_errno(err, "heap")
			 : read_files(profiles, fds, count, files, choice->diff);
	}
	while (open_files-- > 0)
		if (fds[open_files] >= 0)
			close(fds[open_files]);
	free(fds);
	if (!rc && !choice->no_symbols)
		find_symbols(profiles, choice);
	return rc;
}

void heap_profiles_close(struct heap_profiles *profiles)
{
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

	memwatch_heap_info(profiles->heap, 0, &info);
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
