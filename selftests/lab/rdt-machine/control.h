/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The guest controls the machine through CPUID leaf 0x4d570000, which works in user space,
 * too. Subleaf 0 returns a signature in EBX, ECX and EDX. Subleaf 1 takes one command, a
 * text of RDX bytes at RBX, and returns 0 or an errno in EAX: EINVAL for a command that it
 * does not know, EFAULT for text that it cannot read, EIO for a file that it cannot write,
 * EPERM for a priority that it may not have.
 * "rdtctl --help" lists the commands. The machine writes its files into machine.dir.
 */
#ifndef RDT_CONTROL_H
#define RDT_CONTROL_H

#include <x86-hooks.h>

#include "machine.h"

enum { CONTROL_LEAF = 0x4d570000 };

void control_cpuid(unsigned int cpu, struct x86_hook_cpuid *c);

/* Log one access to an RDT register, if the log is on. @what is 'r' or 'w'. */
void control_log(unsigned int cpu, char what, uint32_t msr, uint64_t value, bool fault);

#endif
