/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Stacks with frames of an interpreter between native ones.
 */
#ifndef MW_HEAP_INTERPRETER_H
#define MW_HEAP_INTERPRETER_H

#include <stdint.h>

/*
 * Removes native frames of the interpreter from the frames of a profile (see profile-format.h):
 * its loops, and what the loops call and are called by without leaving its module. What is left
 * is the frames of the interpreted program and of other modules. Returns how many there are.
 */
uint32_t mw_interpreter_trim(uint64_t *frames, uint32_t depth);

#endif /* MW_HEAP_INTERPRETER_H */
