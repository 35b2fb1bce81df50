/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads and writes that go on until all bytes are there: the system calls may do a part, or be
 * interrupted by a signal.
 */
#ifndef MW_BASE_FILE_IO_H
#define MW_BASE_FILE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads @len bytes at @offset, fewer at the end of the file. Returns how many, or -errno. */
ssize_t mw_file_read_at(int fd, void *to, size_t len, uint64_t offset);

/* Both return 0 or -errno. After an error, a part may have been written. */
int mw_file_write(int fd, const void *from, size_t len);
int mw_file_write_at(int fd, const void *from, size_t len, uint64_t offset);

#endif /* MW_BASE_FILE_IO_H */
