// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Notices, see <memwatch/notices.h>. The socket also gets the messages of the kernel about
 * families that come and go, which say when the module is unloaded.
 */
#include "module/notices.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"
#include "base/namespace.h"
#include "module/libnl.h"

/**
 * struct memwatch_notices - a subscription
 * @ctx: context
 * @socket: the socket of libnl
 * @family: number of the module's family
 * @sequence: of the last notice that was received; 0: none yet
 * @queue: notices that were received and not delivered, @nr of them, @next is the next one
 * @capacity: of @queue
 * @refused: negative errno of a command; 0: none was refused
 * @failed: negative errno of receiving; -ENODEV: the module was unloaded
 */
struct memwatch_notices {
	struct memwatch_ctx *ctx;
	struct nl_sock *socket;
	int family;
	uint64_t sequence;
	struct memwatch_notice_message *queue;
	size_t next, nr, capacity;
	int refused;
	int failed;
};

/* ------------------------------------------------------------- messages */

static struct nla_policy notice_policy[MEMWATCH_ATTR_MAX + 1] = {
	[MEMWATCH_ATTR_SEQUENCE] = { .type = NLA_U64 },
	[MEMWATCH_ATTR_TIME_NS] = { .type = NLA_U64 },
	[MEMWATCH_ATTR_KIND] = { .type = NLA_U32 },
	[MEMWATCH_ATTR_CPU] = { .type = NLA_U32 },
	[MEMWATCH_ATTR_COUNT] = { .type = NLA_U64 },
	[MEMWATCH_ATTR_VALUE] = { .type = NLA_U64 },
	[MEMWATCH_ATTR_SUPPRESSED] = { .type = NLA_U64 },
	[MEMWATCH_ATTR_TEXT] = { .type = NLA_STRING },
};

static uint64_t attribute_u64(struct nlattr *attribute)
{
	return attribute ? nla_get_u64(attribute) : 0;
}

static uint32_t attribute_u32(struct nlattr *attribute)
{
	return attribute ? nla_get_u32(attribute) : 0;
}

int mw_notice_parse(struct nlmsghdr *message, struct memwatch_notice_message *ret)
{
	struct nlattr *a[MEMWATCH_ATTR_MAX + 1];

	if (!genlmsg_valid_hdr(message, 0))
		return -EBADMSG;
	if (genlmsg_hdr(message)->cmd != MEMWATCH_CMD_NOTICE)
		return 0;
	if (genlmsg_parse(message, 0, a, MEMWATCH_ATTR_MAX, notice_policy) < 0)
		return -EBADMSG;
	*ret = (struct memwatch_notice_message){
		.sz = sizeof(*ret),
		.sequence = attribute_u64(a[MEMWATCH_ATTR_SEQUENCE]),
		.time_ns = attribute_u64(a[MEMWATCH_ATTR_TIME_NS]),
		.kind = attribute_u32(a[MEMWATCH_ATTR_KIND]),
		.cpu = attribute_u32(a[MEMWATCH_ATTR_CPU]),
		.count = attribute_u64(a[MEMWATCH_ATTR_COUNT]),
		.value = attribute_u64(a[MEMWATCH_ATTR_VALUE]),
		.suppressed = attribute_u64(a[MEMWATCH_ATTR_SUPPRESSED]),
	};
	/* libnl has checked that a string ends within its attribute. */
	if (a[MEMWATCH_ATTR_TEXT])
		strncpy(ret->text, nla_get_string(a[MEMWATCH_ATTR_TEXT]), sizeof(ret->text) - 1);
	return 1;
}

static int take_notice(struct memwatch_notices *notices, struct nlmsghdr *message)
{
	struct memwatch_notice_message notice;
	int rc = mw_notice_parse(message, &notice);

	if (rc <= 0)
		return rc;
	if (notices->sequence && notice.sequence > notices->sequence)
		notice.lost = notice.sequence - notices->sequence - 1;
	notices->sequence = notice.sequence;
	if (mw_array_reserve(notices->queue, notices->capacity, notices->nr + 1))
		return -ENOMEM;
	notices->queue[notices->nr++] = notice;
	return 0;
}

static bool is_our_family(struct nlmsghdr *message)
{
	struct nlattr *a[CTRL_ATTR_MAX + 1];
	static struct nla_policy policy[CTRL_ATTR_MAX + 1] = {
		[CTRL_ATTR_FAMILY_NAME] = { .type = NLA_STRING },
	};

	return genlmsg_valid_hdr(message, 0) && genlmsg_hdr(message)->cmd == CTRL_CMD_DELFAMILY &&
	       genlmsg_parse(message, 0, a, CTRL_ATTR_MAX, policy) >= 0 &&
	       a[CTRL_ATTR_FAMILY_NAME] &&
	       !strcmp(nla_get_string(a[CTRL_ATTR_FAMILY_NAME]), MEMWATCH_GENL_NAME);
}

static int on_message(struct nl_msg *msg, void *data)
{
	struct memwatch_notices *notices = data;
	struct nlmsghdr *message = nlmsg_hdr(msg);
	int err = 0;

	if (message->nlmsg_type == notices->family)
		err = take_notice(notices, message);
	else if (message->nlmsg_type == GENL_ID_CTRL && is_our_family(message))
		err = -ENODEV;
	if (err)
		notices->failed = err;
	return NL_OK;
}

/* libnl has fewer errors than the kernel, so the original one is kept. */
static int on_refusal(struct sockaddr_nl *from, struct nlmsgerr *error, void *data)
{
	struct memwatch_notices *notices = data;

	(void)from;
	notices->refused = error->error;
	return NL_STOP;
}

/* --------------------------------------------------------- subscription */

static const char *explain_refusal(int err)
{
	switch (err) {
	case -ENOENT:
		return "not found: is the module loaded?";
	case -EPERM:
		return "not permitted: reading notices needs CAP_PERFMON, CAP_SYS_ADMIN or "
		       "membership of the group memwatch";
	case -EREMOTE:
		return "notices can only be read on the host, not in a container";
	case -ENOSPC:
		return "too many programs read notices already";
	default:
		return strerror(-err);
	}
}

static int fail_to_subscribe(struct memwatch_notices *notices, int err)
{
	/* In a network namespace there is no such family. */
	if (err == -ENOENT && mw_namespace_refine(notices->ctx, -EPERM) == -EREMOTE)
		err = -EREMOTE;
	err = mw_namespace_refine(notices->ctx, err);
	return mw_fail(notices->ctx, err, "netlink family %s: %s", MEMWATCH_GENL_NAME,
		       explain_refusal(err));
}

/* What libnl has returned, as a negative errno. */
static int netlink_errno(struct memwatch_notices *notices, int err)
{
	if (notices->refused)
		return notices->refused;
	switch (-err) {
	case NLE_OBJ_NOTFOUND:
		return -ENOENT;
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PERM:
		return -EPERM;
	default:
		return -EIO;
	}
}

static int subscribe(struct memwatch_notices *notices)
{
	int group, err = genl_connect(notices->socket);

	if (err < 0)
		return netlink_errno(notices, err);
	err = genl_ctrl_resolve(notices->socket, MEMWATCH_GENL_NAME);
	if (err < 0)
		return netlink_errno(notices, err);
	notices->family = err;
	group = genl_ctrl_resolve_grp(notices->socket, "nlctrl", "notify");
	err = group < 0 ? group : nl_socket_add_memberships(notices->socket, group, 0);
	if (err < 0)
		return netlink_errno(notices, err);
	nl_socket_disable_seq_check(notices->socket);
	nl_socket_modify_cb(notices->socket, NL_CB_VALID, NL_CB_CUSTOM, on_message, notices);
	nl_socket_modify_err_cb(notices->socket, NL_CB_CUSTOM, on_refusal, notices);
	err = genl_send_simple(notices->socket, notices->family, MEMWATCH_CMD_SUBSCRIBE,
			       MEMWATCH_GENL_VERSION, 0);
	if (err >= 0)
		err = nl_wait_for_ack(notices->socket);
	if (err < 0)
		return netlink_errno(notices, err);
	return nl_socket_set_nonblocking(notices->socket) ? -EIO : 0;
}

int memwatch_notices_open(struct memwatch_ctx *ctx, struct memwatch_notices **ret)
{
	struct memwatch_notices *notices;
	int err;

	/* The sockets of netlink are those of this machine, whatever the root directory is. */
	if (ctx->root[0])
		return mw_fail(ctx, -ENOENT, "%s has no notices", ctx->root);
	err = mw_libnl_load(ctx);
	if (err)
		return err;
	notices = calloc(1, sizeof(*notices));
	if (!notices)
		return mw_fail_memory(ctx, "notices");
	notices->ctx = memwatch_ctx_ref(ctx);
	notices->socket = nl_socket_alloc();
	err = notices->socket ? subscribe(notices) : -ENOMEM;
	if (err) {
		err = fail_to_subscribe(notices, err);
		memwatch_notices_unref(notices);
		return err;
	}
	*ret = notices;
	return 0;
}

struct memwatch_notices *memwatch_notices_unref(struct memwatch_notices *notices)
{
	if (notices) {
		if (notices->socket)
			nl_socket_free(notices->socket);
		free(notices->queue);
		memwatch_ctx_unref(notices->ctx);
	}
	free(notices);
	return NULL;
}

int memwatch_notices_fd(const struct memwatch_notices *notices)
{
	return nl_socket_get_fd(notices->socket);
}

/*
 * Receives until there is a notice, or nothing more. If the buffer of the socket was full,
 * libnl says NOMEM once; the gap of the sequence numbers shows what was lost.
 */
static void receive(struct memwatch_notices *notices)
{
	int err = 0;

	notices->next = notices->nr = 0;
	while (err >= 0 && !notices->nr && !notices->failed)
		err = nl_recvmsgs_default(notices->socket);
	if (err < 0 && err != -NLE_AGAIN && err != -NLE_NOMEM && err != -NLE_INTR &&
	    !notices->failed)
		notices->failed = netlink_errno(notices, err);
}

int memwatch_notices_next(struct memwatch_notices *notices, struct memwatch_notice_message *ret)
{
	int err;

	if (notices->next == notices->nr && !notices->failed)
		receive(notices);
	if (notices->next < notices->nr) {
		err = mw_opts_export(ret, &notices->queue[notices->next], sizeof(*ret));
		notices->next += !err;
		return err ? err : 1;
	}
	if (notices->failed == -ENODEV)
		return mw_fail(notices->ctx, -ENODEV, "the module was unloaded");
	if (notices->failed)
		return mw_fail(notices->ctx, notices->failed, "notices: %s",
			       strerror(-notices->failed));
	return 0;
}
