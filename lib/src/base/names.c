// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The lists of names: see names.h. A name that has been published never changes.
 */
#include "base/names.h"

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/growth.h>
#include <memwatch/value.h>

#define LIST(array)                                                                                \
	{                                                                                          \
		.name = (array), .count = sizeof(array) / sizeof(*(array))                         \
	}

static const char *const status_names[] = {
	[MEMWATCH_STATUS_UNAVAILABLE] = "unavailable",
	[MEMWATCH_STATUS_OK] = "ok",
	[MEMWATCH_STATUS_ERROR] = "error",
	[MEMWATCH_STATUS_STALE] = "stale",
	[MEMWATCH_STATUS_FIRST] = "first",
	[MEMWATCH_STATUS_ESTIMATED] = "estimated",
	[MEMWATCH_STATUS_MULTIPLEXED] = "multiplexed",
};

static const char *const backend_names[] = {
	[MEMWATCH_BACKEND_EMULATED] = "emulated",
	[MEMWATCH_BACKEND_INTEL_RDT] = "intel-rdt",
	[MEMWATCH_BACKEND_AMD_QOS] = "amd-qos",
	[MEMWATCH_BACKEND_SIMULATED] = "simulated",
};

static const char *const reason_names[] = {
	[MEMWATCH_REASON_FORK] = "fork",	 [MEMWATCH_REASON_SCAN] = "scan",
	[MEMWATCH_REASON_PROMOTED] = "promoted", [MEMWATCH_REASON_EXIT] = "exit",
	[MEMWATCH_REASON_REVOKED] = "revoked",	 [MEMWATCH_REASON_FILTERED] = "filtered",
	[MEMWATCH_REASON_EXEC] = "exec",	 [MEMWATCH_REASON_COMM] = "comm",
	[MEMWATCH_REASON_STOP] = "stop",
};

static const char *const notice_names[] = {
	[MEMWATCH_NOTICE_FOREIGN_WRITE] = "foreign_write",
	[MEMWATCH_NOTICE_RESCTRL] = "resctrl_mounted",
	[MEMWATCH_NOTICE_SMALL_CPU] = "cpu_with_fewer_rmids",
	[MEMWATCH_NOTICE_PERIOD] = "period_lengthened",
	[MEMWATCH_NOTICE_EXHAUSTED] = "rmids_exhausted",
	[MEMWATCH_NOTICE_BACKEND] = "backend_changed",
	[MEMWATCH_NOTICE_CPU_OFFLINE] = "cpu_offline",
	[MEMWATCH_NOTICE_CPU_ONLINE] = "cpu_online",
};

static const char *const cpu_state_names[] = {
	[MEMWATCH_CPU_ONLINE] = "online",   [MEMWATCH_CPU_OFFLINE] = "offline",
	[MEMWATCH_CPU_IDLE] = "idle",	    [MEMWATCH_CPU_BUSY] = "busy",
	[MEMWATCH_CPU_STOPPED] = "stopped",
};

static const char *const growth_event_names[] = {
	[MEMWATCH_GROWTH_ALERTED] = "alerted", [MEMWATCH_GROWTH_CLEARED] = "cleared",
	[MEMWATCH_GROWTH_POKED] = "poked",     [MEMWATCH_GROWTH_STATE] = "state",
	[MEMWATCH_GROWTH_NOTICED] = "noticed", [MEMWATCH_GROWTH_SETTLED] = "settled",
	[MEMWATCH_GROWTH_TOUCHED] = "touched",
};

static const char *const growth_verdict_names[] = {
	[MEMWATCH_GROWTH_INSUFFICIENT] = "insufficient",
	[MEMWATCH_GROWTH_STABLE] = "stable",
	[MEMWATCH_GROWTH_GROWING] = "growing",
	[MEMWATCH_GROWTH_LEAK] = "leak",
};

static const char *const growth_reason_names[] = {
	[MEMWATCH_GROWTH_REASON_NONE] = "none",
	[MEMWATCH_GROWTH_REASON_LIMIT] = "limit",
	[MEMWATCH_GROWTH_REASON_HEIGHT] = "height",
	[MEMWATCH_GROWTH_REASON_UNTOUCHED] = "untouched",
};

static const char *const limit_names[] = {
	[MEMWATCH_LIMIT_NONE] = "none",
	[MEMWATCH_LIMIT_HOST] = "host",
	[MEMWATCH_LIMIT_CGROUP_MAX] = "cgroup_max",
	[MEMWATCH_LIMIT_CGROUP_HIGH] = "cgroup_high",
	[MEMWATCH_LIMIT_DATA] = "data",
	[MEMWATCH_LIMIT_AS] = "as",
};

const struct mw_names mw_status_names = LIST(status_names);
const struct mw_names mw_backend_names = LIST(backend_names);
const struct mw_names mw_reason_names = LIST(reason_names);
const struct mw_names mw_notice_names = LIST(notice_names);
const struct mw_names mw_cpu_state_names = LIST(cpu_state_names);
const struct mw_names mw_growth_event_names = LIST(growth_event_names);
const struct mw_names mw_growth_verdict_names = LIST(growth_verdict_names);
const struct mw_names mw_growth_reason_names = LIST(growth_reason_names);
const struct mw_names mw_limit_names = LIST(limit_names);

const char *mw_name_of(const struct mw_names *names, unsigned int number)
{
	return number < names->count && names->name[number] ? names->name[number] : "unknown";
}

const char *memwatch_status_name(__u8 status)
{
	return mw_name_of(&mw_status_names, status);
}

const char *memwatch_backend_name(unsigned int backend)
{
	return mw_name_of(&mw_backend_names, backend);
}

const char *memwatch_reason_name(unsigned int reason)
{
	return mw_name_of(&mw_reason_names, reason);
}

const char *memwatch_notice_name(unsigned int notice)
{
	return mw_name_of(&mw_notice_names, notice);
}

const char *memwatch_growth_verdict_name(unsigned int verdict)
{
	return mw_name_of(&mw_growth_verdict_names, verdict);
}

const char *memwatch_growth_reason_name(unsigned int reason)
{
	return mw_name_of(&mw_growth_reason_names, reason);
}
