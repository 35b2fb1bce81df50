/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Call frame information: what .eh_frame says about the registers of the caller at one pc. It is
 * read in place; nothing is copied, allocated or locked.
 */
#ifndef _MW_HEAP_CFI_H
#define _MW_HEAP_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modules.h"

/* DWARF numbers of the registers that are followed. */
#if defined(__x86_64__)
#define MW_CFI_FP 6
#define MW_CFI_SP 7
#define MW_CFI_RA 16
#elif defined(__aarch64__)
#define MW_CFI_FP 29
#define MW_CFI_SP 31
#define MW_CFI_RA 30
#endif

enum mw_cfi_how {
	MW_CFI_SAME = 0,	 /* as in the callee */
	MW_CFI_UNDEFINED,	 /* lost; for the return address: there is no caller */
	MW_CFI_OFFSET,		 /* stored at CFA + offset */
	MW_CFI_VALUE,		 /* is CFA + offset */
	MW_CFI_EXPRESSION,	 /* stored at the address that the expression gives */
	MW_CFI_VALUE_EXPRESSION, /* is what the expression gives */
	MW_CFI_OTHER,		 /* is in a register that is not followed */
};

struct mw_cfi_rule {
	enum mw_cfi_how how;
	int64_t offset;
	const uint8_t *expression; /* begins with its length */
};

/* How to find the caller's registers at one pc. */
struct mw_cfi_row {
	uint32_t cfa_register;	       /* CFA is this register + cfa_offset, unless: */
	const uint8_t *cfa_expression; /* CFA is what this gives */
	int64_t cfa_offset;
	struct mw_cfi_rule fp;
	struct mw_cfi_rule sp; /* SAME: the CFA */
	struct mw_cfi_rule ra;
	bool signal; /* the frame of a signal: the caller's pc is exact */
};

/* Returns 0, -ENOENT if the module has nothing about @pc, or -EINVAL if it cannot be used. */
int mw_cfi_find(const struct mw_module *module, uintptr_t pc, struct mw_cfi_row *ret);

/* What an expression may use: registers by their numbers above, pc, and memory of the stack. */
struct mw_cfi_machine {
	uintptr_t fp, sp, ra, pc;
	bool (*read)(void *context, uintptr_t address, uintptr_t *ret);
	void *context;
};

/* Evaluates an expression, with @initial on its stack if that is not NULL. False if it cannot. */
bool mw_cfi_evaluate(const struct mw_cfi_machine *machine, const uint8_t *expression,
		     const uintptr_t *initial, uintptr_t *ret);

#endif
