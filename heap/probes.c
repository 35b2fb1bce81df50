/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The semaphores of the probes, and whether the probes are ours to fire.
 */
#include "probes.h"

volatile uint16_t otel_memory_alloc_semaphore
	__attribute__((visibility("hidden"), section(".probes")));
volatile uint16_t otel_memory_free_semaphore
	__attribute__((visibility("hidden"), section(".probes")));

bool mw_probes_are_ours(void)
{
	return true;
}
