/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which process this is: the fields of the header that tell one process from all others, and
 * relate its clocks.
 */
#ifndef _MW_HEAP_IDENTITY_H
#define _MW_HEAP_IDENTITY_H

#include "profile-format.h"

void mw_identity_fill(struct mw_heap_header *header);

/* The part of a file name that is made of @comm: no slash, blank, or control character. */
void mw_identity_file_name(char ret[16], const char comm[16]);

#endif
