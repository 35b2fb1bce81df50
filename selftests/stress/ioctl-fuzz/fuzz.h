/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the files of the fuzzer share: the commands, their arguments, the memory that
 * arguments point to, and the model of the device.
 */
#ifndef _MW_IOCTL_FUZZ_H
#define _MW_IOCTL_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/memwatch.h>

/* ---- arguments.c: commands, and random arguments for them ---- */

struct fuzz_command {
	const char *name;
	unsigned int number;
	unsigned int size; /* of its argument */
	bool writes;	   /* it writes to its argument */
};

#define FUZZ_COMMANDS 9
extern const struct fuzz_command fuzz_commands[FUZZ_COMMANDS];

union fuzz_argument {
	struct {
		__u32 size;
		__u32 flags;
	} head;
	struct memwatch_get_info info;
	struct memwatch_config config;
	struct memwatch_filter filter;
	struct memwatch_dump dump;
	unsigned char bytes[8192];
};

#define FUZZ_MASK_BYTES 128

/* Memory for arguments. After mask[FUZZ_MASK_BYTES] and after guard[page] nothing is mapped. */
struct fuzz_memory {
	unsigned char *mask;
	unsigned char *guard;
	unsigned char *read_only; /* one page */
	long page;		  /* bytes */
};

extern struct fuzz_memory fuzz_memory;

bool fuzz_memory_map(void);

void fuzz_random_seed(uint64_t seed);
uint64_t fuzz_random(void);
unsigned int fuzz_random_below(unsigned int n);
bool fuzz_one_in(unsigned int n);
uint64_t fuzz_random_edge(void); /* often a number at the edge of some range */

/* Fill in an argument for @command that is mostly valid. */
void fuzz_argument_make(const struct fuzz_command *command, unsigned int nr_filters,
			union fuzz_argument *arg);

bool fuzz_any_byte(const unsigned char *bytes, size_t begin, size_t end);

/* ---- model.c: what the UAPI header says that the device must do ---- */

#define FUZZ_ERRORS_MAX 16

/* The errors that are allowed; none: the call must succeed. */
struct fuzz_verdict {
	int allowed[FUZZ_ERRORS_MAX];
	unsigned int count;
	bool unclear; /* the header is silent: success and EINVAL are allowed as well */
};

void fuzz_allow(struct fuzz_verdict *verdict, int error);

struct fuzz_settings {
	struct memwatch_config config;
	struct memwatch_filter filters[MEMWATCH_FILTERS_MAX];
	unsigned int nr_filters;
};

struct fuzz_session {
	int fd;
	bool started;
	bool has_own; /* it has set something, which is in @own */
	struct fuzz_settings own;
};

/* The state of the device, from the calls that succeeded. */
struct fuzz_model {
	struct fuzz_session sessions[2];
	struct fuzz_settings defaults;
	struct fuzz_settings in_force;
	bool administrator; /* the caller has CAP_SYS_ADMIN */
	unsigned int nr_cpus;
	unsigned int nr_rmids;
	unsigned long calls, succeeded, failed;
	unsigned long mismatches; /* answers that the header does not allow */
};

extern struct fuzz_model fuzz_model;

/* The errors that the header allows for this call. */
void fuzz_model_predict(const struct fuzz_session *session, const struct fuzz_command *command,
			const union fuzz_argument *arg, struct fuzz_verdict *verdict);
/* Count the outcome of a call: 0 or an errno. */
void fuzz_model_judge(const char *name, int error, const struct fuzz_verdict *verdict);
/* A call succeeded: @before is its argument as it was given, @arg as it came back. */
void fuzz_model_update(struct fuzz_session *session, const struct fuzz_command *command,
		       const union fuzz_argument *before, const union fuzz_argument *arg);

#endif /* _MW_IOCTL_FUZZ_H */
