// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The format of the state file: a header, then for each process its key, its state and,
 * if it has one, its history, as they are in the maps. The file is valid for one boot,
 * because start times are, and for one version of the structures: losing it costs no more
 * than some hours of history. It is read twice: nothing is loaded unless all of it is
 * valid.
 */
#include "growth/state-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/context.h"
#include "base/safe-file.h"
#include "growth/state-check.h"

#define MAGIC	     0x34776f72674d4dULL /* "MMgrow4" */
#define MAGIC_COMMON 6			 /* bytes that all versions have in common */

/* The checksum is FNV-1a over words of 64 bits: it finds damage, not forgery. */
#define CHECKSUM_START 0xcbf29ce484222325ULL
#define CHECKSUM_PRIME 0x100000001b3ULL

/**
 * struct header - the start of the file
 * @magic: MAGIC
 * @process_size: size of &struct mw_growth_process
 * @history_size: size of &struct mw_growth_history
 * @boot: boot id of the kernel
 * @count: number of processes
 * @sum: checksum of what follows
 */
struct header {
	uint64_t magic;
	uint32_t process_size;
	uint32_t history_size;
	char boot[40];
	uint64_t count;
	uint64_t sum;
};

struct entry {
	struct mw_growth_key key;
	struct mw_growth_process process;
	uint64_t has_history;
};

static uint64_t add_checksum(uint64_t sum, const void *data, size_t size)
{
	uint64_t word;

	_Static_assert(sizeof(struct entry) % 8 == 0, "entries consist of words");
	_Static_assert(sizeof(struct mw_growth_history) % 8 == 0, "histories consist of words");
	for (size_t at = 0; at < size; at += sizeof(word)) {
		memcpy(&word, (const char *)data + at, sizeof(word));
		sum = (sum ^ word) * CHECKSUM_PRIME;
		sum ^= sum >> 32;
	}
	return sum;
}

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

void mw_state_writer_begin(struct mw_state_writer *writer, FILE *file)
{
	struct header header = { 0 };

	*writer = (struct mw_state_writer){ .file = file, .sum = CHECKSUM_START };
	/* The real header comes last, because it has the number of processes. */
	fwrite(&header, sizeof(header), 1, file);
}

void mw_state_writer_put(struct mw_state_writer *writer, const struct mw_growth_key *key,
			 const struct mw_growth_process *process,
			 const struct mw_growth_history *history)
{
	struct entry entry;

	memset(&entry, 0, sizeof(entry));
	entry.key = *key;
	entry.process = *process;
	entry.has_history = history != NULL;
	fwrite(&entry, sizeof(entry), 1, writer->file);
	writer->sum = add_checksum(writer->sum, &entry, sizeof(entry));
	if (history) {
		fwrite(history, sizeof(*history), 1, writer->file);
		writer->sum = add_checksum(writer->sum, history, sizeof(*history));
	}
	writer->count++;
}

int mw_state_writer_end(struct memwatch_ctx *ctx, struct mw_state_writer *writer)
{
	struct header header;
	int err = header_init(ctx, &header);

	if (err)
		return err;
	header.count = writer->count;
	header.sum = writer->sum;
	if (fseek(writer->file, 0, SEEK_SET))
		return -errno;
	fwrite(&header, sizeof(header), 1, writer->file);
	return ferror(writer->file) || fflush(writer->file) ? -EIO : 0;
}

struct save {
	struct mw_bpf_growth *growth;
	struct mw_state_writer writer;
};

static int save_process(void *userdata, const void *key, const void *value)
{
	const struct mw_growth_process *process = value;
	struct save *save = userdata;
	struct mw_growth_history history;
	bool has_history = mw_bpf_growth_history(save->growth, key, &history);

	/* Not yet sampled since it was loaded: nobody knows whether it still runs. */
	if (process->round)
		mw_state_writer_put(&save->writer, key, process, has_history ? &history : NULL);
	return 0;
}

static int save_to_stream(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, int fd,
			  const char *path)
{
	struct save save = { .growth = growth };
	FILE *file;
	int err;

	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	file = fd < 0 ? NULL : fdopen(fd, "r+");
	if (!file) {
		err = mw_fail(ctx, -errno, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return err;
	}
	mw_state_writer_begin(&save.writer, file);
	err = mw_bpf_growth_each(growth, save_process, &save);
	if (!err)
		err = mw_state_writer_end(ctx, &save.writer);
	if (fclose(file) && !err)
		err = -errno;
	return err ? mw_fail(ctx, err, "%s: cannot be written: %s", path, strerror(-err)) : 0;
}

int mw_state_file_save(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path)
{
	struct memwatch_file *file;
	int err = memwatch_file_create(ctx, path, &file);

	if (err)
		return err;
	err = save_to_stream(ctx, growth, file->fd, path);
	if (!err)
		err = memwatch_file_commit(file, MEMWATCH_FILE_REPLACE);
	memwatch_file_close(file);
	return err;
}

/* Returns NULL, or what is wrong. */
static const char *read_entry(FILE *file, struct entry *entry, struct mw_growth_history *history,
			      uint64_t now_ns, uint64_t *sum)
{
	if (fread(entry, sizeof(*entry), 1, file) != 1)
		return "it is too short";
	*sum = add_checksum(*sum, entry, sizeof(*entry));
	if (entry->has_history > 1)
		return "a process has more than one history";
	if (entry->has_history) {
		if (fread(history, sizeof(*history), 1, file) != 1)
			return "it is too short";
		*sum = add_checksum(*sum, history, sizeof(*history));
	}
	return mw_state_check(&entry->key, &entry->process, entry->has_history ? history : NULL,
			      now_ns);
}

/* Reads all entries, and passes them to @fn unless it is NULL. */
static int read_entries(struct memwatch_ctx *ctx, FILE *file, const char *name,
			const struct header *header, mw_state_fn fn, void *userdata)
{
	uint64_t now_ns, sum = CHECKSUM_START;
	struct mw_growth_history history;
	const char *wrong = NULL;
	struct timespec now;
	struct entry entry;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (uint64_t i = 0; !wrong && !err && i < header->count; i++) {
		wrong = read_entry(file, &entry, &history, now_ns, &sum);
		/* No round has the number 0, so the first round samples the process. */
		entry.process.round = 0;
		if (!wrong && fn)
			err = fn(userdata, &entry.key, &entry.process,
				 entry.has_history ? &history : NULL);
	}
	if (!wrong && !err && (sum != header->sum || getc(file) != EOF))
		wrong = "its checksum is wrong";
	return wrong ? mw_fail(ctx, -EBADMSG, "%s: is damaged: %s", name, wrong) : err;
}

int mw_state_file_read(struct memwatch_ctx *ctx, FILE *file, const char *name, mw_state_fn fn,
		       void *userdata)
{
	struct header want, header;
	int err = header_init(ctx, &want);
	size_t got;

	if (err)
		return err;
	got = fread(&header, 1, sizeof(header), file);
	if (memcmp(&header, &want, got < MAGIC_COMMON ? got : MAGIC_COMMON))
		return mw_fail(ctx, -ENOMSG, "%s: is not a state file of the growth monitor", name);
	if (got != sizeof(header))
		return mw_fail(ctx, -EBADMSG, "%s: is damaged: it is too short", name);
	want.count = header.count;
	want.sum = header.sum;
	if (memcmp(&header, &want, sizeof(header)))
		return mw_fail(ctx, -ESTALE,
			       "%s: is from another boot or another version of memwatch", name);
	err = read_entries(ctx, file, name, &header, NULL, NULL);
	if (err)
		return err;
	if (fseek(file, sizeof(header), SEEK_SET))
		return mw_fail(ctx, -errno, "%s: %s", name, strerror(errno));
	return read_entries(ctx, file, name, &header, fn, userdata);
}

struct load {
	struct mw_bpf_growth *growth;
	int count;
};

/* The maps may be smaller than those of the monitor that wrote the file. */
static int load_process(void *userdata, const struct mw_growth_key *key,
			const struct mw_growth_process *process,
			const struct mw_growth_history *history)
{
	struct load *load = userdata;

	load->count += !mw_bpf_growth_put(load->growth, key, process, history);
	return 0;
}

int mw_state_file_load(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path)
{
	struct load load = { .growth = growth };
	int fd, err;
	FILE *file;

	mw_safe_remove_stale(path);
	err = mw_safe_open_read(ctx, path, MW_SAFE_TRUSTED, &fd);
	if (err)
		return err;
	file = fdopen(fd, "r");
	if (!file) {
		err = mw_fail(ctx, -errno, "%s: %s", path, strerror(errno));
		close(fd);
		return err;
	}
	err = mw_state_file_read(ctx, file, path, load_process, &load);
	fclose(file);
	return err ? err : load.count;
}
