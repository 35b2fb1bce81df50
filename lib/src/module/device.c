// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /dev/memwatch, see <memwatch/device.h>. The argument of each ioctl starts with its size.
 */
#include <memwatch/device.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/context.h"
#include "base/namespace.h"

struct memwatch_device {
	struct memwatch_ctx *ctx;
	int fd;
	__u32 target; /* of the calls that get and set settings */
};

/* What the errno of an ioctl means; the errors are documented in linux/memwatch.h. */
static const char *explain_ioctl_error(int err)
{
	switch (err) {
	case EBUSY:
		return "another session is running";
	case EPERM:
		return "changing the defaults, or what runs for others, needs CAP_SYS_ADMIN";
	case EALREADY:
		return "the session is already in this state";
	case ENOTCONN:
		return "the session is not started";
	case EEXIST:
		return "this filter already exists";
	case ENOTTY:
		return "the module does not know this command: it is older than this library";
	case E2BIG:
	case EOPNOTSUPP:
		return "the module does not know this option: it is older than this library";
	case ENODEV:
		return "the kernel lacks a tracepoint that the module needs";
	default:
		return strerror(err);
	}
}

static int device_ioctl(struct memwatch_device *device, unsigned long number, const char *name,
			void *arg)
{
	int rc;

	/* A signal ends the wait for a rate limit, not the call. */
	do
		rc = ioctl(device->fd, number, arg);
	while (rc && errno == EINTR);
	if (!rc)
		return 0;
	return mw_fail(device->ctx, -errno, "/dev/memwatch: %s: %s", name,
		       explain_ioctl_error(errno));
}

static const char *explain_device_error(int err)
{
	switch (err) {
	case ENOENT:
	case ENXIO:
		return "not found: is the module loaded?";
	case EACCES:
		return "not permitted: root may open it, and members of the group memwatch with "
		       "CAP_PERFMON";
	case EPERM:
		return "not permitted: opening it needs CAP_PERFMON or CAP_SYS_ADMIN";
	case EREMOTE:
		return "it can only be opened on the host, not in a container";
	default:
		return strerror(err);
	}
}

static int check_abi(struct memwatch_device *device)
{
	struct memwatch_get_info info;
	int err = memwatch_device_get_info(device, &info);

	if (err)
		return err;
	if (info.abi != MEMWATCH_ABI)
		return mw_fail(device->ctx, -EPROTO,
			       "/dev/memwatch: the module has ABI %u, this library ABI %u: install "
			       "both from one version",
			       info.abi, MEMWATCH_ABI);
	return 0;
}

int memwatch_device_open(struct memwatch_ctx *ctx, struct memwatch_device **ret)
{
	struct memwatch_device *device;
	char *path;
	int err;

	err = mw_ctx_path(ctx, "/dev/memwatch", &path);
	if (err)
		return err;
	device = calloc(1, sizeof(*device));
	if (!device) {
		free(path);
		return mw_fail_memory(ctx, "/dev/memwatch");
	}
	device->ctx = memwatch_ctx_ref(ctx);
	device->fd = open(path, O_RDWR | O_CLOEXEC);
	if (device->fd < 0) {
		/* A name without a device behind it, as devtmpfs does not leave, is none. */
		err = mw_namespace_refine(ctx, errno == ENODEV ? -ENOENT : -errno);
		mw_fail(ctx, err, "%s: %s", path, explain_device_error(-err));
	} else {
		err = check_abi(device);
	}
	free(path);
	if (err) {
		memwatch_device_close(device);
		return err;
	}
	*ret = device;
	return 0;
}

struct memwatch_device *memwatch_device_close(struct memwatch_device *device)
{
	if (device) {
		if (device->fd >= 0)
			close(device->fd);
		memwatch_ctx_unref(device->ctx);
	}
	free(device);
	return NULL;
}

int memwatch_device_get_info(struct memwatch_device *device, struct memwatch_get_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->size = sizeof(*ret);
	return device_ioctl(device, MEMWATCH_IOC_GET_INFO, "info", ret);
}

int memwatch_device_start(struct memwatch_device *device)
{
	struct memwatch_start arg = { .size = sizeof(arg) };

	return device_ioctl(device, MEMWATCH_IOC_START, "start", &arg);
}

int memwatch_device_stop(struct memwatch_device *device)
{
	struct memwatch_stop arg = { .size = sizeof(arg) };

	return device_ioctl(device, MEMWATCH_IOC_STOP, "stop", &arg);
}

int memwatch_device_target(struct memwatch_device *device, __u32 target)
{
	if (target && target != MEMWATCH_CONFIG_DEFAULT && target != MEMWATCH_CONFIG_FORCE)
		return mw_fail(device->ctx, -EINVAL, "/dev/memwatch: unknown target %#x", target);
	device->target = target;
	return 0;
}

int memwatch_device_get_config(struct memwatch_device *device, struct memwatch_config *ret)
{
	struct memwatch_config arg = {
		.size = sizeof(arg),
		.flags = device->target & MEMWATCH_CONFIG_DEFAULT,
		.cpumask = ret->cpumask,
		.cpumask_bytes = ret->cpumask_bytes,
	};
	int err = device_ioctl(device, MEMWATCH_IOC_GET_CONFIG, "configuration", &arg);

	if (!err)
		*ret = arg;
	return err;
}

int memwatch_device_set_config(struct memwatch_device *device, const struct memwatch_config *config)
{
	struct memwatch_config arg = *config;

	arg.size = sizeof(arg);
	arg.flags |= device->target;
	return device_ioctl(device, MEMWATCH_IOC_SET_CONFIG, "configure", &arg);
}

int memwatch_device_add_filter(struct memwatch_device *device, const struct memwatch_filter *filter)
{
	struct memwatch_filter arg = *filter;

	arg.size = sizeof(arg);
	arg.flags = device->target;
	arg.index = 0;
	return device_ioctl(device, MEMWATCH_IOC_ADD_FILTER, "add filter", &arg);
}

int memwatch_device_get_filter(struct memwatch_device *device, unsigned int index,
			       struct memwatch_filter *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->size = sizeof(*ret);
	ret->flags = device->target & MEMWATCH_CONFIG_DEFAULT;
	ret->index = index;
	if (!ioctl(device->fd, MEMWATCH_IOC_GET_FILTER, ret))
		return 1;
	if (errno == ENOENT)
		return 0;
	return mw_fail(device->ctx, -errno, "/dev/memwatch: filter %u: %s", index,
		       explain_ioctl_error(errno));
}

int memwatch_device_clear_filters(struct memwatch_device *device)
{
	struct memwatch_clear_filters arg = { .size = sizeof(arg), .flags = device->target };

	return device_ioctl(device, MEMWATCH_IOC_CLEAR_FILTERS, "clear filters", &arg);
}

int memwatch_device_dump(struct memwatch_device *device, struct memwatch_dump *ret)
{
	struct memwatch_dump arg = { .size = sizeof(arg) };
	int err = device_ioctl(device, MEMWATCH_IOC_DUMP, "dump", &arg);

	if (!err && ret)
		*ret = arg;
	return err;
}
