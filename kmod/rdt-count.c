// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From the value of the RDT counter register to bytes, see rdt-count.h.
 */
#include "rdt-count.h"

#define QM_CTR_OVERFLOW	 (1ULL << 61)

#define WIDTH_BASE	 24
#define WIDTH_MAX	 62
#define WIDTH_OFFSET_AMD 20 /* used by AMD when the field of CPUID is 0 */

#define CF_SHIFT	 20
#define CF(x)		 ((u64)((x) * (1 << CF_SHIFT) + 0.5))

/*
 * Errata SKX99 and BDF102: the bandwidth of RMIDs above a threshold must be
 * multiplied by a factor. Threshold and factor depend on the number of RMIDs;
 * the row is that number / 8 - 1. This is Intel's table; rows that need no
 * correction have the factor 1.
 */
static const struct correction {
	u32 threshold;
	u64 cf;
} corrections[] = {
	{ 7, CF(1.000000) },   { 15, CF(1.000000) },  { 15, CF(0.969650) },  { 31, CF(1.000000) },
	{ 31, CF(1.066667) },  { 31, CF(0.969650) },  { 47, CF(1.142857) },  { 63, CF(1.000000) },
	{ 63, CF(1.185115) },  { 63, CF(1.066553) },  { 79, CF(1.454545) },  { 95, CF(1.000000) },
	{ 95, CF(1.230769) },  { 95, CF(1.142857) },  { 95, CF(1.066667) },  { 127, CF(1.000000) },
	{ 127, CF(1.254863) }, { 127, CF(1.185255) }, { 151, CF(1.000000) }, { 127, CF(1.066667) },
	{ 167, CF(1.000000) }, { 159, CF(1.454334) }, { 183, CF(1.000000) }, { 127, CF(0.969744) },
	{ 191, CF(1.280246) }, { 191, CF(1.230921) }, { 215, CF(1.000000) }, { 191, CF(1.143118) },
};

/**
 * mw_rdt_format_init - decode CPUID leaf 0xF, subleaf 1
 * @format: to be filled in
 * @eax: width of the counters, and flags
 * @ebx: bytes per unit
 * @edx: supported events
 * @amd: the vendor follows AMD's rules
 */
void mw_rdt_format_init(struct mw_rdt_format *format, u32 eax, u32 ebx, u32 edx, bool amd)
{
	u32 offset = eax & 0xff;

	if (amd && !offset)
		offset = WIDTH_OFFSET_AMD;
	*format = (struct mw_rdt_format){
		.events = edx & 7,
		.width = WIDTH_BASE + offset,
		.scale = ebx ? ebx : 1,
		.has_overflow = eax >> 8 & 1,
		.restarts = amd,
		.cf_threshold = ~0U,
		.cf = 1 << CF_SHIFT,
	};
	if (format->width > WIDTH_MAX)
		format->width = WIDTH_MAX;
	if (format->has_overflow && format->width > WIDTH_MAX - 1)
		format->width = WIDTH_MAX - 1;
}

/* Apply the erratum. For Skylake-X and Broadwell-X only. */
void mw_rdt_format_correct(struct mw_rdt_format *format, u32 max_rmid)
{
	u32 row = (max_rmid + 1) / 8;

	if (!row || row > sizeof(corrections) / sizeof(*corrections))
		return;
	format->cf_threshold = corrections[row - 1].threshold;
	format->cf = corrections[row - 1].cf;
}

/**
 * mw_rdt_decode - decode a value of the counter register
 * @format: format of the register
 * @reg: value of QM_CTR
 * @data: set to the counter if the status is OK, else to 0
 *
 * Return: OK, ERROR or UNAVAILABLE of &enum memwatch_status
 */
u8 mw_rdt_decode(const struct mw_rdt_format *format, u64 reg, u64 *data)
{
	*data = 0;
	if (reg & MW_QM_CTR_ERROR)
		return MEMWATCH_STATUS_ERROR;
	if (reg & MW_QM_CTR_UNAVAILABLE)
		return MEMWATCH_STATUS_UNAVAILABLE;
	*data = format->has_overflow ? reg & ~QM_CTR_OVERFLOW : reg;
	return MEMWATCH_STATUS_OK;
}

/* The difference of two readings, between which the counter wrapped at most once. */
u64 mw_rdt_delta(const struct mw_rdt_format *format, u64 from, u64 to)
{
	u32 shift = 64 - format->width;

	return ((to << shift) - (from << shift)) >> shift;
}

/* @units * @cf / 2^CF_SHIFT, rounded down, without overflow. */
static u64 count_correct_units(u64 units, u64 cf)
{
	u64 high = units >> CF_SHIFT, low = units & ((1 << CF_SHIFT) - 1);

	return high * cf + (low * cf >> CF_SHIFT);
}

u64 mw_rdt_bytes(const struct mw_rdt_format *format, u32 rmid, u64 units, bool traffic)
{
	if (traffic && rmid > format->cf_threshold)
		units = count_correct_units(units, format->cf);
	return units * format->scale;
}

static bool count_has_event(const struct mw_rdt_format *format, u32 event)
{
	return format->events >> event & 1;
}

/* Others look at the values at any moment. */
static void count_store(u64 *to, u64 value)
{
	__atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static void count_read_level(struct mw_rdt_count *count, const struct mw_rdt_format *format,
			     u64 reg, u64 now)
{
	u8 *status = &count->status[MEMWATCH_RDT_OCCUPANCY];
	u64 data;

	*status = count_has_event(format, MEMWATCH_RDT_OCCUPANCY)
			  ? mw_rdt_decode(format, reg, &data)
			  : MEMWATCH_STATUS_UNAVAILABLE;
	if (*status != MEMWATCH_STATUS_OK)
		return;
	count_store(&count->occupancy, data * format->scale);
	count_store(&count->occupancy_ns, now);
}

/*
 * A lower bound of the units counted since the baseline. Sets @all if it is
 * exact. On AMD a counter that was unavailable has restarted at 0 (15292f1b4c55
 * ("x86/resctrl: Fix miscount of bandwidth event when reactivating previously
 * unavailable RMID")). If it is not below its baseline, it may also have
 * continued. On Intel it is not documented what the counter did meanwhile.
 */
static u64 count_moved_since(const struct mw_rdt_count *count, const struct mw_rdt_format *format,
			     u32 i, u64 data, bool *all)
{
	*all = count->known >> i & 1;
	if (!(count->lapsed >> i & 1))
		return mw_rdt_delta(format, count->prev[i], data);
	*all &= format->restarts && (data < count->prev[i] || !count->prev[i]);
	return data < count->prev[i] ? data : data - count->prev[i];
}

/* After an error the baseline stays valid. Returns true if the counter has changed. */
static bool count_read_traffic(struct mw_rdt_count *count, const struct mw_rdt_format *format,
			       u32 i, u64 reg, bool exact)
{
	u8 *status = &count->status[MEMWATCH_RDT_MBM_TOTAL + i];
	u8 bit = 1 << i;
	u64 data, delta;
	bool all;

	*status = count_has_event(format, MEMWATCH_RDT_MBM_TOTAL + i)
			  ? mw_rdt_decode(format, reg, &data)
			  : MEMWATCH_STATUS_UNAVAILABLE;
	if (*status != MEMWATCH_STATUS_OK) {
		if (*status == MEMWATCH_STATUS_UNAVAILABLE)
			count->lapsed |= bit;
		/* The next difference would still belong to two owners. */
		if (!exact)
			count->known &= ~bit;
		return false;
	}
	delta = count_moved_since(count, format, i, data, &all);
	if (!all || (delta && !exact))
		*status = MEMWATCH_STATUS_ESTIMATED;
	/*
	 * Add the difference only if all of it belongs to this owner, and if it is not more
	 * than what was really moved.
	 */
	if (count->known & bit && (exact || !delta) && (all || format->restarts))
		count->sum[i] += delta;
	count->prev[i] = data;
	count->known |= bit;
	count->lapsed &= ~bit;
	return delta;
}

/* The bandwidth counters were set to 0 for this RMID. */
void mw_rdt_count_restart(struct mw_rdt_count *count)
{
	count->prev[0] = count->prev[1] = 0;
	count->known = (1 << MW_RDT_TRAFFIC) - 1;
	count->lapsed = 0;
}

/*
 * Was some traffic of this owner not counted since the last reading with a value? The note is
 * taken away before the registers are read: what another CPU notes from then on is about
 * traffic that this reading does not contain, and is left for the next one.
 */
bool mw_rdt_count_take_uncounted(struct mw_rdt_count *count, u32 generation)
{
	u64 noted = (u64)generation + 1;

	return __atomic_load_n(&count->uncounted, __ATOMIC_RELAXED) == noted &&
	       __atomic_compare_exchange_n(&count->uncounted, &noted, 0, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_RELAXED);
}

/*
 * What was counted is a lower bound. This is said once, with the first reading that has a
 * value again.
 */
static void count_report_uncounted(struct mw_rdt_count *count)
{
	bool reported = false;
	u32 i;

	for (i = 0; i < MW_RDT_TRAFFIC; i++) {
		u8 *status = &count->status[MEMWATCH_RDT_MBM_TOTAL + i];

		if (*status != MEMWATCH_STATUS_OK && *status != MEMWATCH_STATUS_ESTIMATED)
			continue;
		*status = MEMWATCH_STATUS_ESTIMATED;
		reported = true;
	}
	if (!reported)
		count_store(&count->uncounted, (u64)count->generation + 1);
}

/**
 * mw_rdt_count_begin - take a baseline
 * @count: readings of an RMID; all zero if it was never read
 * @format: format of the register
 * @reg: values of QM_CTR, indexed by &enum memwatch_rdt_event
 * @owner: the owner of the RMID
 * @now: current time
 *
 * The RMID does not run in this domain. If it has the same owner as before, the sum
 * is kept. Cache lines that this owner held at the last reading may have been written
 * back since, because a CPU that goes offline empties the cache. Nobody has counted that.
 */
void mw_rdt_count_begin(struct mw_rdt_count *count, const struct mw_rdt_format *format,
			const u64 *reg, const struct mw_rdt_owner *owner, u64 now)
{
	u32 i;

	if (count->generation != owner->generation)
		count->sum[0] = count->sum[1] = 0;
	else if (count->occupancy || owner->uncounted)
		count_store(&count->uncounted, (u64)owner->generation + 1);
	count->generation = owner->generation;
	count->known = 0;
	count->lapsed = 0;
	for (i = 0; i < MW_RDT_TRAFFIC; i++) {
		u8 *status = &count->status[MEMWATCH_RDT_MBM_TOTAL + i];
		u64 data;

		count->prev[i] = 0;
		*status = count_has_event(format, MEMWATCH_RDT_MBM_TOTAL + i)
				  ? mw_rdt_decode(format, reg[MEMWATCH_RDT_MBM_TOTAL + i], &data)
				  : MEMWATCH_STATUS_UNAVAILABLE;
		if (*status == MEMWATCH_STATUS_OK)
			count->prev[i] = data;
		/* What the hardware does not count for will begin at 0; an error says nothing. */
		if (*status == MEMWATCH_STATUS_OK ||
		    (*status == MEMWATCH_STATUS_UNAVAILABLE && format->restarts))
			count->known |= 1 << i;
	}
	count_read_level(count, format, reg[MEMWATCH_RDT_OCCUPANCY], now);
	count_store(&count->read_ns, now);
	count->ran_ns = 0;
}

/*
 * Does the whole difference since the last reading belong to this owner? It
 * does if that reading came after the last owner had gone, or if no other owner
 * ran since then. A domain learns with a delay that an RMID ran, so settle_ns
 * must have passed.
 */
static bool count_is_exact(const struct mw_rdt_count *count, const struct mw_rdt_owner *owner,
			   u64 now)
{
	if (count->generation == owner->generation)
		return true;
	if ((s64)(count->read_ns - owner->free_ns) > 0)
		return true;
	if (count->ran_ns)
		return (s64)(count->ran_ns - owner->free_ns) >= 0;
	return (s64)(now - owner->free_ns - owner->settle_ns) >= 0;
}

/**
 * mw_rdt_count_read - take a reading
 * @count: readings of an RMID
 * @format: format of the register
 * @reg: values of QM_CTR, indexed by &enum memwatch_rdt_event
 * @owner: the owner of the RMID
 * @now: current time
 *
 * Return: true if a bandwidth counter has changed since the last reading
 */
bool mw_rdt_count_read(struct mw_rdt_count *count, const struct mw_rdt_format *format,
		       const u64 *reg, const struct mw_rdt_owner *owner, u64 now)
{
	bool exact = count_is_exact(count, owner, now), moved = false;
	u32 i;

	if (count->generation != owner->generation) {
		count->generation = owner->generation;
		count->sum[0] = count->sum[1] = 0;
	}
	count_read_level(count, format, reg[MEMWATCH_RDT_OCCUPANCY], now);
	for (i = 0; i < MW_RDT_TRAFFIC; i++)
		moved |= count_read_traffic(count, format, i, reg[MEMWATCH_RDT_MBM_TOTAL + i],
					    exact);
	if (owner->uncounted)
		count_report_uncounted(count);
	count_store(&count->read_ns, now);
	count->ran_ns = 0;
	return moved;
}

/* Fill the last reading into a record. */
void mw_rdt_count_show(const struct mw_rdt_count *count, const struct mw_rdt_format *format,
		       u32 rmid, struct memwatch_record_rdt *rec)
{
	u32 i;

	rec->rmid = rmid;
	rec->generation = count->generation;
	rec->value[MEMWATCH_RDT_OCCUPANCY] = count->occupancy;
	for (i = 0; i < MW_RDT_TRAFFIC; i++)
		rec->value[MEMWATCH_RDT_MBM_TOTAL + i] = mw_rdt_bytes(format, rmid, count->sum[i],
								      true);
	for (i = 0; i < MEMWATCH_RDT_MAX; i++) {
		rec->status[i] = count->status[i];
		if (rec->status[i] == MEMWATCH_STATUS_ERROR ||
		    rec->status[i] == MEMWATCH_STATUS_UNAVAILABLE)
			rec->value[i] = 0;
	}
}
