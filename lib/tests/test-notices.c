// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Notices without a kernel: messages that are made here, whole and damaged; and that nobody can
 * subscribe where the module is not loaded.
 */
#include <errno.h>
#include <string.h>

#include "module/libnl.h"
#include "module/notices.h"
#include "tap.h"

static union {
	struct nlmsghdr header;
	char bytes[1024];
} message;

static void begin(int command)
{
	struct genlmsghdr g = { .cmd = (uint8_t)command, .version = MEMWATCH_GENL_VERSION };

	memset(&message, 0xee, sizeof(message));
	message.header = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = 0x20 };
	memcpy(message.bytes + NLMSG_HDRLEN, &g, sizeof(g));
	message.header.nlmsg_len += GENL_HDRLEN;
}

static void put(int type, const void *value, size_t size)
{
	struct nlattr a = { .nla_type = (uint16_t)type, .nla_len = (uint16_t)(NLA_HDRLEN + size) };
	char *end = message.bytes + message.header.nlmsg_len;

	memcpy(end, &a, sizeof(a));
	memcpy(end + NLA_HDRLEN, value, size);
	message.header.nlmsg_len += (uint32_t)NLA_ALIGN(a.nla_len);
}

static void put_u64(int type, uint64_t value)
{
	put(type, &value, sizeof(value));
}

static void put_u32(int type, uint32_t value)
{
	put(type, &value, sizeof(value));
}

static void put_all(const char *text)
{
	begin(MEMWATCH_CMD_NOTICE);
	put_u64(MEMWATCH_ATTR_SEQUENCE, 7);
	put_u64(MEMWATCH_ATTR_TIME_NS, 123456789012);
	put_u32(MEMWATCH_ATTR_KIND, MEMWATCH_NOTICE_PERIOD);
	put_u32(MEMWATCH_ATTR_CPU, 3);
	put_u64(MEMWATCH_ATTR_COUNT, 2);
	put_u64(MEMWATCH_ATTR_VALUE, 2000000);
	put_u64(MEMWATCH_ATTR_SUPPRESSED, 9992);
	put(MEMWATCH_ATTR_TEXT, text, strlen(text) + 1);
}

static void test_whole(void)
{
	struct memwatch_notice_message n;

	put_all("the period is now 2000 us");
	put_u32(77, 1); /* of a later version */
	tap_eq(mw_notice_parse(&message.header, &n), 1, "a notice is read");
	tap_eq(n.sequence, 7, "the sequence number");
	tap_eq(n.time_ns, 123456789012, "the time");
	tap_eq(n.kind, MEMWATCH_NOTICE_PERIOD, "the kind");
	tap_eq(n.cpu, 3, "the CPU");
	tap_eq(n.count, 2, "the count");
	tap_eq(n.value, 2000000, "the value");
	tap_eq(n.suppressed, 9992, "the number of suppressed notices");
	tap_eq(n.lost, 0, "the parser does not know of lost notices");
	tap_str_eq(n.text, "the period is now 2000 us", "the text");
}

static void test_odd(void)
{
	char text[400];
	struct memwatch_notice_message n;

	begin(MEMWATCH_CMD_NOTICE + 1);
	tap_eq(mw_notice_parse(&message.header, &n), 0, "a command of a later version is skipped");
	begin(MEMWATCH_CMD_NOTICE);
	tap_eq(mw_notice_parse(&message.header, &n), 1, "a notice without attributes is read");
	tap_str_eq(n.text, "", "its text is empty");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	put_all(text);
	tap_eq(mw_notice_parse(&message.header, &n), 1, "a text that is too long is accepted");
	tap_eq(strlen(n.text), MEMWATCH_NOTICE_TEXT_LEN - 1, "it is cut");
}

static void test_damaged(void)
{
	struct memwatch_notice_message n;
	unsigned int refused = 0;
	uint32_t whole;

	begin(MEMWATCH_CMD_NOTICE);
	put_u32(MEMWATCH_ATTR_SEQUENCE, 1);
	tap_eq(mw_notice_parse(&message.header, &n), -EBADMSG, "a number that is too short");
	begin(MEMWATCH_CMD_NOTICE);
	put(MEMWATCH_ATTR_TEXT, "abc", 3);
	tap_eq(mw_notice_parse(&message.header, &n), -EBADMSG, "a text without its end is refused");
	put_all("text");
	whole = message.header.nlmsg_len;
	for (uint32_t len = 0; len < whole; len++) {
		message.header.nlmsg_len = len;
		refused += mw_notice_parse(&message.header, &n) == -EBADMSG;
	}
	tap_ok(refused >= NLMSG_HDRLEN + GENL_HDRLEN, "a message without its headers is refused");
	message.header.nlmsg_len = whole;
	for (size_t i = NLMSG_HDRLEN; i < whole; i++) {
		char kept = message.bytes[i];

		for (int value = 0; value < 256; value++) {
			message.bytes[i] = (char)value;
			mw_notice_parse(&message.header, &n);
		}
		message.bytes[i] = kept;
	}
	tap_ok(true, "no byte of a message leads outside of it");
}

static void test_without_module(struct memwatch_ctx *ctx)
{
	struct memwatch_notices *notices = NULL;
	int err = memwatch_notices_open(ctx, &notices);

	if (!err) {
		memwatch_notices_unref(notices);
		tap_skip("without the module: no subscription", "the module is loaded");
		return;
	}
	tap_ok(err == -ENOENT || err == -EREMOTE || err == -EIO,
	       "without the module: no subscription");
	tap_ok(memwatch_ctx_error(ctx)[0], "the error has a text");
	tap_ok(!notices, "nothing is returned");
}

int main(void)
{
	struct memwatch_ctx *ctx;

	tap_start();
	if (memwatch_ctx_new(NULL, &ctx) || mw_libnl_load(ctx))
		return 1;
	test_whole();
	test_odd();
	test_damaged();
	test_without_module(ctx);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
