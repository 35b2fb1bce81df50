// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The checks of the module: whether it is loaded or installed, its tracepoints, and its
 * device.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cmds/doctor/doctor.h"
#include "common/backend.h"
#include "common/root.h"

bool mw_module_is_loaded(const struct mw_cli *cli)
{
	return !mw_root_access(cli, "/sys/module/memwatch", F_OK) ||
	       !mw_root_access(cli, "/proc/memwatch", F_OK);
}

bool mw_loads_modules(const struct mw_cli *cli)
{
	return mw_module_is_loaded(cli) || !mw_root_access(cli, "/proc/modules", F_OK);
}

/* Finds the path of the module in modules.dep; "" if depmod does not know it. */
static void find_installed_module(const struct mw_cli *cli, const char *release, char *path,
				  size_t size)
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

/* What does not work without the module. */
static void set_module_cost(const struct mw_cli *cli, struct mw_finding *f)
{
	if (mw_backend_has_btf(cli))
		mw_finding_cost(f, "not measured: " MW_ADDED_BY_MODULE);
	else
		mw_finding_cost(f, "no live measurement");
}

static void explain_not_loaded(const struct mw_cli *cli, struct mw_finding *f)
{
	char release[128], path[256];

	set_module_cost(cli, f);
	mw_root_line(cli, "/proc/sys/kernel/osrelease", release, sizeof(release));
	find_installed_module(cli, release, path, sizeof(path));
	if (path[0]) {
		mw_finding_missing(f, "the module is not loaded; it is installed as %s", path);
		mw_finding_remedy(f, "load it: modprobe memwatch");
	} else if (!mw_loads_modules(cli)) {
		mw_finding_missing(f,
				   "the module is not loaded, and this kernel cannot load modules");
		mw_finding_remedy(f, "use a kernel built with CONFIG_MODULES");
	} else {
		mw_finding_missing(f, "the module is neither loaded nor installed for %s", release);
		mw_finding_remedy(f,
				  "build it: dkms install memwatch/" MW_VERSION
				  " (this needs linux-headers-%s)",
				  release);
	}
}

static void check_module(const struct mw_cli *cli, struct mw_finding *f)
{
	char version[64];

	if (!mw_module_is_loaded(cli)) {
		explain_not_loaded(cli, f);
		return;
	}
	if (mw_root_line(cli, "/sys/module/memwatch/version", version, sizeof(version)) <= 0) {
		mw_finding_ok(f, "the module is loaded");
	} else if (strcmp(version, MW_VERSION)) {
		mw_finding_warn(f, "the module has version %s, memwatchctl has version " MW_VERSION,
				version);
		mw_finding_cost(f, "none while their ABI is the same, which every command checks");
	} else {
		mw_finding_ok(f, "version %s is loaded", version);
	}
}

static void check_tracepoints(const struct mw_cli *cli, struct mw_finding *f)
{
	char tainted[32];

	if (!mw_module_is_loaded(cli)) {
		mw_finding_missing(f, "the module, which defines them, is not loaded");
	} else if (!mw_root_access(cli, "/sys/kernel/tracing/events/memwatch", F_OK) ||
		   !mw_root_access(cli, "/sys/kernel/debug/tracing/events/memwatch", F_OK)) {
		mw_finding_ok(f, "tracefs has events/memwatch");
	} else if (mw_root_access(cli, "/sys/kernel/tracing/events", X_OK) &&
		   mw_root_access(cli, "/sys/kernel/debug/tracing/events", X_OK)) {
		mw_finding_warn(f, "cannot be checked, because tracefs is not readable");
	} else {
		mw_root_line(cli, "/proc/sys/kernel/tainted", tainted, sizeof(tainted));
		mw_finding_missing(f,
				   "the module is loaded but has no tracepoints (kernel taint: %s)",
				   tainted[0] ? tainted : "unknown");
		mw_finding_cost(
			f, "no records: the kernel ignores the tracepoints of a module that was "
			   "loaded with --force or is proprietary");
		mw_finding_remedy(
			f, "run rmmod memwatch, and load a module built for this kernel without "
			   "--force");
	}
}

/* The module refuses who may open the file, but has no capability or is in a container. */
static int try_device(const struct mw_cli *cli)
{
	static const char path[] = "/dev/memwatch";
	int fd;

	if (cli->root) /* what is there is not the device */
		return mw_root_access(cli, path, R_OK | W_OK);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static void check_device(const struct mw_cli *cli, struct mw_finding *f)
{
	int err = try_device(cli);

	if (!err) {
		mw_finding_ok(f, "/dev/memwatch can be opened");
		return;
	}
	set_module_cost(cli, f);
	if (err == -EACCES || err == -EPERM) {
		mw_finding_missing(f, "/dev/memwatch cannot be opened by this user");
		mw_finding_remedy(f,
				  "run memwatchctl as root, or as a member of the group memwatch "
				  "with CAP_BPF and CAP_PERFMON; on the host, not in a container");
	} else if (err != -ENOENT && err != -ENXIO && err != -ENODEV) {
		mw_finding_missing(f, "/dev/memwatch cannot be opened: %s", strerror(-err));
	} else if (mw_module_is_loaded(cli)) {
		mw_finding_missing(f, "the module is loaded, but there is no /dev/memwatch");
		mw_finding_remedy(f, "mount devtmpfs on /dev, or start udev");
	} else {
		mw_finding_missing(f, "the module, which creates it, is not loaded");
		f->cost[0] = '\0';
	}
}

/* What "record" and "top" measure with, unless --backend says something else. */
static void check_backend(const struct mw_cli *cli, struct mw_finding *f)
{
	struct mw_finding tracepoints = { .result = MW_RESULT_OK };

	if (!mw_root_access(cli, "/dev/memwatch", F_OK)) {
		check_tracepoints(cli, &tracepoints);
		if (tracepoints.result != MW_RESULT_MISSING && !try_device(cli)) {
			mw_finding_ok(f, "module: the kernel module measures");
			return;
		}
		mw_finding_missing(f, "module: it is there, but cannot be used, see above");
		mw_finding_cost(f, "no live measurement, but perhaps with --backend bpf");
	} else if (mw_backend_has_btf(cli)) {
		mw_finding_warn(f, "bpf: BPF programs measure, without the module");
		mw_finding_cost(f, "the module would add " MW_ADDED_BY_MODULE);
	} else {
		mw_finding_missing(f, "there is neither the module nor BTF");
		mw_finding_cost(f, "no live measurement");
		mw_finding_remedy(f, "load the module, or use a kernel built with "
				     "CONFIG_DEBUG_INFO_BTF");
	}
}

const struct mw_check mw_doctor_module[] = {
	{ "module", "module", false, check_module },
	{ "tracepoints", "tracepoints", false, check_tracepoints },
	{ "device", "device", false, check_device },
	{ "backend", "backend", true, check_backend },
	{ 0 },
};
