// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes memwatchctl itself: a command line that reads the file "input". The first byte of the
 * input is the command, the rest of the first line more words, and after the line comes the
 * file: with 'F' as it is, with 'N' as a recording of a simulated machine, patched, for
 * checksums are not found by guessing.
 *
 * Beside the sanitizers, what the command prints is judged: names come from other users, and
 * must reach a terminal escaped and in an amount that is in proportion to the input.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "fuzz.h"

#define WORDS 16
#define LINE  256

/* Only what reads. The root has nothing but the files of /proc/memwatch, which are "input". */
static const char *const commands[][4] = {
	{ "report", "input" },
	{ "export", "input" },
	{ "top", "--batch", "--replay", "input" },
	{ "growth", "replay", "input" },
	{ "status", "--root", "root" },
	{ "dump", "--root", "root" },
	{ "config", "--root", "root" },
	{ "doctor", "--root", "root" },
};

/* The letters of the commands, in the same order. */
static const char letters[] = "retgsdcD";

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static char folder[256];
static int folder_fd, output_fd;

static void remove_folder(void)
{
	static const char *const files[] = { "input", "out", "root/proc/memwatch/status",
					     "root/proc/memwatch/rmids",
					     "root/proc/memwatch/overhead" };
	static const char *const folders[] = { "root/proc/memwatch", "root/proc", "root" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlinkat(folder_fd, files[i], 0);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		unlinkat(folder_fd, folders[i], AT_REMOVEDIR);
	rmdir(folder);
}

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "%s/fuzz-command.XXXXXX", getenv("TMPDIR") ?: "/tmp");
	if (!mkdtemp(folder))
		abort();
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	output_fd = memfd_create("output", MFD_CLOEXEC);
	if (folder_fd < 0 || output_fd < 0 || mkdirat(folder_fd, "root", 0700) ||
	    mkdirat(folder_fd, "root/proc", 0700) ||
	    mkdirat(folder_fd, "root/proc/memwatch", 0700) ||
	    symlinkat("../../../input", folder_fd, "root/proc/memwatch/status") ||
	    symlinkat("../../../input", folder_fd, "root/proc/memwatch/rmids") ||
	    symlinkat("../../../input", folder_fd, "root/proc/memwatch/overhead"))
		abort();
	atexit(remove_folder);
}

/* ---- The file ---- */

static void write_file(const uint8_t *data, size_t size)
{
	int fd = openat(folder_fd, "input", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

struct patches {
	const uint8_t *data;
	size_t size;
	char text[5][32]; /* of the description */
};

/* A patch is an index, an offset, a length and bytes. Index 255 is the description. */
static void apply_patches(const struct patches *patches, uint8_t index, uint8_t *to, size_t room)
{
	const uint8_t *patch = patches->data, *end = patches->data + patches->size;

	for (; end - patch >= 3; patch += 3 + patch[2] % 16) {
		size_t offset = patch[1], length = patch[2] % 16;

		if ((size_t)(end - patch) < 3 + length)
			break;
		if (patch[0] == index && offset + length <= room)
			memcpy(to + offset, patch + 3, length);
	}
}

static struct memwatch_recording *create_recording(struct memwatch_ctx *ctx,
						   const struct memwatch_stream *stream,
						   struct patches *patches)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = MEMWATCH_RECORDING_NO_SYNC);
	struct memwatch_stream_info info = *memwatch_stream_get_info(stream);
	struct memwatch_recording *recording;

	info.sz = sizeof(info);
	memset(patches->text, 0, sizeof(patches->text));
	apply_patches(patches, 255, (uint8_t *)patches->text, sizeof(patches->text));
	for (size_t i = 0; i < 5; i++)
		patches->text[i][31] = '\0';
	info.hostname = patches->text[0];
	info.kernel = patches->text[1];
	info.backend = patches->text[2];
	info.backend_reason = patches->text[3];
	info.version = patches->text[4];
	if (memwatch_recording_create(ctx, "input", &info, &opts, &recording))
		abort();
	return recording;
}

/* The first two bytes are the number of processes and of milliseconds; the rest is patches. */
static void write_patched_recording(const uint8_t *data, size_t size)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .seed = 7, .cpus = 2, .pmu = 1, .rdt = 1);
	const struct memwatch_record_header *record;
	struct memwatch_recording *recording;
	struct memwatch_stream *stream;
	struct memwatch_ctx *ctx;
	struct patches patches;
	uint64_t copy[256];
	uint8_t index = 0;

	if (size < 2 || memwatch_ctx_new(NULL, &ctx))
		return;
	opts.processes = data[0] % 8 + 1;
	opts.duration_ns = (data[1] % 8 + 1) * 1000000ULL;
	if (memwatch_stream_open_null(ctx, &opts, &stream))
		abort();
	patches.data = data + 2;
	patches.size = size - 2;
	recording = create_recording(ctx, stream, &patches);
	while (memwatch_stream_next(stream, &record) == 1) {
		if (record->size > sizeof(copy))
			continue;
		memcpy(copy, record, record->size);
		apply_patches(&patches, index++ % 255, (uint8_t *)copy, record->size);
		/* A record that is refused is missing, which is as good as any other. */
		if (((struct memwatch_record_header *)copy)->size <= sizeof(copy) &&
		    memwatch_recording_write(recording, (const void *)copy))
			continue;
	}
	if (memwatch_recording_close(recording))
		abort();
	memwatch_stream_unref(stream);
	memwatch_ctx_unref(ctx);
}

/* ---- The output ---- */

/* The code point at @p, whose bytes it counts; 0xffffffff if it is not valid UTF-8. */
static uint32_t code_point(const uint8_t *p, const uint8_t *end, size_t *bytes)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	size_t more = *p < 0x80 ? 0 : *p < 0xc0 ? 9 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
	uint32_t code = more ? *p & (0x3f >> more) : *p;

	*bytes = more + 1;
	if (more == 9 || *p > 0xf7 || (size_t)(end - p) <= more)
		return ~0U;
	for (size_t i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return ~0U;
		code = code << 6 | (p[i] & 0x3f);
	}
	return code < least[more] ? ~0U : code;
}

/* Whether a terminal, a log or a reader could take the character for something else. */
static int is_hostile(uint32_t code)
{
	return (code < 0x20 && code != '\n') || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x2069) || code == 0xfeff || code > 0x10ffff;
}

static void check_output(size_t size)
{
	off_t length = lseek(output_fd, 0, SEEK_END);
	uint8_t *text, *p;
	size_t bytes;

	if (length <= 0)
		return;
	if ((size_t)length > (1 << 20) + 1000 * size)
		abort();
	text = malloc((size_t)length);
	if (!text || pread(output_fd, text, (size_t)length, 0) != length)
		abort();
	for (p = text; p < text + length; p += bytes)
		if (is_hostile(code_point(p, text + length, &bytes)))
			abort();
	free(text);
	if (ftruncate(output_fd, 0) || lseek(output_fd, 0, SEEK_SET))
		abort();
}

/*
 * Runs the command with its output in a file. The sanitizers still report to standard error;
 * with -close_fd_mask=3, libFuzzer has told them where that was.
 */
static void run_command(int argc, char **argv, size_t size)
{
	int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
	struct stat st;

	if (out < 0 || err < 0 || fstat(err, &st))
		abort();
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		__sanitizer_set_report_fd((void *)(intptr_t)err);
	dup2(output_fd, STDOUT_FILENO);
	dup2(output_fd, STDERR_FILENO);
	mw_cmd_run(argc, argv);
	fflush(stdout);
	clearerr(stdout);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	check_output(size);
	close(out);
	close(err);
}

/*
 * Splits @line into words; 0 if a word is not allowed, because it names a file. The only file
 * that may be written is "out".
 */
static int split_words(char *line, char **argv, int argc)
{
	char *rest;

	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (argc == WORDS || !strncmp(word, "--root", 6))
			return 0;
		if ((!strncmp(word, "-o", 2) || !strncmp(word, "--output", 8)) &&
		    strcmp(word, "-oout") && strcmp(word, "--output=out"))
			return 0;
		for (const char *c = word; *c; c++)
			if (*c == '/' || *c < ' ' || *c > '~')
				return 0;
		argv[argc++] = word;
	}
	return argc;
}

/* Writes the file and runs the command in the folder. @data begins after the first line. */
static void run_in_folder(int argc, char **argv, const uint8_t *data, size_t size)
{
	int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!folder[0])
		make_folder();
	if (back < 0 || fchdir(folder_fd))
		abort();
	if (data[0] == 'F')
		write_file(data + 1, size - 1);
	else if (data[0] == 'N')
		write_patched_recording(data + 1, size - 1);
	run_command(argc, argv, size);
	unlink("out");
	unlink("input");
	if (fchdir(back))
		abort();
	close(back);
}

/* Adds the words of the command that a letter stands for. */
static int add_command(uint8_t letter, char words[4][16], char **argv, int argc)
{
	const char *at = letter ? strchr(letters, letter) : NULL;
	size_t command = at ? (size_t)(at - letters) : letter % NR_COMMANDS;

	for (size_t i = 0; i < 4 && commands[command][i]; i++) {
		snprintf(words[i], sizeof(words[i]), "%s", commands[command][i]);
		argv[argc++] = words[i];
	}
	return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char line[LINE] = "", name[] = "memwatchctl", words[4][16];
	char *argv[WORDS + 1] = { name };
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	size_t length = end ? (size_t)(end - data) : 0;
	int argc;

	if (!length || length > sizeof(line) || size - length < 2)
		return 0;
	argc = add_command(data[0], words, argv, 1);
	memcpy(line, data + 1, length - 1);
	argc = split_words(line, argv, argc);
	if (argc)
		run_in_folder(argc, argv, end + 1, size - length - 1);
	return 0;
}
