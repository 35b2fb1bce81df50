/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the doctor looks at. A check looks at one prerequisite and says what it
 * found, what is lost without it and how to get it.
 */
#ifndef MW_DOCTOR_H
#define MW_DOCTOR_H

#include "common/cmd.h"

enum mw_result {
	MW_RESULT_OK,	   /* found */
	MW_RESULT_WARN,	   /* found, with a limit, or cannot be known */
	MW_RESULT_MISSING, /* not found */
};

struct mw_finding {
	const struct mw_check *check; /* that found it */
	enum mw_result result;
	char found[320];
	char cost[320];	  /* "" if nothing is lost */
	char remedy[320]; /* "" if there is none */
};

struct mw_check {
	const char *name;  /* JSON */
	const char *title; /* table */
	bool required;	   /* the main job needs it */
	void (*look)(const struct mw_cli *cli, struct mw_finding *f);
};

/* Each group is a list that ends with an empty name. */
extern const struct mw_check mw_doctor_kernel[];
extern const struct mw_check mw_doctor_module[];
extern struct mw_check mw_doctor_hardware[];

/* What was found. The result stays as it is: OK at first. */
void mw_found(struct mw_finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What was found is not right. */
void mw_warned(struct mw_finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mw_missed(struct mw_finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mw_cost(struct mw_finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mw_remedy(struct mw_finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Shared between groups. */
bool mw_module_is_loaded(const struct mw_cli *cli);
bool mw_has_rdt(const struct mw_cli *cli);
bool mw_has_capability(const struct mw_cli *cli, int capability);

#endif
