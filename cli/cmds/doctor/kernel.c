// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The checks of the kernel: version, configuration, BPF and BTF, privileges, and the
 * restrictions of a locked-down machine.
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
#include "common/cgroup.h"
#include "common/root.h"

/* dkms signs what it builds with a key of its own. */
#define ENROL_KEY "enrol the key of dkms: mokutil --import /var/lib/dkms/mok.pub, and reboot"

static void check_kernel(const struct mw_cli *cli, struct mw_finding *f)
{
	unsigned int major = 0, minor = 0;
	char release[128];
	struct utsname u;

	if (mw_root_line(cli, "/proc/sys/kernel/osrelease", release, sizeof(release)) <= 0) {
		mw_finding_warn(f, "unknown, because /proc/sys/kernel/osrelease cannot be read");
		return;
	}
	uname(&u);
	mw_finding_ok(f, "%s, %s", release, u.machine);
	if (strcmp(u.machine, "x86_64")) {
		mw_finding_missing(f, "%s, %s; memwatch supports x86_64 only", release, u.machine);
		return;
	}
	sscanf(release, "%u.%u", &major, &minor);
	if (major < 5 || (major == 5 && minor < 10)) {
		mw_finding_warn(f, "%s, %s", release, u.machine);
		mw_finding_cost(f, "memwatch is not tested on kernels before 5.10");
	}
}

struct needed_option {
	const char *name;
	const char *effect; /* of its absence; NULL: the option is required */
	bool enabled;
};

/* Opens the configuration with gzopen(), which also reads uncompressed files. */
static gzFile open_kernel_config(const struct mw_cli *cli, const char *release, char *name,
				 size_t size)
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

static void read_kernel_config(gzFile file, struct needed_option *needed, size_t nr)
{
	char line[256];

	while (gzgets(file, line, sizeof(line))) {
		for (size_t i = 0; i < nr; i++) {
			size_t len = strlen(needed[i].name);

			if (!strncmp(line, needed[i].name, len) && line[len] == '=' &&
			    (line[len + 1] == 'y' || line[len + 1] == 'm'))
				needed[i].enabled = true;
		}
	}
}

static void append_part(char *buf, size_t size, const char *separator, const char *part)
{
	if (buf[0])
		strncat(buf, separator, size - strlen(buf) - 1);
	strncat(buf, part, size - strlen(buf) - 1);
}

/* The names of the options that are missing. @effects, if it is not NULL, gets what follows. */
static void list_missing_options(const struct needed_option *needed, size_t nr, bool required,
				 char *names, char *effects, size_t size)
{
	names[0] = '\0';
	if (effects)
		effects[0] = '\0';
	for (size_t i = 0; i < nr; i++) {
		if (needed[i].enabled || !needed[i].effect != required)
			continue;
		append_part(names, size, ", ", needed[i].name);
		if (effects)
			append_part(effects, size, "; ", needed[i].effect);
	}
}

static void check_kernel_config(const struct mw_cli *cli, struct mw_finding *f)
{
	struct needed_option needed[] = {
		{ "CONFIG_TRACEPOINTS", NULL, false },
		{ "CONFIG_HIGH_RES_TIMERS", NULL, false },
		{ "CONFIG_PERF_EVENTS", NULL, false },
		{ "CONFIG_BPF_SYSCALL", NULL, false },
		{ "CONFIG_BPF_EVENTS", NULL, false },
		{ "CONFIG_MODULES", "without modules: no cache and bandwidth of each process",
		  false },
		{ "CONFIG_DEBUG_INFO_BTF",
		  "without BTF: no growth detection, and only the module measures", false },
		{ "CONFIG_CGROUPS", "without cgroups: no rows by cgroup", false },
		{ "CONFIG_BPF_JIT", "without the JIT: higher overhead", false },
	};
	const size_t nr = sizeof(needed) / sizeof(needed[0]);
	char release[128], name[PATH_MAX], absent[256], effects[256];
	gzFile file;

	mw_root_line(cli, "/proc/sys/kernel/osrelease", release, sizeof(release));
	file = open_kernel_config(cli, release, name, sizeof(name));
	if (!file) {
		mw_finding_warn(f, "not found in /proc/config.gz, /boot or /lib/modules");
		mw_finding_cost(f, "none, if the checks below succeed");
		return;
	}
	read_kernel_config(file, needed, nr);
	gzclose(file);
	list_missing_options(needed, nr, true, absent, NULL, sizeof(absent));
	if (absent[0]) {
		mw_finding_missing(f, "%s lacks %s", name, absent);
		mw_finding_cost(f, "the BPF programs cannot work");
		mw_finding_remedy(
			f, "use a kernel with these options, such as the kernel of a distribution");
		return;
	}
	list_missing_options(needed, nr, false, absent, effects, sizeof(absent));
	if (absent[0]) {
		mw_finding_warn(f, "%s lacks %s", name, absent);
		mw_finding_cost(f, "%s", effects);
		return;
	}
	mw_finding_ok(f, "%s has all options that memwatch needs", name);
}

static void check_btf(const struct mw_cli *cli, struct mw_finding *f)
{
	if (!mw_root_access(cli, "/sys/kernel/btf/vmlinux", R_OK)) {
		mw_finding_ok(f, "/sys/kernel/btf/vmlinux");
		return;
	}
	mw_finding_missing(f, "there is no /sys/kernel/btf/vmlinux");
	mw_finding_cost(f, "no growth detection, and no measurement without the module: their BPF "
			   "programs need the types of this kernel");
	mw_finding_remedy(f, "use a kernel built with CONFIG_DEBUG_INFO_BTF");
}

static void report_bpf_error(const struct mw_cli *cli, struct mw_finding *f, const char *what,
			     int err)
{
	char setting[16];

	mw_finding_missing(f, "%s: %s", what, strerror(-err));
	mw_finding_cost(f, "no live measurement");
	if (err == -ENOSYS) {
		mw_finding_remedy(f, "use a kernel built with CONFIG_BPF_SYSCALL");
	} else if (err == -EINVAL || err == -ENOENT) {
		mw_finding_remedy(f, "use a kernel built with CONFIG_BPF_EVENTS");
	} else if (err == -EPERM || err == -EACCES) {
		mw_root_line(cli, "/proc/sys/kernel/unprivileged_bpf_disabled", setting,
			     sizeof(setting));
		mw_finding_remedy(f,
				  "run memwatchctl as root, or with CAP_BPF and CAP_PERFMON "
				  "(unprivileged_bpf_disabled is %s)",
				  setting[0] ? setting : "unknown");
	}
}

static void check_bpf(const struct mw_cli *cli, struct mw_finding *f)
{
	int err = mw_probe_bpf_load(cli);

	if (err) {
		report_bpf_error(cli, f, "a BPF program cannot be loaded", err);
		return;
	}
	err = mw_probe_bpf_attach(cli);
	if (err) {
		report_bpf_error(cli, f, "a BPF program cannot be attached to a raw tracepoint",
				 err);
		return;
	}
	mw_finding_ok(f, "a BPF program can be loaded and attached to a raw tracepoint");
}

static void check_tracefs(const struct mw_cli *cli, struct mw_finding *f)
{
	static const char *const places[] = { "/sys/kernel/tracing/events",
					      "/sys/kernel/debug/tracing/events" };
	bool hidden = false;

	for (size_t i = 0; i < 2; i++) {
		int err = mw_root_access(cli, places[i], R_OK | X_OK);

		if (!err) {
			mw_finding_ok(f, "%.*s", (int)(strlen(places[i]) - strlen("/events")),
				      places[i]);
			return;
		}
		hidden |= err == -EACCES;
	}
	if (hidden) {
		mw_finding_warn(f, "tracefs is not readable by this user");
		mw_finding_remedy(f, "run memwatchctl as root");
	} else {
		mw_finding_warn(f, "tracefs is not mounted");
		mw_finding_remedy(f, "mount -t tracefs tracefs /sys/kernel/tracing");
	}
	mw_finding_cost(f, "doctor cannot check the tracepoints of the module");
}

static void check_lockdown(const struct mw_cli *cli, struct mw_finding *f)
{
	char line[128];

	if (mw_root_line(cli, "/sys/kernel/security/lockdown", line, sizeof(line)) <= 0) {
		mw_finding_ok(
			f,
			"not reported: this kernel has no lockdown, or securityfs is not mounted");
	} else if (strstr(line, "[confidentiality]")) {
		mw_finding_warn(f, "the mode is confidentiality");
		mw_finding_cost(
			f,
			"unsigned modules are refused, and BPF programs cannot read kernel memory");
		mw_finding_remedy(
			f,
			"enrol the key of dkms: mokutil --import /var/lib/dkms/mok.pub; and boot "
			"with lockdown=integrity");
	} else if (strstr(line, "[integrity]")) {
		mw_finding_warn(f, "the mode is integrity");
		mw_finding_cost(f, "unsigned modules and writes to /dev/cpu/N/msr are refused");
		mw_finding_remedy(f, ENROL_KEY);
	} else {
		mw_finding_ok(f, "off");
	}
}

/* *@known is false if this machine did not boot with EFI. */
static bool secure_boot_is_on(const struct mw_cli *cli, bool *known)
{
	FILE *file = mw_root_open(cli, "/sys/firmware/efi/efivars/"
				       "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
	unsigned char data[5] = { 0 };

	*known = file && fread(data, 1, sizeof(data), file) == sizeof(data);
	if (file)
		fclose(file);
	/* The value follows four bytes of attributes. */
	return *known && data[4] == 1;
}

static void check_signing(const struct mw_cli *cli, struct mw_finding *f)
{
	char enforce[8] = "";
	bool known, on = secure_boot_is_on(cli, &known);

	if (!mw_loads_modules(cli)) {
		mw_finding_ok(f, "not relevant: this kernel cannot load modules");
		return;
	}
	mw_root_line(cli, "/sys/module/module/parameters/sig_enforce", enforce, sizeof(enforce));
	if (enforce[0] == 'Y') {
		mw_finding_warn(f, "Secure Boot is %s; the kernel loads only signed modules",
				on ? "on" : "off");
		mw_finding_cost(f, "memwatch.ko cannot be loaded unless it is signed");
		mw_finding_remedy(f, ENROL_KEY);
	} else if (on) {
		mw_finding_warn(f, "Secure Boot is on");
		mw_finding_cost(f,
				"the kernels of many distributions then refuse unsigned modules");
		mw_finding_remedy(f, ENROL_KEY);
	} else {
		mw_finding_ok(f, "Secure Boot is %s; the kernel loads unsigned modules",
			      known ? "off" : "not available");
	}
}

static void check_nohz_full(const struct mw_cli *cli, struct mw_finding *f)
{
	char list[128];
	int len = mw_root_line(cli, "/sys/devices/system/cpu/nohz_full", list, sizeof(list));

	if (len <= 0 || strstr(list, "null")) {
		mw_finding_ok(f, "no CPU is isolated with nohz_full");
		return;
	}
	mw_finding_ok(f, "nohz_full=%s: the module does not tick there unless cpumask says so",
		      list);
}

static void check_cgroup(const struct mw_cli *cli, struct mw_finding *f)
{
	const char *mount = mw_cgroup_mount(cli);

	if (mount) {
		mw_finding_ok(f, "cgroup v2 is mounted at %s", mount);
		return;
	}
	mw_finding_missing(f, "cgroup v2 is not mounted at /sys/fs/cgroup");
	mw_finding_cost(f, "cgroups are shown by their id instead of their name");
	mw_finding_remedy(f, "boot with systemd.unified_cgroup_hierarchy=1, or run "
			     "mount -t cgroup2 none /sys/fs/cgroup");
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

static void check_privileges(const struct mw_cli *cli, struct mw_finding *f)
{
	bool admin = mw_has_capability(cli, CAP_SYS_ADMIN);
	bool bpf = mw_has_capability(cli, CAP_BPF), perf = mw_has_capability(cli, CAP_PERFMON);

	if (admin || (bpf && perf)) {
		mw_finding_ok(f, "this user has %s",
			      admin ? "CAP_SYS_ADMIN" : "CAP_BPF and CAP_PERFMON");
		return;
	}
	mw_finding_missing(f,
			   "this user has neither CAP_SYS_ADMIN nor both CAP_BPF and CAP_PERFMON");
	mw_finding_cost(f, "no live measurement; recordings can still be reported and exported");
	mw_finding_remedy(f, "run memwatchctl as root: sudo memwatchctl doctor");
}

static void check_memlock(const struct mw_cli *cli, struct mw_finding *f)
{
	uint64_t limit = mw_probe_memlock(cli);

	if (limit == UINT64_MAX) {
		mw_finding_ok(f, "RLIMIT_MEMLOCK is unlimited");
	} else if (mw_has_capability(cli, CAP_IPC_LOCK)) {
		mw_finding_ok(f, "RLIMIT_MEMLOCK is %llu KiB, but CAP_IPC_LOCK overrides it",
			      (unsigned long long)limit / 1024);
	} else {
		mw_finding_warn(f, "RLIMIT_MEMLOCK is %llu KiB", (unsigned long long)limit / 1024);
		mw_finding_cost(f, "the perf ring buffers of many CPUs may exceed the limit");
		mw_finding_remedy(f, "run ulimit -l unlimited, or use CAP_IPC_LOCK");
	}
}

const struct mw_check mw_doctor_kernel[] = {
	{ "kernel", "kernel", true, check_kernel },
	{ "kernel_config", "kernel config", true, check_kernel_config },
	{ "privileges", "privileges", true, check_privileges },
	{ "bpf", "BPF", true, check_bpf },
	{ "btf", "BTF", false, check_btf },
	{ "tracefs", "tracefs", false, check_tracefs },
	{ "lockdown", "lockdown", false, check_lockdown },
	{ "module_signing", "module signing", false, check_signing },
	{ "locked_memory", "locked memory", false, check_memlock },
	{ "cgroup", "cgroups", false, check_cgroup },
	{ "nohz_full", "isolated CPUs", false, check_nohz_full },
	{ 0 },
};
