// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * nlnotices: reads the notices of the module. Written from linux/memwatch.h and the
 * kernel's netlink headers alone, so that it agrees with the library only if both are right.
 *
 *	nlnotices family
 *		prints the version of the family, and the name of its multicast group
 *	nlnotices id
 *		prints the number of the multicast group
 *	nlnotices subscribe, nlnotices group, nlnotices member ID
 *		subscribes, joins the multicast group, or joins the group with this number. Then
 *		prints "ready", and each notice as a line, until it is killed.
 *	nlnotices twice
 *		subscribes twice
 *	nlnotices many N
 *		subscribes with N sockets, and prints how many succeeded
 *	nlnotices inherited COMMAND...
 *		opens a socket and runs COMMAND, for which it is descriptor 7
 *	nlnotices descriptor
 *		subscribes with descriptor 7
 *
 * What fails prints the name of the errno, and the exit status is 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/memwatch.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INHERITED 7

static int family, group, version;
static char group_name[GENL_NAMSIZ];

static void fail(const char *what)
{
	fprintf(stderr, "nlnotices: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int open_socket(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("socket");
	return fd;
}

static void send_command(int fd, int type, int command, const char *name)
{
	struct {
		struct nlmsghdr n;
		struct genlmsghdr g;
		struct nlattr a;
		char name[16];
	} m = { .n = { .nlmsg_type = (__u16)type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.g = { .cmd = (__u8)command, .version = 1 } };

	m.n.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	if (name) {
		m.a.nla_type = CTRL_ATTR_FAMILY_NAME;
		m.a.nla_len = (__u16)(NLA_HDRLEN + strlen(name) + 1);
		strcpy(m.name, name);
		m.n.nlmsg_len += NLA_ALIGN(m.a.nla_len);
	}
	if (send(fd, &m, m.n.nlmsg_len, 0) != (ssize_t)m.n.nlmsg_len)
		fail("send");
}

/* Calls @see for each attribute in @len bytes. */
static void each_attribute(const void *data, int len,
			   void (*see)(int type, const void *value, int size, void *arg), void *arg)
{
	const char *p = data;

	while (len >= NLA_HDRLEN) {
		const struct nlattr *a = (const struct nlattr *)p;

		if (a->nla_len < NLA_HDRLEN || a->nla_len > len)
			break;
		see(a->nla_type & NLA_TYPE_MASK, p + NLA_HDRLEN, a->nla_len - NLA_HDRLEN, arg);
		p += NLA_ALIGN(a->nla_len);
		len -= NLA_ALIGN(a->nla_len);
	}
}

static void see_group(int type, const void *value, int size, void *arg)
{
	(void)size;
	(void)arg;
	if (type == CTRL_ATTR_MCAST_GRP_NAME)
		snprintf(group_name, sizeof(group_name), "%s", (const char *)value);
	if (type == CTRL_ATTR_MCAST_GRP_ID)
		memcpy(&group, value, sizeof(group));
}

static void see_groups(int type, const void *value, int size, void *arg)
{
	(void)type;
	each_attribute(value, size, see_group, arg);
}

static void see_family(int type, const void *value, int size, void *arg)
{
	if (type == CTRL_ATTR_FAMILY_ID)
		family = *(const __u16 *)value;
	if (type == CTRL_ATTR_VERSION)
		memcpy(&version, value, sizeof(version));
	if (type == CTRL_ATTR_MCAST_GROUPS)
		each_attribute(value, size, see_groups, arg);
}

static void see_notice(int type, const void *value, int size, void *arg)
{
	static const char *const names[] = {
		[MEMWATCH_ATTR_SEQUENCE] = "sequence",
		[MEMWATCH_ATTR_TIME_NS] = "time_ns",
		[MEMWATCH_ATTR_KIND] = "kind",
		[MEMWATCH_ATTR_CPU] = "cpu",
		[MEMWATCH_ATTR_COUNT] = "count",
		[MEMWATCH_ATTR_VALUE] = "value",
		[MEMWATCH_ATTR_SUPPRESSED] = "suppressed",
	};
	__u64 number = 0;

	(void)arg;
	if (type == MEMWATCH_ATTR_TEXT) {
		printf("text=%s ", (const char *)value);
	} else if (type >= 0 && type < MEMWATCH_ATTR_TEXT && names[type]) {
		memcpy(&number, value, (size_t)(size > 8 ? 8 : size));
		printf("%s=%llu ", names[type], number);
	}
}

/* Receives one message. Returns the errno of an acknowledgement, or -1 for other messages. */
static int receive(int fd)
{
	static _Alignas(8) char buffer[65536];
	const struct nlmsghdr *n = (const void *)buffer;
	const char *attributes = buffer + NLMSG_HDRLEN + GENL_HDRLEN;
	ssize_t len = recv(fd, buffer, sizeof(buffer), 0);

	if (len < 0 && errno == ENOBUFS) {
		printf("lost\n");
		return -1;
	}
	if (len < (ssize_t)NLMSG_HDRLEN || n->nlmsg_len > len)
		fail("recv");
	if (n->nlmsg_type == NLMSG_ERROR)
		return -((const struct nlmsgerr *)NLMSG_DATA(n))->error;
	len = (ssize_t)n->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN;
	if (n->nlmsg_type == GENL_ID_CTRL) {
		each_attribute(attributes, (int)len, see_family, NULL);
	} else if (n->nlmsg_type == family &&
		   ((const struct genlmsghdr *)NLMSG_DATA(n))->cmd == MEMWATCH_CMD_NOTICE) {
		each_attribute(attributes, (int)len, see_notice, NULL);
		printf("\n");
	}
	fflush(stdout);
	return -1;
}

static int receive_answer(int fd)
{
	int err;

	while ((err = receive(fd)) < 0)
		;
	return err;
}

static int subscribe(int fd)
{
	send_command(fd, family, MEMWATCH_CMD_SUBSCRIBE, NULL);
	return receive_answer(fd);
}

static int join(int fd, int id)
{
	return setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &id, sizeof(id)) ? errno : 0;
}

/* ------------------------------------------------------------- commands */

/* Each returns an errno or 0. @arguments: the rest of the command line */

static int show_family(int fd, char **arguments)
{
	(void)fd;
	(void)arguments;
	printf("version %d group %s\n", version, group_name);
	return 0;
}

static int show_id(int fd, char **arguments)
{
	(void)fd;
	(void)arguments;
	printf("%d\n", group);
	return 0;
}

static int read_notices(int fd, int err)
{
	if (err)
		return err;
	puts("ready");
	fflush(stdout);
	for (;;)
		receive(fd);
}

static int read_subscribed(int fd, char **arguments)
{
	(void)arguments;
	return read_notices(fd, subscribe(fd));
}

static int read_group(int fd, char **arguments)
{
	(void)arguments;
	return read_notices(fd, join(fd, group));
}

static int read_member(int fd, char **arguments)
{
	return read_notices(fd, join(fd, atoi(arguments[0])));
}

static int subscribe_twice(int fd, char **arguments)
{
	(void)arguments;
	return subscribe(fd) ? 0 : subscribe(fd);
}

static int subscribe_many(int fd, char **arguments)
{
	int count = atoi(arguments[0]), done = 0, err = 0;

	(void)fd;
	while (count-- && !err) {
		err = subscribe(open_socket());
		done += !err;
	}
	printf("%d ", done);
	return err;
}

static int run_with_socket(int fd, char **arguments)
{
	if (dup2(fd, INHERITED) < 0)
		fail("dup2");
	execvp(arguments[0], arguments);
	return errno;
}

static int subscribe_inherited(int fd, char **arguments)
{
	(void)fd;
	(void)arguments;
	return subscribe(INHERITED);
}

static const struct command {
	const char *name;
	int (*run)(int fd, char **arguments);
	int arguments;
	bool alone; /* without the family */
} commands[] = {
	{ "family", show_family, 0, false },
	{ "id", show_id, 0, false },
	{ "subscribe", read_subscribed, 0, false },
	{ "group", read_group, 0, false },
	{ "member", read_member, 1, true },
	{ "twice", subscribe_twice, 0, false },
	{ "many", subscribe_many, 1, false },
	{ "inherited", run_with_socket, 1, true },
	{ "descriptor", subscribe_inherited, 0, false },
};

static int find_family(int fd)
{
	send_command(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, MEMWATCH_GENL_NAME);
	return receive_answer(fd);
}

static int run_command(const struct command *command, char **arguments)
{
	int fd = open_socket();
	int err = command->alone ? 0 : find_family(fd);

	return err ? err : command->run(fd, arguments);
}

/* Of a pid namespace, the first process gets only signals that it handles. */
static void end_at_signal(int number)
{
	(void)number;
	_exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	const struct command *end = commands + sizeof(commands) / sizeof(commands[0]);
	int err;

	signal(SIGTERM, end_at_signal);
	for (const struct command *c = commands; argc > 1 && c < end; c++) {
		if (strcmp(argv[1], c->name) || argc < 2 + c->arguments)
			continue;
		err = run_command(c, argv + 2);
		if (err)
			puts(strerrorname_np(err));
		return err != 0;
	}
	fprintf(stderr, "nlnotices: see the top of its source\n");
	return 2;
}
