// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A session of the module. It belongs to the descriptor of /dev/memwatch, so it ends when this
 * process is killed.
 */
#include "stream/session.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/device.h>
#include <memwatch/proc.h>
#include <memwatch/value.h>

#include "base/context.h"

/**
 * struct module_session - a session of the module
 * @session: common part
 * @device: /dev/memwatch; its descriptor is the session
 * @started: this stream has started the session
 * @backend_reason: string of the stream's info
 */
struct module_session {
	struct mw_session session;
	struct memwatch_device *device;
	bool started;
	char backend_reason[256];
};

static struct module_session *to_module(struct mw_session *session)
{
	return (struct module_session *)session;
}

static int module_start(struct mw_session *session, const struct memwatch_live_opts *opts)
{
	struct module_session *module = to_module(session);
	int err;

	if (opts->flags & MEMWATCH_LIVE_NO_START)
		return 0;
	err = memwatch_device_start(module->device);
	if (err)
		return err;
	module->started = true;
	return 0;
}

static int module_dump(struct mw_session *session, const struct memwatch_live_opts *opts)
{
	struct module_session *module = to_module(session);

	if (!module->started || opts->flags & MEMWATCH_LIVE_NO_DUMP)
		return 0;
	return memwatch_device_dump(module->device, NULL);
}

/* The module sends its last records when the session stops. */
static int module_stop(struct mw_session *session, struct mw_bpf_relay *relay)
{
	struct module_session *module = to_module(session);
	int err = module->started ? memwatch_device_stop(module->device) : 0;

	(void)relay;
	module->started = false;
	return err;
}

static int module_describe(struct mw_session *session, struct memwatch_stream_info *info)
{
	struct module_session *module = to_module(session);
	struct memwatch_proc_status *status;
	struct memwatch_get_info found;
	/* the module decides at the start of a session whether it may use RDT */
	int err = memwatch_device_get_info(module->device, &found);

	if (err)
		return err;
	if (!memwatch_proc_status_read(session->ctx, &status)) {
		snprintf(module->backend_reason, sizeof(module->backend_reason), "%s",
			 status->backend_reason);
		/* Ticks may have cost too much before this stream was opened. */
		if (status->period_ns)
			info->period_ns = status->period_ns;
		memwatch_proc_status_free(status);
	}
	info->nr_rmids = found.nr_rmids;
	info->backend = memwatch_backend_name(found.backend);
	info->backend_reason = module->backend_reason;
	for (unsigned int i = 0; i < MEMWATCH_RDT_MAX; i++) {
		/* the feature bits have the order of the events */
		bool available = found.features & (MEMWATCH_FEATURE_OCCUPANCY << i);

		info->rdt[i].status = available ? MEMWATCH_STATUS_OK : MEMWATCH_STATUS_UNAVAILABLE;
		if (!available)
			info->rdt[i].reason = module->backend_reason[0]
						      ? module->backend_reason
						      : "the module has no source for it";
	}
	return 0;
}

static void module_close(struct mw_session *session)
{
	memwatch_device_close(to_module(session)->device);
	free(session);
}

static const struct mw_session_ops module_ops = {
	.start = module_start,
	.dump = module_dump,
	.stop = module_stop,
	.describe = module_describe,
	.close = module_close,
};

/* Sets the period if the options have one. */
static int module_set_period(struct module_session *module, const struct memwatch_live_opts *opts)
{
	struct memwatch_config config = { 0 };
	int err = memwatch_device_get_config(module->device, &config);

	if (err)
		return err;
	module->session.period_ns = config.period_ns;
	if (!opts->period_ns || opts->period_ns == config.period_ns)
		return 0;
	memset(&config, 0, sizeof(config));
	config.flags = MEMWATCH_CONFIG_PERIOD;
	config.period_ns = opts->period_ns;
	err = memwatch_device_set_config(module->device, &config);
	if (!err)
		module->session.period_ns = opts->period_ns;
	return err;
}

static int module_open_device(struct module_session *module)
{
	struct memwatch_ctx *ctx = module->session.ctx;
	struct memwatch_get_info info;
	int err = memwatch_device_open(ctx, &module->device);

	if (!err)
		err = memwatch_device_get_info(module->device, &info);
	if (err)
		return err;
	module->session.relay.nr_rmids = info.nr_rmids;
	if (info.schema != MEMWATCH_SCHEMA)
		return mw_fail(ctx, -EPROTO,
			       "the module uses schema %u, this library schema %u: install "
			       "both from one version",
			       info.schema, MEMWATCH_SCHEMA);
	return 0;
}

int mw_session_open_module(struct memwatch_ctx *ctx, const struct memwatch_live_opts *opts,
			   struct mw_session **ret)
{
	struct module_session *module = calloc(1, sizeof(*module));
	int err;

	if (!module)
		return mw_fail_memory(ctx, "live stream");
	module->session.ctx = ctx;
	module->session.ops = &module_ops;
	module->session.relay.source = MW_BPF_SOURCE_MODULE;
	err = module_open_device(module);
	if (!err)
		err = module_set_period(module, opts);
	if (err) {
		module_close(&module->session);
		return err;
	}
	*ret = &module->session;
	return 0;
}
