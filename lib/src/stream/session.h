/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Who makes the records of a live stream: the module, with a session of /dev/memwatch, or BPF
 * programs alone. The rest of the live stream does not depend on it.
 */
#ifndef MW_STREAM_SESSION_H
#define MW_STREAM_SESSION_H

#include <memwatch/stream.h>

#include "loader/relay.h"

struct mw_session;

/**
 * struct mw_session_ops - a kind of session
 * @start: after the programs have been attached: starts to measure; NULL if they do so themselves
 * @dump: after @start: has records made of what was there before; NULL if the programs make them
 * @stop: the programs are still attached: no records are made afterwards, and the last ones have
 *	been sent. Returns 0 or a negative errno.
 * @describe: after @start: fills in @nr_rmids, @backend, @backend_reason and @rdt of @info. The
 *	period may be a longer one than before. Strings belong to the session.
 * @close: frees the session
 */
struct mw_session_ops {
	int (*start)(struct mw_session *session, const struct memwatch_live_opts *opts);
	int (*dump)(struct mw_session *session, const struct memwatch_live_opts *opts);
	int (*stop)(struct mw_session *session, struct mw_bpf_relay *relay);
	int (*describe)(struct mw_session *session, struct memwatch_stream_info *info);
	void (*close)(struct mw_session *session);
};

/**
 * struct mw_session - common part of all sessions
 * @ctx: the context
 * @ops: the kind of session
 * @period_ns: the period
 * @relay: filled in by the session: which programs to load, and @nr_rmids if they need it
 */
struct mw_session {
	struct memwatch_ctx *ctx;
	const struct mw_session_ops *ops;
	uint64_t period_ns;
	struct mw_bpf_relay_opts relay;
};

/*
 * Opens a session, and sets the period if @opts has one. Returns 0 or a negative errno, with the
 * error text of @ctx set.
 */
int mw_session_open_module(struct memwatch_ctx *ctx, const struct memwatch_live_opts *opts,
			   struct mw_session **ret);
int mw_session_open_bpf(struct memwatch_ctx *ctx, const struct memwatch_live_opts *opts,
			struct mw_session **ret);

#endif /* MW_STREAM_SESSION_H */
