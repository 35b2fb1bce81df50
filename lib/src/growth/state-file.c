// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The state file: a head, then for each process the key, the state, and the
 * history of those that have one, as they are in the maps. It is of one boot,
 * because start times are, and of one version, because nothing is lost with it
 * but hours. It is replaced by renaming, so a file is whole or absent.
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

struct head {
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

static int fill_head(struct memwatch_ctx *ctx, struct head *head)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	memset(head, 0, sizeof(*head));
	head->magic = MAGIC;
	head->process_size = sizeof(struct mw_growth_process);
	head->history_size = sizeof(struct mw_growth_history);
	if (fd < 0)
		return mw_fail(ctx, -errno, "boot_id: %s", strerror(errno));
	n = read(fd, head->boot, sizeof(head->boot) - 1);
	close(fd);
	return n > 0 ? 0 : mw_fail(ctx, -EIO, "boot_id: cannot be read");
}

static void write_all(struct mw_bpf_growth *growth, FILE *file)
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
	struct head head;
	char *temporary;
	FILE *file;
	int err = fill_head(ctx, &head);

	if (err)
		return err;
	if (asprintf(&temporary, "%s.new", path) < 0)
		return mw_fail(ctx, -ENOMEM, "out of memory");
	file = fopen(temporary, "we");
	if (!file) {
		err = mw_fail(ctx, -errno, "%s: %s", temporary, strerror(errno));
		free(temporary);
		return err;
	}
	fwrite(&head, sizeof(head), 1, file);
	write_all(growth, file);
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

/* 1, 0 at the end, -EBADMSG. A kernel program will work on this: nothing odd gets in. */
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
		/* No round is number 0: the first one will look at it. */
		entry.process.round = 0;
		err = mw_bpf_growth_put(growth, &entry.key, &entry.process,
					entry.has_history ? &history : NULL);
		if (err)
			return mw_fail(ctx, err, "%s: holds more processes than are watched", path);
		++*count;
	}
	return err ? mw_fail(ctx, err, "%s: is damaged", path) : 0;
}

int mw_state_file_load(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path)
{
	struct head want, head;
	int err, count = 0;
	FILE *file;

	err = fill_head(ctx, &want);
	if (err)
		return err;
	file = fopen(path, "re");
	if (!file)
		return mw_fail(ctx, -errno, "%s: %s", path, strerror(errno));
	if (fread(&head, sizeof(head), 1, file) != 1 || head.magic != want.magic)
		err = mw_fail(ctx, -EBADMSG, "%s: is not a state file of growth", path);
	else if (memcmp(&head, &want, sizeof(head)))
		err = mw_fail(ctx, -ESTALE, "%s: is of another boot or version", path);
	else
		err = load_entries(ctx, growth, file, path, &count);
	fclose(file);
	return err ? err : count;
}
