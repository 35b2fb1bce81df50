/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Events in the journal of systemd, with fields, by its native protocol: a datagram for each
 * entry. A unit whose standard output is the journal gets a variable that says so.
 */
#ifndef MW_EVENTS_JOURNAL_H
#define MW_EVENTS_JOURNAL_H

#include <stdbool.h>

#include "cmds/events/event.h"
#include "common/cmd.h"

/* Is standard output connected to the journal? */
bool mw_journal_is_stdout(void);

/* Returns a descriptor, or a negative errno. The caller closes it. */
int mw_journal_open(const struct mw_cli *cli);

/* Writes an entry. Returns 0 or a negative errno. */
int mw_journal_send(int fd, const struct mw_event *event);

#endif
