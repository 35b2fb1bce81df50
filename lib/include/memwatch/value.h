/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A measured value is a number and how far it can be trusted. A missing value
 * is never a 0.
 */
#ifndef MEMWATCH_VALUE_H
#define MEMWATCH_VALUE_H

#include <linux/memwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_value - a sum of measurements
 * @value: the sum of those parts that were measured
 * @parts: how many parts there were, measured or not; 0: none, @status is
 *	UNAVAILABLE
 * @status: &enum memwatch_status of the sum, see memwatch_status_worst()
 * @reserved: 0
 *
 * All zero is a valid empty sum. Show @value unless @status is UNAVAILABLE or
 * FIRST; those have nothing to show.
 */
struct memwatch_value {
	__u64 value;
	__u32 parts;
	__u8 status;
	__u8 reserved[3];
};

/**
 * memwatch_status_worst - status of a sum of two values
 * @a: &enum memwatch_status
 * @b: &enum memwatch_status
 *
 * From good to bad: OK, MULTIPLEXED, ESTIMATED, STALE, ERROR. Two are special.
 * FIRST is neutral: a counter has to start somewhere, and what follows is
 * complete from there; only a sum of nothing but FIRST is FIRST. UNAVAILABLE
 * with a value that was measured makes the sum a lower bound: at least
 * ESTIMATED; only a sum without any measured part is UNAVAILABLE. An unknown
 * status counts as ERROR. The operation is commutative and associative.
 *
 * Returns: &enum memwatch_status.
 * Since: 0.1
 */
__u8 memwatch_status_worst(__u8 a, __u8 b);

/**
 * memwatch_value_add - add one measurement to a sum
 * @sum: the sum
 * @value: what was measured; ignored if @status says that nothing was
 * @status: &enum memwatch_status of @value
 *
 * The sum saturates at the largest number instead of wrapping.
 * Since: 0.1
 */
void memwatch_value_add(struct memwatch_value *sum, __u64 value, __u8 status);

/**
 * memwatch_value_merge - add one sum to another
 * @sum: the sum
 * @other: is added; a sum without parts changes nothing
 *
 * Since: 0.1
 */
void memwatch_value_merge(struct memwatch_value *sum, const struct memwatch_value *other);

/**
 * memwatch_status_name - lower-case name as used in JSON
 * @status: &enum memwatch_status
 *
 * Returns: "ok", "unavailable", "error", "stale", "first", "estimated",
 * "multiplexed", or "unknown".
 * Since: 0.1
 */
const char *memwatch_status_name(__u8 status);

/**
 * memwatch_counter_name - JSON name of a counter
 * @counter: &enum memwatch_counter
 *
 * Returns: "cycles", "instructions", "llc_references", "llc_misses", or NULL.
 * Since: 0.1
 */
const char *memwatch_counter_name(unsigned int counter);

/**
 * memwatch_rdt_event_name - JSON name of an RDT event
 * @event: &enum memwatch_rdt_event
 *
 * Returns: "llc_occupancy_bytes", "mbm_total_bytes", "mbm_local_bytes", or NULL.
 * Since: 0.1
 */
const char *memwatch_rdt_event_name(unsigned int event);

/**
 * memwatch_record_name - name of a record type
 * @type: &enum memwatch_record_type
 *
 * Returns: such as "sample" or "rmid_alloc"; "unknown" for one that this
 * library does not know.
 * Since: 0.1
 */
const char *memwatch_record_name(unsigned int type);

/**
 * memwatch_backend_name - name of a module backend
 * @backend: &enum memwatch_backend
 *
 * Returns: "emulated", "intel-rdt", "amd-qos", "simulated", or "unknown".
 * Since: 0.1
 */
const char *memwatch_backend_name(unsigned int backend);

/**
 * memwatch_reason_name - name of the reason in an RMID record
 * @reason: &enum memwatch_reason
 *
 * Returns: such as "fork" or "revoked"; "unknown" for one not known.
 * Since: 0.1
 */
const char *memwatch_reason_name(unsigned int reason);

/**
 * memwatch_notice_name - name of what a notice is about
 * @notice: &enum memwatch_notice
 *
 * Returns: such as "foreign_write" or "resctrl_mounted"; "unknown" for one not
 * known.
 * Since: 0.1
 */
const char *memwatch_notice_name(unsigned int notice);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_VALUE_H */
