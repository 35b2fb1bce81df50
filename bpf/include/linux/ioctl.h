/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Replaces <linux/ioctl.h> for BPF programs, see types.h. BPF programs issue no ioctls, so
 * the macros that use _IO() are never expanded.
 */
