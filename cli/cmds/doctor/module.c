// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * doctor, the module: loaded or at least there, its tracepoints, its device.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmds/doctor/doctor.h"
#include "common/root.h"

bool mw_module_is_loaded(const struct mw_cli *cli)
{
	return !mw_root_access(cli, "/sys/module/memwatch", F_OK) ||
	       !mw_root_access(cli, "/proc/memwatch", F_OK);
}

/* Its path in modules.dep, "" if depmod has not seen it. */
static void find_installed(const struct mw_cli *cli, const char *release, char *path, size_t size)
{
	char name[512], line[4096];
	FILE *file;

	path[0] = '\0';
	snprintf(name, sizeof(name), "/lib/modules/%s/modules.dep", release);
	file = mw_root_open(cli, name);
	while (file && !path[0] && fgets(line, sizeof(line), file)) {
		char *end = strchr(line, ':');

		if (!end)
			continue;
		*end = '\0';
		if (strstr(line, "/memwatch.ko"))
			snprintf(path, size, "%.*s", (int)size - 1, line);
	}
	if (file)
		fclose(file);
}

static void look_not_loaded(const struct mw_cli *cli, struct mw_finding *f)
{
	char release[128], path[256];

	mw_cost(f, "no RMIDs, no ticks: nothing can be measured live");
	mw_root_line(cli, "/proc/sys/kernel/osrelease", release, sizeof(release));
	find_installed(cli, release, path, sizeof(path));
	if (path[0]) {
		mw_missed(f, "not loaded, but installed: %s", path);
		mw_remedy(f, "modprobe memwatch");
	} else if (mw_root_access(cli, "/proc/modules", F_OK)) {
		mw_missed(f, "not loaded; this kernel cannot load modules");
		mw_remedy(f, "use a kernel with CONFIG_MODULES");
	} else {
		mw_missed(f, "not loaded and not installed for %s", release);
		mw_remedy(f,
			  "build it: dkms install memwatch/" MW_VERSION " (needs linux-headers-%s)",
			  release);
	}
}

static void look_module(const struct mw_cli *cli, struct mw_finding *f)
{
	char version[64];

	if (!mw_module_is_loaded(cli)) {
		look_not_loaded(cli, f);
		return;
	}
	if (mw_root_line(cli, "/sys/module/memwatch/version", version, sizeof(version)) <= 0) {
		mw_found(f, "loaded");
	} else if (strcmp(version, MW_VERSION)) {
		mw_warned(f, "loaded, version %s; this is memwatchctl " MW_VERSION, version);
		mw_cost(f, "nothing while both speak the same ABI, which is checked at each start");
	} else {
		mw_found(f, "loaded, version %s", version);
	}
}

static void look_tracepoints(const struct mw_cli *cli, struct mw_finding *f)
{
	char tainted[32];

	if (!mw_module_is_loaded(cli)) {
		mw_missed(f, "come with the module, which is not loaded");
	} else if (!mw_root_access(cli, "/sys/kernel/tracing/events/memwatch", F_OK) ||
		   !mw_root_access(cli, "/sys/kernel/debug/tracing/events/memwatch", F_OK)) {
		mw_found(f, "events/memwatch in tracefs");
	} else if (mw_root_access(cli, "/sys/kernel/tracing/events", X_OK) &&
		   mw_root_access(cli, "/sys/kernel/debug/tracing/events", X_OK)) {
		mw_warned(f, "cannot be seen without tracefs");
	} else {
		mw_root_line(cli, "/proc/sys/kernel/tainted", tainted, sizeof(tainted));
		mw_missed(f, "the module is loaded and has no tracepoints (kernel taint %s)",
			  tainted[0] ? tainted : "unknown");
		mw_cost(f, "no records: the kernel ignores the tracepoints of a module that was "
			   "forced in or is marked proprietary");
		mw_remedy(f, "rmmod memwatch, then load a build for this kernel without --force");
	}
}

static void look_device(const struct mw_cli *cli, struct mw_finding *f)
{
	int err = mw_root_access(cli, "/dev/memwatch", R_OK | W_OK);

	if (!err) {
		mw_found(f, "/dev/memwatch can be opened");
		return;
	}
	mw_cost(f, "no session can be started");
	if (err == -EACCES || err == -EPERM) {
		mw_missed(f, "/dev/memwatch: not permitted");
		mw_remedy(f, "run as root, or join the group memwatch");
	} else if (mw_module_is_loaded(cli)) {
		mw_missed(f, "the module is loaded, but there is no /dev/memwatch");
		mw_remedy(f, "mount devtmpfs on /dev, or start udev");
	} else {
		mw_missed(f, "comes with the module, which is not loaded");
		f->cost[0] = '\0';
	}
}

const struct mw_check mw_doctor_module[] = {
	{ "module", "module", true, look_module },
	{ "tracepoints", "tracepoints", true, look_tracepoints },
	{ "device", "device", true, look_device },
	{ 0 },
};
