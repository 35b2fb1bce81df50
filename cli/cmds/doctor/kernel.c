// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * doctor, the kernel: version, configuration, BTF, BPF, what a locked-down
 * machine forbids.
 */
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include "cmds/doctor/doctor.h"
#include "cmds/doctor/probe.h"
#include "common/root.h"

static void look_kernel(const struct mw_cli *cli, struct mw_finding *f)
{
	unsigned int major = 0, minor = 0;
	char release[128];
	struct utsname u;

	if (mw_root_line(cli, "/proc/sys/kernel/osrelease", release, sizeof(release)) <= 0) {
		mw_warned(f, "unknown: /proc/sys/kernel/osrelease cannot be read");
		return;
	}
	uname(&u);
	mw_found(f, "%s, %s", release, u.machine);
	if (strcmp(u.machine, "x86_64")) {
		mw_missed(f, "%s, %s: memwatch is for x86_64", release, u.machine);
		return;
	}
	/* A statement about our tests, not about what the kernel can do. */
	sscanf(release, "%u.%u", &major, &minor);
	if (major < 5 || (major == 5 && minor < 10)) {
		mw_warned(f, "%s, %s", release, u.machine);
		mw_cost(f, "memwatch is tested on 5.10 and newer");
	}
}

struct needed {
	const char *option;
	bool required;
	bool seen;
};

/* gzopen() reads plain files too. */
static gzFile open_config(const struct mw_cli *cli, const char *release, char *name, size_t size)
{
	static const char *const places[] = { "/proc/config.gz", "/boot/config-%s",
					      "/lib/modules/%s/config",
					      "/lib/modules/%s/build/.config" };
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		gzFile file;

		snprintf(name, size, places[i], release);
		file = gzopen(mw_root_path(cli, name, path, sizeof(path)), "re");
		if (file)
			return file;
	}
	return NULL;
}

static void read_config(gzFile file, struct needed *needed, size_t nr)
{
	char line[256];

	while (gzgets(file, line, sizeof(line))) {
		for (size_t i = 0; i < nr; i++) {
			size_t len = strlen(needed[i].option);

			if (!strncmp(line, needed[i].option, len) && line[len] == '=' &&
			    (line[len + 1] == 'y' || line[len + 1] == 'm'))
				needed[i].seen = true;
		}
	}
}

static void list_missing(const struct needed *needed, size_t nr, bool required, char *buf,
			 size_t size)
{
	buf[0] = '\0';
	for (size_t i = 0; i < nr; i++) {
		if (needed[i].seen || needed[i].required != required)
			continue;
		if (buf[0])
			strncat(buf, ", ", size - strlen(buf) - 1);
		strncat(buf, needed[i].option, size - strlen(buf) - 1);
	}
}

static void look_config(const struct mw_cli *cli, struct mw_finding *f)
{
	struct needed needed[] = {
		{ "CONFIG_MODULES", true, false },	   { "CONFIG_TRACEPOINTS", true, false },
		{ "CONFIG_HIGH_RES_TIMERS", true, false }, { "CONFIG_PERF_EVENTS", true, false },
		{ "CONFIG_BPF_SYSCALL", true, false },	   { "CONFIG_BPF_EVENTS", true, false },
		{ "CONFIG_CGROUPS", false, false },	   { "CONFIG_BPF_JIT", false, false },
		{ "CONFIG_DEBUG_INFO_BTF", false, false },
	};
	const size_t nr = sizeof(needed) / sizeof(needed[0]);
	char release[128], name[PATH_MAX], absent[256];
	gzFile file;

	mw_root_line(cli, "/proc/sys/kernel/osrelease", release, sizeof(release));
	file = open_config(cli, release, name, sizeof(name));
	if (!file) {
		mw_warned(f, "not found in /proc/config.gz, /boot or /lib/modules");
		mw_cost(f, "nothing, if the checks below are ok");
		return;
	}
	read_config(file, needed, nr);
	gzclose(file);
	list_missing(needed, nr, true, absent, sizeof(absent));
	if (absent[0]) {
		mw_missed(f, "%s lacks %s", name, absent);
		mw_cost(f, "the module or the relay cannot work");
		mw_remedy(f,
			  "use a kernel with these options; those of the distributions have them");
		return;
	}
	list_missing(needed, nr, false, absent, sizeof(absent));
	if (absent[0]) {
		mw_warned(f, "%s lacks %s", name, absent);
		mw_cost(f, "BTF: growth detection; cgroups: rows by cgroup; JIT: speed");
		return;
	}
	mw_found(f, "%s has all that is needed", name);
}

static void look_btf(const struct mw_cli *cli, struct mw_finding *f)
{
	if (!mw_root_access(cli, "/sys/kernel/btf/vmlinux", R_OK)) {
		mw_found(f, "/sys/kernel/btf/vmlinux");
		return;
	}
	mw_missed(f, "no /sys/kernel/btf/vmlinux");
	mw_cost(f, "BPF programs that read kernel structures cannot adapt to this kernel");
	mw_remedy(f, "use a kernel built with CONFIG_DEBUG_INFO_BTF");
}

static void explain_bpf(const struct mw_cli *cli, struct mw_finding *f, const char *what, int err)
{
	char setting[16];

	mw_missed(f, "%s: %s", what, strerror(-err));
	mw_cost(f, "no records reach user space");
	if (err == -ENOSYS) {
		mw_remedy(f, "use a kernel built with CONFIG_BPF_SYSCALL");
	} else if (err == -EINVAL || err == -ENOENT) {
		mw_remedy(f, "use a kernel built with CONFIG_BPF_EVENTS");
	} else if (err == -EPERM || err == -EACCES) {
		mw_root_line(cli, "/proc/sys/kernel/unprivileged_bpf_disabled", setting,
			     sizeof(setting));
		mw_remedy(f,
			  "run as root, or with CAP_BPF and CAP_PERFMON "
			  "(unprivileged_bpf_disabled is %s)",
			  setting[0] ? setting : "unknown");
	}
}

static void look_bpf(const struct mw_cli *cli, struct mw_finding *f)
{
	int err = mw_probe_bpf_load(cli);

	if (err) {
		explain_bpf(cli, f, "a program cannot be loaded", err);
		return;
	}
	err = mw_probe_bpf_attach(cli);
	if (err) {
		explain_bpf(cli, f, "a program cannot be attached to a raw tracepoint", err);
		return;
	}
	mw_found(f, "a program was loaded and attached to a raw tracepoint");
}

static void look_tracefs(const struct mw_cli *cli, struct mw_finding *f)
{
	static const char *const places[] = { "/sys/kernel/tracing/events",
					      "/sys/kernel/debug/tracing/events" };
	bool hidden = false;

	for (size_t i = 0; i < 2; i++) {
		int err = mw_root_access(cli, places[i], R_OK | X_OK);

		if (!err) {
			mw_found(f, "%.*s", (int)(strlen(places[i]) - strlen("/events")),
				 places[i]);
			return;
		}
		hidden |= err == -EACCES;
	}
	if (hidden) {
		mw_warned(f, "not readable by this user");
		mw_remedy(f, "run as root");
	} else {
		mw_warned(f, "not mounted");
		mw_remedy(f, "mount -t tracefs tracefs /sys/kernel/tracing");
	}
	mw_cost(f, "the module's tracepoints cannot be looked at, only used");
}

static void look_lockdown(const struct mw_cli *cli, struct mw_finding *f)
{
	char line[128];

	if (mw_root_line(cli, "/sys/kernel/security/lockdown", line, sizeof(line)) <= 0) {
		mw_found(f, "none: this kernel has no lockdown, or securityfs is not mounted");
	} else if (strstr(line, "[confidentiality]")) {
		mw_warned(f, "confidentiality");
		mw_cost(f, "unsigned modules are refused, BPF cannot read kernel memory");
		mw_remedy(f, "sign memwatch.ko with an enrolled key, boot with lockdown=integrity");
	} else if (strstr(line, "[integrity]")) {
		mw_warned(f, "integrity");
		mw_cost(f, "unsigned modules and writes to /dev/cpu/N/msr are refused");
		mw_remedy(f, "sign memwatch.ko with an enrolled key (MOK)");
	} else {
		mw_found(f, "none");
	}
}

static bool secure_boot_is_on(const struct mw_cli *cli, bool *known)
{
	FILE *file = mw_root_open(cli, "/sys/firmware/efi/efivars/"
				       "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
	unsigned char data[5] = { 0 };

	*known = file && fread(data, 1, sizeof(data), file) == sizeof(data);
	if (file)
		fclose(file);
	/* Four bytes of attributes, then the value. */
	return *known && data[4] == 1;
}

static void look_signing(const struct mw_cli *cli, struct mw_finding *f)
{
	char enforce[8] = "";
	bool known, on = secure_boot_is_on(cli, &known);

	mw_root_line(cli, "/sys/module/module/parameters/sig_enforce", enforce, sizeof(enforce));
	if (enforce[0] == 'Y') {
		mw_warned(f, "Secure Boot %s; only signed modules are loaded", on ? "on" : "off");
		mw_cost(f, "memwatch.ko is refused unless it is signed");
		mw_remedy(f, "sign it with an enrolled key: mokutil --import, then sign-file");
	} else if (on) {
		mw_warned(f, "Secure Boot on");
		mw_cost(f, "many distributions then refuse unsigned modules");
		mw_remedy(f, "sign memwatch.ko with an enrolled key (MOK)");
	} else {
		mw_found(f, "Secure Boot %s; unsigned modules are accepted",
			 known ? "off" : "not there");
	}
}

static void look_nohz_full(const struct mw_cli *cli, struct mw_finding *f)
{
	char list[128];
	int len = mw_root_line(cli, "/sys/devices/system/cpu/nohz_full", list, sizeof(list));

	if (len <= 0 || strstr(list, "null")) {
		mw_found(f, "no CPU is isolated with nohz_full");
		return;
	}
	mw_warned(f, "nohz_full=%s", list);
	mw_cost(f, "the tick of memwatch disturbs these CPUs");
	mw_remedy(f, "leave them out: memwatchctl config cpumask=LIST");
}

static void look_cgroup(const struct mw_cli *cli, struct mw_finding *f)
{
	if (!mw_root_access(cli, "/sys/fs/cgroup/cgroup.controllers", F_OK)) {
		mw_found(f, "unified hierarchy at /sys/fs/cgroup");
		return;
	}
	mw_missed(f, "no unified hierarchy (cgroup2) at /sys/fs/cgroup");
	mw_cost(f, "rows by cgroup have an id and no name");
	mw_remedy(f, "boot with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 none "
		     "/sys/fs/cgroup");
}

bool mw_has_capability(const struct mw_cli *cli, int capability)
{
	FILE *file = mw_root_open(cli, "/proc/self/status");
	unsigned long long set = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", &set) == 1)
			break;
	if (file)
		fclose(file);
	return set >> capability & 1;
}

static void look_privileges(const struct mw_cli *cli, struct mw_finding *f)
{
	bool admin = mw_has_capability(cli, CAP_SYS_ADMIN);
	bool bpf = mw_has_capability(cli, CAP_BPF), perf = mw_has_capability(cli, CAP_PERFMON);

	if (admin || (bpf && perf)) {
		mw_found(f, "%s", admin ? "CAP_SYS_ADMIN" : "CAP_BPF and CAP_PERFMON");
		return;
	}
	mw_missed(f, "neither CAP_SYS_ADMIN nor CAP_BPF with CAP_PERFMON");
	mw_cost(f, "no live measurement; report and export of recordings still work");
	mw_remedy(f, "run as root: sudo memwatchctl doctor");
}

static void look_memlock(const struct mw_cli *cli, struct mw_finding *f)
{
	uint64_t limit = mw_probe_memlock(cli);

	if (limit == UINT64_MAX) {
		mw_found(f, "RLIMIT_MEMLOCK is unlimited");
	} else if (mw_has_capability(cli, CAP_IPC_LOCK)) {
		mw_found(f, "RLIMIT_MEMLOCK is %llu KiB, does not bind with CAP_IPC_LOCK",
			 (unsigned long long)limit / 1024);
	} else {
		mw_warned(f, "RLIMIT_MEMLOCK is %llu KiB", (unsigned long long)limit / 1024);
		mw_cost(f, "rings of many CPUs may not fit");
		mw_remedy(f, "ulimit -l unlimited, or CAP_IPC_LOCK");
	}
}

const struct mw_check mw_doctor_kernel[] = {
	{ "kernel", "kernel", true, look_kernel },
	{ "kernel_config", "kernel config", true, look_config },
	{ "privileges", "privileges", true, look_privileges },
	{ "bpf", "BPF", true, look_bpf },
	{ "btf", "BTF", false, look_btf },
	{ "tracefs", "tracefs", false, look_tracefs },
	{ "lockdown", "lockdown", false, look_lockdown },
	{ "module_signing", "module signing", false, look_signing },
	{ "locked_memory", "locked memory", false, look_memlock },
	{ "cgroup", "cgroups", false, look_cgroup },
	{ "nohz_full", "isolated CPUs", false, look_nohz_full },
	{ 0 },
};
