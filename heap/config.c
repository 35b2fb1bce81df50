/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The configuration, read from environment variables. Nothing here allocates memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "isolate.h"

/* Copies at shorter distances would be most of what the program does. */
#define SNAPSHOT_BYTES_LEAST (UINT64_C(1) << 20)

struct mw_config mw_config __attribute__((visibility("hidden"))) = {
	.rate = MW_CONFIG_RATE_DEFAULT,
	.max_bytes = MW_CONFIG_MAX_BYTES_DEFAULT,
	.depth = MW_CONFIG_DEPTH_DEFAULT,
};

/* A number with an optional K, M or G, in all of @text; otherwise -EINVAL. */
static int number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
	unsigned int shift = 0;
	uint64_t value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	if (errno || end[shift != 0] || value > most >> shift)
		return -EINVAL;
	value <<= shift;
	*ret = value < least ? least : value;
	return 0;
}

/* A number in the environment. */
static uint64_t number_read(const char *name, uint64_t least, uint64_t most, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t value;

	if (!text || !*text)
		return otherwise;
	if (!number_parse(text, least, most, &value))
		return value;
	mw_config_log(name, EINVAL);
	return otherwise;
}

static bool flag_read(const char *name)
{
	const char *text = getenv(name);

	return text && !strcmp(text, "1");
}

static int directory_read(void)
{
	const char *text = getenv("MEMWATCH_HEAP_DIR");
	char *directory = mw_config.directory;
	size_t used = 0;

	if (!text)
		text = "";
	if (*text != '/') {
		if (!getcwd(directory, sizeof(mw_config.directory)))
			return -errno;
		used = strlen(directory);
		if (*text)
			directory[used++] = '/';
	}
	if (used + strlen(text) >= sizeof(mw_config.directory))
		return -ENAMETOOLONG;
	strcpy(directory + used, text);
	return 0;
}

/* One word of the list: "peak", "exit", "bytes=N", "interval=SECONDS" or "max=N". */
static int snapshot_word_read(const char *word, struct mw_config_snapshots *snapshots)
{
	uint64_t value;
	int rc = 0;

	if (!strcmp(word, "peak")) {
		snapshots->peak = true;
	} else if (!strcmp(word, "exit")) {
		snapshots->exit = true;
	} else if (!strncmp(word, "bytes=", 6)) {
		rc = number_parse(word + 6, SNAPSHOT_BYTES_LEAST, UINT64_MAX / 2,
				  &snapshots->bytes);
	} else if (!strncmp(word, "interval=", 9)) {
		rc = number_parse(word + 9, 1, UINT32_MAX, &value);
		if (!rc)
			snapshots->interval_ns = value * 1000000000;
	} else if (!strncmp(word, "max=", 4)) {
		rc = number_parse(word + 4, 0, UINT32_MAX, &value);
		if (!rc)
			snapshots->max = (uint32_t)value;
	} else {
		rc = -EINVAL;
	}
	return rc;
}

static void snapshots_read(const char *name, struct mw_config_snapshots *snapshots)
{
	const char *text = getenv(name);
	char list[256], *rest = list, *word;

	snapshots->max = MW_CONFIG_SNAPSHOTS_DEFAULT;
	if (!text || !*text)
		return;
	if (strlen(text) >= sizeof(list)) {
		mw_config_log(name, ENAMETOOLONG);
		return;
	}
	strcpy(list, text);
	while ((word = strsep(&rest, ",")))
		if (snapshot_word_read(word, snapshots))
			mw_config_log(name, EINVAL);
}

int mw_config_read(void)
{
	const char *fork_rule = getenv("MEMWATCH_HEAP_FORK");
	const char *python_malloc = getenv("PYTHONMALLOC");
	uint64_t most;
	int rc;

	mw_config.python_malloc = python_malloc && !strncmp(python_malloc, "malloc", 6);
	mw_config.log = flag_read("MEMWATCH_HEAP_LOG");
	mw_config.dormant = flag_read("MEMWATCH_HEAP_DORMANT");
	mw_config.mmap = flag_read("MEMWATCH_HEAP_MMAP");
	mw_config.fork_stops = fork_rule && !strcmp(fork_rule, "stop");
	mw_config.rate = number_read("MEMWATCH_HEAP_RATE", 1, UINT64_C(1) << 40,
				     MW_CONFIG_RATE_DEFAULT);
	mw_config.max_bytes = number_read("MEMWATCH_HEAP_MAX", MW_CONFIG_MAX_BYTES_LEAST,
					  UINT64_C(1) << 30, MW_CONFIG_MAX_BYTES_DEFAULT);
	mw_config.depth = (uint32_t)number_read("MEMWATCH_HEAP_DEPTH", 1, MW_HEAP_DEPTH_MAX,
						MW_CONFIG_DEPTH_DEFAULT);
	mw_config.isolate = (uint32_t)number_read("MEMWATCH_HEAP_ISOLATE", 0, MW_ISOLATE_MAX, 0);
	most = mw_config.max_bytes / 3 / (MW_ISOLATE_BLOCKS * mw_isolate_page());
	if (mw_config.isolate > most)
		mw_config.isolate = (uint32_t)most;
	mw_config.epoch_ns = 1000000 * number_read("MEMWATCH_HEAP_EPOCH", MW_CONFIG_EPOCH_LEAST,
						   UINT32_MAX, 0);
	mw_config.trace = flag_read("MEMWATCH_HEAP_TRACE");
	mw_config.trace_max = number_read("MEMWATCH_HEAP_TRACE_MAX", 0, UINT64_MAX / 2,
					  MW_CONFIG_TRACE_MAX_DEFAULT);
	mw_config.trace_depth = (uint32_t)number_read(
		"MEMWATCH_HEAP_TRACE_DEPTH", 1, MW_CONFIG_TRACE_DEPTH_MOST, MW_CONFIG_TRACE_DEPTH);
	snapshots_read("MEMWATCH_HEAP_SNAPSHOT", &mw_config.snapshots);
	mw_config.seed = number_read("MEMWATCH_HEAP_SEED", 0, UINT64_MAX, 0);
	rc = directory_read();
	if (rc)
		mw_config_log("MEMWATCH_HEAP_DIR", -rc);
	return rc;
}

void mw_config_log(const char *what, int error)
{
	char line[MW_HEAP_PATH_MAX + 128];
	int length, saved = errno;

	if (!mw_config.log)
		return;
	length = snprintf(line, sizeof(line), "memwatch-heap: %s: %s\n", what,
			  strerrordesc_np(error));
	if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
		errno = saved; /* there is nobody else to tell */
	errno = saved;
}
