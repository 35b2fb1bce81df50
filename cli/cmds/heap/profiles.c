// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profiles that a command reads, and the names of what is in them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cmds/heap/profiles.h"
#include "common/message.h"
#include "text/escape.h"

const char *heap_text(const char *text, char *buf, size_t size)
{
	return mw_escape(text, buf, size);
}

static int add_file(struct heap_profiles *profiles, const char *path)
{
	int number = memwatch_heap_add(profiles->heap, path);
	const char *why = memwatch_ctx_error(profiles->ctx);

	if (number >= 0)
		return number;
	switch (-number) {
	case ENOENT:
	case EISDIR:
	case EACCES:
	case EPERM:
		return -mw_error_errno(number, path);
	case ENOMSG:
		mw_error(MW_EXIT_FAILED, path, "is not a heap profile");
		mw_hint("profiles of memwatch, pprof, jemalloc (heap_v2) and gperftools can be "
			"read");
		return -MW_EXIT_FAILED;
	case EBADMSG:
		return -mw_error(MW_EXIT_FAILED, path, "is damaged: %s", why);
	case EPROTO:
		return -mw_error(MW_EXIT_FAILED, path,
				 "was made by a newer version of memwatch: %s", why);
	default:
		return -mw_error(MW_EXIT_FAILED, path, "%s", why);
	}
}

/* A profile without symbols is still useful. */
static void find_symbols(struct heap_profiles *profiles, const struct heap_choice *choice)
{
	MEMWATCH_OPTS(memwatch_heap_symbol_opts, opts, .sysroot = choice->sysroot);
	char why[768];

	if (memwatch_heap_symbolize(profiles->heap, &opts))
		mw_warn(profiles->cli, "%s",
			heap_text(memwatch_ctx_error(profiles->ctx), why, sizeof(why)));
}

int heap_profiles_open(struct heap_profiles *profiles, const struct mw_cli *cli,
		       const struct heap_choice *choice, int count, char **files)
{
	int err, rc;

	*profiles = (struct heap_profiles){ .cli = cli, .base = -1 };
	rc = mw_library_new(cli, &profiles->ctx);
	if (rc)
		return rc;
	err = memwatch_heap_new(profiles->ctx, NULL, &profiles->heap);
	if (err)
		return mw_error_errno(err, "heap");
	for (int i = 0; i < count; i++) {
		rc = add_file(profiles, files[i]);
		if (rc < 0)
			return -rc;
		profiles->count++;
	}
	if (choice->diff)
		profiles->base = add_file(profiles, choice->diff);
	if (choice->diff && profiles->base < 0)
		return -profiles->base;
	if (!choice->no_symbols)
		find_symbols(profiles, choice);
	return 0;
}

void heap_profiles_close(struct heap_profiles *profiles)
{
	memwatch_heap_unref(profiles->heap);
	memwatch_ctx_unref(profiles->ctx);
}

int heap_metric(const struct heap_profiles *profiles, const struct heap_choice *choice,
		const char *path, uint32_t *ret)
{
	static const uint32_t metrics[2][2] = {
		{ MEMWATCH_HEAP_LIVE_BYTES, MEMWATCH_HEAP_LIVE_OBJECTS },
		{ MEMWATCH_HEAP_ALLOCATED_BYTES, MEMWATCH_HEAP_ALLOCATED_OBJECTS },
	};
	MEMWATCH_OPTS(memwatch_heap_info, info);
	uint32_t wanted = metrics[choice->allocated][choice->objects];

	memwatch_heap_info(profiles->heap, 0, &info);
	/* What counts something else than memory, such as goroutines, has no bytes. */
	if (!(info.metrics & 1U << wanted) && info.metrics == 1U << MEMWATCH_HEAP_LIVE_OBJECTS &&
	    !choice->allocated)
		wanted = MEMWATCH_HEAP_LIVE_OBJECTS;
	*ret = wanted;
	if (info.metrics & 1U << wanted)
		return 0;
	return mw_error(MW_EXIT_NOTHING, path, "the profile has no %s %s",
			choice->allocated ? "allocated" : "live",
			choice->objects ? "objects" : "bytes");
}

int heap_view_failed(const struct heap_profiles *profiles, int err, const char *path)
{
	return mw_error(err == -ENODATA ? MW_EXIT_NOTHING : MW_EXIT_FAILED, path, "%s",
			memwatch_ctx_error(profiles->ctx));
}

const char *heap_frame_name(const struct memwatch_heap_frame *frame, char *buf, size_t size)
{
	const char *slash = strrchr(frame->module, '/');
	const char *module = slash ? slash + 1 : frame->module;

	if (*frame->function)
		return frame->function;
	if (*module && !frame->address)
		return module;
	if (*module)
		snprintf(buf, size, "%s+0x%" PRIx64, module, (uint64_t)frame->address);
	else if (frame->address)
		snprintf(buf, size, "0x%" PRIx64, (uint64_t)frame->address);
	else
		snprintf(buf, size, "(unknown)");
	return buf;
}
