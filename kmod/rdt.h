/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * RDT monitoring as the rest of the module sees it: which backend is in force,
 * how many RMIDs there are, how to read the counters; and the numbers of the
 * model specific registers.
 */
#ifndef _MW_RDT_H
#define _MW_RDT_H

#include <linux/bits.h>
#include <linux/memwatch.h>

#include "rdt-count.h"

#define MW_MSR_QM_EVTSEL  0xc8d
#define MW_MSR_QM_CTR	  0xc8e
#define MW_MSR_PQR_ASSOC  0xc8f
#define MW_MSR_SNC_CONFIG 0xca0

/* Assignable bandwidth counters of AMD (ABMC). */
#define MW_MSR_ABMC_CFG	  0xc00003fd /* configures a counter */
#define MW_MSR_ABMC_DSC	  0xc00003fe /* the configuration of the counter that CFG names */
#define MW_MSR_L3_EXT_CFG 0xc00003ff /* bit 0: the counters are assignable */

#define MW_PQR_RMID	  0x3ffULL
#define MW_PQR_CLOSID	  GENMASK_ULL(63, 32)

/**
 * struct mw_rdt - capabilities of RDT monitoring
 * @backend: &enum memwatch_backend in force
 * @nr_rmids: the highest RMID that may be allocated
 * @first_rmid: the lowest RMID that may be allocated; others use those below
 * @format: how to read the counters; it names no event if they are not read
 * @per_node: with sub-NUMA clustering: number of RMIDs of each node, else 0
 * @nodes: with sub-NUMA clustering: number of nodes that share an L3 cache, else 1
 * @counters: assignable bandwidth counters of each domain; 0 if there are none, or if
 * 	counters are not assigned: then each RMID has its own
 * @traffic_types: what an assignable counter of total and of local bandwidth counts
 * @reason: why this backend was chosen
 */
struct mw_rdt {
	u32 backend;
	u32 nr_rmids;
	u32 first_rmid;
	struct mw_rdt_format format;
	u32 per_node;
	u32 nodes;
	u32 counters;
	u32 traffic_types[MW_RDT_TRAFFIC];
	char reason[96];
};

/* What is in force. Changed under mw_control_lock. */
extern struct mw_rdt mw_rdt;

const char *mw_rdt_backend_name(u32 backend);

#endif /* _MW_RDT_H */
