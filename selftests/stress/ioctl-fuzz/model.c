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

static bool any_session_started(void)
{
	return fuzz_model.sessions[0].started || fuzz_model.sessions[1].started;
}

/* The settings that a call gets or changes. */
static const struct fuzz_settings *settings_of(const struct fuzz_session *session,
					       unsigned int flags)
{
	if (flags & MEMWATCH_CONFIG_DEFAULT)
		return &fuzz_model.defaults;
	if (any_session_started())
		return &fuzz_model.in_force;
	return session->has_own ? &session->own : &fuzz_model.defaults;
}

/* ---- The rules of each command ---- */

static void predict_change(const struct fuzz_session *session, unsigned int flags,
			   struct fuzz_verdict *verdict)
{
	unsigned int for_others = flags & (MEMWATCH_CONFIG_DEFAULT | MEMWATCH_CONFIG_FORCE);

	if (for_others == (MEMWATCH_CONFIG_DEFAULT | MEMWATCH_CONFIG_FORCE))
		fuzz_allow(verdict, EINVAL);
	if (for_others && !fuzz_model.administrator)
		fuzz_allow(verdict, EPERM);
	if (!for_others && other_session_started(session))
		fuzz_allow(verdict, EBUSY);
}

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
	if (c->flags & MEMWATCH_CONFIG_POLICY && c->policy > MEMWATCH_POLICY_FAIR)
		fuzz_allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_IDLE_STOP && c->idle_stop > 1)
		fuzz_allow(verdict, EINVAL);
	if (c->flags & MEMWATCH_CONFIG_CPUMASK) {
		/* The header does not say what an empty mask or one with too many CPUs does. */
		verdict->unclear = true;
		if (!mask_is_mapped(c))
			fuzz_allow(verdict, EFAULT);
	}
	predict_change(session, c->flags, verdict);
}

static bool same_filter(const struct memwatch_filter *a, const struct memwatch_filter *b)
{
	return a->kind == b->kind && a->value == b->value &&
	       !strncmp(a->comm, b->comm, sizeof(a->comm));
}

static void predict_add_filter(const struct fuzz_session *session, const struct memwatch_filter *f,
			       struct fuzz_verdict *verdict)
{
	const struct fuzz_settings *settings = settings_of(session, f->flags);
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
	for (i = 0; i < settings->nr_filters; i++)
		if (same_filter(&settings->filters[i], f))
			fuzz_allow(verdict, EEXIST);
	if (settings->nr_filters == MEMWATCH_FILTERS_MAX)
		fuzz_allow(verdict, ENOSPC);
	predict_change(session, f->flags, verdict);
}

static void predict_command(const struct fuzz_session *session, const struct fuzz_command *command,
			    const union fuzz_argument *arg, struct fuzz_verdict *verdict)
{
	switch (command->number) {
	case MEMWATCH_IOC_START:
		if (session->started)
			fuzz_allow(verdict, EALREADY);
		else if (session->has_own && other_session_started(session))
			fuzz_allow(verdict, EBUSY);
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
		predict_add_filter(session, &arg->filter, verdict);
		break;
	case MEMWATCH_IOC_GET_FILTER:
		if (arg->filter.index >= settings_of(session, arg->filter.flags)->nr_filters)
			fuzz_allow(verdict, ENOENT);
		break;
	case MEMWATCH_IOC_CLEAR_FILTERS:
		predict_change(session, arg->head.flags, verdict);
		break;
	case MEMWATCH_IOC_DUMP:
		if (!session->started)
			fuzz_allow(verdict, ENOTCONN);
		break;
	default:
		break;
	}
}

static unsigned int known_flags(unsigned int number)
{
	switch (number) {
	case MEMWATCH_IOC_SET_CONFIG:
		return MEMWATCH_CONFIG_ALL;
	case MEMWATCH_IOC_ADD_FILTER:
	case MEMWATCH_IOC_CLEAR_FILTERS:
		return MEMWATCH_CONFIG_DEFAULT | MEMWATCH_CONFIG_FORCE;
	case MEMWATCH_IOC_GET_CONFIG:
	case MEMWATCH_IOC_GET_FILTER:
		return MEMWATCH_CONFIG_DEFAULT;
	default:
		return 0;
	}
}

void fuzz_model_predict(const struct fuzz_session *session, const struct fuzz_command *command,
			const union fuzz_argument *arg, struct fuzz_verdict *verdict)
{
	unsigned int known = known_flags(command->number);
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

#define compare_setting(name, got, wanted, member)                                                 \
	do {                                                                                       \
		if ((got)->member != (wanted)->member)                                             \
			report_mismatch("GET_CONFIG", name " is %llu, was set to %llu",            \
					(unsigned long long)(got)->member,                         \
					(unsigned long long)(wanted)->member);                     \
	} while (0)

static void compare_config(const struct memwatch_config *c, const struct memwatch_config *wanted)
{
	compare_setting("period_ns", c, wanted, period_ns);
	compare_setting("limbo_ns", c, wanted, limbo_ns);
	compare_setting("policy", c, wanted, policy);
	compare_setting("idle_stop", c, wanted, idle_stop);
}

static void compare_filter(const struct memwatch_filter *f, const struct fuzz_settings *settings)
{
	if (f->index < settings->nr_filters && !same_filter(f, &settings->filters[f->index]))
		report_mismatch("GET_FILTER", "filter %u is of kind %u, added was kind %u",
				f->index, f->kind, settings->filters[f->index].kind);
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

static void merge_config(struct memwatch_config *to, const struct memwatch_config *c)
{
	if (c->flags & MEMWATCH_CONFIG_PERIOD)
		to->period_ns = c->period_ns;
	if (c->flags & MEMWATCH_CONFIG_LIMBO)
		to->limbo_ns = c->limbo_ns;
	if (c->flags & MEMWATCH_CONFIG_POLICY)
		to->policy = c->policy;
	if (c->flags & MEMWATCH_CONFIG_IDLE_STOP)
		to->idle_stop = c->idle_stop;
}

/* A call has changed settings. */
static void update_settings(struct fuzz_session *session, unsigned int number,
			    const union fuzz_argument *arg)
{
	struct fuzz_settings new = *settings_of(session, arg->head.flags);

	if (number == MEMWATCH_IOC_SET_CONFIG)
		merge_config(&new.config, &arg->config);
	else if (number == MEMWATCH_IOC_CLEAR_FILTERS)
		new.nr_filters = 0;
	else if (new.nr_filters < MEMWATCH_FILTERS_MAX)
		new.filters[new.nr_filters++] = arg->filter;

	if (arg->head.flags & MEMWATCH_CONFIG_DEFAULT) {
		fuzz_model.defaults = new;
		return;
	}
	fuzz_model.in_force = new;
	if (!other_session_started(session)) {
		session->own = new;
		session->has_own = true;
	}
}

static void update_start(struct fuzz_session *session)
{
	if (!any_session_started())
		fuzz_model.in_force = session->has_own ? session->own : fuzz_model.defaults;
	session->started = true;
}

void fuzz_model_update(struct fuzz_session *session, const struct fuzz_command *command,
		       const union fuzz_argument *before, const union fuzz_argument *arg)
{
	const struct fuzz_settings *settings = settings_of(session, before->head.flags);

	switch (command->number) {
	case MEMWATCH_IOC_GET_INFO:
		compare_info(&arg->info);
		break;
	case MEMWATCH_IOC_START:
		update_start(session);
		break;
	case MEMWATCH_IOC_STOP:
		session->started = false;
		break;
	case MEMWATCH_IOC_GET_CONFIG:
		compare_config(&arg->config, &settings->config);
		break;
	case MEMWATCH_IOC_SET_CONFIG:
	case MEMWATCH_IOC_ADD_FILTER:
	case MEMWATCH_IOC_CLEAR_FILTERS:
		update_settings(session, command->number, before);
		break;
	case MEMWATCH_IOC_GET_FILTER:
		compare_filter(&arg->filter, settings);
		break;
	default:
		break;
	}
	if (command->writes && fuzz_any_byte(arg->bytes, command->size, sizeof(*arg)) &&
	    !fuzz_any_byte(before->bytes, command->size, sizeof(*before)))
		report_mismatch(command->name, "wrote beyond the %u bytes of its argument",
				command->size);
}
