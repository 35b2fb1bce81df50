/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Call frame information: .eh_frame_hdr, .eh_frame, and the instructions in them.
 *
 * The format is in "Exception Frames" of the Linux Standard Base and in section 6.4 of DWARF.
 * Every read is bounded by the mappings of the module.
 */
#include <errno.h>

#include "cfi-bytes.h"
#include "cfi.h"

#define HDR_VERSION	 1
#define HDR_TABLE_SORTED 0x3b /* data-relative, 4 bytes, signed: what all linkers write */
#define ROWS_SAVED_MAX	 8

/* The common part of FDEs. */
struct cfi_cie {
	struct mw_bytes program;
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_register;
	uint8_t pointer_encoding;
	bool has_augmentation;
	bool signal;
};

struct cfi_fde {
	struct cfi_cie cie;
	struct mw_bytes program;
	uintptr_t begin;
	uintptr_t end;
};

static struct mw_bytes module_bytes(const struct mw_module *module, uintptr_t at)
{
	struct mw_bytes bytes = {
		.at = (const uint8_t *)at,
		.end = (const uint8_t *)module->end,
		.bad = at < module->start || at > module->end,
	};

	return bytes;
}

/* Enters a CIE or an FDE: @bytes then ends where it does. False at the end of the section. */
static bool entry_enter(struct mw_bytes *bytes)
{
	uint64_t length = mw_bytes_fixed(bytes, 4);

	if (length == UINT32_MAX)
		length = mw_bytes_fixed(bytes, 8);
	if (!length || !mw_bytes_have(bytes, length))
		return false;
	bytes->end = bytes->at + length;
	return true;
}

static int augmentation_read(struct mw_bytes *bytes, const uint8_t *letters, struct cfi_cie *cie)
{
	uint64_t length = mw_bytes_uleb(bytes);
	const uint8_t *end;

	if (!mw_bytes_have(bytes, length))
		return -EINVAL;
	end = bytes->at + length;
	cie->has_augmentation = true;
	for (; *letters; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			cie->pointer_encoding = (uint8_t)mw_bytes_fixed(bytes, 1);
			break;
		case 'P': /* the personality, which is only skipped */
			encoding = (uint8_t)mw_bytes_fixed(bytes, 1);
			mw_bytes_pointer(bytes, encoding & 0x0f, 0);
			break;
		case 'L':
			mw_bytes_skip(bytes, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* aarch64: return addresses are signed with the B key */
			break;
		default:
			return -EINVAL;
		}
	}
	bytes->at = end;
	return bytes->bad ? -EINVAL : 0;
}

static int cie_read(const struct mw_module *module, uintptr_t at, struct cfi_cie *ret)
{
	struct mw_bytes bytes = module_bytes(module, at);
	const uint8_t *letters;
	uint8_t version;

	memset(ret, 0, sizeof(*ret));
	if (!entry_enter(&bytes) || mw_bytes_fixed(&bytes, 4) != 0)
		return -EINVAL;
	version = (uint8_t)mw_bytes_fixed(&bytes, 1);
	if (version != 1 && version != 3)
		return -EINVAL;
	letters = bytes.at;
	while (mw_bytes_fixed(&bytes, 1))
		;
	if (bytes.bad)
		return -EINVAL;
	ret->code_align = mw_bytes_uleb(&bytes);
	ret->data_align = mw_bytes_sleb(&bytes);
	ret->ra_register = version == 1 ? mw_bytes_fixed(&bytes, 1) : mw_bytes_uleb(&bytes);
	if (*letters == 'z' && augmentation_read(&bytes, letters + 1, ret))
		return -EINVAL;
	if (*letters && *letters != 'z')
		return -EINVAL;
	ret->program = bytes;
	return bytes.bad ? -EINVAL : 0;
}

/* Reads the FDE at @at. -ENOENT if there is a CIE, or the end of the section. */
static int fde_read(const struct mw_module *module, uintptr_t at, struct cfi_fde *ret,
		    uintptr_t *ret_next)
{
	struct mw_bytes bytes = module_bytes(module, at);
	uintptr_t cie_field;
	uint64_t back;

	*ret_next = 0;
	if (!entry_enter(&bytes))
		return -ENOENT;
	*ret_next = (uintptr_t)bytes.end;
	cie_field = (uintptr_t)bytes.at;
	back = mw_bytes_fixed(&bytes, 4);
	if (!back)
		return -ENOENT;
	if (cie_read(module, cie_field - back, &ret->cie))
		return -EINVAL;
	ret->begin = mw_bytes_pointer(&bytes, ret->cie.pointer_encoding, 0);
	ret->end = ret->begin + mw_bytes_pointer(&bytes, ret->cie.pointer_encoding & 0x0f, 0);
	if (ret->cie.has_augmentation)
		mw_bytes_skip(&bytes, mw_bytes_uleb(&bytes));
	ret->program = bytes;
	return bytes.bad ? -EINVAL : 0;
}

/* The sorted table of .eh_frame_hdr: pairs of 4 bytes, relative to the header. */
static uintptr_t table_search(const uint8_t *table, uint64_t count, uintptr_t hdr, uintptr_t pc)
{
	uint64_t low = 0, high = count;
	int32_t pair[2];

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		memcpy(pair, table + middle * sizeof(pair), sizeof(pair));
		if (hdr + (uintptr_t)(intptr_t)pair[0] <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	memcpy(pair, table + (low - 1) * sizeof(pair), sizeof(pair));
	return hdr + (uintptr_t)(intptr_t)pair[1];
}

static int fde_find(const struct mw_module *module, uintptr_t pc, struct cfi_fde *ret)
{
	struct mw_bytes bytes = module_bytes(module, module->eh_frame_hdr);
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	uintptr_t at, next;
	uint64_t count;
	int rc;

	if (!module->eh_frame_hdr)
		return -ENOENT;
	version = (uint8_t)mw_bytes_fixed(&bytes, 1);
	frame_encoding = (uint8_t)mw_bytes_fixed(&bytes, 1);
	count_encoding = (uint8_t)mw_bytes_fixed(&bytes, 1);
	table_encoding = (uint8_t)mw_bytes_fixed(&bytes, 1);
	if (bytes.bad || version != HDR_VERSION || frame_encoding == MW_PE_OMIT)
		return -EINVAL;
	at = mw_bytes_pointer(&bytes, frame_encoding, module->eh_frame_hdr);
	if (count_encoding != MW_PE_OMIT && table_encoding == HDR_TABLE_SORTED) {
		count = mw_bytes_pointer(&bytes, count_encoding, module->eh_frame_hdr);
		if (count > UINT32_MAX || !mw_bytes_have(&bytes, count * 8))
			return -EINVAL;
		at = table_search(bytes.at, count, module->eh_frame_hdr, pc);
		rc = at ? fde_read(module, at, ret, &next) : -ENOENT;
		return rc ? rc : pc >= ret->begin && pc < ret->end ? 0 : -ENOENT;
	}
	/* Without the table: from the first entry to the last. */
	for (; at; at = next) {
		rc = fde_read(module, at, ret, &next);
		if (rc && rc != -ENOENT)
			return rc;
		if (!rc && pc >= ret->begin && pc < ret->end)
			return 0;
	}
	return -ENOENT;
}

/* The rule of a register that is followed; NULL for all others. */
static struct mw_cfi_rule *row_rule(struct mw_cfi_row *row, uint64_t ra_register, uint64_t number)
{
	if (number == ra_register)
		return &row->ra;
	if (number == MW_CFI_FP)
		return &row->fp;
	return number == MW_CFI_SP ? &row->sp : NULL;
}

struct cfi_run {
	struct mw_cfi_row row;
	struct mw_cfi_row initial; /* after the instructions of the CIE */
	struct mw_cfi_row saved[ROWS_SAVED_MAX];
	uint32_t saved_count;
	const struct cfi_cie *cie;
	uintptr_t at; /* the row is valid from here on */
};

static void rule_set(struct cfi_run *run, uint64_t number, enum mw_cfi_how how, int64_t offset,
		     const uint8_t *expression)
{
	struct mw_cfi_rule *rule = row_rule(&run->row, run->cie->ra_register, number);

	if (rule)
		*rule = (struct mw_cfi_rule){ how, offset, expression };
}

static void rule_restore(struct cfi_run *run, uint64_t number)
{
	struct mw_cfi_rule *rule = row_rule(&run->row, run->cie->ra_register, number);

	if (rule)
		*rule = *row_rule(&run->initial, run->cie->ra_register, number);
}

static void cfa_set(struct cfi_run *run, uint64_t number, int64_t offset)
{
	run->row.cfa_register = (uint32_t)number;
	run->row.cfa_offset = offset;
	run->row.cfa_expression = NULL;
}

/* Skips an expression, which begins with its length, and returns where it begins. */
static const uint8_t *expression_skip(struct mw_bytes *bytes)
{
	const uint8_t *expression = bytes->at;

	mw_bytes_skip(bytes, mw_bytes_uleb(bytes));
	return expression;
}

/* Instructions about the CFA. False if @code is none of them. */
static bool cfa_instruction(struct cfi_run *run, struct mw_bytes *bytes, uint8_t code)
{
	const int64_t factor = run->cie->data_align;
	uint64_t number;

	switch (code) {
	case 0x0c: /* def_cfa */
		number = mw_bytes_uleb(bytes);
		cfa_set(run, number, (int64_t)mw_bytes_uleb(bytes));
		return true;
	case 0x12: /* def_cfa_sf */
		number = mw_bytes_uleb(bytes);
		cfa_set(run, number, mw_bytes_sleb(bytes) * factor);
		return true;
	case 0x0d: /* def_cfa_register */
		cfa_set(run, mw_bytes_uleb(bytes), run->row.cfa_offset);
		return true;
	case 0x0e: /* def_cfa_offset */
		run->row.cfa_offset = (int64_t)mw_bytes_uleb(bytes);
		return true;
	case 0x13: /* def_cfa_offset_sf */
		run->row.cfa_offset = mw_bytes_sleb(bytes) * factor;
		return true;
	case 0x0f: /* def_cfa_expression */
		run->row.cfa_expression = expression_skip(bytes);
		return true;
	default:
		return false;
	}
}

/* Instructions about one register. False if @code is none of them. */
static bool rule_instruction(struct cfi_run *run, struct mw_bytes *bytes, uint8_t code)
{
	const int64_t factor = run->cie->data_align;
	uint64_t number;

	if (!(code >= 0x05 && code <= 0x09) && code != 0x10 && code != 0x11 &&
	    !(code >= 0x14 && code <= 0x16) && code != 0x2f)
		return false;
	number = mw_bytes_uleb(bytes);
	switch (code) {
	case 0x05: /* offset_extended */
		rule_set(run, number, MW_CFI_OFFSET, (int64_t)mw_bytes_uleb(bytes) * factor, NULL);
		break;
	case 0x11: /* offset_extended_sf */
		rule_set(run, number, MW_CFI_OFFSET, mw_bytes_sleb(bytes) * factor, NULL);
		break;
	case 0x2f: /* GNU_negative_offset_extended */
		rule_set(run, number, MW_CFI_OFFSET, -(int64_t)mw_bytes_uleb(bytes) * factor, NULL);
		break;
	case 0x14: /* val_offset */
		rule_set(run, number, MW_CFI_VALUE, (int64_t)mw_bytes_uleb(bytes) * factor, NULL);
		break;
	case 0x15: /* val_offset_sf */
		rule_set(run, number, MW_CFI_VALUE, mw_bytes_sleb(bytes) * factor, NULL);
		break;
	case 0x06: /* restore_extended */
		rule_restore(run, number);
		break;
	case 0x07: /* undefined */
		rule_set(run, number, MW_CFI_UNDEFINED, 0, NULL);
		break;
	case 0x08: /* same_value */
		rule_set(run, number, MW_CFI_SAME, 0, NULL);
		break;
	case 0x09: /* register */
		mw_bytes_uleb(bytes);
		rule_set(run, number, MW_CFI_OTHER, 0, NULL);
		break;
	case 0x10: /* expression */
		rule_set(run, number, MW_CFI_EXPRESSION, 0, expression_skip(bytes));
		break;
	case 0x16: /* val_expression */
		rule_set(run, number, MW_CFI_VALUE_EXPRESSION, 0, expression_skip(bytes));
		break;
	}
	return true;
}

static bool other_instruction(struct cfi_run *run, struct mw_bytes *bytes, uint8_t code)
{
	switch (code) {
	case 0x00: /* nop */
	case 0x2d: /* AARCH64_negate_ra_state: signatures are removed from every address */
		return true;
	case 0x01: /* set_loc */
		run->at = mw_bytes_pointer(bytes, run->cie->pointer_encoding, 0);
		return true;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		run->at += mw_bytes_fixed(bytes, 1u << (code - 2)) * run->cie->code_align;
		return true;
	case 0x0a: /* remember_state */
		if (run->saved_count == ROWS_SAVED_MAX)
			return false;
		run->saved[run->saved_count++] = run->row;
		return true;
	case 0x0b: /* restore_state */
		if (!run->saved_count)
			return false;
		run->row = run->saved[--run->saved_count];
		return true;
	case 0x2e: /* GNU_args_size */
		mw_bytes_uleb(bytes);
		return true;
	default:
		return false;
	}
}

/* Runs instructions until they are about addresses behind @pc. */
static int program_run(struct cfi_run *run, struct mw_bytes bytes, uintptr_t pc)
{
	while (bytes.at < bytes.end && !bytes.bad) {
		uint8_t code = (uint8_t)mw_bytes_fixed(&bytes, 1);
		uint8_t low = code & 0x3f;

		switch (code >> 6) {
		case 1: /* advance_loc */
			run->at += low * run->cie->code_align;
			break;
		case 2: /* offset */
			rule_set(run, low, MW_CFI_OFFSET,
				 (int64_t)mw_bytes_uleb(&bytes) * run->cie->data_align, NULL);
			break;
		case 3: /* restore */
			rule_restore(run, low);
			break;
		default:
			if (!cfa_instruction(run, &bytes, code) &&
			    !rule_instruction(run, &bytes, code) &&
			    !other_instruction(run, &bytes, code))
				return -EINVAL;
		}
		if (run->at > pc)
			return 0;
	}
	return bytes.bad ? -EINVAL : 0;
}

int mw_cfi_find(const struct mw_module *module, uintptr_t pc, struct mw_cfi_row *ret)
{
	struct cfi_run run;
	struct cfi_fde fde;
	int rc = fde_find(module, pc, &fde);

	if (rc)
		return rc;
	memset(&run.row, 0, sizeof(run.row));
	run.initial = run.row;
	run.saved_count = 0;
	run.cie = &fde.cie;
	run.at = 0;
	rc = program_run(&run, fde.cie.program, UINTPTR_MAX);
	if (rc)
		return rc;
	run.initial = run.row;
	run.at = fde.begin;
	rc = program_run(&run, fde.program, pc);
	if (rc)
		return rc;
	*ret = run.row;
	ret->signal = fde.cie.signal;
	return 0;
}
