/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * DWARF expressions as far as call frame information uses them: the frames of signals, functions
 * that realign their stack, and entries of the procedure linkage table.
 */
#include "cfi-bytes.h"
#include "cfi.h"

#define STACK_MAX 16

#if defined(__x86_64__)
#define REGISTER_PC 16
#else
#define REGISTER_PC 32
#endif

struct expression {
	struct mw_bytes bytes;
	const struct mw_cfi_machine *machine;
	uintptr_t stack[STACK_MAX];
	uint32_t depth;
	bool bad;
};

static void value_push(struct expression *expression, uintptr_t value)
{
	if (expression->depth == STACK_MAX)
		expression->bad = true;
	else
		expression->stack[expression->depth++] = value;
}

static uintptr_t value_pop(struct expression *expression)
{
	if (!expression->depth) {
		expression->bad = true;
		return 0;
	}
	return expression->stack[--expression->depth];
}

static void register_push(struct expression *expression, uint64_t number, int64_t offset)
{
	const struct mw_cfi_machine *machine = expression->machine;
	uintptr_t value = 0;

	if (number == MW_CFI_SP)
		value = machine->sp;
	else if (number == MW_CFI_FP)
		value = machine->fp;
	else if (number == REGISTER_PC)
		value = machine->pc;
	else if (number == MW_CFI_RA)
		value = machine->ra;
	else
		expression->bad = true;
	value_push(expression, value + (uintptr_t)offset);
}

static void memory_push(struct expression *expression, uintptr_t address)
{
	uintptr_t value = 0;

	if (expression->bad ||
	    !expression->machine->read(expression->machine->context, address, &value))
		expression->bad = true;
	value_push(expression, value);
}

/* Operations that need no operand from the stack. False if @code is none of them. */
static bool constant_operation(struct expression *expression, uint8_t code)
{
	struct mw_bytes *bytes = &expression->bytes;

	if (code >= 0x30 && code <= 0x4f) /* lit0..lit31 */
		value_push(expression, code - 0x30);
	else if (code >= 0x70 && code <= 0x8f) /* breg0..breg31 */
		register_push(expression, code - 0x70, mw_bytes_sleb(bytes));
	else if (code >= 0x08 && code <= 0x0f) { /* const1u, const1s, ... const8s */
		uint32_t size = 1u << ((code - 0x08) / 2);

		value_push(expression, code & 1 ? (uintptr_t)mw_bytes_fixed_signed(bytes, size)
						: mw_bytes_fixed(bytes, size));
	} else if (code == 0x10)
		value_push(expression, mw_bytes_uleb(bytes));
	else if (code == 0x11)
		value_push(expression, (uintptr_t)mw_bytes_sleb(bytes));
	else if (code == 0x92) { /* bregx */
		uint64_t number = mw_bytes_uleb(bytes);

		register_push(expression, number, mw_bytes_sleb(bytes));
	} else
		return false;
	return true;
}

/* Operations that replace two values by one. False if @code is none of them. */
static bool binary_operation(struct expression *expression, uint8_t code)
{
	uintptr_t right, left, value;

	if (!(code == 0x1a || code == 0x1c || code == 0x1e || (code >= 0x21 && code <= 0x27) ||
	      (code >= 0x29 && code <= 0x2e)) ||
	    code == 0x23)
		return false;
	right = value_pop(expression);
	left = value_pop(expression);
	switch (code) {
	case 0x1a:
		value = left & right;
		break;
	case 0x1c:
		value = left - right;
		break;
	case 0x1e:
		value = left * right;
		break;
	case 0x21:
		value = left | right;
		break;
	case 0x22:
		value = left + right;
		break;
	case 0x24:
		value = right < 64 ? left << right : 0;
		break;
	case 0x25:
		value = right < 64 ? left >> right : 0;
		break;
	case 0x26:
		value = (uintptr_t)((intptr_t)left >> (right < 63 ? right : 63));
		break;
	case 0x27:
		value = left ^ right;
		break;
	case 0x29:
		value = left == right;
		break;
	case 0x2a:
		value = (intptr_t)left >= (intptr_t)right;
		break;
	case 0x2b:
		value = (intptr_t)left > (intptr_t)right;
		break;
	case 0x2c:
		value = (intptr_t)left <= (intptr_t)right;
		break;
	case 0x2d:
		value = (intptr_t)left < (intptr_t)right;
		break;
	default:
		value = left != right;
		break;
	}
	value_push(expression, value);
	return true;
}

static bool stack_operation(struct expression *expression, uint8_t code)
{
	uintptr_t top, below;

	switch (code) {
	case 0x06: /* deref */
		memory_push(expression, value_pop(expression));
		return true;
	case 0x23: /* plus_uconst */
		top = value_pop(expression);
		value_push(expression, top + mw_bytes_uleb(&expression->bytes));
		return true;
	case 0x12: /* dup */
		top = value_pop(expression);
		value_push(expression, top);
		value_push(expression, top);
		return true;
	case 0x13: /* drop */
		value_pop(expression);
		return true;
	case 0x16: /* swap */
		top = value_pop(expression);
		below = value_pop(expression);
		value_push(expression, top);
		value_push(expression, below);
		return true;
	default:
		return false;
	}
}

bool mw_cfi_evaluate(const struct mw_cfi_machine *machine, const uint8_t *expression,
		     const uintptr_t *initial, uintptr_t *ret)
{
	/* mw_cfi_find() has checked that the expression is inside its module. */
	struct mw_bytes length = { .at = expression, .end = expression + 10 };
	uint64_t bytes = mw_bytes_uleb(&length);
	struct expression run = {
		.bytes = { .at = length.at, .end = length.at + bytes },
		.machine = machine,
	};

	if (initial)
		value_push(&run, *initial);
	while (run.bytes.at < run.bytes.end) {
		uint8_t code = (uint8_t)mw_bytes_fixed(&run.bytes, 1);

		if (!constant_operation(&run, code) && !binary_operation(&run, code) &&
		    !stack_operation(&run, code))
			return false;
		if (run.bad || run.bytes.bad)
			return false;
	}
	*ret = value_pop(&run);
	return !run.bad;
}
