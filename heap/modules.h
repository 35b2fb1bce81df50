/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The ELF objects of this process: finding the one that contains an address, without a lock,
 * and giving it a number in the profile.
 */
#ifndef _MW_HEAP_MODULES_H
#define _MW_HEAP_MODULES_H

#include <stdbool.h>
#include <stdint.h>

struct mw_module {
	uintptr_t start;
	uintptr_t end;
	uintptr_t bias;
	uintptr_t eh_frame_hdr; /* address of .eh_frame_hdr; 0: none */
	uint32_t number;	/* in frames; 0: found no room in the profile */
};

/*
 * The module that contains @pc, which must be on the stack of a thread, so that the module
 * cannot be unloaded now. False if there is none.
 */
bool mw_module_find(uintptr_t pc, struct mw_module *ret);

/*
 * Objects are being unloaded, or have been: what was remembered about addresses is not valid
 * any more.
 */
void mw_module_unloaded(void);

/* Changes whenever mw_module_unloaded() is called. */
extern uint32_t mw_module_epoch __attribute__((visibility("hidden")));

/* After a fork: the numbers belong to the profile of the parent. */
void mw_modules_clear(void);

#endif
