/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which process this is. Files of /proc are read with system calls, because stdio allocates.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "identity.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "profiles are little-endian"
#endif

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "this machine is not supported"
#endif

#define STAT_START_TIME 22 /* field of /proc/PID/stat, counted from 1 */

static size_t file_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return 0;
	length = read(fd, text, size - 1);
	close(fd);
	if (length < 0)
		length = 0;
	text[length] = 0;
	return (size_t)length;
}

/* The name of the program, field 2, may contain anything, blanks and parentheses too. */
static uint64_t start_time_read(void)
{
	char text[1024];
	const char *at;

	if (!file_read("/proc/self/stat", text, sizeof(text)))
		return 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < STAT_START_TIME; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void boot_id_read(uint8_t ret[16])
{
	char text[64];
	size_t length = file_read("/proc/sys/kernel/random/boot_id", text, sizeof(text));
	size_t digits = 0;

	for (size_t i = 0; i < length && digits < 32; i++) {
		int digit = hex_digit(text[i]);

		if (digit < 0)
			continue;
		ret[digits / 2] = (uint8_t)(ret[digits / 2] << 4 | digit);
		digits++;
	}
}

void mw_identity_fill(struct mw_heap_header *header)
{
	struct stat st;
	ssize_t length;

	header->version = MW_HEAP_VERSION;
	header->header_bytes = sizeof(*header);
	header->sample_bytes = sizeof(struct mw_heap_sample);
	header->stack_bytes = sizeof(struct mw_heap_stack);
	header->module_bytes = sizeof(struct mw_heap_module);
	header->code_bytes = sizeof(struct mw_heap_code);
	header->pid = (uint32_t)getpid();
	header->start_time_ticks = start_time_read();
	if (!stat("/proc/self/ns/pid", &st))
		header->pid_namespace = st.st_ino;
	boot_id_read(header->boot_id);
	header->machine = MACHINE;
	header->address_bits = 64;
	header->system_page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	prctl(PR_GET_NAME, header->comm);
	length = readlink("/proc/self/exe", header->exe, sizeof(header->exe) - 1);
	header->exe[length > 0 ? length : 0] = 0;
	header->created_ns = mw_clock_read(CLOCK_MONOTONIC);
	header->created_realtime_ns = mw_clock_read(CLOCK_REALTIME);
	header->created_boottime_ns = mw_clock_read(CLOCK_BOOTTIME);
}

void mw_identity_file_name(char ret[16], const char comm[16])
{
	size_t i;

	for (i = 0; i < 15 && comm[i]; i++) {
		char c = comm[i];

		ret[i] = c <= ' ' || c == '/' || c == 0x7f || (c == '.' && i == 0) ? '_' : c;
	}
	if (i == 0)
		ret[i++] = '_';
	ret[i] = 0;
}
