// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The wire format of protocol buffers.
 */
#include "heap/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

bool mw_wire_integer(struct mw_wire *wire, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < 10 && i < wire->len; i++) {
		value |= (uint64_t)(wire->at[i] & 0x7f) << 7 * i;
		if (wire->at[i] & 0x80)
			continue;
		wire->at += i + 1;
		wire->len -= i + 1;
		*ret = value;
		return true;
	}
	wire->damaged |= wire->len != 0;
	return false;
}

static bool skip_bytes(struct mw_wire *wire, uint64_t len)
{
	if (len > wire->len) {
		wire->damaged = true;
		return false;
	}
	wire->at += len;
	wire->len -= len;
	return true;
}

bool mw_wire_next(struct mw_wire *wire, struct mw_wire_field *field)
{
	uint64_t tag, len;

	*field = (struct mw_wire_field){ 0 };
	if (!wire->len || !mw_wire_integer(wire, &tag))
		return false;
	field->number = (uint32_t)(tag >> 3);
	switch ((enum wire_type)(tag & 7)) {
	case WIRE_VARINT:
		if (mw_wire_integer(wire, &field->value))
			return true;
		break;
	case WIRE_64:
	case WIRE_32:
		/* The messages that are read here have no such field: value 0. */
		return skip_bytes(wire, (tag & 7) == WIRE_64 ? 8 : 4);
	case WIRE_BYTES:
		if (!mw_wire_integer(wire, &len))
			break;
		field->is_bytes = true;
		field->bytes = (struct mw_wire){ .at = wire->at, .len = len };
		return skip_bytes(wire, len);
	}
	wire->damaged = true;
	return false;
}

static uint8_t *reserve_bytes(struct mw_wire_out *out, size_t len)
{
	if (out->failed || mw_array_reserve(out->bytes, out->room, out->len + len)) {
		out->failed = true;
		return NULL;
	}
	return out->bytes + out->len;
}

void mw_wire_put_integer(struct mw_wire_out *out, uint64_t value)
{
	uint8_t *at = reserve_bytes(out, 10);

	if (!at)
		return;
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	out->len = (size_t)(at - out->bytes);
}

void mw_wire_put(struct mw_wire_out *out, uint32_t number, uint64_t value)
{
	if (!value)
		return;
	mw_wire_put_integer(out, number << 3 | WIRE_VARINT);
	mw_wire_put_integer(out, value);
}

void mw_wire_put_bytes(struct mw_wire_out *out, uint32_t number, const void *bytes, size_t len)
{
	uint8_t *at;

	mw_wire_put_integer(out, number << 3 | WIRE_BYTES);
	mw_wire_put_integer(out, len);
	at = reserve_bytes(out, len);
	if (!at || !len)
		return;
	memcpy(at, bytes, len);
	out->len += len;
}

void mw_wire_put_message(struct mw_wire_out *out, uint32_t number, struct mw_wire_out *inner)
{
	out->failed |= inner->failed;
	mw_wire_put_bytes(out, number, inner->bytes, inner->len);
	inner->len = 0;
}

void mw_wire_out_uninit(struct mw_wire_out *out)
{
	free(out->bytes);
	*out = (struct mw_wire_out){ 0 };
}
