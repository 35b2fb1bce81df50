// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * See delivery.h. The readers of records then need not know of older schemas.
 */
#include "recording/delivery.h"

#include <string.h>

#include "base/record.h"

struct memwatch_record_header *mw_delivery_complete(struct mw_delivery *delivery,
						    struct memwatch_record_header *record)
{
	const struct mw_record_type *type = mw_record_type(record->type);

	if (!type || record->size >= type->size || type->size > sizeof(delivery->room))
		return record;
	memset(delivery->room, 0, type->size);
	memcpy(delivery->room, record, record->size);
	record = (void *)delivery->room;
	record->size = type->size;
	return record;
}

void mw_delivery_end_text(struct memwatch_record_header *record)
{
	const struct mw_record_type *type = mw_record_type(record->type);

	if (type && type->text_end)
		((char *)record)[type->text_end] = '\0';
}
