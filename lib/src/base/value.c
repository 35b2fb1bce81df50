// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Values with a status, and the names of what the contract numbers.
 */
#include <memwatch/value.h>

#include "base/timemath.h"

/* From good to bad, for those that are on the scale; see the header for the others. */
static int badness(__u8 status)
{
	switch (status) {
	case MEMWATCH_STATUS_OK:
		return 0;
	case MEMWATCH_STATUS_MULTIPLEXED:
		return 1;
	case MEMWATCH_STATUS_ESTIMATED:
		return 2;
	case MEMWATCH_STATUS_STALE:
		return 3;
	default:
		return 4;
	}
}

__u8 memwatch_status_worst(__u8 a, __u8 b)
{
	if (a == MEMWATCH_STATUS_FIRST || a == b)
		return b;
	if (b == MEMWATCH_STATUS_FIRST)
		return a;
	/* One of them was measured, one was not: the sum is a lower bound. */
	if (a == MEMWATCH_STATUS_UNAVAILABLE)
		a = MEMWATCH_STATUS_ESTIMATED;
	if (b == MEMWATCH_STATUS_UNAVAILABLE)
		b = MEMWATCH_STATUS_ESTIMATED;
	if (badness(a) < badness(b))
		a = b;
	return badness(a) == 4 ? MEMWATCH_STATUS_ERROR : a;
}

static int has_number(__u8 status)
{
	return status == MEMWATCH_STATUS_OK || status == MEMWATCH_STATUS_STALE ||
	       status == MEMWATCH_STATUS_ESTIMATED || status == MEMWATCH_STATUS_MULTIPLEXED;
}

void memwatch_value_add(struct memwatch_value *sum, __u64 value, __u8 status)
{
	struct memwatch_value part = { .parts = 1, .status = status };

	if (has_number(status))
		part.value = value;
	else if (status > MEMWATCH_STATUS_MULTIPLEXED)
		part.status = MEMWATCH_STATUS_ERROR;
	memwatch_value_merge(sum, &part);
}

void memwatch_value_merge(struct memwatch_value *sum, const struct memwatch_value *other)
{
	if (!other->parts)
		return;
	sum->status = sum->parts ? memwatch_status_worst(sum->status, other->status)
				 : other->status;
	sum->value = mw_add_sat(sum->value, other->value);
	if (__builtin_add_overflow(sum->parts, other->parts, &sum->parts))
		sum->parts = UINT32_MAX;
}

const char *memwatch_status_name(__u8 status)
{
	static const char *const names[] = {
		[MEMWATCH_STATUS_UNAVAILABLE] = "unavailable",
		[MEMWATCH_STATUS_OK] = "ok",
		[MEMWATCH_STATUS_ERROR] = "error",
		[MEMWATCH_STATUS_STALE] = "stale",
		[MEMWATCH_STATUS_FIRST] = "first",
		[MEMWATCH_STATUS_ESTIMATED] = "estimated",
		[MEMWATCH_STATUS_MULTIPLEXED] = "multiplexed",
	};

	return status < sizeof(names) / sizeof(*names) ? names[status] : "unknown";
}

const char *memwatch_counter_name(unsigned int counter)
{
	static const char *const names[MEMWATCH_COUNTER_MAX] = {
		[MEMWATCH_COUNTER_CYCLES] = "cycles",
		[MEMWATCH_COUNTER_INSTRUCTIONS] = "instructions",
		[MEMWATCH_COUNTER_LLC_REFERENCES] = "llc_references",
		[MEMWATCH_COUNTER_LLC_MISSES] = "llc_misses",
	};

	return counter < MEMWATCH_COUNTER_MAX ? names[counter] : (const char *)0;
}

const char *memwatch_rdt_event_name(unsigned int event)
{
	static const char *const names[MEMWATCH_RDT_MAX] = {
		[MEMWATCH_RDT_OCCUPANCY] = "llc_occupancy_bytes",
		[MEMWATCH_RDT_MBM_TOTAL] = "mbm_total_bytes",
		[MEMWATCH_RDT_MBM_LOCAL] = "mbm_local_bytes",
	};

	return event < MEMWATCH_RDT_MAX ? names[event] : (const char *)0;
}

const char *memwatch_record_name(unsigned int type)
{
	static const char *const names[] = {
		[MEMWATCH_RECORD_SAMPLE] = "sample",
		[MEMWATCH_RECORD_TICK] = "tick",
		[MEMWATCH_RECORD_RMID_ALLOC] = "rmid_alloc",
		[MEMWATCH_RECORD_RMID_EXISTING] = "rmid_existing",
		[MEMWATCH_RECORD_RMID_EXEC] = "rmid_exec",
		[MEMWATCH_RECORD_RMID_FREE] = "rmid_free",
		[MEMWATCH_RECORD_DUMP_BEGIN] = "dump_begin",
		[MEMWATCH_RECORD_DUMP_END] = "dump_end",
		[MEMWATCH_RECORD_CPU_STATE] = "cpu_state",
		[MEMWATCH_RECORD_RDT] = "rdt",
		[MEMWATCH_RECORD_NOTICE] = "notice",
		[MEMWATCH_RECORD_LOST] = "lost",
		[MEMWATCH_RECORD_GROWTH] = "growth",
	};

	if (type < sizeof(names) / sizeof(*names) && names[type])
		return names[type];
	return "unknown";
}

const char *memwatch_backend_name(unsigned int backend)
{
	static const char *const names[] = {
		[MEMWATCH_BACKEND_EMULATED] = "emulated",
		[MEMWATCH_BACKEND_INTEL_RDT] = "intel-rdt",
		[MEMWATCH_BACKEND_AMD_QOS] = "amd-qos",
		[MEMWATCH_BACKEND_SIMULATED] = "simulated",
	};

	return backend < sizeof(names) / sizeof(*names) ? names[backend] : "unknown";
}

const char *memwatch_reason_name(unsigned int reason)
{
	static const char *const names[] = {
		[MEMWATCH_REASON_FORK] = "fork",	 [MEMWATCH_REASON_SCAN] = "scan",
		[MEMWATCH_REASON_PROMOTED] = "promoted", [MEMWATCH_REASON_EXIT] = "exit",
		[MEMWATCH_REASON_REVOKED] = "revoked",	 [MEMWATCH_REASON_FILTERED] = "filtered",
		[MEMWATCH_REASON_EXEC] = "exec",	 [MEMWATCH_REASON_COMM] = "comm",
		[MEMWATCH_REASON_STOP] = "stop",
	};

	if (reason < sizeof(names) / sizeof(*names) && names[reason])
		return names[reason];
	return "unknown";
}

const char *memwatch_notice_name(unsigned int notice)
{
	static const char *const names[] = {
		[MEMWATCH_NOTICE_FOREIGN_WRITE] = "foreign_write",
		[MEMWATCH_NOTICE_RESCTRL] = "resctrl_mounted",
		[MEMWATCH_NOTICE_SMALL_CPU] = "cpu_with_fewer_rmids",
	};

	if (notice < sizeof(names) / sizeof(*names) && names[notice])
		return names[notice];
	return "unknown";
}
