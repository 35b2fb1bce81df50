/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /dev/memwatch: one function for each ioctl. linux/memwatch.h documents what each ioctl
 * does, and all its errors. The caller need not set @size in the arguments; these functions
 * do, and they set @flags where it must be 0.
 */
#ifndef MEMWATCH_DEVICE_H
#define MEMWATCH_DEVICE_H

#include <linux/memwatch.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_device - an open /dev/memwatch
 *
 * An open device is also a session, which ends when the device is closed.
 */
struct memwatch_device;

/**
 * memwatch_device_open - open the device
 * @ctx: context
 * @ret: the device; caller frees with memwatch_device_close()
 *
 * Checks that the module has the ABI version MEMWATCH_ABI.
 *
 * Returns: 0; -ENOENT: the module is not loaded; -EACCES or -EPERM: not permitted;
 * -EREMOTE: not permitted, because this process is in a container; -EPROTO: the module has
 * another ABI version; -ENOMEM.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_device_open(struct memwatch_ctx *ctx,
					     struct memwatch_device **ret);

/**
 * memwatch_device_close - close the device and end its session
 * @device: device or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_device *memwatch_device_close(struct memwatch_device *device);

/**
 * memwatch_device_get_info - MEMWATCH_IOC_GET_INFO
 * @device: device
 * @ret: filled in
 *
 * Returns: 0 or a negative errno. Since: 0.1
 */
int memwatch_device_get_info(struct memwatch_device *device, struct memwatch_get_info *ret);

/**
 * memwatch_device_start - MEMWATCH_IOC_START
 * @device: device
 *
 * Returns: 0; -EALREADY: the session is started already; another negative errno. Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_device_start(struct memwatch_device *device);

/**
 * memwatch_device_stop - MEMWATCH_IOC_STOP
 * @device: device
 *
 * Returns: 0; -EALREADY: the session is not started; another negative errno. Since: 0.1
 */
int memwatch_device_stop(struct memwatch_device *device);

/**
 * memwatch_device_target - choose whose settings the following calls get and set
 * @device: device
 * @target: MEMWATCH_CONFIG_DEFAULT: the defaults. 0, as after open: set those of this session;
 * 	MEMWATCH_CONFIG_FORCE: set what is in force, although it is of other sessions. With either
 * 	of these two, what is got is what is in force while any session is started, and else the
 * 	settings of this session.
 *
 * Settings are the configuration and the filters. Those of a session are gone when it ends.
 *
 * Returns: 0; -EINVAL. Since: 0.1
 */
int memwatch_device_target(struct memwatch_device *device, __u32 target);

/**
 * memwatch_device_get_config - MEMWATCH_IOC_GET_CONFIG
 * @device: device
 * @ret: filled in; set @cpumask and @cpumask_bytes to a buffer, or to 0, before the call
 *
 * Returns: 0; -ENOSPC: the buffer is too small; another negative errno.
 * Since: 0.1
 */
int memwatch_device_get_config(struct memwatch_device *device, struct memwatch_config *ret);

/**
 * memwatch_device_set_config - MEMWATCH_IOC_SET_CONFIG
 * @device: device
 * @config: the new configuration; @flags selects the members that apply
 *
 * Returns: 0; -EBUSY: another session is running; -EPERM: the target is not this session,
 * and CAP_SYS_ADMIN is missing; another negative errno. Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_device_set_config(struct memwatch_device *device,
						   const struct memwatch_config *config);

/**
 * memwatch_device_add_filter - MEMWATCH_IOC_ADD_FILTER
 * @device: device
 * @filter: @kind and @value or @comm
 *
 * Returns: 0; -EEXIST: this filter already exists; -ENOSPC: there are too many filters;
 * -EBUSY and -EPERM as memwatch_device_set_config(); another negative errno. Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_device_add_filter(struct memwatch_device *device,
						   const struct memwatch_filter *filter);

/**
 * memwatch_device_get_filter - MEMWATCH_IOC_GET_FILTER
 * @device: device
 * @index: 0, 1, ...
 * @ret: filled in
 *
 * Returns: 1; 0: @index is past the last filter; a negative errno. Since: 0.1
 */
int memwatch_device_get_filter(struct memwatch_device *device, unsigned int index,
			       struct memwatch_filter *ret);

/**
 * memwatch_device_clear_filters - MEMWATCH_IOC_CLEAR_FILTERS
 * @device: device
 *
 * Returns: 0; -EBUSY and -EPERM as memwatch_device_set_config(); another negative errno.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_device_clear_filters(struct memwatch_device *device);

/**
 * memwatch_device_dump - MEMWATCH_IOC_DUMP
 * @device: device
 * @ret: filled in, or NULL
 *
 * Returns: 0; -ENOTCONN: the session is not started; another negative errno. Since: 0.1
 */
int memwatch_device_dump(struct memwatch_device *device, struct memwatch_dump *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_DEVICE_H */
