/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the command says to people, on stderr. Results go to stdout and never
 * through here.
 */
#ifndef MW_MESSAGE_H
#define MW_MESSAGE_H

#include "common/cmd.h"

/* "memwatchctl: WHAT: WHY". Returns @code, so that it can be returned. */
int mw_error(int code, const char *what, const char *why, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with the text of a negative errno; the exit code follows from it. */
int mw_error_errno(int err, const char *what);

/* The exit code of a negative errno. */
int mw_exit_of(int err);

/* One line that says what to do about it. */
void mw_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));

void mw_warn(const struct mw_cli *cli, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Only with --verbose. */
void mw_note(const struct mw_cli *cli, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

enum mw_colour { MW_PLAIN, MW_RED, MW_GREEN, MW_YELLOW, MW_BOLD, MW_DIM };

/* Escape sequence for @stream, "" where colours are not wanted. */
const char *mw_colour(FILE *stream, enum mw_colour colour);

/* Flushes stdout; says so if what was printed did not arrive. */
int mw_finish_stdout(int code);

#endif
