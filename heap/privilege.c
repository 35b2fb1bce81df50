/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Daemons drop their privileges after they have started, and cannot open their profile any more
 * when it has to grow. So the functions that do this are interposed, and the profile gets its
 * usual size just before.
 */
#include <errno.h>
#include <unistd.h>

#include "next.h"
#include "profile.h"
#include "runtime.h"
#include "thread.h"

static void privileges_change(void)
{
	struct mw_thread *thread = &mw_thread;

	if (!mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0)))
		return;
	mw_thread_interrupts(thread);
	/* A forked child gets its profile first: afterwards it may not be able to create one. */
	mw_runtime_follow(thread);
	if (mw_runtime_owns_samples())
		mw_profile_provide();
	mw_thread_leave(thread);
}

/* clang-format off */
#define PRIVILEGE(name, parameters, arguments)                                               \
	MW_EXPORT int name parameters                                                        \
	{                                                                                    \
		if (!mw_next_resolve() || !mw_next.name) {                                   \
			errno = ENOSYS;                                                      \
			return -1;                                                           \
		}                                                                            \
		privileges_change();                                                         \
		return mw_next.name arguments;                                               \
	}

PRIVILEGE(setuid, (uid_t uid), (uid))
PRIVILEGE(seteuid, (uid_t uid), (uid))
PRIVILEGE(setreuid, (uid_t real, uid_t effective), (real, effective))
PRIVILEGE(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
PRIVILEGE(chroot, (const char *path), (path))
/* clang-format on */
