/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The checks of "doctor". A check examines one prerequisite and tells what it found, what
 * does not work without it, and what to do about it.
 */
#ifndef MW_DOCTOR_H
#define MW_DOCTOR_H

#include "common/cmd.h"

enum mw_result {
	MW_RESULT_OK,
	MW_RESULT_WARN,	   /* available with a restriction, or not known */
	MW_RESULT_MISSING, /* not available */
};

struct mw_finding {
	const struct mw_check *check; /* that found it */
	enum mw_result result;
	char found[320];
	char cost[320];	  /* what does not work; "": nothing */
	char remedy[320]; /* "": none is known */
};

struct mw_check {
	const char *name;  /* in JSON and CSV */
	const char *title; /* in the table */
	bool required;	   /* for live measurement */
	void (*look)(const struct mw_cli *cli, struct mw_finding *f);
};

/* The groups of checks. The last entry of each has no name. */
extern const struct mw_check mw_doctor_kernel[];
extern const struct mw_check mw_doctor_module[];
extern struct mw_check mw_doctor_hardware[];

/* Sets the text and leaves the result, which is MW_RESULT_OK at first. */
void mw_finding_ok(struct mw_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets the text, and MW_RESULT_WARN or MW_RESULT_MISSING as the result. */
void mw_finding_warn(struct mw_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void mw_finding_missing(struct mw_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets what does not work, and what to do about it. */
void mw_finding_cost(struct mw_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void mw_finding_remedy(struct mw_finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Questions that several groups ask. */
bool mw_module_is_loaded(const struct mw_cli *cli);
bool mw_loads_modules(const struct mw_cli *cli);
bool mw_has_rdt(const struct mw_cli *cli);
bool mw_has_capability(const struct mw_cli *cli, int capability);

#endif
