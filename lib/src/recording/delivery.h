/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Makes what is in a recording safe to use: a record of an older schema gets the members that
 * it lacks, and texts end.
 */
#ifndef MW_DELIVERY_H
#define MW_DELIVERY_H

#include <stdint.h>

#include <linux/memwatch.h>

/* Room for a record that had to be extended; the largest type of this schema fits. */
struct mw_delivery {
	_Alignas(8) uint8_t room[512];
};

/*
 * Returns @record, or a longer copy of it in @delivery: then the members that its schema did not
 * have are 0.
 */
struct memwatch_record_header *mw_delivery_complete(struct mw_delivery *delivery,
						    struct memwatch_record_header *record);

/* Ends the text of a record with a NUL, which a hostile file may lack. */
void mw_delivery_end_text(struct memwatch_record_header *record);

#endif /* MW_DELIVERY_H */
