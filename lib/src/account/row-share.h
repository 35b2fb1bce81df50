/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a row of a summary says about processes that had an RMID for only a part of the time
 * for which they ran. What they did in the rest of it was charged to RMID 0.
 */
#ifndef MW_ROW_SHARE_H
#define MW_ROW_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "account/summary-row.h"

/*
 * Sets the share of the run time that was measured, and the status of the sums.
 * @unmeasured_ns: for how long the processes of the row ran without an RMID
 * @partial: one of them has been without an RMID for a time. If it is not known for how
 * long, the sums are lower bounds of which no more can be said.
 */
void mw_row_share(struct mw_summary_row *row, uint64_t unmeasured_ns, bool partial);

/*
 * Was the process without an RMID in the time since @begin_ns? If it had waited for this one before
 * that time, and still has it, it was not.
 */
bool mw_row_lacks_time(const struct memwatch_process *process, uint64_t begin_ns);

#endif /* MW_ROW_SHARE_H */
