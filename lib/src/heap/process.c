// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profile of a running process: finding it, asking its profiler to start or stop, and
 * copying it.
 *
 * A process decides itself which files it maps and what they are called. Root opens the
 * mapping, not the path, because the path may lead to another file by now; and a request is
 * written only to a file that the process has mapped shared and writable, and could change
 * itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "heap/input.h"
#include "heap/live-file.h"
#include "heap/memwatch-profile.h"
#include "heap/process.h"
#include "heap/profile-format.h"
#include "base/context.h"
#include "base/file-io.h"
#include "base/text.h"
#include "base/timemath.h"

#define PROFILE_SUFFIX	".mwheap"
#define DELETED_SUFFIX	" (deleted)"
#define LARGEST_PROFILE (1ULL << 30)
#define WAIT_STEP_NS	10000000

/* "START-END rw-s OFFSET DEV INODE PATH" */
bool mw_process_mapping_parse(struct mw_text line, struct mw_process_mapping *ret)
{
	struct mw_text range, permissions, field;

	if (!mw_text_take(&line, ' ', &range) || !mw_text_take(&line, ' ', &permissions) ||
	    !mw_text_copy(range, ret->range, sizeof(ret->range)) ||
	    !mw_text_copy(permissions, ret->permissions, sizeof(ret->permissions)))
		return false;
	for (int i = 0; i < 3; i++) {
		if (!mw_text_take(&line, ' ', &field))
			return false;
		/* The number ends at the blank behind it. */
		if (!i)
			ret->offset = strtoull(field.at, NULL, 16);
	}
	while (line.len && *line.at == ' ') {
		line.at++;
		line.len--;
	}
	return mw_text_copy(line, ret->path, sizeof(ret->path));
}

size_t mw_process_mapping_path_len(const struct mw_process_mapping *mapping)
{
	size_t len = strlen(mapping->path), tail = strlen(DELETED_SUFFIX);

	return len > tail && !strcmp(mapping->path + len - tail, DELETED_SUFFIX) ? len - tail : len;
}

/*
 * The offset of a time namespace. The file has that of the children of the process, which are in
 * another namespace if the process has left its own for them.
 */
static int64_t clock_offset(struct memwatch_ctx *ctx, const char *process)
{
	int64_t seconds = 0, ns = 0;
	char path[64], text[256] = "", *full;
	const char *line;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/timens_offsets", process);
	if (mw_ctx_path(ctx, path, &full))
		return 0;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	free(full);
	/* Before Linux 5.6, there are no such namespaces. */
	if (fd < 0)
		return 0;
	if (mw_file_read_at(fd, text, sizeof(text) - 1, 0) < 0)
		text[0] = '\0';
	close(fd);
	line = strstr(text, "monotonic");
	if (line)
		sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns);
	/* The kernel allows less than 2^33 seconds. */
	if (seconds > INT64_MAX / 4000000000 || seconds < INT64_MIN / 4000000000)
		return 0;
	return seconds * (int64_t)MW_NSEC_PER_SEC + ns;
}

/* Whether the process is in the time namespace of its children. */
static bool clock_is_inherited(struct memwatch_ctx *ctx, const char *process)
{
	static const char *const names[] = { "time", "time_for_children" };
	char path[64], target[2][64] = { "", "" }, *full;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, names[i]);
		if (mw_ctx_path(ctx, path, &full))
			return false;
		if (readlink(full, target[i], sizeof(target[i]) - 1) < 0)
			target[i][0] = '\0';
		free(full);
	}
	return !strcmp(target[0], target[1]);
}

int64_t mw_process_clock_ahead(struct memwatch_ctx *ctx, uint32_t pid)
{
	char process[16];

	snprintf(process, sizeof(process), "%u", pid);
	if (!clock_is_inherited(ctx, process) || !clock_is_inherited(ctx, "self"))
		return 0;
	return clock_offset(ctx, process) - clock_offset(ctx, "self");
}

static bool is_profile(const struct mw_process_mapping *mapping, const void *unused)
{
	size_t len = mw_process_mapping_path_len(mapping);

	(void)unused;
	return !strcmp(mapping->permissions, "rw-s") && len > strlen(PROFILE_SUFFIX) &&
	       !strncmp(mapping->path + len - strlen(PROFILE_SUFFIX), PROFILE_SUFFIX,
			strlen(PROFILE_SUFFIX));
}

int mw_process_mapping_find(struct memwatch_ctx *ctx, uint32_t pid,
			    bool (*wanted)(const struct mw_process_mapping *mapping,
					   const void *data),
			    const void *data, struct mw_process_mapping *ret)
{
	struct mw_text rest, line;
	bool found = false;
	char path[64], *text;
	size_t len;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	err = mw_text_read_file(ctx, path, &text, &len);
	if (err == -ENOENT)
		return mw_fail(ctx, err, "there is no process %u", pid);
	if (err)
		return err;
	rest = (struct mw_text){ text, len };
	while (!found && mw_text_take(&rest, '\n', &line))
		found = mw_process_mapping_parse(line, ret) && wanted(ret, data);
	free(text);
	return found ? 0 : -ENODATA;
}

static int find_profile(struct memwatch_ctx *ctx, __u32 pid, struct mw_process_mapping *ret)
{
	int err = mw_process_mapping_find(ctx, pid, is_profile, NULL, ret);

	return err == -ENODATA ? mw_fail(ctx, err, "process %u has no heap profile", pid) : err;
}

int mw_process_mapping_open(struct memwatch_ctx *ctx, uint32_t pid,
			    const struct mw_process_mapping *mapping, bool writable)
{
	unsigned long long start, end;
	char *path = NULL, name[4200];
	int err, fd;

	if (sscanf(mapping->range, "%llx-%llx", &start, &end) != 2)
		return -EINVAL;
	/* Of programs at low addresses, maps has zeros in front that the names of files do not
	 * have.
	 */
	if (geteuid())
		snprintf(name, sizeof(name), "/proc/%u/root%s", pid, mapping->path);
	else
		snprintf(name, sizeof(name), "/proc/%u/map_files/%llx-%llx", pid, start, end);
	err = mw_ctx_path(ctx, name, &path);
	if (err)
		return err;
	fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK |
				(geteuid() ? O_NOFOLLOW : 0));
	err = fd < 0 ? -errno : fd;
	free(path);
	return err;
}

int memwatch_heap_is_profiled(struct memwatch_ctx *ctx, __u32 pid)
{
	struct mw_process_mapping mapping;
	int err = find_profile(ctx, pid, &mapping);

	return err == -ENODATA ? 0 : err ?: 1;
}

int memwatch_heap_find(struct memwatch_ctx *ctx, __u32 pid, int writable, int *ret)
{
	struct mw_process_mapping mapping;
	struct stat st;
	int fd, err = find_profile(ctx, pid, &mapping);

	if (err)
		return err;
	fd = mw_process_mapping_open(ctx, pid, &mapping, writable);
	if (fd < 0)
		return mw_fail(ctx, fd, "the heap profile of process %u: %s", pid, strerror(-fd));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return mw_fail(ctx, -ENODATA, "the heap profile of process %u is no file", pid);
	}
	*ret = fd;
	return 0;
}

static int read_header(struct memwatch_ctx *ctx, int fd, struct mw_heap_header *header)
{
	ssize_t n = pread(fd, header, sizeof(*header), 0);

	if (n < 0)
		return mw_fail(ctx, -errno, "heap profile: %s", strerror(errno));
	if (n != sizeof(*header) || memcmp(header->magic, MW_HEAP_MAGIC, 8) ||
	    header->version != MW_HEAP_VERSION || header->header_bytes < sizeof(*header))
		return mw_fail(ctx, -ENOMSG, "it is not a heap profile of this version");
	return 0;
}

static int write_at(struct memwatch_ctx *ctx, int fd, const void *value, size_t size, size_t at)
{
	int err = mw_file_write_at(fd, value, size, at);

	return err ? mw_fail(ctx, err, "heap profile: %s", strerror(-err)) : 0;
}

/* Of enum memwatch_heap_control. */
static const struct request_kind {
	bool is_trace;
	uint32_t wanted; /* enum mw_heap_control; NONE: there is no such request */
} request_kinds[] = {
	[MEMWATCH_HEAP_START] = { false, MW_HEAP_CONTROL_START },
	[MEMWATCH_HEAP_STOP] = { false, MW_HEAP_CONTROL_STOP },
	[MEMWATCH_HEAP_TRACE_START] = { true, MW_HEAP_CONTROL_START },
	[MEMWATCH_HEAP_TRACE_STOP] = { true, MW_HEAP_CONTROL_STOP },
};

static const struct request_kind *find_request(uint32_t control)
{
	return control < sizeof(request_kinds) / sizeof(request_kinds[0]) ? &request_kinds[control]
									  : &request_kinds[0];
}

/* Writes a word that differs from the one before, and returns it through @ret. */
static int write_request(struct memwatch_ctx *ctx, int fd, const struct request_kind *kind,
			 uint64_t rate_bytes, uint32_t *ret)
{
	struct mw_heap_header header;
	int err = read_header(ctx, fd, &header);
	uint32_t before;

	if (err)
		return err;
	before = kind->is_trace ? header.trace_control : header.control;
	*ret = ((before | MW_HEAP_CONTROL_MASK) + 1) | kind->wanted;
	/* The rate first: the process may look as soon as the request is there. */
	if (!kind->is_trace && kind->wanted == MW_HEAP_CONTROL_START)
		err = write_at(ctx, fd, &rate_bytes, sizeof(rate_bytes),
			       offsetof(struct mw_heap_header, control_rate));
	if (!err)
		err = write_at(ctx, fd, ret, sizeof(*ret),
			       kind->is_trace ? offsetof(struct mw_heap_header, trace_control)
					      : offsetof(struct mw_heap_header, control));
	return err;
}

static bool has_followed(const struct mw_heap_header *header, const struct request_kind *kind,
			 uint32_t word)
{
	if (kind->is_trace)
		return header->trace_control_seen == word;
	return header->control_seen == word &&
	       (header->state == MW_HEAP_STATE_ACTIVE) == (kind->wanted == MW_HEAP_CONTROL_START);
}

int memwatch_heap_request(struct memwatch_ctx *ctx, int fd, enum memwatch_heap_control control,
			  __u64 rate_bytes, __u64 timeout_ns)
{
	uint64_t deadline = mw_add_sat(mw_clock(CLOCK_MONOTONIC), timeout_ns);
	const struct timespec step = { .tv_nsec = WAIT_STEP_NS };
	const struct request_kind *kind = find_request(control);
	struct mw_heap_header header;
	uint32_t word;
	int err;

	if (kind->wanted == MW_HEAP_CONTROL_NONE)
		return mw_fail(ctx, -EINVAL, "heap profile: unknown request %d", (int)control);
	err = write_request(ctx, fd, kind, rate_bytes, &word);
	while (!err && timeout_ns) {
		err = read_header(ctx, fd, &header);
		if (err)
			return err;
		if (has_followed(&header, kind, word))
			return kind->is_trace && header.trace_error
				       ? mw_fail(ctx, -EIO, "the trace cannot be created: %s",
						 strerror((int)header.trace_error))
				       : 0;
		if (mw_clock(CLOCK_MONOTONIC) >= deadline)
			return mw_fail(ctx, -ETIMEDOUT, "the process has not allocated since");
		nanosleep(&step, NULL);
	}
	return err;
}

int memwatch_heap_snapshot(struct memwatch_ctx *ctx, int fd, int to)
{
	struct mw_input copy = { 0 };
	struct mw_heap_header header;
	int err = read_header(ctx, fd, &header);

	if (!err && lseek(fd, 0, SEEK_SET))
		err = mw_fail(ctx, -errno, "heap profile: %s", strerror(errno));
	if (!err)
		err = mw_input_read(ctx, fd, "heap profile", LARGEST_PROFILE, &copy);
	if (!err)
		err = mw_live_file_reread(ctx, fd, "heap profile", LARGEST_PROFILE, &copy);
	if (!err) {
		err = mw_file_write(to, copy.bytes, copy.len);
		if (err)
			mw_fail(ctx, err, "the copy: %s", strerror(-err));
	}
	mw_input_uninit(&copy);
	return err;
}
