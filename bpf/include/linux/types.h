/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Replaces <linux/types.h> when the UAPI headers are compiled for BPF. The original includes
 * <asm/types.h>, which clang -target bpf does not find on distributions that have one folder
 * per architecture. The relay uses no other types of the kernel, so it needs no vmlinux.h.
 */
#ifndef _MW_BPF_LINUX_TYPES_H
#define _MW_BPF_LINUX_TYPES_H

typedef __signed__ char __s8;
typedef unsigned char __u8;
typedef __signed__ short __s16;
typedef unsigned short __u16;
typedef __signed__ int __s32;
typedef unsigned int __u32;
typedef __signed__ long long __s64;
typedef unsigned long long __u64;

typedef __u16 __le16;
typedef __u16 __be16;
typedef __u32 __le32;
typedef __u32 __be32;
typedef __u64 __le64;
typedef __u64 __be64;
typedef __u16 __sum16;
typedef __u32 __wsum;

#define __aligned_u64 __u64 __attribute__((aligned(8)))

#endif /* _MW_BPF_LINUX_TYPES_H */
