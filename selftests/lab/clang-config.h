/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Corrects the configuration of a kernel that was built with gcc, so that a module for it
 * can be built with clang. The clang wrapper includes it after the kernel's own header.
 */
#undef CONFIG_CC_IS_GCC
#undef CONFIG_GCC_VERSION
#define CONFIG_GCC_VERSION 0
#define CONFIG_CC_IS_CLANG 1

/*
 * clang drops the segment of a named address space from operands of asm, so that every
 * per-CPU access would go to a wrong address.
 */
#undef CONFIG_CC_HAS_NAMED_AS
#undef CONFIG_CC_HAS_NAMED_AS_FIXED_SANITIZERS
#undef CONFIG_USE_X86_SEG_SUPPORT
