// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The format of the state file: a header, then for each process its key, its state and,
 * if it has one, its history, as they are in the maps; then the number of classes of memory
 * of cgroups, and each of them with its path and, if it has one, its history. The file is
 * valid for one boot, because start times are, and for one size of the structures, which
 * have reserved bytes for what comes later. One that ends after the processes is from
 * before cgroups were kept. It is read twice: nothing is loaded unless all of it is valid.
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

#define MAGIC	     0x35776f72674d4dULL /* "MMgrow5" */
#define MAGIC_COMMON 6			 /* bytes that all versions have in common */

/* The longest path of a cgroup, with the zeros at its end. */
#define PATH_ROOM 4096

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

/* What comes before the classes of memory of cgroups. */
struct section {
	uint64_t count;
	uint64_t class_size;
};

static uint64_t add_checksum(uint64_t sum, const void *data, size_t size)
{
	uint64_t word;

	_Static_assert(sizeof(struct entry) % 8 == 0, "entries consist of words");
	_Static_assert(sizeof(struct mw_growth_history) % 8 == 0, "histories consist of words");
	_Static_assert(sizeof(struct mw_state_class) % 8 == 0, "classes consist of words");
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

/* Size and contents are those of whole words. */
static void put_words(struct mw_state_writer *writer, const void *data, size_t size)
{
	fwrite(data, size, 1, writer->file);
	writer->sum = add_checksum(writer->sum, data, size);
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
	put_words(writer, &entry, sizeof(entry));
	if (history)
		put_words(writer, history, sizeof(*history));
	writer->count++;
}

void mw_state_writer_begin_classes(struct mw_state_writer *writer, uint64_t count)
{
	const struct section section = { .count = count,
					 .class_size = sizeof(struct mw_state_class) };

	put_words(writer, &section, sizeof(section));
}

void mw_state_writer_put_class(struct mw_state_writer *writer, const struct mw_state_class *class,
			       const char *path, const struct mw_growth_history *history)
{
	struct mw_state_class entry = *class;
	char words[PATH_ROOM] = { 0 };

	snprintf(words, sizeof(words), "%s", path);
	entry.path_size = (uint32_t)(strlen(words) / 8 + 1) * 8;
	entry.has_history = history != NULL;
	put_words(writer, &entry, sizeof(entry));
	put_words(writer, words, entry.path_size);
	if (history)
		put_words(writer, history, sizeof(*history));
}

void mw_state_writer_put_groups(struct mw_state_writer *writer, const struct mw_groups *groups)
{
	mw_state_writer_begin_classes(writer, groups->nr_list);
	for (uint32_t i = 0; i < groups->nr_list; i++) {
		const struct mw_group_class *class = groups->list[i];
		struct mw_state_class saved;

		memset(&saved, 0, sizeof(saved));
		saved.kind = class->class;
		saved.level = class->level;
		saved.total_floor = class->group->total_floor;
		saved.base_ns = class->base_ns;
		saved.since_ns = class->since_ns;
		saved.state = class->state;
		mw_state_writer_put_class(writer, &saved, class->group->path, class->history);
	}
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
	bool has_history = process->growth.flags & MW_GROWTH_F_HISTORY &&
			   mw_bpf_growth_history(save->growth, key, &history);

	/* Not yet sampled since it was loaded: nobody knows whether it still runs. */
	if (process->round)
		mw_state_writer_put(&save->writer, key, process, has_history ? &history : NULL);
	return 0;
}

static int save_to_stream(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth,
			  const struct mw_groups *groups, int fd, const char *path)
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
	mw_state_writer_put_groups(&save.writer, groups);
	if (!err)
		err = mw_state_writer_end(ctx, &save.writer);
	if (fclose(file) && !err)
		err = -errno;
	return err ? mw_fail(ctx, err, "%s: cannot be written: %s", path, strerror(-err)) : 0;
}

int mw_state_file_save(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth,
		       const struct mw_groups *groups, const char *path)
{
	struct memwatch_file *file;
	int err = memwatch_file_create(ctx, path, &file);

	if (err)
		return err;
	err = save_to_stream(ctx, growth, groups, file->fd, path);
	if (!err)
		err = memwatch_file_commit(file, MEMWATCH_FILE_REPLACE);
	memwatch_file_close(file);
	return err;
}

/**
 * struct reading - a file that is being read
 * @file: the stream
 * @sum: checksum of what was read
 * @now_ns: the present time
 * @history: of what was read last
 */
struct reading {
	FILE *file;
	uint64_t sum, now_ns;
	struct mw_growth_history history;
};

/* Reads whole words. Returns NULL, or what is wrong. */
static const char *read_words(struct reading *r, void *data, size_t size)
{
	if (fread(data, size, 1, r->file) != 1)
		return "it is too short";
	r->sum = add_checksum(r->sum, data, size);
	return NULL;
}

static const char *read_history(struct reading *r, uint64_t has_history)
{
	if (has_history > 1)
		return "there is more than one history";
	return has_history ? read_words(r, &r->history, sizeof(r->history)) : NULL;
}

static const char *read_process(struct reading *r, struct entry *entry)
{
	const char *wrong = read_words(r, entry, sizeof(*entry));

	if (!wrong)
		wrong = read_history(r, entry->has_history);
	return wrong ? wrong
		     : mw_state_check(&entry->key, &entry->process,
				      entry->has_history ? &r->history : NULL, r->now_ns);
}

static const char *read_class(struct reading *r, struct mw_state_class *class, char *path)
{
	const char *wrong = read_words(r, class, sizeof(*class));

	if (wrong)
		return wrong;
	if (!class->path_size || class->path_size % 8 || class->path_size > PATH_ROOM)
		return "a path of a cgroup is not valid";
	wrong = read_words(r, path, class->path_size);
	if (!wrong && strnlen(path, class->path_size) / 8 + 1 != class->path_size / 8)
		wrong = "a path of a cgroup is not valid";
	if (!wrong)
		wrong = read_history(r, class->has_history);
	return wrong ? wrong
		     : mw_state_check_class(class, path, class->has_history ? &r->history : NULL,
					    r->now_ns);
}

/* Reads the classes, and passes them on unless @reader is NULL. Returns what it returns. */
static int read_classes(struct reading *r, const struct mw_state_reader *reader, const char **wrong)
{
	struct mw_state_class class;
	struct section section;
	char path[PATH_ROOM];
	int err = 0;

	*wrong = read_words(r, &section, sizeof(section));
	if (!*wrong && section.class_size != sizeof(class))
		*wrong = "its cgroups are of another version";
	for (uint64_t i = 0; !*wrong && !err && i < section.count; i++) {
		*wrong = read_class(r, &class, path);
		if (!*wrong && reader)
			err = reader->class(reader->userdata, &class, path,
					    class.has_history ? &r->history : NULL);
	}
	return err;
}

static bool is_at_end(FILE *file)
{
	int byte = getc(file);

	return byte == EOF || ungetc(byte, file) == EOF;
}

/* Reads all entries, and passes them on unless @reader is NULL. */
static int read_entries(struct memwatch_ctx *ctx, FILE *file, const char *name,
			const struct header *header, const struct mw_state_reader *reader)
{
	struct reading r = { .file = file, .sum = CHECKSUM_START };
	const char *wrong = NULL;
	struct timespec now;
	struct entry entry;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	r.now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (uint64_t i = 0; !wrong && !err && i < header->count; i++) {
		wrong = read_process(&r, &entry);
		/* No round has the number 0, so the first round samples the process. */
		entry.process.round = 0;
		/* What it touches is followed anew. */
		entry.process.growth.followed_min = 0;
		if (!wrong && reader)
			err = reader->process(reader->userdata, &entry.key, &entry.process,
					      entry.has_history ? &r.history : NULL);
	}
	if (!wrong && !err && !is_at_end(file))
		err = read_classes(&r, reader, &wrong);
	if (!wrong && !err && (r.sum != header->sum || !is_at_end(file)))
		wrong = "its checksum is wrong";
	return wrong ? mw_fail(ctx, -EBADMSG, "%s: is damaged: %s", name, wrong) : err;
}

int mw_state_file_read(struct memwatch_ctx *ctx, FILE *file, const char *name,
		       const struct mw_state_reader *reader)
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
	err = read_entries(ctx, file, name, &header, NULL);
	if (err)
		return err;
	if (fseek(file, sizeof(header), SEEK_SET))
		return mw_fail(ctx, -errno, "%s: %s", name, strerror(errno));
	return read_entries(ctx, file, name, &header, reader);
}

struct load {
	struct mw_bpf_growth *growth;
	struct mw_groups *groups;
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

static int load_class(void *userdata, const struct mw_state_class *class, const char *path,
		      const struct mw_growth_history *history)
{
	struct load *load = userdata;
	int err = mw_groups_restore(load->groups, class, path, history);

	return err < 0 ? err : 0;
}

int mw_state_file_load(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth,
		       struct mw_groups *groups, const char *path)
{
	struct load load = { .growth = growth, .groups = groups };
	const struct mw_state_reader reader = { load_process, load_class, &load };
	int fd, err;
	FILE *file;

	err = mw_safe_open_read(ctx, path, MW_SAFE_TRUSTED, &fd);
	if (err)
		return err;
	file = fdopen(fd, "r");
	if (!file) {
		err = mw_fail(ctx, -errno, "%s: %s", path, strerror(errno));
		close(fd);
		return err;
	}
	err = mw_state_file_read(ctx, file, path, &reader);
	fclose(file);
	return err ? err : load.count;
}
