// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Files in folders that an attacker may write to: links and files that are there before,
 * files that are left behind, and files that another user has prepared.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/context.h"
#include "base/safe-file.h"

#include "../../selftests/tap.h"

static struct memwatch_ctx *ctx;

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (file) {
		fputs(text, file);
		fclose(file);
	}
}

static const char *read_text(const char *path)
{
	static char text[64];
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	text[n] = '\0';
	if (file)
		fclose(file);
	return text;
}

/* Number of files in the working directory. */
static int count_files(void)
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	int count = 0;

	while (dir && (entry = readdir(dir)))
		count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	if (dir)
		closedir(dir);
	return count;
}

static int create_file(const char *path, const char *text, unsigned int flags)
{
	struct memwatch_file *file;
	int err = memwatch_file_create(ctx, path, &file);

	if (err)
		return err;
	if (write(file->fd, text, strlen(text)) < 0)
		err = -errno;
	if (!err)
		err = memwatch_file_commit(file, flags);
	memwatch_file_close(file);
	return err;
}

static void test_create(void)
{
	struct memwatch_file *file;
	struct stat st = { 0 };

	umask(0);
	tap_eq(create_file("a", "one", 0), 0, "a file is created");
	tap_str_eq(read_text("a"), "one", "a new file has its contents");
	stat("a", &st);
	tap_eq(st.st_mode & 07777, 0600, "a new file has the mode 0600, whatever the umask");
	tap_eq(create_file("a", "two", 0), -EEXIST, "a file that exists is not replaced");
	tap_str_eq(read_text("a"), "one", "a file that is not replaced keeps its contents");
	tap_eq(create_file("a", "two", MEMWATCH_FILE_REPLACE), 0, "a file is replaced on request");
	tap_str_eq(read_text("a"), "two", "a file that is replaced has the new contents");
	tap_eq(count_files(), 1, "no temporary file stays behind");
	tap_eq(memwatch_file_create(ctx, "./b", &file), 0,
	       "a file is created by a path with a folder");
	memwatch_file_close(file);
	tap_eq(count_files(), 1, "a file that is not committed is removed");
	tap_eq(memwatch_file_create(ctx, "absent/b", &file), -ENOENT,
	       "a folder that is absent fails");
	tap_eq(memwatch_file_create(ctx, "./", &file), -EISDIR, "a folder is no name of a file");
	unlink("a");
}

static void test_links(void)
{
	struct stat st = { 0 };

	write_text("victim", "precious");
	if (symlink("victim", "link") || link("victim", "hard"))
		tap_note("%s", strerror(errno));
	tap_eq(create_file("link", "new", 0), -EEXIST, "a symbolic link is not followed");
	tap_eq(create_file("link", "new", MEMWATCH_FILE_REPLACE), 0, "a symbolic link is replaced");
	lstat("link", &st);
	tap_ok(S_ISREG(st.st_mode), "a file that replaced a symbolic link is a regular file");
	tap_eq(create_file("hard", "new", MEMWATCH_FILE_REPLACE), 0, "a second name is replaced");
	tap_str_eq(read_text("victim"), "precious", "what a link pointed to is unchanged");
	unlink("victim");
	unlink("link");
	unlink("hard");
}

/* Whoever may rename in a folder, such as root in that of the devices, must name a file. */
static void test_kinds(void)
{
	struct stat st = { 0 };

	if (mkfifo("fifo", 0600) || mkdir("folder", 0700))
		tap_note("mkfifo: %s", strerror(errno));
	tap_eq(create_file("fifo", "new", MEMWATCH_FILE_REPLACE), -EINVAL,
	       "a FIFO is not replaced");
	tap_ok(strstr(memwatch_ctx_error(ctx), "not a regular file") != NULL,
	       "the error for a FIFO says why: %s", memwatch_ctx_error(ctx));
	tap_ok(!lstat("fifo", &st) && S_ISFIFO(st.st_mode), "the FIFO is still there");
	tap_eq(create_file("folder", "new", MEMWATCH_FILE_REPLACE), -EISDIR,
	       "a folder is not replaced");
	unlink("fifo");
	rmdir("folder");
}

static void test_stale(void)
{
	static const char stale[] = ".a.0123456789abcdef.tmp", other[] = ".a.0123456789abcdeg.tmp";
	struct memwatch_file *file, *second;

	write_text(stale, "");
	write_text(other, "");
	tap_eq(memwatch_file_create(ctx, "a", &file), 0, "a file is created beside a stale one");
	tap_ok(access(stale, F_OK), "a temporary file that no process writes is removed");
	tap_ok(!access(other, F_OK), "a file whose name is not that of a temporary file stays");
	if (mkfifo(stale, 0600))
		tap_note("%s", strerror(errno));
	tap_eq(memwatch_file_create(ctx, "a", &second), 0, "two writers can create the same file");
	tap_ok(!access(file->temporary, F_OK), "a temporary file that is being written stays");
	tap_ok(!access(stale, F_OK), "a FIFO with the name of a temporary file stays");
	memwatch_file_close(second);
	memwatch_file_close(file);
	unlink(other);
	unlink(stale);
}

static int open_trusted(const char *path)
{
	int fd, err = mw_safe_open_read(ctx, path, MW_SAFE_TRUSTED, &fd);

	if (!err)
		close(fd);
	return err;
}

static void test_read(void)
{
	int fd = -1, err;

	write_text("a", "text");
	chmod("a", 0644);
	tap_eq(open_trusted("a"), 0, "an own file that others can read is trusted");
	chmod("a", 0620);
	tap_eq(open_trusted("a"), -EPERM, "a file that its group can write is refused");
	chmod("a", 0602);
	tap_eq(open_trusted("a"), -EPERM, "a file that others can write is refused");
	tap_ok(strstr(memwatch_ctx_error(ctx), "can be written by") != NULL, "it is said why: %s",
	       memwatch_ctx_error(ctx));
	err = mw_safe_open_read(ctx, "a", 0, &fd);
	tap_eq(err, 0, "a file that others can write is read where trust is not needed");
	close(fd);
	chmod("a", 0600);
	if (symlink("a", "link") || link("a", "hard"))
		tap_note("%s", strerror(errno));
	tap_eq(open_trusted("a"), -EPERM, "a file with two names is refused");
	unlink("hard");
	tap_eq(open_trusted("link"), -EPERM, "a symbolic link is refused");
	unlink("link");
	if (mkfifo("fifo", 0600))
		tap_note("%s", strerror(errno));
	tap_eq(mw_safe_open_read(ctx, "fifo", 0, &fd), -EINVAL, "a FIFO is refused at once");
	tap_eq(mw_safe_open_read(ctx, ".", 0, &fd), -EISDIR, "a folder is refused");
	tap_eq(mw_safe_open_read(ctx, "/dev/null", 0, &fd), -EINVAL, "a device is refused");
	tap_eq(open_trusted("absent"), -ENOENT, "a file that is absent is said to be");
	unlink("fifo");
	if (geteuid()) {
		tap_skip("a file of another user is refused", "needs root");
	} else {
		if (chown("a", 12345, 0))
			tap_note("%s", strerror(errno));
		tap_eq(open_trusted("a"), -EPERM, "a file of another user is refused");
	}
	unlink("a");
}

int main(void)
{
	char dir[] = "safe-file-XXXXXX";

	tap_start();
	if (!mkdtemp(dir) || chdir(dir) || memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_create();
	test_links();
	test_kinds();
	test_stale();
	test_read();
	memwatch_ctx_unref(ctx);
	if (chdir("..") || rmdir(dir))
		tap_note("%s: %s", dir, strerror(errno));
	return tap_done();
}
