/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the kernel says about a mapping of this process: a line of /proc/self/maps is
 *
 *	START-END PERMISSIONS OFFSET DEVICE INODE [PATH]
 *
 * It is read in small pieces, because a signal handler may have little stack.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lock.h"
#include "maps.h"

#define PIECE_BYTES 512

enum field {
	FIELD_START = 0,
	FIELD_END = 1,
	FIELD_PERMISSIONS = 2,
	FIELD_INODE = 5,
};

/* What is known of a line so far. */
struct line {
	unsigned int field; /* of the next character */
	uint64_t range[2];
	bool is_used; /* it permits anything */
	bool has_file;
};

static uint64_t hex_append(uint64_t value, char c)
{
	return value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The path has a number that is beyond all fields, because there are blanks in front of it. */
static void line_take(struct line *line, char c)
{
	if (c == ' ' || (c == '-' && line->field == FIELD_START))
		line->field++;
	else if (line->field <= FIELD_END)
		line->range[line->field] = hex_append(line->range[line->field], c);
	else if (line->field == FIELD_PERMISSIONS)
		line->is_used |= c == 'r' || c == 'w' || c == 'x';
	else if (line->field == FIELD_INODE)
		line->has_file |= c != '0';
}

static bool line_find(int fd, uintptr_t address, struct line *ret)
{
	char piece[PIECE_BYTES];
	ssize_t got;

	memset(ret, 0, sizeof(*ret));
	while ((got = read(fd, piece, sizeof(piece))) > 0) {
		for (ssize_t i = 0; i < got; i++) {
			if (piece[i] != '\n') {
				line_take(ret, piece[i]);
				continue;
			}
			if (address >= ret->range[FIELD_START] && address < ret->range[FIELD_END])
				return true;
			memset(ret, 0, sizeof(*ret));
		}
	}
	return false;
}

bool mw_maps_is_anonymous(uintptr_t address)
{
	struct mw_interrupts were;
	bool anonymous = false;
	int saved = errno, fd;
	struct line line;

	mw_interrupts_block(&were);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		anonymous = line_find(fd, address, &line) && line.is_used && !line.has_file;
		close(fd);
	}
	mw_interrupts_restore(&were);
	errno = saved;
	return anonymous;
}
