// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of notices. The input is a netlink message with a length that is right, as the kernel
 * delivers it; the rest of the message is whatever the input says.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "module/libnl.h"
#include "module/notices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memwatch_notice_message notice;
	struct nlmsghdr *message;

	if (size < sizeof(*message))
		return 0;
	if (mw_libnl_load(NULL))
		abort();
	/* Exactly as long as the input, so that ASan sees each byte that is read beyond it. */
	message = malloc(size);
	if (!message)
		return 0;
	memcpy(message, data, size);
	message->nlmsg_len = (uint32_t)size;
	if (mw_notice_parse(message, &notice) == 1 && !memchr(notice.text, 0, sizeof(notice.text)))
		abort();
	free(message);
	return 0;
}
