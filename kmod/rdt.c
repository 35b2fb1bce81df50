// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The RDT capabilities that are in force, see rdt.h.
 */
#include <linux/kernel.h>

#include "rdt.h"

struct mw_rdt mw_rdt;

const char *mw_rdt_backend_name(u32 backend)
{
	static const char *const names[] = {
		[MEMWATCH_BACKEND_EMULATED] = "emulated",
		[MEMWATCH_BACKEND_INTEL_RDT] = "intel-rdt",
		[MEMWATCH_BACKEND_AMD_QOS] = "amd-qos",
		[MEMWATCH_BACKEND_SIMULATED] = "simulated",
	};

	return backend < ARRAY_SIZE(names) ? names[backend] : "unknown";
}
