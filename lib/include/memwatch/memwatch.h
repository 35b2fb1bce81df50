/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * libmemwatch provides one ordered stream of records about how each process uses caches,
 * memory bandwidth and CPU time, and the means to evaluate it. This header includes all the
 * others; each of them documents its subject. A record usually takes this path:
 *
 *   stream.h    open the live machine, a recording or a generator; read records in time order
 *   recording.h write records to a file
 *   tracker.h   find the process that owns an RMID
 *   slots.h     divide measurements into slots of 1 ms and attribute them to processes
 *   summary.h   add slots up by process, cgroup, RMID, CPU or slot
 *
 * Independent of this path are proc.h (the text files of /proc/memwatch), device.h
 * (/dev/memwatch), notices.h (what the module tells operators), growth.h with watch.h (leak
 * detection, which does not need the module), heap.h (heap profiles) and heap-process.h
 * (those of processes).
 *
 * THREADS. There is no global state. A context, and every object made from it, may be used
 * by one thread at a time. Two contexts are independent of each other.
 *
 * C++. The headers compile without warnings from C++11 on. No function has the name of a type, so
 * "struct" and "enum" may be left out there.
 *
 * ERRORS. Every function that can fail returns int: 0 or a positive number on success, a
 * negative errno on failure. Objects are returned through the last parameter, @ret, which is
 * unchanged on failure. Iterators return 1 for an item, 0 at the end, and a negative errno
 * on failure. memwatch_ctx_error() describes the last failure of a context. The library
 * never prints, exits or aborts, and does not change signals, locale or environment.
 *
 * OWNERSHIP. The comment of a function says which objects the caller must free, and how.
 * What is returned as a pointer to const is owned by the object it came from, and valid
 * until the moment that the comment states. Every *_unref and *_close accepts NULL and
 * returns NULL unless documented otherwise, so p = memwatch_x_unref(p) is idiomatic.
 *
 * OPTIONS. An options structure starts with @sz, which the caller sets to the size of the
 * structure, for example with MEMWATCH_OPTS. A NULL pointer, and 0 in any member, stand for
 * the default. A shorter structure from an older caller is completed with defaults. A longer
 * structure is accepted if all members that this library does not know are zero; otherwise
 * the call fails with -E2BIG. Structures that the library fills in (statistics) have @sz for
 * the same reason.
 *
 * UNITS. Times are in nanoseconds of CLOCK_MONOTONIC unless a name or a comment says
 * otherwise; sizes are in bytes. Integer types are those of linux/memwatch.h.
 *
 * LIBRARIES. libbpf is loaded when this machine is measured or watched for growth, libdw of
 * elfutils when symbols are looked for, and libnl-genl-3 when notices are read. Without them,
 * everything else works.
 *
 * ENVIRONMENT. MEMWATCH_LOG=error|warning|info|debug sets the initial log level. It is
 * ignored in setuid programs.
 */
#ifndef MEMWATCH_MEMWATCH_H
#define MEMWATCH_MEMWATCH_H

#include <memwatch/access.h>
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
#include <memwatch/notices.h>
#include <memwatch/groups.h>
#include <memwatch/growth.h>
#include <memwatch/watch.h>
#include <memwatch/heap.h>
#include <memwatch/heap-process.h>
#include <memwatch/stale.h>
#include <memwatch/stale-process.h>
#include <memwatch/where.h>
#include <memwatch/file.h>

#endif /* MEMWATCH_MEMWATCH_H */
