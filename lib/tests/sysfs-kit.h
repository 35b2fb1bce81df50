/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The files of another machine, in a temporary folder that is the root of a context.
 */
#ifndef SYSFS_KIT_H
#define SYSFS_KIT_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memwatch/ctx.h>

/* A file; the last one of a list has no path. */
struct sysfs_file {
	const char *path, *text;
};

struct sysfs {
	char root[64];
	struct memwatch_ctx *ctx;
};

static inline void sysfs_die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static inline void sysfs_begin(struct sysfs *sysfs)
{
	struct memwatch_ctx_opts opts = { .sz = sizeof(opts), .root = sysfs->root };
	const char *folder = getenv("TMPDIR");

	snprintf(sysfs->root, sizeof(sysfs->root), "%s/sysfs-XXXXXX", folder ? folder : "/var/tmp");
	if (!mkdtemp(sysfs->root) || memwatch_ctx_new(&opts, &sysfs->ctx))
		sysfs_die(sysfs->root);
}

/* Writes the files below "@folder/"; folders are made. */
static inline void sysfs_add(struct sysfs *sysfs, const char *folder,
			     const struct sysfs_file *files)
{
	char path[512];
	FILE *out;

	for (; files->path; files++) {
		snprintf(path, sizeof(path), "%s/%s/%s", sysfs->root, folder, files->path);
		for (char *at = path + strlen(sysfs->root) + 1; (at = strchr(at, '/')); at++) {
			*at = 0;
			mkdir(path, 0700);
			*at = '/';
		}
		out = fopen(path, "w");
		if (!out)
			sysfs_die(path);
		fputs(files->text, out);
		fclose(out);
	}
}

static inline int sysfs_remove(const char *path, const struct stat *stat, int type, struct FTW *at)
{
	(void)stat, (void)type, (void)at;
	return remove(path);
}

static inline void sysfs_end(struct sysfs *sysfs)
{
	memwatch_ctx_unref(sysfs->ctx);
	nftw(sysfs->root, sysfs_remove, 16, FTW_DEPTH | FTW_PHYS);
}

#endif /* SYSFS_KIT_H */
