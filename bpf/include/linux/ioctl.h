/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Stands in for <linux/ioctl.h> as types.h beside it does for its name. BPF
 * programs issue no ioctls: the macros that use _IO() are never expanded.
 */
