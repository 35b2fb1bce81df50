// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /dev/memwatch. An open file is a session. One table describes all ioctls. The
 * rules of the UAPI header for their arguments are enforced in one place,
 * before a handler runs.
 *
 * Memory of the caller may take for ever to appear: its pages may be in a file
 * system that another user provides. Hence it is copied before mw_control_lock is
 * taken and after it was released, so that such a caller makes nobody else wait.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/memwatch.h>

#include "control.h"
#include "dev.h"
#include "fail.h"
#include "filter.h"
#include "rdt.h"

union argument {
	struct {
		__u32 size;
		__u32 flags;
	};
	struct memwatch_get_info get_info;
	struct memwatch_start start;
	struct memwatch_stop stop;
	struct memwatch_config config;
	struct memwatch_filter filter;
	struct memwatch_clear_filters clear_filters;
	struct memwatch_dump dump;
};

/**
 * struct call - an ioctl that is being executed
 * @arg: the argument
 * @cpus: the mask that the argument points to, @arg.config.cpumask_bytes long; or NULL
 */
struct call {
	union argument arg;
	u8 *cpus;
};

/* ------------------------------------------------------------- handlers */

/* All handlers are called under mw_control_lock, and touch no memory of the caller. */

static int dev_get_info(struct mw_session *session, struct call *call)
{
	struct memwatch_get_info *info = &call->arg.get_info;

	mw_control_review();
	info->abi = MEMWATCH_ABI;
	info->schema = MEMWATCH_SCHEMA;
	info->backend = mw_rdt.backend;
	info->nr_rmids = mw_rdt.nr_rmids;
	/* The feature bits have the order of the events. */
	info->features = mw_rdt.format.events;
	info->errata = 0;
	return 0;
}

static int dev_start(struct mw_session *session, struct call *call)
{
	return mw_control_start(session);
}

static int dev_stop(struct mw_session *session, struct call *call)
{
	return mw_control_stop(session);
}

/*
 * The mask of the caller may have another size than ours. CPUs beyond its end
 * are not in it.
 */
static int dev_parse_cpus(cpumask_t *cpus, const struct call *call)
{
	u32 bits = call->arg.config.cpumask_bytes * 8, i;

	cpumask_clear(cpus);
	for (i = 0; i < bits; i++) {
		if (!(call->cpus[i / 8] & 1 << i % 8))
			continue;
		if (i >= nr_cpu_ids || !cpu_possible(i))
			return -EINVAL;
		cpumask_set_cpu(i, cpus);
	}
	return 0;
}

static int dev_format_cpus(const cpumask_t *cpus, struct call *call)
{
	unsigned int id;

	if (call->arg.config.cpumask_bytes < DIV_ROUND_UP(nr_cpu_ids, 8))
		return -ENOSPC;
	for_each_cpu(id, cpus) call->cpus[id / 8] |= 1 << id % 8;
	return 0;
}

static int dev_get_config(struct mw_session *session, struct call *call)
{
	struct memwatch_config *c = &call->arg.config;
	const struct mw_config *from = &mw_control_settings(session, c->flags)->config;

	c->period_ns = from->tick.period_ns;
	c->limbo_ns = from->limbo_ns;
	c->policy = from->policy;
	c->idle_stop = from->tick.idle_stop;
	return call->cpus ? dev_format_cpus(&from->tick.cpus, call) : 0;
}

/* Members that the flags do not select are ignored. */
static int dev_merge_config(struct mw_settings *settings, const void *arg)
{
	struct mw_config *to = &settings->config;
	const struct call *call = arg;
	const struct memwatch_config *c = &call->arg.config;

	if (c->flags & MEMWATCH_CONFIG_PERIOD) {
		if (c->period_ns < MEMWATCH_PERIOD_MIN_NS || c->period_ns > MEMWATCH_PERIOD_MAX_NS)
			return -EINVAL;
		to->tick.period_ns = c->period_ns;
	}
	if (c->flags & MEMWATCH_CONFIG_LIMBO) {
		if (c->limbo_ns > MEMWATCH_LIMBO_MAX_NS)
			return -EINVAL;
		to->limbo_ns = c->limbo_ns;
	}
	if (c->flags & MEMWATCH_CONFIG_POLICY) {
		if (c->policy > MEMWATCH_POLICY_FAIR)
			return -EINVAL;
		to->policy = c->policy;
	}
	if (c->flags & MEMWATCH_CONFIG_IDLE_STOP) {
		if (c->idle_stop > 1)
			return -EINVAL;
		to->tick.idle_stop = c->idle_stop;
	}
	return call->cpus ? dev_parse_cpus(&to->tick.cpus, call) : 0;
}

static int dev_set_config(struct mw_session *session, struct call *call)
{
	return mw_control_edit(session, call->arg.flags, dev_merge_config, call);
}

static bool dev_filter_is_valid(const struct memwatch_filter *f)
{
	bool named = memchr_inv(f->comm, 0, sizeof(f->comm));

	switch (f->kind) {
	case MEMWATCH_FILTER_CGROUP:
		return !named;
	case MEMWATCH_FILTER_UID:
		return !named && f->value <= U32_MAX;
	case MEMWATCH_FILTER_COMM:
		return named && !f->value && memchr(f->comm, 0, sizeof(f->comm));
	default:
		return false;
	}
}

static int dev_append_filter(struct mw_settings *settings, const void *filter)
{
	return mw_filter_add(&settings->filters, filter);
}

static int dev_add_filter(struct mw_session *session, struct call *call)
{
	if (call->arg.filter.index || !dev_filter_is_valid(&call->arg.filter))
		return -EINVAL;
	return mw_control_edit(session, call->arg.flags, dev_append_filter, &call->arg.filter);
}

static int dev_get_filter(struct mw_session *session, struct call *call)
{
	struct memwatch_filter *to = &call->arg.filter;
	const struct mw_filters *filters = &mw_control_settings(session, to->flags)->filters;

	if (to->index >= filters->nr)
		return -ENOENT;
	to->kind = filters->filter[to->index].kind;
	to->value = filters->filter[to->index].value;
	memcpy(to->comm, filters->filter[to->index].comm, MEMWATCH_COMM_LEN);
	return 0;
}

static int dev_empty_filters(struct mw_settings *settings, const void *unused)
{
	memset(&settings->filters, 0, sizeof(settings->filters));
	return 0;
}

static int dev_clear_filters(struct mw_session *session, struct call *call)
{
	return mw_control_edit(session, call->arg.flags, dev_empty_filters, NULL);
}

static int dev_dump(struct mw_session *session, struct call *call)
{
	return mw_control_dump(session, &call->arg.dump);
}

/* ---------------------------------------------------------------- table */

/**
 * struct command - an ioctl
 * @number: its number
 * @handler: called with the argument copied in, its size and flags checked. It is
 * 	called again if it fails with -EAGAIN.
 * @first: size of the first version of the argument
 * @size: size of the current version of the argument
 * @flags: the flags that the ioctl accepts
 */
struct command {
	unsigned int number;
	int (*handler)(struct mw_session *session, struct call *call);
	u32 first;
	u32 size;
	u32 flags;
};

#define FIRST(type, last) offsetofend(struct memwatch_##type, last)

#define COMMAND(nr, fn, type, last, known)                                                         \
	[_IOC_NR(MEMWATCH_IOC_##nr) - MEMWATCH_IOC_BASE] = {                                       \
		.number = MEMWATCH_IOC_##nr,                                                       \
		.handler = (fn),                                                                   \
		.first = FIRST(type, last),                                                        \
		.size = sizeof(struct memwatch_##type),                                            \
		.flags = (known),                                                                  \
	}

#define FOR_OTHERS (MEMWATCH_CONFIG_DEFAULT | MEMWATCH_CONFIG_FORCE)

static const struct command commands[] = {
	COMMAND(GET_INFO, dev_get_info, get_info, errata, 0),
	COMMAND(START, dev_start, start, flags, 0),
	COMMAND(STOP, dev_stop, stop, flags, 0),
	COMMAND(GET_CONFIG, dev_get_config, config, reserved, MEMWATCH_CONFIG_DEFAULT),
	COMMAND(SET_CONFIG, dev_set_config, config, reserved, MEMWATCH_CONFIG_ALL),
	COMMAND(ADD_FILTER, dev_add_filter, filter, comm, FOR_OTHERS),
	COMMAND(GET_FILTER, dev_get_filter, filter, comm, MEMWATCH_CONFIG_DEFAULT),
	COMMAND(CLEAR_FILTERS, dev_clear_filters, clear_filters, flags, FOR_OTHERS),
	COMMAND(DUMP, dev_dump, dump, unmeasured, 0),
};

static const struct command *dev_find_command(unsigned int number)
{
	unsigned int i = _IOC_NR(number) - MEMWATCH_IOC_BASE;

	if (i >= ARRAY_SIZE(commands))
		return NULL;
	i = array_index_nospec(i, ARRAY_SIZE(commands));
	return commands[i].number == number ? &commands[i] : NULL;
}

/* -------------------------------------------------- memory of the caller */

static bool dev_sets_cpus(const struct command *cmd, const struct memwatch_config *c)
{
	return cmd->handler == dev_set_config && c->flags & MEMWATCH_CONFIG_CPUMASK;
}

static bool dev_gets_cpus(const struct command *cmd, const struct memwatch_config *c)
{
	return cmd->handler == dev_get_config && c->cpumask_bytes;
}

/* The second piece of memory that an argument may have. */
static int dev_copy_cpus_in(const struct command *cmd, struct call *call)
{
	const struct memwatch_config *c = &call->arg.config;
	bool get = dev_gets_cpus(cmd, c), set = dev_sets_cpus(cmd, c);

	if ((cmd->handler == dev_set_config || cmd->handler == dev_get_config) && c->reserved)
		return -EINVAL;
	if (!get && !set)
		return 0;
	if (!c->cpumask_bytes || c->cpumask_bytes > MEMWATCH_CPUMASK_BYTES_MAX)
		return -EINVAL;
	call->cpus = set ? memdup_user(u64_to_user_ptr(c->cpumask), c->cpumask_bytes)
			 : kzalloc(c->cpumask_bytes, GFP_KERNEL);
	if (!call->cpus)
		return -ENOMEM;
	if (IS_ERR(call->cpus)) {
		int err = PTR_ERR(call->cpus);

		call->cpus = NULL;
		return err;
	}
	return 0;
}

static int dev_copy_in(const struct command *cmd, struct call *call, void __user *user)
{
	union argument *arg = &call->arg;
	u32 size;
	int err;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < cmd->first)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	memset(call, 0, sizeof(*call));
	err = copy_struct_from_user(arg, cmd->size, user, size);
	if (err)
		return err;
	/* The caller may have changed the size since it was read. */
	arg->size = size;
	if (arg->flags & ~cmd->flags)
		return -EOPNOTSUPP;
	return dev_copy_cpus_in(cmd, call);
}

static int dev_copy_out(const struct command *cmd, const struct call *call, void __user *user)
{
	const struct memwatch_config *c = &call->arg.config;

	if (dev_gets_cpus(cmd, c) &&
	    copy_to_user(u64_to_user_ptr(c->cpumask), call->cpus, c->cpumask_bytes))
		return -EFAULT;
	return copy_to_user(user, &call->arg, min(call->arg.size, cmd->size)) ? -EFAULT : 0;
}

/* -------------------------------------------------------------- execution */

/* A caller whose rate limit is reached waits here and keeps nobody else waiting. */
static int dev_wait(u64 ns)
{
	schedule_timeout_interruptible(nsecs_to_jiffies(ns) + 1);
	return signal_pending(current) ? -ERESTARTSYS : 0;
}

static int dev_execute(const struct command *cmd, struct mw_session *session, struct call *call)
{
	u64 delay_ns;
	int err;

	do {
		if (mutex_lock_killable(&mw_control_lock))
			return -EINTR;
		err = cmd->handler(session, call);
		delay_ns = session->delay_ns;
		mutex_unlock(&mw_control_lock);
	} while (err == -EAGAIN && !(err = dev_wait(delay_ns)));
	return err;
}

static long dev_ioctl(struct file *file, unsigned int number, unsigned long address)
{
	const struct command *cmd = dev_find_command(number);
	void __user *user = (void __user *)address;
	struct call call;
	int err;

	if (!cmd)
		return -ENOTTY;
	call.cpus = NULL;
	err = dev_copy_in(cmd, &call, user);
	if (!err)
		err = dev_execute(cmd, file->private_data, &call);
	if (!err)
		err = dev_copy_out(cmd, &call, user);
	kfree(call.cpus);
	return err;
}

/* ----------------------------------------------------------------- files */

/*
 * The mode of the node says who may try. Measuring the processes of other users also
 * needs a capability, and that in the initial user namespace.
 */
static int dev_open(struct inode *inode, struct file *file)
{
	struct mw_session *session;

	if (!perfmon_capable())
		return -EPERM;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	session->tgid = current->tgid;
	get_task_comm(session->comm, current->group_leader);
	if (mutex_lock_killable(&mw_control_lock)) {
		kfree(session);
		return -EINTR;
	}
	list_add_tail(&session->link, &mw_session_list);
	mw_sessions++;
	mutex_unlock(&mw_control_lock);
	file->private_data = session;
	return 0;
}

/* The session ends with its file, even if the process was killed. */
static int dev_release(struct inode *inode, struct file *file)
{
	struct mw_session *session = file->private_data;

	mutex_lock(&mw_control_lock);
	mw_control_stop(session);
	list_del(&session->link);
	mw_sessions--;
	mutex_unlock(&mw_control_lock);
	kvfree(session->own);
	kfree(session);
	return 0;
}

static const struct file_operations dev_fops = {
	.owner = THIS_MODULE,
	.open = dev_open,
	.release = dev_release,
	.unlocked_ioctl = dev_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice memwatch_dev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "memwatch",
	.mode = 0600,
	.fops = &dev_fops,
};

int mw_dev_init(void)
{
	return mw_fail(MW_FAIL_DEV) ? -ENOMEM : misc_register(&memwatch_dev);
}

void mw_dev_uninit(void)
{
	misc_deregister(&memwatch_dev);
}
