/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * libmemwatch: one ordered stream of what every process does to memory, and
 * what to do with it. This header includes all the others; each of them is the
 * manual of its subject. The usual path of a record:
 *
 *   stream.h    open live, a recording or a generator; records in time order
 *   recording.h keep them in a file
 *   tracker.h   which process is RMID 7 of generation 3
 *   slots.h     cut measurements into 1 ms slots, attributed to processes
 *   summary.h   add slots up by process, cgroup, RMID, CPU or slot
 *
 * and beside it proc.h (text in /proc/memwatch), device.h (/dev/memwatch) and
 * growth.h with watch.h (which process leaks; needs no module).
 *
 * THREADS. There is no global state. A context, and everything made from it,
 * belongs to one thread at a time; two contexts are independent.
 *
 * ERRORS. Every function that can fail returns int: 0 or positive on success,
 * a negative errno on failure. Objects come out through the last parameter,
 * @ret, which is untouched on failure. Iterators return 1 for an item, 0 at the
 * end, a negative errno on failure. memwatch_ctx_error() has the last failure
 * of a context in words: what, where and why. The library does not print,
 * exit, abort or touch signals, locale and environment.
 *
 * OWNERSHIP. "Caller frees with X" means what it says. Everything returned as
 * a pointer to const is owned by the object it came from and valid until the
 * moment stated. Every *_unref and *_close accepts NULL and returns NULL or
 * what is documented, so that p = memwatch_x_unref(p) is idiomatic.
 *
 * OPTIONS. An options structure starts with @sz, set by the caller to sizeof of
 * it (MEMWATCH_OPTS does so). NULL, and 0 in any member, is the default. A
 * shorter structure of an older caller is completed with defaults; a longer one
 * is accepted if what this library does not know is zero, else -E2BIG. The
 * structures that the library fills in (statistics) work alike.
 *
 * UNITS. Time is in nanoseconds of CLOCK_MONOTONIC unless a name or comment
 * says otherwise; sizes are bytes. Integers are those of linux/memwatch.h.
 *
 * MEMWATCH_LOG=error|warning|info|debug in the environment (ignored in setuid
 * programs) sets the initial log level.
 */
#ifndef MEMWATCH_MEMWATCH_H
#define MEMWATCH_MEMWATCH_H

#include <memwatch/ctx.h>
#include <memwatch/value.h>
#include <memwatch/metric.h>
#include <memwatch/record.h>
#include <memwatch/stream.h>
#include <memwatch/recording.h>
#include <memwatch/tracker.h>
#include <memwatch/slots.h>
#include <memwatch/summary.h>
#include <memwatch/proc.h>
#include <memwatch/device.h>
#include <memwatch/growth.h>
#include <memwatch/watch.h>

#endif /* MEMWATCH_MEMWATCH_H */
