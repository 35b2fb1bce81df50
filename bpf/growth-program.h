/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a program did when it ran before. A process that grows while it starts, up to its limit, may
 * load its data or may leak. If another process of the same program had an alert about its limit
 * shortly before, came near it, and had not settled by then, this one is not taken for one that
 * starts: a service that leaks until it is killed does so again after that.
 */
#ifndef _MW_GROWTH_PROGRAM_H
#define _MW_GROWTH_PROGRAM_H

#include "growth-rules.h"

/*
 * For how long this is remembered. What leaks up to its limit while it starts needs minutes for it,
 * and a service manager restarts it within minutes.
 */
#define MW_GROWTH_KNOWN_NS (3600 * MW_GROWTH_SECOND)

/**
 * struct mw_growth_reached - what is remembered of a program
 * @time_ns: when one of its processes was near its limit last
 * @limit: how many pages that could have, beside what else counts for the limit
 * @reserved: zero
 */
struct mw_growth_reached {
	__u64 time_ns;
	__u32 limit;
	__u32 reserved;
};

/*
 * Is the limit of a process that of @reached, to an eighth? An interpreter runs many programs of
 * one name, and where the limits differ, they are not the same.
 */
MW_INLINE int mw_growth_program_has_limit(const struct mw_growth *g,
					  const struct mw_growth_reached *reached)
{
	__u32 limit = mw_growth_add_sat(g->signal, g->headroom);
	__u32 differs = mw_growth_sub_sat(limit, reached->limit) +
			mw_growth_sub_sat(reached->limit, limit);

	return differs <= reached->limit / 8;
}

/*
 * Marks the state of a process that has a notice now, if its program has reached this limit before;
 * @reached is NULL if nothing is known. Not earlier, because many programs change their name while
 * they start.
 */
MW_INLINE void mw_growth_program_recall(struct mw_growth *g, __u32 event,
					const struct mw_growth_reached *reached)
{
	if (!(event & MW_GROWTH_EVENT_NOTICE))
		return;
	g->flags &= (__u8)~MW_GROWTH_F_KNOWN;
	if (reached && g->last_ns - reached->time_ns < MW_GROWTH_KNOWN_NS &&
	    mw_growth_program_has_limit(g, reached))
		g->flags |= MW_GROWTH_F_KNOWN;
}

/*
 * Does the process grow, and is it near its limit, as its alert has said? An alert alone does not
 * count: what is remembered makes the next one earlier, and would be renewed for ever by that.
 */
MW_INLINE int mw_growth_program_reaches(const struct mw_growth *g)
{
	return g->flags & MW_GROWTH_F_NOTICE && g->flags & MW_GROWTH_F_ALERT &&
	       g->reason == MW_GROWTH_LIMIT &&
	       mw_growth_has_consumed(mw_growth_sub_sat(g->signal, g->alert_from), g->headroom,
				      MW_GROWTH_CONSUMED_MEANT);
}

/* What is to be remembered of a process that is near its limit. */
MW_INLINE void mw_growth_program_remember(const struct mw_growth *g,
					  struct mw_growth_reached *reached)
{
	reached->time_ns = g->last_ns;
	reached->limit = mw_growth_add_sat(g->signal, g->headroom);
	reached->reserved = 0;
}

/*
 * Has the growth of a process of this limit, or of one that had an alert before that was
 * remembered, ended by itself, so that it is to be forgotten?
 */
MW_INLINE int mw_growth_program_settles(const struct mw_growth *g, __u32 event,
					const struct mw_growth_reached *reached)
{
	if (!(event & (MW_GROWTH_EVENT_SETTLE | MW_GROWTH_EVENT_CLEAR)))
		return 0;
	return mw_growth_program_has_limit(g, reached) ||
	       (g->alert_ns && g->alert_ns <= reached->time_ns);
}

#endif /* _MW_GROWTH_PROGRAM_H */
