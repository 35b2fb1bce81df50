/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Checks the state of a process that comes from a file: the detectors and the programs in
 * the kernel rely on what they computed themselves, and only a state that they could have
 * computed may reach them.
 */
#ifndef MW_STATE_CHECK_H
#define MW_STATE_CHECK_H

#include <stdint.h>

#include "bpf/growth-maps.h"

struct mw_state_class;

/*
 * Checks a process. @history may be NULL; @now_ns is the present time of CLOCK_MONOTONIC. Returns
 * NULL, or what is wrong with the state.
 */
const char *mw_state_check(const struct mw_growth_key *key, const struct mw_growth_process *process,
			   const struct mw_growth_history *history, uint64_t now_ns);

/* The same for a class of memory of a cgroup; @path ends with a zero. */
const char *mw_state_check_class(const struct mw_state_class *class, const char *path,
				 const struct mw_growth_history *history, uint64_t now_ns);

#endif /* MW_STATE_CHECK_H */
