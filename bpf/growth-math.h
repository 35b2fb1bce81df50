/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The integer arithmetic of the growth detectors: 128-bit products and their ratio,
 * saturating sums, percentages. Everything is computed with integers, so that the BPF
 * programs and the library compute the same bits from the same samples.
 */
#ifndef _MW_GROWTH_MATH_H
#define _MW_GROWTH_MATH_H

#include <linux/types.h>

#ifndef MW_INLINE
#ifdef __bpf__
#define MW_INLINE static __attribute__((always_inline)) inline
#else
#define MW_INLINE static inline
#endif
#endif

/*
 * Hides the possible values of @x from the compiler, so that it does not turn
 * arithmetic on @x into a branch.
 */
#define MW_GROWTH_OPAQUE(x) __asm__ volatile("" : "+r"(x))

/* An unsigned 128-bit integer: R squared is the ratio of two of them. */
struct mw_growth_wide {
	__u64 high;
	__u64 low;
};

MW_INLINE struct mw_growth_wide mw_growth_multiply(__u64 a, __u64 b)
{
	__u64 ah = a >> 32, al = (__u32)a, bh = b >> 32, bl = (__u32)b;
	__u64 low = al * bl, middle = ah * bl + (low >> 32), other = al * bh + (__u32)middle;
	struct mw_growth_wide product;

	product.high = ah * bh + (middle >> 32) + (other >> 32);
	product.low = (other << 32) | (__u32)low;
	return product;
}

/* The product of @wide, which is below 2^108, and @by, which is below 2^20. */
MW_INLINE struct mw_growth_wide mw_growth_scale(struct mw_growth_wide wide, __u32 by)
{
	struct mw_growth_wide product = mw_growth_multiply(wide.low, by);

	product.high += wide.high * by;
	return product;
}

/*
 * Returns 1 if @a is at most @b, else 0, computed from the borrow bit of b - a. A
 * comparison would be a branch, and the verifier explores both ways of each branch:
 * the binary search below would cost it 2^20 paths. Callers multiply with the result
 * instead of using it as a mask, because newer verifiers also explore both ways of an
 * AND with a register that is either 0 or all ones.
 */
MW_INLINE __u64 mw_growth_at_most(struct mw_growth_wide a, struct mw_growth_wide b)
{
	__u64 borrow = ((~b.low & a.low) | (~(b.low ^ a.low) & (b.low - a.low))) >> 63;
	__u64 rest = b.high - a.high - borrow;

	borrow = ((~b.high & a.high) | (~(b.high ^ a.high) & rest)) >> 63;
	borrow ^= 1;
	MW_GROWTH_OPAQUE(borrow);
	return borrow;
}

/*
 * Returns @a if @i is at most @last, else @b. @i and @last are below 2^63. There is no
 * branch, for the reason given at mw_growth_at_most().
 */
MW_INLINE __u32 mw_growth_select(__u64 i, __u64 last, __u32 a, __u32 b)
{
	__u64 beyond = last - i;

	MW_GROWTH_OPAQUE(beyond);
	beyond >>= 63;
	MW_GROWTH_OPAQUE(beyond);
	return (__u32)(a * (beyond ^ 1) + b * beyond);
}

/*
 * The ratio @part / @whole in parts per million, rounded down, by binary search. @part
 * must be at most @whole: the search covers 20 bits and does not check its result.
 */
MW_INLINE __u32 mw_growth_ppm(const struct mw_growth_wide *part, const struct mw_growth_wide *whole)
{
	struct mw_growth_wide bound = mw_growth_scale(*part, 1000000);
	__u64 q = 0;
	__u32 bit;

	for (bit = 1U << 19; bit; bit >>= 1)
		q += bit * mw_growth_at_most(mw_growth_scale(*whole, (__u32)q + bit), bound);
	return (__u32)q;
}

/* The sum, or the largest __u32 if it does not fit. */
MW_INLINE __u32 mw_growth_add_sat(__u32 a, __u32 b)
{
	return a > ~0U - b ? ~0U : a + b;
}

/* The difference, or 0 if it is negative. */
MW_INLINE __u32 mw_growth_sub_sat(__u32 a, __u32 b)
{
	return a > b ? a - b : 0;
}

/*
 * The score of one test: 0 if @value is at @bad or beyond, 100 if it is at @good or
 * beyond, linear in between. Either bound may be the larger one.
 */
MW_INLINE __u32 mw_growth_grade(__u64 value, __u32 bad, __u32 good)
{
	if (good > bad)
		return value >= good ? 100 : value <= bad ? 0 : (value - bad) * 100 / (good - bad);
	return value <= good ? 100 : value >= bad ? 0 : (bad - value) * 100 / (bad - good);
}

/* @part of @whole in percent, at most 1000. If both are 0 the result is 0. */
MW_INLINE __u32 mw_growth_percent(__u32 part, __u32 whole)
{
	__u64 percent = whole ? (__u64)part * 100 / whole : part ? 1000 : 0;

	return percent > 1000 ? 1000 : (__u32)percent;
}

#endif /* _MW_GROWTH_MATH_H */
