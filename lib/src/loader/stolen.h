/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Where the kernel of a virtual machine keeps for how long the host has not let a CPU run.
 */
#ifndef MW_LOADER_STOLEN_H
#define MW_LOADER_STOLEN_H

#include <stdint.h>

/*
 * The distance from the run queue of a CPU to its struct kvm_steal_time, or 0 if the kernel has
 * none or does not describe its variables.
 */
int64_t mw_bpf_stolen_distance(void);

#endif /* MW_LOADER_STOLEN_H */
