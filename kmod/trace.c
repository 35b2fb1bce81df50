// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Defines the tracepoints of trace.h.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
