/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Measured values with their status, and the names of enumerations. A value that was not
 * measured is never shown as 0.
 */
#ifndef MEMWATCH_VALUE_H
#define MEMWATCH_VALUE_H

#include <linux/memwatch.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_value - a sum of measurements
 * @value: the sum of the parts that were measured
 * @parts: number of parts, measured or not; if it is 0, @status is UNAVAILABLE
 * @status: &enum memwatch_status of the sum, see memwatch_status_worst()
 * @reserved: 0
 *
 * A zeroed structure is an empty sum. @value means nothing if @status is UNAVAILABLE or FIRST.
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
 * The order from good to bad is OK, MULTIPLEXED, ESTIMATED, STALE, ERROR. Two statuses are
 * special. FIRST is neutral, because the first reading of a counter only starts a sum: a sum is
 * FIRST only if all its parts are. A sum of an UNAVAILABLE and a measured part is a lower bound,
 * so it is at least ESTIMATED: a sum is UNAVAILABLE only if no part was measured. An unknown
 * status counts as ERROR. The operation is commutative and associative.
 *
 * Returns: &enum memwatch_status.
 * Since: 0.1
 */
__u8 memwatch_status_worst(__u8 a, __u8 b);

/**
 * memwatch_value_add - add one measurement to a sum
 * @sum: the sum
 * @value: the measurement; ignored if @status says that nothing was measured
 * @status: &enum memwatch_status of @value
 *
 * The sum does not wrap: it stays at the largest number.
 * Since: 0.1
 */
void memwatch_value_add(struct memwatch_value *sum, __u64 value, __u8 status);

/**
 * memwatch_value_merge - add one sum to another
 * @sum: the sum
 * @other: the sum that is added; if it has no parts, nothing changes
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
