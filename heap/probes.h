/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * User-space probes (USDT) for other tracers, as OpenTelemetry's eBPF profiler proposes them:
 * otel_memory:alloc with pointer, size and weight in bytes, and otel_memory:free with the
 * pointer, both for sampled objects only. A probe costs one test of its semaphore until
 * somebody attaches.
 *
 * The notes are written by hand, in the format of sys/sdt.h version 3, so that the build needs
 * no package for four lines of assembler.
 */
#ifndef _MW_HEAP_PROBES_H
#define _MW_HEAP_PROBES_H

#include <stdbool.h>
#include <stdint.h>

/* Raised by whoever attaches to a probe. */
extern volatile uint16_t otel_memory_alloc_semaphore __attribute__((visibility("hidden")));
extern volatile uint16_t otel_memory_free_semaphore __attribute__((visibility("hidden")));

/* False if the allocator below fires probes with these names itself. */
bool mw_probes_are_ours(void);

#define MW_PROBE(name, arguments)                                                                  \
	"990:	nop\n"                                                                               \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                                              \
	".balign 4\n"                                                                              \
	".4byte 992f-991f, 994f-993f, 3\n"                                                         \
	"991:	.asciz \"stapsdt\"\n"                                                                \
	"992:	.balign 4\n"                                                                         \
	"993:	.8byte 990b\n"                                                                       \
	".8byte _.stapsdt.base\n"                                                                  \
	".8byte otel_memory_" name "_semaphore\n"                                                  \
	".asciz \"otel_memory\"\n"                                                                 \
	".asciz \"" name "\"\n"                                                                    \
	".asciz \"" arguments "\"\n"                                                               \
	"994:	.balign 4\n"                                                                         \
	".popsection\n"                                                                            \
	".ifndef _.stapsdt.base\n"                                                                 \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                    \
	".weak _.stapsdt.base\n"                                                                   \
	".hidden _.stapsdt.base\n"                                                                 \
	"_.stapsdt.base: .space 1\n"                                                               \
	".size _.stapsdt.base, 1\n"                                                                \
	".popsection\n"                                                                            \
	".endif\n"

static inline void mw_probe_alloc(uint64_t address, uint64_t size, uint64_t weight)
{
	if (__builtin_expect(!otel_memory_alloc_semaphore, 1) || !mw_probes_are_ours())
		return;
	__asm__ volatile(MW_PROBE("alloc", "8@%0 8@%1 8@%2")
			 :
			 : "r"(address), "r"(size), "r"(weight)
			 : "memory");
}

static inline void mw_probe_free(uint64_t address)
{
	if (__builtin_expect(!otel_memory_free_semaphore, 1) || !mw_probes_are_ours())
		return;
	__asm__ volatile(MW_PROBE("free", "8@%0") : : "r"(address) : "memory");
}

#endif
