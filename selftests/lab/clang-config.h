/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the configuration of a gcc-built kernel would have said if clang had
 * been asked. Included right after the kernel's own, by the clang wrapper.
 */
#undef CONFIG_CC_IS_GCC
#undef CONFIG_GCC_VERSION
#define CONFIG_GCC_VERSION 0
#define CONFIG_CC_IS_CLANG 1

/*
 * clang drops the segment of a named address space from asm operands: every
 * per-CPU access would go to a linear address.
 */
#undef CONFIG_CC_HAS_NAMED_AS
#undef CONFIG_CC_HAS_NAMED_AS_FIXED_SANITIZERS
#undef CONFIG_USE_X86_SEG_SUPPORT
