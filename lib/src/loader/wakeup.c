// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * An epoll descriptor with the rings and a timer in it. Setting the timer makes it unreadable
 * until the new time, so nothing has to be read from it.
 */
#include "loader/wakeup.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/timemath.h"

static int wakeup_add(const struct mw_wakeup *wakeup, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(wakeup->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int mw_wakeup_open(struct mw_wakeup *wakeup, int rings)
{
	int err;

	if (wakeup->opened)
		return wakeup->epoll;
	wakeup->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (wakeup->epoll < 0)
		return -errno;
	wakeup->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (wakeup->timer < 0) {
		err = -errno;
		close(wakeup->epoll);
		return err;
	}
	wakeup->opened = 1;
	err = wakeup_add(wakeup, wakeup->timer);
	if (!err)
		err = wakeup_add(wakeup, rings);
	if (err) {
		mw_wakeup_close(wakeup);
		return err;
	}
	mw_wakeup_arm(wakeup, 0);
	return wakeup->epoll;
}

void mw_wakeup_close(struct mw_wakeup *wakeup)
{
	if (!wakeup->opened)
		return;
	close(wakeup->timer);
	close(wakeup->epoll);
	wakeup->opened = 0;
}

void mw_wakeup_arm(struct mw_wakeup *wakeup, uint64_t time_ns)
{
	struct itimerspec when = {
		.it_value = {
			.tv_sec = (time_t)mw_min_u64(time_ns / MW_NSEC_PER_SEC, INT32_MAX),
			.tv_nsec = (long)(time_ns % MW_NSEC_PER_SEC),
		},
	};

	/* A time of 0 would stop the timer. */
	if (!time_ns)
		when.it_value.tv_nsec = 1;
	if (wakeup->opened)
		timerfd_settime(wakeup->timer, TFD_TIMER_ABSTIME, &when, NULL);
}
