// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Creating a recording in a folder in which another user has prepared something.
 */
#include "recording-kit.h"

static char other[sizeof(path)];

static int create_with(uint32_t flags, struct memwatch_recording **ret)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = flags | NO_SYNC);

	return memwatch_recording_create(ctx, path, &no_info, &opts, ret);
}

/* Creates and closes a recording, and returns the error of creating it. */
static int create_once(uint32_t flags)
{
	struct memwatch_recording *recording = NULL;
	int err = create_with(flags, &recording);

	return err ? err : memwatch_recording_close(recording);
}

static off_t size_of(const char *file)
{
	struct stat st;

	return lstat(file, &st) ? -1 : st.st_size;
}

static mode_t kind_of(const char *file)
{
	struct stat st;

	return lstat(file, &st) ? 0 : st.st_mode & S_IFMT;
}

static int write_text(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0666);

	if (fd < 0 || write(fd, "precious", 8) != 8)
		abort();
	return fd;
}

static void test_links(void)
{
	close(write_text(other));
	if (symlink(other, path))
		abort();
	tap_eq(create_once(0), -EEXIST, "a symbolic link at the name is refused");
	tap_eq(create_once(MEMWATCH_RECORDING_OVERWRITE), 0,
	       "a symbolic link is replaced if that was asked for");
	tap_ok(kind_of(path) == S_IFREG, "a recording in place of a symbolic link is a file");
	tap_eq(size_of(other), 8, "the file that the link pointed to is unchanged");
	unlink(path);

	if (symlink("absent", path))
		abort();
	tap_eq(create_once(0), -EEXIST, "a symbolic link to nothing is refused");
	unlink(path);

	if (link(other, path))
		abort();
	tap_eq(create_once(MEMWATCH_RECORDING_OVERWRITE), 0, "a second name is replaced");
	tap_eq(size_of(other), 8, "the file of which it was a name is unchanged");
	unlink(path);
	unlink(other);
}

/* Somebody keeps the file that he has prepared open. He must not see what is recorded. */
static void test_prepared_file(void)
{
	int fd = write_text(path);
	struct stat before, after;

	if (fstat(fd, &before) || ftruncate(fd, 0))
		abort();
	tap_eq(create_once(0), -EEXIST, "an empty file is not taken over");
	tap_eq(create_once(MEMWATCH_RECORDING_OVERWRITE), 0,
	       "an empty file is replaced if that was asked for");
	tap_ok(!fstat(fd, &after) && !after.st_size && !after.st_nlink,
	       "who has the old file open sees nothing of the recording");
	tap_ok(!stat(path, &after) && after.st_ino != before.st_ino &&
		       (after.st_mode & 07777) == 0600,
	       "the recording is a new file, which only its owner can read");
	close(fd);
	unlink(path);
}

static void test_other_kinds(void)
{
	if (mkfifo(path, 0666))
		abort();
	tap_eq(create_once(0), -EEXIST, "a FIFO is refused");
	tap_eq(create_once(MEMWATCH_RECORDING_OVERWRITE), -EINVAL, "a FIFO is not replaced");
	tap_ok(kind_of(path) == S_IFIFO, "a FIFO that was refused is still there");
	unlink(path);
	if (mkdir(path, 0700))
		abort();
	tap_eq(create_once(0), -EEXIST, "a folder is refused");
	tap_eq(create_once(MEMWATCH_RECORDING_OVERWRITE), -EISDIR, "a folder is not replaced");
	rmdir(path);
}

static void test_discard(void)
{
	struct memwatch_recording *recording;

	if (create_with(0, &recording))
		abort();
	memwatch_recording_discard(recording);
	tap_ok(!kind_of(path), "a recording that is discarded leaves no file");
	if (create_with(0, &recording) || unlink(path))
		abort();
	close(write_text(path));
	memwatch_recording_discard(recording);
	tap_eq(size_of(path), 8, "a file that has the name by now is not removed");
	unlink(path);
	memwatch_recording_discard(NULL);
}

/* It has its name and its description from the first moment, and grows under it. */
static void test_readable_while_it_grows(void)
{
	struct memwatch_record_sample sample;
	struct memwatch_recording *recording;
	struct found found;

	if (create_with(0, &recording))
		abort();
	found = read_numbered(1);
	tap_eq(found.open, 0, "a recording without records can be read");
	numbered(&sample, 0);
	memwatch_recording_write(recording, &sample.h);
	memwatch_recording_flush(recording, 0);
	found = read_numbered(1);
	tap_eq(found.count, 1, "a recording can be read while it grows");
	memwatch_recording_close(recording);
	unlink(path);
}

int main(void)
{
	tap_start();
	if (!kit_open())
		return EXIT_FAILURE;
	snprintf(other, sizeof(other), "%s/other", directory);
	test_links();
	test_prepared_file();
	test_other_kinds();
	test_discard();
	test_readable_while_it_grows();
	kit_close();
	tap_ok(access(directory, F_OK), "no temporary file stays behind");
	return tap_done();
}
