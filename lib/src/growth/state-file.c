// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The format of the state file: a header, then for each process its key, its state and,
 * if it has one, its history, as they are in the maps. The file is valid for one boot,
 * because start times are, and for one version of the structures: losing it costs no more
 * than some hours of history.
 */
#include "growth/state-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"

#define MAGIC 0x31776f72674d4dULL /* "MMgrow1" */

struct header {
	uint64_t magic;
	uint32_t process_size;
	uint32_t history_size;
	char boot[40];
};

struct entry {
	struct mw_growth_key key;
	struct mw_growth_process process;
	uint64_t has_history;
};

static int header_init(struct memwatch_ctx *ctx, struct header *header)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	memset(header, 0, sizeof(*header));
	header->magic = MAGIC;
	header->process_size = sizeof(struct mw_growth_process);
	header->history_size = sizeof(struct mw_growth_history);
	if (fd < 0)
		return mw_fail(ctx, -errno, "/proc/sys/kernel/random/boot_id: %s", strerror(errno));
	n = read(fd, header->boot, sizeof(header->boot) - 1);
	close(fd);
	return n > 0 ? 0 : mw_fail(ctx, -EIO, "/proc/sys/kernel/random/boot_id: cannot be read");
}

static void write_entries(struct mw_bpf_growth *growth, FILE *file)
{
	struct mw_growth_key *last = NULL;
	struct mw_growth_key previous;
	struct mw_growth_history history;
	struct entry entry;

	memset(&entry, 0, sizeof(entry));
	while (mw_bpf_growth_next(growth, last, &entry.key, &entry.process)) {
		entry.has_history = (uint64_t)mw_bpf_growth_history(growth, &entry.key, &history);
		fwrite(&entry, sizeof(entry), 1, file);
		if (entry.has_history)
			fwrite(&history, sizeof(history), 1, file);
		previous = entry.key;
		last = &previous;
	}
}

int mw_state_file_save(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path)
{
	struct header header;
	char *temporary;
	FILE *file;
	int err = header_init(ctx, &header);

	if (err)
		return err;
	if (asprintf(&temporary, "%s.new", path) < 0)
		return mw_fail_memory(ctx, path);
	file = fopen(temporary, "we");
	if (!file) {
		err = mw_fail(ctx, -errno, "%s: %s", temporary, strerror(errno));
		free(temporary);
		return err;
	}
	fwrite(&header, sizeof(header), 1, file);
	write_entries(growth, file);
	if (ferror(file) || fflush(file))
		err = mw_fail(ctx, -EIO, "%s: cannot be written: %s", temporary, strerror(errno));
	if (fclose(file) && !err)
		err = mw_fail(ctx, -errno, "%s: %s", temporary, strerror(errno));
	if (!err && rename(temporary, path))
		err = mw_fail(ctx, -errno, "%s: %s", path, strerror(errno));
	if (err)
		unlink(temporary);
	free(temporary);
	return err;
}

/*
 * Returns 1, 0 at the end, or -EBADMSG. What the BPF programs rely on is checked here,
 * because the file may be damaged.
 */
static int read_entry(FILE *file, struct entry *entry, struct mw_growth_history *history)
{
	size_t n = fread(entry, 1, sizeof(*entry), file);

	if (!n && feof(file))
		return 0;
	if (n != sizeof(*entry) || entry->has_history > 1 || !entry->key.tgid ||
	    entry->process.growth.points < 1 || entry->process.growth.points > MW_GROWTH_POINTS ||
	    entry->process.growth.last_ns < entry->process.growth.first_ns)
		return -EBADMSG;
	if (entry->has_history && fread(history, sizeof(*history), 1, file) != 1)
		return -EBADMSG;
	return 1;
}

static int load_entries(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, FILE *file,
			const char *path, int *count)
{
	struct mw_growth_history history;
	struct entry entry;
	int err;

	while ((err = read_entry(file, &entry, &history)) == 1) {
		/* No round has the number 0, so the first round samples the process. */
		entry.process.round = 0;
		err = mw_bpf_growth_put(growth, &entry.key, &entry.process,
					entry.has_history ? &history : NULL);
		if (err)
			return mw_fail(ctx, err,
				       "%s: holds more processes than the monitor can watch", path);
		++*count;
	}
	return err ? mw_fail(ctx, err, "%s: is damaged", path) : 0;
}

int mw_state_file_load(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path)
{
	struct header want, header;
	int err, count = 0;
	FILE *file;

	err = header_init(ctx, &want);
	if (err)
		return err;
	file = fopen(path, "re");
	if (!file)
		return mw_fail(ctx, -errno, "%s: %s", path, strerror(errno));
	if (fread(&header, sizeof(header), 1, file) != 1 || header.magic != want.magic)
		err = mw_fail(ctx, -EBADMSG, "%s: is not a state file of the growth monitor", path);
	else if (memcmp(&header, &want, sizeof(header)))
		err = mw_fail(ctx, -ESTALE,
			      "%s: is from another boot or another version of memwatch", path);
	else
		err = load_entries(ctx, growth, file, path, &count);
	fclose(file);
	return err ? err : count;
}
