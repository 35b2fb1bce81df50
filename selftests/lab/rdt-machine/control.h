/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the guest talks to the machine: CPUID leaf 0x4d570000, from user space
 * too. Subleaf 0 answers with the signature in EBX, ECX and EDX. Subleaf 1
 * takes one command, text of RDX bytes at RBX, and answers with EAX 0, or an
 * errno: EINVAL for what it does not understand, EFAULT for text it cannot
 * read, EIO for a file that cannot be written. rdtctl has the commands' list.
 *
 * What it tells goes to files in machine.dir.
 */
#ifndef RDT_CONTROL_H
#define RDT_CONTROL_H

#include <x86-hooks.h>

#include "machine.h"

enum { CONTROL_LEAF = 0x4d570000 };

void control_cpuid(unsigned int cpu, struct x86_hook_cpuid *c);

/* One operation on an RDT register, for the log if that is on. */
void control_log(unsigned int cpu, char what, uint32_t msr, uint64_t value, bool fault);

#endif
