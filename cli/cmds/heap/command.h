/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether the profiler can be preloaded into a command.
 */
#ifndef MW_CMDS_HEAP_COMMAND_H
#define MW_CMDS_HEAP_COMMAND_H

/*
 * Finds the file that execvp(@name) will execute. Returns 0 if the dynamic linker will preload a
 * library into it, or if there is no such file, which exec says itself. Otherwise it prints an
 * error message and returns the exit code.
 */
int heap_command_check(const char *name);

#endif
