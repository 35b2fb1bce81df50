/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Messages for people, on standard error. Results go to standard output. A message is one
 * line: its text is escaped as a whole, see text/escape.h, so arguments are passed as they are.
 */
#ifndef MW_MESSAGE_H
#define MW_MESSAGE_H

#include "common/cmd.h"

/* Where messages go from now on: while the screen is full of something else. NULL: stderr again. */
void mw_message_redirect(FILE *stream);

/* Prints "memwatchctl: WHAT: WHY". Returns @code. */
int mw_error(int code, const char *what, const char *why, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints the text of a negative errno as the reason. Returns the exit code for it. */
int mw_error_errno(int err, const char *what);

/* The exit code for a negative errno. */
int mw_exit_of(int err);

/* Prints "hint: ...": what the user can do about the error above it. */
void mw_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a warning, unless --quiet was given. */
void mw_warn(const struct mw_cli *cli, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints what the user asked for with MEMWATCH_LOG, or with --verbose. */
void mw_print_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a note if --verbose was given. */
void mw_note(const struct mw_cli *cli, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

enum mw_colour { MW_PLAIN, MW_RED, MW_GREEN, MW_YELLOW, MW_BOLD, MW_DIM };

/* The escape sequence for @colour; "" if @stream is no terminal or NO_COLOR is set. */
const char *mw_colour(FILE *stream, enum mw_colour colour);

/*
 * Flushes standard output. Returns @code, or MW_EXIT_FAILED after an error message if
 * some output could not be written.
 */
int mw_finish_stdout(int code);

#endif
