/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The wire format of protocol buffers: a message is a sequence of fields, each with a number
 * and a value, which is an integer or a sequence of bytes. Nothing is copied or allocated
 * while reading, so a message costs as much as its bytes.
 */
#ifndef MW_HEAP_WIRE_H
#define MW_HEAP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message, or what is left of it. */
struct mw_wire {
	const uint8_t *at;
	size_t len;
	bool damaged; /* what follows is no field */
};

/* A field: @bytes is set if it is a sequence of bytes, otherwise @value. */
struct mw_wire_field {
	uint32_t number;
	bool is_bytes;
	uint64_t value;
	struct mw_wire bytes;
};

/* Takes an integer off a packed sequence. Returns false at the end or if it is damaged. */
bool mw_wire_integer(struct mw_wire *wire, uint64_t *ret);

/* Takes the next field. Returns false at the end or if the message is damaged. */
bool mw_wire_next(struct mw_wire *wire, struct mw_wire_field *field);

/**
 * struct mw_wire_out - a message that is being written
 * @bytes: owned
 * @failed: memory ran out; nothing was added since
 */
struct mw_wire_out {
	uint8_t *bytes;
	size_t len, room;
	bool failed;
};

/* The value 0 is the default and is left out. */
void mw_wire_put(struct mw_wire_out *out, uint32_t number, uint64_t value);
void mw_wire_put_bytes(struct mw_wire_out *out, uint32_t number, const void *bytes, size_t len);
/* An integer without a field, for packed sequences. */
void mw_wire_put_integer(struct mw_wire_out *out, uint64_t value);
/* Adds @inner as a field and empties it. */
void mw_wire_put_message(struct mw_wire_out *out, uint32_t number, struct mw_wire_out *inner);
void mw_wire_out_uninit(struct mw_wire_out *out);

#endif /* MW_HEAP_WIRE_H */
