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

struct mw_config mw_config __attribute__((visibility("hidden"))) = {
	.rate = MW_CONFIG_RATE_DEFAULT,
	.max_bytes = MW_CONFIG_MAX_BYTES_DEFAULT,
	.depth = MW_CONFIG_DEPTH_DEFAULT,
};

/* A number of bytes with an optional K, M or G. */
static uint64_t number_read(const char *name, uint64_t least, uint64_t most, uint64_t otherwise)
{
	const char *text = getenv(name);
	unsigned int shift = 0;
	uint64_t value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return otherwise;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	if (errno || end[shift != 0] || value > most >> shift) {
		mw_config_log(name, EINVAL);
		return otherwise;
	}
	value <<= shift;
	return value < least ? least : value;
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

int mw_config_read(void)
{
	const char *fork_rule = getenv("MEMWATCH_HEAP_FORK");

	mw_config.log = flag_read("MEMWATCH_HEAP_LOG");
	mw_config.dormant = flag_read("MEMWATCH_HEAP_DORMANT");
	mw_config.fork_stops = fork_rule && !strcmp(fork_rule, "stop");
	mw_config.rate = number_read("MEMWATCH_HEAP_RATE", 1, UINT64_C(1) << 40,
				     MW_CONFIG_RATE_DEFAULT);
	mw_config.max_bytes = number_read("MEMWATCH_HEAP_MAX", MW_CONFIG_MAX_BYTES_LEAST,
					  UINT64_C(1) << 30, MW_CONFIG_MAX_BYTES_DEFAULT);
	mw_config.depth = (uint32_t)number_read("MEMWATCH_HEAP_DEPTH", 1, MW_HEAP_DEPTH_MAX,
						MW_CONFIG_DEPTH_DEFAULT);
	mw_config.seed = number_read("MEMWATCH_HEAP_SEED", 0, UINT64_MAX, 0);
	return directory_read();
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
