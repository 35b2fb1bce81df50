// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Growth below the wave of a day: when the rule "height" finds a leak, what it leaves alone, and
 * the time to a limit that is days away.
 */
#include "../../selftests/tap.h"
#include "growth-shapes.h"

/* Two days of a wave, and then a leak of 8 MiB/h below it. */
static double wave_leaks(double t)
{
	return daily_wave(t) + (t > 259200 ? (t - 259200) / 3600 * 8 * MIB : 0);
}

/* The wave of every day, but for one that is twice as high, on the fifth. */
static double wave_with_peak(double t)
{
	bool fifth = t > 4 * 86400 && t < 4 * 86400 + 43200;

	return 300 * MIB + (fifth ? 200 : 100) * MIB * sin(t * 2 * M_PI / 86400);
}

/*
 * 600 MiB at night and 1000 MiB by day, to which 1.25 MiB an hour and 30 MiB each day are added.
 * After eight days the memory is given back.
 */
static double plateau_leaks(double t)
{
	double day = floor(t / 86400), hour = fmod(t, 86400) / 3600;

	if (day >= 8 || hour < 12)
		return 600 * MIB;
	return (1000 + 30 * day + 1.25 * (hour - 12)) * MIB;
}

static void test_height(void)
{
	struct result r = run_shape(wave_leaks, 8 * 86400, 60, 0);

	tap_eq(r.alerts, 1, "a leak of 8 MiB/h below a daily wave of 200 MiB is found once");
	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_HEIGHT,
	       "a leak below a daily wave is found by the rule height");
	tap_ok(r.row.first_alert_ns > 259200 * 1000000000ULL,
	       "a leak below a daily wave is found after its onset: %.1f h",
	       (seconds_of(r.row.first_alert_ns) - 259200) / 3600);
	tap_ok(r.row.first_alert_ns < (259200 + 2 * 86400) * 1000000000ULL,
	       "a leak below a daily wave is found within two days");
	r = run_shape(plateau_leaks, 8 * 86400, 60, 0);
	tap_eq(r.alerts, 1, "growth of 30 MiB a day, which is lower each night, has one alert");
	tap_eq(r.clears, 0, "the alert about growth of days holds at night");
	r = run_shape(plateau_leaks, 9 * 86400 + 6 * 3600, 60, 0);
	tap_eq(r.clears, 1, "the alert is cleared when a whole day was as low as before");
	r = run_shape(daily_wave, 8 * 86400, 60, 0);
	tap_eq(r.alerts, 0, "no alert for a week of a daily wave");
	r = run_shape(wave_with_peak, 8 * 86400, 60, 0);
	tap_eq(r.alerts, 0, "no alert for half a day that is twice as high");
}

/* 10 to 30 MiB at the wave of a day, and from the 60th hour on a leak of 0.4 MiB an hour. */
static double wave_leaks_little(double t)
{
	return 20 * MIB + 10 * MIB * sin(t * 2 * M_PI / 86400) +
	       (t > 216000 ? (t - 216000) / 3600 * 0.4 * MIB : 0);
}

/* The same wave, and a leak of 2 MiB an hour that began 16 hours before the sixth day. */
static double wave_leaks_late(double t)
{
	return 150 * MIB + 30 * MIB * sin(t * 2 * M_PI / 86400) +
	       (t > 432000 ? (t - 432000) / 3600 * 2 * MIB : 0);
}

/* Growth that slows down over days, to 60 MiB. */
static double settling_days(double t)
{
	return 4 * MIB + (1 - exp(-t / 86400)) * 56 * MIB;
}

static void test_height_below_limit(void)
{
	struct result r = run_shape(wave_leaks_little, 6 * 86400, 60, 64 * MIB);

	tap_ok(r.alerts >= 1, "a leak of 0.4 MiB/h below a wave is found if its limit is 64 MiB");
	tap_ok(r.row.first_alert_ns > 216000 * 1000000000ULL,
	       "a leak of 0.4 MiB/h is found after its onset: %.1f h",
	       seconds_of(r.row.first_alert_ns) / 3600 - 60);
	r = run_shape(wave_leaks_little, 6 * 86400, 60, 0);
	tap_eq(r.alerts, 0, "a leak of 0.4 MiB/h without a limit raises no alert");
	r = run_shape(settling_days, 5 * 86400, 60, 80 * MIB);
	tap_eq(r.alerts, 0, "growth that slows down over days raises no alert");
}

static void test_days_ahead(void)
{
	struct result r = run_shape(wave_leaks_late, 8 * 86400, 60, 400 * MIB);
	/* Its peak, 180 MiB, is at the sixth hour of a day: (400 - 180) / 2 = 110 hours. */
	double killed = 120 + 110, left = killed - seconds_of(r.row.first_alert_ns) / 3600;
	double low, likely, high;

	tap_eq(r.alerts, 1, "a leak of 2 MiB/h below a wave of 60 MiB is found once");
	tap_eq(r.row.reason, MEMWATCH_GROWTH_REASON_HEIGHT,
	       "a leak below a wave is found by the rule height");
	tap_ok(is_near(seconds_of(r.row.alert_eta_ns) / 3600, left, 0.25),
	       "the time to a limit days ahead is right within 25 %%: %.1f h, %.1f h are left",
	       seconds_of(r.row.alert_eta_ns) / 3600, left);
	tap_ok(is_near((double)r.row.alert_slope, 2.0 * MIB / 3600, 0.25),
	       "the slope of a leak below a wave is that of days and not of a morning: %.2f MiB/h",
	       (double)r.row.alert_slope * 3600 / MIB);
	left = killed - 8 * 24;
	low = seconds_of(r.row.eta_low_ns) / 3600;
	likely = seconds_of(r.row.eta_ns) / 3600;
	high = seconds_of(r.row.eta_high_ns) / 3600;
	tap_ok(low < left && left < high,
	       "the interval of growth by days holds the end: %.1f h are left, %.1f to %.1f h",
	       left, low, high);
	tap_ok(low < likely / 3 && high > likely * 3 && high < likely * 4,
	       "growth by days may be wrong by a factor of three: %.1f h in all likelihood",
	       likely);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_height();
	test_height_below_limit();
	test_days_ahead();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
