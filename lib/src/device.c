// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /dev/memwatch: one function for each ioctl. No policy: what the kernel
 * answers is what the caller gets.
 */
#include <memwatch/device.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "context.h"

#define DEVICE "/dev/memwatch"

struct memwatch_device {
	struct memwatch_ctx *ctx;
	int fd;
};

static int call(struct memwatch_device *device, unsigned long command, const char *name,
		void *argument)
{
	int err;

	if (ioctl(device->fd, command, argument) >= 0)
		return 0;
	err = -errno;
	return mw_fail(device->ctx, err, DEVICE ": %s: %s", name, strerror(-err));
}

static const char *hint(int err)
{
	switch (err) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return ": is the module loaded?";
	case -EACCES:
	case -EPERM:
		return ": needs root or the group memwatch";
	default:
		return "";
	}
}

int memwatch_device_open(struct memwatch_ctx *ctx, struct memwatch_device **ret)
{
	struct memwatch_device *device;
	struct memwatch_get_info info;
	char *path;
	int err;

	err = mw_ctx_path(ctx, DEVICE, &path);
	if (err)
		return err;
	device = calloc(1, sizeof(*device));
	if (!device) {
		free(path);
		return mw_fail(ctx, -ENOMEM, DEVICE ": no memory");
	}
	device->ctx = memwatch_ctx_ref(ctx);
	device->fd = open(path, O_RDWR | O_CLOEXEC);
	err = device->fd < 0 ? -errno : 0;
	if (err)
		mw_fail(ctx, err, "%s: %s%s", path, strerror(-err), hint(err));
	free(path);
	err = err ? err : memwatch_device_info(device, &info);
	if (!err && info.abi != MEMWATCH_ABI)
		err = mw_fail(ctx, -EPROTO, DEVICE ": the module speaks ABI %u, this library %u",
			      info.abi, MEMWATCH_ABI);
	if (err) {
		memwatch_device_close(device);
		return err;
	}
	*ret = device;
	return 0;
}

struct memwatch_device *memwatch_device_close(struct memwatch_device *device)
{
	if (!device)
		return NULL;
	if (device->fd >= 0)
		close(device->fd);
	memwatch_ctx_unref(device->ctx);
	free(device);
	return NULL;
}

int memwatch_device_info(struct memwatch_device *device, struct memwatch_get_info *ret)
{
	struct memwatch_get_info info = { .size = sizeof(info) };
	int err = call(device, MEMWATCH_IOC_GET_INFO, "get info", &info);

	if (!err)
		*ret = info;
	return err;
}

int memwatch_device_start(struct memwatch_device *device)
{
	struct memwatch_start start = { .size = sizeof(start) };

	return call(device, MEMWATCH_IOC_START, "start", &start);
}

int memwatch_device_stop(struct memwatch_device *device)
{
	struct memwatch_stop stop = { .size = sizeof(stop) };

	return call(device, MEMWATCH_IOC_STOP, "stop", &stop);
}

int memwatch_device_config(struct memwatch_device *device, struct memwatch_config *ret)
{
	struct memwatch_config config = {
		.size = sizeof(config),
		.cpumask = ret->cpumask,
		.cpumask_bytes = ret->cpumask_bytes,
	};
	int err = call(device, MEMWATCH_IOC_GET_CONFIG, "get configuration", &config);

	if (!err)
		*ret = config;
	return err;
}

int memwatch_device_set_config(struct memwatch_device *device, const struct memwatch_config *config)
{
	struct memwatch_config copy = *config;

	copy.size = sizeof(copy);
	return call(device, MEMWATCH_IOC_SET_CONFIG, "set configuration", &copy);
}

int memwatch_device_add_filter(struct memwatch_device *device, const struct memwatch_filter *filter)
{
	struct memwatch_filter copy = *filter;

	copy.size = sizeof(copy);
	copy.flags = 0;
	copy.index = 0;
	return call(device, MEMWATCH_IOC_ADD_FILTER, "add a filter", &copy);
}

int memwatch_device_filter(struct memwatch_device *device, unsigned int index,
			   struct memwatch_filter *ret)
{
	struct memwatch_filter filter = { .size = sizeof(filter), .index = index };

	/* the end of a list is no failure: no error text for it */
	if (ioctl(device->fd, MEMWATCH_IOC_GET_FILTER, &filter) < 0) {
		int err = -errno;

		if (err == -ENOENT)
			return 0;
		return mw_fail(device->ctx, err, DEVICE ": get a filter: %s", strerror(-err));
	}
	*ret = filter;
	return 1;
}

int memwatch_device_clear_filters(struct memwatch_device *device)
{
	struct memwatch_clear_filters clear = { .size = sizeof(clear) };

	return call(device, MEMWATCH_IOC_CLEAR_FILTERS, "clear the filters", &clear);
}

int memwatch_device_dump(struct memwatch_device *device, struct memwatch_dump *ret)
{
	struct memwatch_dump dump = { .size = sizeof(dump) };
	int err = call(device, MEMWATCH_IOC_DUMP, "dump", &dump);

	if (!err && ret)
		*ret = dump;
	return err;
}
