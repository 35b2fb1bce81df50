// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The generic netlink family, see netlink.h.
 *
 * The kernel can restrict a multicast group to a capability, but not to a group of users,
 * and it does not let a family refuse a socket that joins. So those without CAP_SYS_ADMIN
 * subscribe with a command, which checks them, and get their notices by unicast.
 */
#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "access.h"
#include "compat/genetlink.h"
#include "fail.h"
#include "netlink.h"

/**
 * struct subscriber - a socket that has subscribed
 * @portid: its number
 * @uid: the user who has opened it
 */
struct subscriber {
	u32 portid;
	kuid_t uid;
};

/* Guards the subscribers. */
static DEFINE_SPINLOCK(subscribers_lock);
static struct subscriber subscribers[MEMWATCH_SUBSCRIBERS_MAX];
static unsigned int nr_subscribers;

static u64 sequence;

static int netlink_subscribe(struct sk_buff *skb, struct genl_info *info);

static const struct genl_small_ops netlink_ops[] = {
	{ .cmd = MEMWATCH_CMD_SUBSCRIBE, .doit = netlink_subscribe },
};

static const struct genl_multicast_group netlink_groups[] = {
	{ .name = MEMWATCH_GENL_GROUP, MW_GENL_ADMIN_ONLY },
};

static struct genl_family netlink_family __ro_after_init = {
	.name = MEMWATCH_GENL_NAME,
	.version = MEMWATCH_GENL_VERSION,
	.module = THIS_MODULE,
	.small_ops = netlink_ops,
	.n_small_ops = ARRAY_SIZE(netlink_ops),
	.mcgrps = netlink_groups,
	.n_mcgrps = MW_GENL_GROUPS,
};

/* ---------------------------------------------------------- subscribers */

/*
 * Both who has opened the socket and who sends the command must be permitted: a privileged
 * program may have inherited the socket, and may be made to write to it.
 */
static bool netlink_may_subscribe(const struct file *file)
{
	return file && mw_access_may_read() && mw_access_may_read_as(file->f_cred);
}

static int netlink_add_subscriber(u32 portid, kuid_t uid)
{
	unsigned int i, of_user = 0;

	for (i = 0; i < nr_subscribers; i++) {
		if (subscribers[i].portid == portid)
			return -EALREADY;
		of_user += uid_eq(subscribers[i].uid, uid);
	}
	if (nr_subscribers == MEMWATCH_SUBSCRIBERS_MAX || of_user == MEMWATCH_SUBSCRIBERS_USER_MAX)
		return -ENOSPC;
	subscribers[nr_subscribers++] = (struct subscriber){ portid, uid };
	return 0;
}

static int netlink_subscribe(struct sk_buff *skb, struct genl_info *info)
{
	const struct socket *socket = NETLINK_CB(skb).sk->sk_socket;
	const struct file *file = socket ? socket->file : NULL;
	int err;

	if (!netlink_may_subscribe(file))
		return -EPERM;
	spin_lock(&subscribers_lock);
	err = netlink_add_subscriber(info->snd_portid, file->f_cred->euid);
	spin_unlock(&subscribers_lock);
	return err;
}

/* The number of a socket that was closed may be given to another one. */
static int netlink_on_release(struct notifier_block *block, unsigned long event, void *data)
{
	const struct netlink_notify *released = data;
	unsigned int i;

	if (event != NETLINK_URELEASE || released->protocol != NETLINK_GENERIC ||
	    !net_eq(released->net, &init_net))
		return NOTIFY_DONE;
	spin_lock(&subscribers_lock);
	for (i = 0; i < nr_subscribers; i++)
		if (subscribers[i].portid == released->portid)
			subscribers[i--] = subscribers[--nr_subscribers];
	spin_unlock(&subscribers_lock);
	return NOTIFY_DONE;
}

static struct notifier_block netlink_notifier = { .notifier_call = netlink_on_release };

/* -------------------------------------------------------------- sending */

static bool netlink_put_notice(struct sk_buff *skb, const struct mw_notice *notice)
{
	void *header = genlmsg_put(skb, 0, 0, &netlink_family, 0, MEMWATCH_CMD_NOTICE);

	if (!header ||
	    nla_put_u64_64bit(skb, MEMWATCH_ATTR_SEQUENCE, sequence, MEMWATCH_ATTR_PAD) ||
	    nla_put_u64_64bit(skb, MEMWATCH_ATTR_TIME_NS, notice->time_ns, MEMWATCH_ATTR_PAD) ||
	    nla_put_u32(skb, MEMWATCH_ATTR_KIND, notice->kind) ||
	    nla_put_u32(skb, MEMWATCH_ATTR_CPU, notice->cpu) ||
	    nla_put_u64_64bit(skb, MEMWATCH_ATTR_COUNT, notice->count, MEMWATCH_ATTR_PAD) ||
	    nla_put_u64_64bit(skb, MEMWATCH_ATTR_VALUE, notice->value, MEMWATCH_ATTR_PAD) ||
	    nla_put_u64_64bit(skb, MEMWATCH_ATTR_SUPPRESSED, notice->suppressed,
			      MEMWATCH_ATTR_PAD) ||
	    nla_put_string(skb, MEMWATCH_ATTR_TEXT, notice->text))
		return false;
	genlmsg_end(skb, header);
	return true;
}

static struct sk_buff *netlink_make_message(const struct mw_notice *notice)
{
	struct sk_buff *skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (skb && !netlink_put_notice(skb, notice)) {
		nlmsg_free(skb);
		skb = NULL;
	}
	return skb;
}

/* Sending may sleep, so it goes by a copy of the list. Who has closed meanwhile gets nothing. */
static void netlink_send_subscribers(struct sk_buff *skb)
{
	static u32 portids[MEMWATCH_SUBSCRIBERS_MAX];
	struct sk_buff *copy;
	unsigned int i, nr;

	spin_lock(&subscribers_lock);
	nr = nr_subscribers;
	for (i = 0; i < nr; i++)
		portids[i] = subscribers[i].portid;
	spin_unlock(&subscribers_lock);
	for (i = 0; i < nr; i++) {
		copy = skb_copy(skb, GFP_KERNEL);
		if (copy)
			genlmsg_unicast(&init_net, copy, portids[i]);
	}
}

void mw_netlink_send(const struct mw_notice *notice)
{
	struct sk_buff *skb;

	sequence++;
	if (!READ_ONCE(nr_subscribers) &&
	    !(MW_GENL_GROUPS && genl_has_listeners(&netlink_family, &init_net, 0)))
		return;
	skb = netlink_make_message(notice);
	if (!skb)
		return;
	netlink_send_subscribers(skb);
	if (MW_GENL_GROUPS)
		genlmsg_multicast_netns(&netlink_family, &init_net, skb, 0, 0, GFP_KERNEL);
	else
		nlmsg_free(skb);
}

int __init mw_netlink_init(void)
{
	int err = netlink_register_notifier(&netlink_notifier);

	if (err)
		return err;
	err = mw_fail(MW_FAIL_NETLINK) ? -ENOMEM : genl_register_family(&netlink_family);
	if (err)
		netlink_unregister_notifier(&netlink_notifier);
	return err;
}

void mw_netlink_uninit(void)
{
	genl_unregister_family(&netlink_family);
	netlink_unregister_notifier(&netlink_notifier);
}
