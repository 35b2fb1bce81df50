/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How a process finds out that it is a forked child.
 *
 * A child may also be forked in a signal handler that interrupted this library, and return into
 * it. What was interrupted ends in the child with memory that nobody reads, see fork_inside().
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fork.h"
#include "next.h"
#include "profile.h"
#include "trace.h"

struct mw_fork mw_fork MW_HIDDEN;

int mw_fork_begin(void)
{
	void *page = mmap(NULL, MW_HEAP_PAGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	mw_fork.pid = madvise(page, MW_HEAP_PAGE_BYTES, MADV_WIPEONFORK) ? getpid() : 0;
	mw_fork.page = page;
	*mw_fork.page = MW_FORK_VALID;
	return 0;
}

/*
 * The header of the profile is not mapped in a forked child, but still is in one of vfork(), which
 * must change nothing of its parent's. To read it like this cannot fault. If it is not permitted,
 * the child is taken for a forked one.
 */
static bool memory_is_shared(pid_t pid)
{
	uint32_t owner = 0;
	struct iovec local = { &owner, sizeof(owner) };
	struct iovec remote = { &mw_profile.header->pid, sizeof(owner) };
	int saved = errno;
	bool read = process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(owner);

	errno = saved;
	return read && owner == (uint32_t)mw_fork.pid;
}

void mw_fork_compare_pid(void)
{
	pid_t pid = getpid();

	if (mw_fork.pid == pid || memory_is_shared(pid))
		return;
	mw_fork.pid = pid;
	*mw_fork.page = MW_FORK_FORKED;
}

bool mw_fork_claim(void)
{
	uint32_t expected = MW_FORK_FORKED;

	return mw_fork_read() == MW_FORK_FORKED &&
	       __atomic_compare_exchange_n(mw_fork.page, &expected, MW_FORK_BUSY, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void mw_fork_settle(void)
{
	__atomic_store_n(mw_fork.page, MW_FORK_VALID, __ATOMIC_RELEASE);
}

/*
 * The file is not mapped in a child. If the child may return into this library, it gets private
 * memory at the same place.
 */
static void fork_inside(void)
{
	if (mw_thread.busy || mw_thread.writing) {
		mw_profile_detach();
		mw_trace_detach();
	}
}

__attribute__((constructor)) static void fork_constructor(void)
{
	pthread_atfork(NULL, NULL, fork_inside);
}

/* The form of fork() that signal handlers may use: it calls no handlers of pthread_atfork(). */
MW_EXPORT pid_t _Fork(void)
{
	pid_t child;

	if (!mw_next_resolve() || !mw_next._Fork) {
		errno = ENOSYS;
		return -1;
	}
	child = mw_next._Fork();
	if (!child)
		fork_inside();
	return child;
}
