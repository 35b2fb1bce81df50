// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading one RDT counter, see rdt-ctr.h.
 */
#include "clock.h"
#include "compat/msr.h"
#include "rdt-ctr.h"
#include "rdt.h"

/* The worker of resctrl runs once a second, and may be late. */
#define CHECK_NS 10000000000ULL

/* Whoever writes QM_EVTSEL reads a counter next, so it hardly comes between so many readings. */
#define TRIES 3

/* No value of QM_EVTSEL: the first CPU that reads finds a foreign write. */
#define SELECT_NONE ~0ULL

void mw_rdt_ctr_init(struct mw_rdt_ctr *ctr)
{
	*ctr = (struct mw_rdt_ctr){ .select = SELECT_NONE };
}

/**
 * mw_rdt_ctr_begin - a CPU begins to read
 * @ctr: the QM_EVTSEL of its domain, whose lock it holds until it has read; or NULL
 */
void mw_rdt_ctr_begin(struct mw_rdt_ctr *ctr)
{
	u64 now = mw_now(), found;

	if (!ctr)
		return;
	if (rdmsrq_safe(MW_MSR_QM_EVTSEL, &found) || found != ctr->select)
		ctr->check_ns = now + CHECK_NS;
	ctr->check = now < ctr->check_ns;
}

/* The accesses return an error if resctrl, once it is mounted, has made @select invalid. */
static bool ctr_try(struct mw_rdt_ctr *ctr, u64 select, u64 *value)
{
	u64 found;

	if (wrmsrq_safe(MW_MSR_QM_EVTSEL, select) || rdmsrq_safe(MW_MSR_QM_CTR, value))
		return false;
	if (!ctr)
		return true;
	ctr->select = select;
	return !ctr->check || (!rdmsrq_safe(MW_MSR_QM_EVTSEL, &found) && found == select);
}

/**
 * mw_rdt_ctr_read - read a counter
 * @ctr: the QM_EVTSEL of the domain, after mw_rdt_ctr_begin(); NULL if each CPU has its own
 * @select: value for QM_EVTSEL
 *
 * Not noticed, even if readings are checked, are two foreign writes around the access to
 * QM_CTR, the second of which selects the same counter again.
 *
 * Return: the value of QM_CTR; MW_QM_CTR_ERROR if it could not be read
 */
u64 mw_rdt_ctr_read(struct mw_rdt_ctr *ctr, u64 select)
{
	u32 tries;
	u64 value;

	for (tries = TRIES; tries; tries--)
		if (ctr_try(ctr, select, &value))
			return value;
	return MW_QM_CTR_ERROR;
}
