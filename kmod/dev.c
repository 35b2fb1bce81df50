// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /dev/memwatch. An open file is a session. One table describes all ioctls. The
 * rules of the UAPI header for their arguments are enforced in one place,
 * before a handler runs.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/memwatch.h>

#include "control.h"
#include "dev.h"
#include "fail.h"
#include "filter.h"
#include "owner.h"
#include "policy.h"
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

/* ------------------------------------------------------------- handlers */

/* All handlers are called under mw_control_lock. */

static int dev_get_info(struct mw_session *session, union argument *arg)
{
	arg->get_info.abi = MEMWATCH_ABI;
	arg->get_info.schema = MEMWATCH_SCHEMA;
	arg->get_info.backend = mw_rdt.backend;
	arg->get_info.nr_rmids = mw_rdt.nr_rmids;
	/* The feature bits have the order of the events. */
	arg->get_info.features = mw_rdt.format.events;
	arg->get_info.errata = 0;
	return 0;
}

static int dev_start(struct mw_session *session, union argument *arg)
{
	return mw_control_start(session);
}

static int dev_stop(struct mw_session *session, union argument *arg)
{
	return mw_control_stop(session);
}

/*
 * The mask of the caller may have another size than ours. CPUs beyond its end
 * are not in it.
 */
static int dev_copy_cpus_in(cpumask_t *cpus, struct memwatch_config *c)
{
	const u8 __user *from = u64_to_user_ptr(c->cpumask);
	unsigned int i;
	u8 byte;

	cpumask_clear(cpus);
	if (!c->cpumask_bytes || c->cpumask_bytes > PAGE_SIZE)
		return -EINVAL;
	for (i = 0; i < c->cpumask_bytes * 8; i++) {
		if (!(i % 8) && get_user(byte, from + i / 8))
			return -EFAULT;
		if (!(byte & 1 << i % 8))
			continue;
		if (i >= nr_cpu_ids || !cpu_possible(i))
			return -EINVAL;
		cpumask_set_cpu(i, cpus);
	}
	return 0;
}

static int dev_copy_cpus_out(const cpumask_t *cpus, struct memwatch_config *c)
{
	u8 __user *to = u64_to_user_ptr(c->cpumask);
	unsigned int i, bit;

	if (c->cpumask_bytes < DIV_ROUND_UP(nr_cpu_ids, 8))
		return -ENOSPC;
	for (i = 0; i < DIV_ROUND_UP(nr_cpu_ids, 8); i++) {
		u8 byte = 0;

		for (bit = 0; bit < 8 && i * 8 + bit < nr_cpu_ids; bit++)
			byte |= cpumask_test_cpu(i * 8 + bit, cpus) << bit;
		if (put_user(byte, to + i))
			return -EFAULT;
	}
	return clear_user(to + i, c->cpumask_bytes - i) ? -EFAULT : 0;
}

static int dev_get_config(struct mw_session *session, union argument *arg)
{
	struct memwatch_config *c = &arg->config;

	if (c->reserved)
		return -EINVAL;
	c->period_ns = mw_config.tick.period_ns;
	c->limbo_ns = mw_config.limbo_ns;
	c->policy = mw_config.policy;
	c->idle_stop = mw_config.tick.idle_stop;
	return c->cpumask_bytes ? dev_copy_cpus_out(&mw_config.tick.cpus, c) : 0;
}

/* Members that the flags do not select are ignored. */
static int dev_merge_config(struct mw_config *to, struct memwatch_config *c)
{
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
		if (c->policy > MEMWATCH_POLICY_ACTIVE)
			return -EINVAL;
		to->policy = c->policy;
	}
	if (c->flags & MEMWATCH_CONFIG_IDLE_STOP) {
		if (c->idle_stop > 1)
			return -EINVAL;
		to->tick.idle_stop = c->idle_stop;
	}
	if (c->flags & MEMWATCH_CONFIG_CPUMASK)
		return dev_copy_cpus_in(&to->tick.cpus, c);
	return 0;
}

static int dev_set_config(struct mw_session *session, union argument *arg)
{
	/* Too large for the stack, because it contains a cpumask. mw_control_lock guards it. */
	static struct mw_config new;
	int err;

	if (arg->config.reserved)
		return -EINVAL;
	new = mw_config;
	err = dev_merge_config(&new, &arg->config);
	if (err)
		return err;
	if (mw_sessions_started > session->started && !(arg->flags & MEMWATCH_CONFIG_FORCE))
		return -EBUSY;
	mw_config = new;
	mw_control_apply();
	return 0;
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

static int dev_add_filter(struct mw_session *session, union argument *arg)
{
	int err;

	if (arg->filter.index || !dev_filter_is_valid(&arg->filter))
		return -EINVAL;
	err = mw_filter_add(&arg->filter);
	if (!err)
		mw_policy_filters_changed();
	return err;
}

static int dev_get_filter(struct mw_session *session, union argument *arg)
{
	return mw_filter_get(arg->filter.index, &arg->filter);
}

static int dev_clear_filters(struct mw_session *session, union argument *arg)
{
	mw_filter_clear();
	mw_policy_filters_changed();
	return 0;
}

static int dev_dump(struct mw_session *session, union argument *arg)
{
	if (!session->started)
		return -ENOTCONN;
	mw_policy_review();
	mw_owner_dump(&arg->dump);
	return 0;
}

/* ---------------------------------------------------------------- table */

/**
 * struct command - an ioctl
 * @number: its number
 * @handler: called with the argument copied in, its size and flags checked
 * @first: size of the first version of the argument
 * @size: size of the current version of the argument
 * @flags: the flags that the ioctl accepts
 */
struct command {
	unsigned int number;
	int (*handler)(struct mw_session *session, union argument *arg);
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

static const struct command commands[] = {
	COMMAND(GET_INFO, dev_get_info, get_info, errata, 0),
	COMMAND(START, dev_start, start, flags, 0),
	COMMAND(STOP, dev_stop, stop, flags, 0),
	COMMAND(GET_CONFIG, dev_get_config, config, reserved, 0),
	COMMAND(SET_CONFIG, dev_set_config, config, reserved, MEMWATCH_CONFIG_ALL),
	COMMAND(ADD_FILTER, dev_add_filter, filter, comm, 0),
	COMMAND(GET_FILTER, dev_get_filter, filter, comm, 0),
	COMMAND(CLEAR_FILTERS, dev_clear_filters, clear_filters, flags, 0),
	COMMAND(DUMP, dev_dump, dump, unmeasured, 0),
};

static const struct command *dev_find_command(unsigned int number)
{
	unsigned int i = _IOC_NR(number) - MEMWATCH_IOC_BASE;

	return i < ARRAY_SIZE(commands) && commands[i].number == number ? &commands[i] : NULL;
}

static int dev_copy_in(const struct command *cmd, union argument *arg, void __user *user)
{
	u32 size;
	int err;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < cmd->first)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	memset(arg, 0, sizeof(*arg));
	err = copy_struct_from_user(arg, cmd->size, user, size);
	if (err)
		return err;
	/* The caller may have changed the size since it was read. */
	arg->size = size;
	return arg->flags & ~cmd->flags ? -EOPNOTSUPP : 0;
}

static int dev_copy_out(const struct command *cmd, const union argument *arg, void __user *user)
{
	return copy_to_user(user, arg, min(arg->size, cmd->size)) ? -EFAULT : 0;
}

static long dev_ioctl(struct file *file, unsigned int number, unsigned long address)
{
	const struct command *cmd = dev_find_command(number);
	void __user *user = (void __user *)address;
	union argument arg;
	int err;

	if (!cmd)
		return -ENOTTY;
	err = dev_copy_in(cmd, &arg, user);
	if (err)
		return err;
	mutex_lock(&mw_control_lock);
	err = cmd->handler(file->private_data, &arg);
	mutex_unlock(&mw_control_lock);
	return err ?: dev_copy_out(cmd, &arg, user);
}

/* ----------------------------------------------------------------- files */

static int dev_open(struct inode *inode, struct file *file)
{
	struct mw_session *session = kzalloc(sizeof(*session), GFP_KERNEL);

	if (!session)
		return -ENOMEM;
	session->tgid = current->tgid;
	get_task_comm(session->comm, current->group_leader);
	mutex_lock(&mw_control_lock);
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
	.mode = 0660,
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
