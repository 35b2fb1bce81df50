/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The time of the guest, which may pass more slowly than that of the host (slow-clock.h).
 */
#ifndef RDT_CLOCK_H
#define RDT_CLOCK_H

#include <stdint.h>

enum { MAX_SLOWDOWN = 10000 };

/*
 * From now on a second of the guest takes @factor seconds of the host. Unless @factor is 1,
 * all threads of the emulator get real-time priority, so that a CPU of the guest is not
 * stopped in the middle of what it does. They must not need the whole time of the host.
 * Returns 0 or an errno: with EPERM the emulator may not have the priority, and the time is
 * slowed all the same.
 */
int clock_slow(unsigned int factor);

/* CLOCK_MONOTONIC of the host. */
uint64_t clock_host_ns(void);

/* Keep the running vCPU waiting for @ns of the guest's time. */
void clock_wait(unsigned int ns);

#endif
