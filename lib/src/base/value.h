/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the library itself needs of values beyond memwatch/value.h.
 */
#ifndef MW_VALUE_H
#define MW_VALUE_H

#include <stdbool.h>

#include <memwatch/value.h>

/* Whether a value of this status is a measurement that may be added or scaled. */
bool mw_status_has_number(__u8 status);

/* Something is missing in the value: if it was exact, it is ESTIMATED now. */
void mw_value_mark_lower_bound(struct memwatch_value *value);

#endif /* MW_VALUE_H */
