// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reasons, see access-why.h.
 */
#include "stale/access-why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/text.h"

/* The processor says that it is simulated by a hypervisor (CPUID leaf 1, ECX bit 31). */
static bool is_virtual(struct memwatch_ctx *ctx)
{
	struct mw_text rest, line, word;
	bool found = false, flags = false;
	char *text;

	if (mw_text_read_file(ctx, "/proc/cpuinfo", &text, &rest.len))
		return false;
	rest.at = text;
	while (!flags && mw_text_take(&rest, '\n', &line)) {
		flags = mw_text_skip(&line, "flags");
		while (flags && mw_text_take(&line, ' ', &word))
			found |= mw_text_is(word, "hypervisor");
	}
	free(text);
	return found;
}

const char *mw_access_why_no_pmu(struct memwatch_ctx *ctx)
{
	if (is_virtual(ctx))
		return "this is a virtual machine, and its host gives it no PMU";
	return "the kernel has found no PMU of this processor";
}

const char *mw_access_why_no_event(struct memwatch_ctx *ctx)
{
	if (is_virtual(ctx))
		return "this is a virtual machine, and the PMU that its host gives it has no "
		       "events mem-loads and mem-stores and no ibs_op";
	return "the PMU of this processor has no events mem-loads and mem-stores, and there is no "
	       "ibs_op";
}

/* The value as it is in the file, or "unknown". */
static void read_paranoid(struct memwatch_ctx *ctx, char *to, size_t size)
{
	struct mw_text line = { 0 };
	char *text;

	strcpy(to, "unknown");
	if (mw_text_read_file(ctx, "/proc/sys/kernel/perf_event_paranoid", &text, &line.len))
		return;
	line.at = text;
	if (line.len && text[line.len - 1] == '\n')
		line.len--;
	if (!mw_text_copy(line, to, size))
		strcpy(to, "unknown");
	free(text);
}

static int fail_permission(struct memwatch_ctx *ctx, const struct mw_access_event *event, bool user)
{
	char paranoid[16];

	read_paranoid(ctx, paranoid, sizeof(paranoid));
	if (event->kernel == MW_ACCESS_KERNEL_NEVER)
		return mw_fail(ctx, -EACCES,
			       "cannot open %s: not permitted; this kernel cannot leave its own "
			       "accesses out of it, so it needs CAP_PERFMON, or "
			       "kernel.perf_event_paranoid of at most 1 (it is %s)",
			       event->name, paranoid);
	return mw_fail(ctx, -EACCES,
		       "cannot open %s: not permitted; it needs CAP_PERFMON, or "
		       "kernel.perf_event_paranoid of at most %d (it is %s) and a process of the "
		       "same user",
		       event->name, user ? 2 : 1, paranoid);
}

int mw_access_fail_open(struct memwatch_ctx *ctx, const struct mw_access_event *event, bool user,
			int err)
{
	switch (err) {
	case -EACCES:
	case -EPERM:
		return fail_permission(ctx, event, user);
	case -ENOSYS:
		return mw_fail(ctx, -EOPNOTSUPP, "this kernel has no performance events");
	case -EINVAL:
		/* commit 30093056f7b2 ("perf/amd/ibs: Make IBS a core pmu") */
		if (event->step > 1)
			return mw_fail(ctx, -EOPNOTSUPP,
				       "the kernel refuses %s for a process; kernels before 6.2 "
				       "have IBS for whole CPUs only",
				       event->name);
		/* fall through */
	case -ENOENT:
	case -ENODEV:
	case -ENXIO:
	case -ENODATA:
	case -EOPNOTSUPP:
		return mw_fail(ctx, -EOPNOTSUPP, "the PMU refuses %s (%s)%s", event->name,
			       strerror(-err),
			       is_virtual(ctx) ? "; this is a virtual machine, and its host may "
						 "give it no precise samples"
					       : "");
	case -EBUSY:
		return mw_fail(ctx, err, "cannot open %s: somebody else uses the PMU alone",
			       event->name);
	case -EMFILE:
		return mw_fail(ctx, err,
			       "cannot open %s: too many open files; each CPU needs some: raise "
			       "the limit (ulimit -n)",
			       event->name);
	case -ESRCH:
		return mw_fail(ctx, err, "cannot open %s: the process has ended", event->name);
	default:
		return mw_fail(ctx, err, "cannot open %s: %s", event->name, strerror(-err));
	}
}
