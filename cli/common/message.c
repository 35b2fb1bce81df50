// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Messages on standard error, colours, and the exit codes for errno values.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/message.h"
#include "text/escape.h"

static FILE *redirected;

void mw_message_redirect(FILE *stream)
{
	redirected = stream;
}

static FILE *message_stream(void)
{
	return redirected ? redirected : stderr;
}

int mw_error(int code, const char *what, const char *why, ...)
{
	FILE *out = message_stream();
	va_list args;

	fflush(stdout);
	fprintf(out, "%smemwatchctl%s: ", mw_colour(out, MW_RED), mw_colour(out, MW_PLAIN));
	mw_escape_write(out, what, MW_ESCAPE_TERMINAL);
	fputs(": ", out);
	va_start(args, why);
	mw_escape_vprintf(out, why, args);
	va_end(args);
	fputc('\n', out);
	return code;
}

int mw_exit_of(int err)
{
	switch (-err) {
	case EPERM:
	case EACCES:
	case ELIBACC:
	case ENODEV:
	case ENOSYS:
	case ENOTTY:
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
	case EREMOTE:
		return MW_EXIT_UNSUPPORTED;
	default:
		return MW_EXIT_FAILED;
	}
}

int mw_error_errno(int err, const char *what)
{
	return mw_error(mw_exit_of(err), what, "%s", strerror(-err));
}

void mw_hint(const char *format, ...)
{
	FILE *out = message_stream();
	va_list args;

	fputs("hint: ", out);
	va_start(args, format);
	mw_escape_vprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
}

static void print_message(const char *prefix, const char *format, va_list args)
{
	FILE *out = message_stream();

	fflush(stdout);
	fprintf(out, "memwatchctl: %s", prefix);
	mw_escape_vprintf(out, format, args);
	fputc('\n', out);
}

void mw_warn(const struct mw_cli *cli, const char *format, ...)
{
	va_list args;

	if (cli->quiet)
		return;
	va_start(args, format);
	print_message("warning: ", format, args);
	va_end(args);
}

void mw_print_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_message("", format, args);
	va_end(args);
}

void mw_note(const struct mw_cli *cli, const char *format, ...)
{
	va_list args;

	if (!cli->verbose)
		return;
	va_start(args, format);
	print_message("", format, args);
	va_end(args);
}

/* https://no-color.org: colours are off if NO_COLOR has a value that is not empty. */
static bool wants_colour(FILE *stream)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return !(no && *no) && term && strcmp(term, "dumb") && isatty(fileno(stream));
}

const char *mw_colour(FILE *stream, enum mw_colour colour)
{
	static const char *const sequence[] = {
		[MW_PLAIN] = "\033[0m",	  [MW_RED] = "\033[31m", [MW_GREEN] = "\033[32m",
		[MW_YELLOW] = "\033[33m", [MW_BOLD] = "\033[1m", [MW_DIM] = "\033[2m",
	};

	return wants_colour(stream) ? sequence[colour] : "";
}

int mw_finish_stdout(int code)
{
	bool failed = ferror(stdout);

	errno = 0;
	/* Whoever failed has said why, but what else was found, the output was to say. */
	if ((fflush(stdout) || failed) && code != MW_EXIT_FAILED)
		return mw_error(MW_EXIT_FAILED, "standard output", "%s",
				errno ? strerror(errno) : "could not be written");
	return code;
}
