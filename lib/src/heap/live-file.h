/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Profiles of memwatch that are read while they are written.
 */
#ifndef MW_HEAP_LIVE_FILE_H
#define MW_HEAP_LIVE_FILE_H

#include "heap/input.h"

/*
 * @input is what mw_input_read() has read of the profile @fd, from its beginning to its end. Reads
 * what samples refer to again, in an order in which everything is complete: afterwards no sample
 * has changed while it was read, each has its stack, and each stack its frames. @name and @max are
 * as there. Returns 0; -EPROTO or -EBADMSG, it is no profile; -EFBIG; any errno of read(); -ENOMEM.
 */
int mw_live_file_reread(struct memwatch_ctx *ctx, int fd, const char *name, uint64_t max,
			struct mw_input *input);

#endif /* MW_HEAP_LIVE_FILE_H */
