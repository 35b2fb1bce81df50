/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A fuzz target is built twice: with libFuzzer, and with MW_FUZZ_MAIN as a program that runs
 * the target on each file of its arguments.
 */
#ifndef MW_FUZZ_H
#define MW_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef MW_FUZZ_MAIN
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	static uint8_t data[1 << 20];

	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "rb");
		size_t size;

		if (!file) {
			perror(argv[i]);
			return EXIT_FAILURE;
		}
		size = fread(data, 1, sizeof(data), file);
		fclose(file);
		LLVMFuzzerTestOneInput(data, size);
	}
	return EXIT_SUCCESS;
}
#endif

#endif /* MW_FUZZ_H */
