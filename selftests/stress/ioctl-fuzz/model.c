// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A model of the device, written from the UAPI header and not from the module. Where a
 * call breaks several rules at once, any of their errors is right.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

#define MISMATCHES_PRINTED 20

struct fuzz_model fuzz_model;

void fuzz_allow(struct fuzz_verdict *verdict, int error)
{
	if (verdict->count < FUZZ_ERRORS_MAX)
		verdict->allowed[verdict->count++] = error;
}

static bool verdict_allows(const struct fuzz_verdict *verdict, int error)
{
	unsigned int i;

	for (i = 0; i < verdict->count; i++)
		if (verdict->allowed[i] == error)
			return true;
	return false;
}

static bool other_session_started(const struct fuzz_session *session)
{
	return fuzz_model.sessions[session == fuzz_model.sessions].started;
}

static bool mask_is_mapped(const struct memwatch_config *c)
{
	return c->cpumask == (uintptr_t)fuzz_memory.mask && c->cpumask_bytes <= FUZZ_MASK_BYTES;
}

/* ---- The rules of each command ---- */

static void predict_get_config(const struct memwatch_config *c, struct fuzz_verdict *verdict)
{
	if (c->reserved)
		fuzz_allow(verdict, EINVAL);
	if (!c->cpumask_bytes)
		return;
	if (c->cpumask_bytes < (fuzz_model.nr_cpus + 7) / 8)
		fuzz_allow(verdict, ENOSPC);
	if (!mask_is_mapped(c)) {
		fuzz_allow(verdict, EFAULT);
		verdict->unclear = true;
	}
}

static void predict_set_config(const struct fuzz_session *session, const struct memwatch_config *c,
			       struct fuzz_verdict *verdict)
{
	if (c->reserved)
		fuzz_allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_PERIOD &&
	    (c->period_ns < MEMWATCH_PERIOD_MIN_NS || c->period_ns > MEMWATCH_PERIOD_MAX_NS))
		fuzz_allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_LIMBO && c->limbo_ns > MEMWATCH_LIMBO_MAX_NS)
		fuzz_allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_POLICY && c->policy > MEMWATCH_POLICY_ACTIVE)
		fuzz_allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_IDLE_STOP && c->idle_stop > 1)
		fuzz_allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_CPUMASK) {
		/* The header does not say what an empty mask or one with too many CPUs does. */
		verdict->unclear = true;
		if (!mask_is_mapped(c))
			fuzz_allow(verdict, EFAULT);
	}
	if (other_session_started(session) && !(c->flags & MEMWATCH_CONFIG_FORCE))
		fuzz_allow(verdict, EBUSY);
}

static bool same_filter(const struct memwatch_filter *a, const struct memwatch_filter *b)
{
	return a->kind == b->kind && a->value == b->value &&
	       !strncmp(a->comm, b->comm, sizeof(a->comm));
}

static void predict_add_filter(const struct memwatch_filter *f, struct fuzz_verdict *verdict)
{
	const unsigned char *comm = (const unsigned char *)f->comm;
	unsigned int i;

	if (f->index || f->kind < MEMWATCH_FILTER_CGROUP || f->kind > MEMWATCH_FILTER_COMM)
		fuzz_allow(verdict, EINVAL);
	if (f->kind == MEMWATCH_FILTER_COMM) {
		size_t length = strnlen(f->comm, sizeof(f->comm));

		if (f->value || length == sizeof(f->comm))
			fuzz_allow(verdict, EINVAL);
		if (!length || fuzz_any_byte(comm, length, sizeof(f->comm)))
			verdict->unclear = true;
	} else if (fuzz_any_byte(comm, 0, sizeof(f->comm))) {
		fuzz_allow(verdict, EINVAL);
	}
	if (f->kind == MEMWATCH_FILTER_UID && f->value > UINT32_MAX)
		fuzz_allow(verdict, EINVAL);
	if (f->kind == MEMWATCH_FILTER_UID && f->value == UINT32_MAX)
		verdict->unclear = true;
	if (f->kind == MEMWATCH_FILTER_CGROUP && !f->value)
		verdict->unclear = true;
	for (i = 0; i < fuzz_model.nr_filters; i++)
		if (same_filter(&fuzz_model.filters[i], f))
			fuzz_allow(verdict, EEXIST);
	if (fuzz_model.nr_filters == MEMWATCH_FILTERS_MAX)
		fuzz_allow(verdict, ENOSPC);
}

static void predict_command(const struct fuzz_session *session, const struct fuzz_command *command,
			    const union fuzz_argument *arg, struct fuzz_verdict *verdict)
{
	switch (command->number) {
	case MEMWATCH_IOC_START:
		if (session->started)
			fuzz_allow(verdict, EALREADY);
		break;
	case MEMWATCH_IOC_STOP:
		if (!session->started)
			fuzz_allow(verdict, EALREADY);
		break;
	case MEMWATCH_IOC_GET_CONFIG:
		predict_get_config(&arg->config, verdict);
		break;
	case MEMWATCH_IOC_SET_CONFIG:
		predict_set_config(session, &arg->config, verdict);
		break;
	case MEMWATCH_IOC_ADD_FILTER:
		predict_add_filter(&arg->filter, verdict);
		break;
	case MEMWATCH_IOC_GET_FILTER:
		if (arg->filter.index >= fuzz_model.nr_filters)
			fuzz_allow(verdict, ENOENT);
		break;
	case MEMWATCH_IOC_DUMP:
		if (!session->started)
			fuzz_allow(verdict, ENOTCONN);
		break;
	default:
		break;
	}
}

void fuzz_model_predict(const struct fuzz_session *session, const struct fuzz_command *command,
			const union fuzz_argument *arg, struct fuzz_verdict *verdict)
{
	unsigned int known = command->number == MEMWATCH_IOC_SET_CONFIG ? MEMWATCH_CONFIG_ALL : 0;
	unsigned int size = arg->head.size;

	if (size < command->size) {
		fuzz_allow(verdict, EINVAL);
		return;
	}
	if (size > command->size &&
	    fuzz_any_byte(arg->bytes, command->size, size < sizeof(*arg) ? size : sizeof(*arg)))
		fuzz_allow(verdict, E2BIG);
	if (size > 4096) {
		/* No structure is that long. The header does not say how it is refused. */
		fuzz_allow(verdict, E2BIG);
		fuzz_allow(verdict, EFAULT);
		fuzz_allow(verdict, EINVAL);
		verdict->unclear = true;
	}
	if (arg->head.flags & ~known)
		fuzz_allow(verdict, EOPNOTSUPP);
	predict_command(session, command, arg, verdict);
}

/* ---- Comparing what the device did with the model ---- */

__attribute__((format(printf, 2, 3))) static void report_mismatch(const char *name,
								  const char *format, ...)
{
	va_list args;

	if (fuzz_model.mismatches++ >= MISMATCHES_PRINTED)
		return;
	printf("# call %lu, %s: ", fuzz_model.calls, name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

void fuzz_model_judge(const char *name, int error, const struct fuzz_verdict *verdict)
{
	bool good;

	if (error)
		fuzz_model.failed++;
	else
		fuzz_model.succeeded++;
	good = verdict->count ? verdict_allows(verdict, error) : !error;
	if (verdict->unclear && (!error || error == EINVAL))
		good = true;
	/* Any call may fail for lack of memory. */
	if (error == ENOMEM)
		good = true;
	if (good)
		return;
	if (verdict->count)
		report_mismatch(name, "errno is %d, expected %d", error, verdict->allowed[0]);
	else
		report_mismatch(name, "errno is %d, expected success", error);
}

#define compare_setting(name, got, member)                                                         \
	do {                                                                                       \
		if ((got)->member != fuzz_model.config.member)                                     \
			report_mismatch("GET_CONFIG", name " is %llu, was set to %llu",            \
					(unsigned long long)(got)->member,                         \
					(unsigned long long)fuzz_model.config.member);             \
	} while (0)

static void compare_config(const struct memwatch_config *c)
{
	compare_setting("period_ns", c, period_ns);
	compare_setting("limbo_ns", c, limbo_ns);
	compare_setting("policy", c, policy);
	compare_setting("idle_stop", c, idle_stop);
}

static void compare_info(const struct memwatch_get_info *info)
{
	if (info->abi != MEMWATCH_ABI)
		report_mismatch("GET_INFO", "abi is %u, expected %u", info->abi, MEMWATCH_ABI);
	if (info->schema != MEMWATCH_SCHEMA)
		report_mismatch("GET_INFO", "schema is %u, expected %u", info->schema,
				MEMWATCH_SCHEMA);
	if (info->nr_rmids != fuzz_model.nr_rmids)
		report_mismatch("GET_INFO", "nr_rmids is %u, was %u", info->nr_rmids,
				fuzz_model.nr_rmids);
}

static void update_config(const struct memwatch_config *c)
{
	if (c->flags & MEMWATCH_CONFIG_PERIOD)
		fuzz_model.config.period_ns = c->period_ns;
	if (c->flags & MEMWATCH_CONFIG_LIMBO)
		fuzz_model.config.limbo_ns = c->limbo_ns;
	if (c->flags & MEMWATCH_CONFIG_POLICY)
		fuzz_model.config.policy = c->policy;
	if (c->flags & MEMWATCH_CONFIG_IDLE_STOP)
		fuzz_model.config.idle_stop = c->idle_stop;
}

void fuzz_model_update(struct fuzz_session *session, const struct fuzz_command *command,
		       const union fuzz_argument *before, const union fuzz_argument *arg)
{
	switch (command->number) {
	case MEMWATCH_IOC_GET_INFO:
		compare_info(&arg->info);
		break;
	case MEMWATCH_IOC_START:
		session->started = true;
		break;
	case MEMWATCH_IOC_STOP:
		session->started = false;
		break;
	case MEMWATCH_IOC_GET_CONFIG:
		compare_config(&arg->config);
		break;
	case MEMWATCH_IOC_SET_CONFIG:
		update_config(&before->config);
		break;
	case MEMWATCH_IOC_ADD_FILTER:
		if (fuzz_model.nr_filters < MEMWATCH_FILTERS_MAX)
			fuzz_model.filters[fuzz_model.nr_filters++] = before->filter;
		break;
	case MEMWATCH_IOC_GET_FILTER:
		if (before->filter.index >= fuzz_model.nr_filters)
			break;
		if (!same_filter(&arg->filter, &fuzz_model.filters[before->filter.index]))
			report_mismatch("GET_FILTER", "filter %u is of kind %u, added was kind %u",
					before->filter.index, arg->filter.kind,
					fuzz_model.filters[before->filter.index].kind);
		break;
	case MEMWATCH_IOC_CLEAR_FILTERS:
		fuzz_model.nr_filters = 0;
		break;
	default:
		break;
	}
	if (command->writes && fuzz_any_byte(arg->bytes, command->size, sizeof(*arg)) &&
	    !fuzz_any_byte(before->bytes, command->size, sizeof(*before)))
		report_mismatch(command->name, "wrote beyond the %u bytes of its argument",
				command->size);
}
