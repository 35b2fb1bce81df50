/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loading the module in a C test, in the lab's guests and on real machines. The module is
 * memwatch.ko in the folder where the test runs. A test never uses a module that somebody else
 * has loaded, and leaves none loaded.
 */
#ifndef _MW_SELFTESTS_MODULE_H
#define _MW_SELFTESTS_MODULE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns false if it is not loaded, or is in use. */
static inline bool module_unload(void)
{
	return !syscall(SYS_delete_module, "memwatch", O_NONBLOCK);
}

/*
 * A process that unloads the module when the calling one has ended, however it has. It is no child
 * of it, because a test may wait for all its children. It keeps the standard output open, so that
 * the runner does not start the next test before.
 */
static inline void module_watch(void)
{
	static bool watched;
	pid_t owner = getpid(), child;
	struct pollfd end = { .events = POLLIN };

	if (watched)
		return;
	watched = true;
	child = fork();
	if (child) {
		waitpid(child, NULL, 0);
		return;
	}
	if (fork())
		_exit(0);
	setsid();
	end.fd = syscall(SYS_pidfd_open, owner, 0);
	if (end.fd >= 0)
		poll(&end, 1, -1);
	/* What the process had open is closed a moment later. */
	for (int tries = 0; tries < 500 && !module_unload() && errno == EWOULDBLOCK; tries++)
		usleep(20000);
	_exit(0);
}

/* Loads the module until the process ends. Returns 0 or a negative errno. */
static inline int module_load(void)
{
	int fd = open("memwatch.ko", O_RDONLY | O_CLOEXEC), err;

	err = fd < 0 || syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	if (!err)
		module_watch();
	return err;
}

/* Why a test must not or cannot load the module on this machine, or NULL. */
static inline const char *module_obstacle(void)
{
	if (geteuid())
		return "needs root";
	if (access("/proc/modules", F_OK))
		return "this kernel loads no modules";
	if (!access("/sys/module/memwatch", F_OK))
		return "memwatch is loaded and may be in use; unload it first";
	if (access("memwatch.ko", R_OK))
		return "there is no memwatch.ko; build it with KDIR=DIR, or name it with KO=FILE";
	switch (module_load()) {
	case -ENOEXEC:
		return "memwatch.ko was built for another kernel";
	case -EKEYREJECTED:
	case -EPERM:
		return "this kernel loads signed modules only";
	}
	module_unload();
	return NULL;
}

/* Whether a test may disturb the whole machine. The lab's guests set the variable. */
static inline bool module_may_disrupt(void)
{
	const char *allowed = getenv("MEMWATCH_DISRUPTIVE");

	return allowed && !strcmp(allowed, "yes");
}

#define MODULE_DISRUPTIVE "disturbs the whole machine; set MEMWATCH_DISRUPTIVE=yes to allow it"

#endif /* _MW_SELFTESTS_MODULE_H */
