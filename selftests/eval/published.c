// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
/*
 * The three leak detectors that were published as "Memory Growth Monitor", implemented anew
 * from a description of their behaviour. They are baselines, so their rules and their
 * faults are kept. Where the description leaves a choice, the one that is better for the
 * detector was taken: it sees each process from its first sample on, and its current
 * address space.
 *
 *	published TRACE.csv
 *
 * Prints one line for each process and detector: process id, detector, time of the first
 * alert or "-", last score. The detectors with "-units" in their name lack the worst fault:
 * the originals take bytes for pages and multiply them by 4096.
 *
 * The originals run on events of kmem:rss_stat. A trace has samples, so the events between
 * two samples are interpolated: one per second for each counter that changed, on a straight
 * line, in whole pages.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB	   1024ull
#define MIB	   (1024 * KIB)
#define RING	   16
#define COALESCE_S 5

enum member { FILE_PAGES, ANON_PAGES, SWAP_ENTRIES, SHMEM_PAGES, MEMBERS };

struct linear {
	uint64_t last_mb, initial_bytes, last_bytes, growth_rate;
	double last_time, first_time;
	uint64_t ring_mb[RING];
	uint32_t ring_time[RING];
	int count, head, samples;
	int64_t slope;
	int r2_permille, score;
	double alert;
	bool seen;
};

struct ratio {
	uint64_t initial_anon;
	double last_event, last_evaluation;
	int score;
	double alert;
};

struct threshold {
	uint64_t last_total;
	double last_event, monotonic_since;
	int score;
	double alert;
	bool seen;
};

struct process {
	int pid;
	double time;
	uint64_t bytes[MEMBERS], vsz;
	struct linear linear[2];
	struct ratio ratio;
	struct threshold threshold[2];
};

struct event {
	double time;
	enum member member;
	uint64_t bytes;
	int64_t delta;
};

/* The points of the first limit that @value exceeds, or 0. */
static int points_above(uint64_t value, const uint64_t *limits, const int *points, int n)
{
	for (int i = 0; i < n; i++)
		if (value > limits[i])
			return points[i];
	return 0;
}

/* Computes in whole MB and whole seconds, so each slope below 1 MB/s is zero: a fault. */
static void linear_fit(struct linear *d)
{
	int64_t sx = 0, sy = 0, sxy = 0, sxx = 0, n = d->count, numerator, denominator;
	int oldest = d->count < RING ? 0 : d->head;
	uint32_t start = d->ring_time[oldest];

	if (d->count < 6)
		return;
	for (int i = 0; i < d->count; i++) {
		int at = (oldest + i) % RING;
		int64_t x = (d->ring_time[at] - start) / 10, y = (int64_t)d->ring_mb[at];

		sx += x;
		sy += y;
		sxy += x * y;
		sxx += x * x;
	}
	numerator = n * sxy - sx * sy;
	denominator = n * sxx - sx * sx;
	if (!denominator)
		return;
	d->slope = numerator / denominator * (int64_t)MIB;
	d->r2_permille = d->slope > 0 ? 800 : d->slope == 0 ? 1000 : 500;
}

static void linear_score(struct linear *d, uint64_t bytes)
{
	static const uint64_t rates[] = { 10 * MIB, MIB, 100 * KIB };
	static const int rate_points[] = { 25, 20, 15 };
	uint64_t rate = d->growth_rate, percent;

	if (!d->growth_rate && d->slope <= 0)
		return; /* a fault: the old score is kept */
	if (d->slope > 0 && (uint64_t)d->slope > rate)
		rate = (uint64_t)d->slope;
	percent = bytes > d->initial_bytes ? (bytes - d->initial_bytes) * 100 / d->initial_bytes
					   : 0;
	d->score = points_above(rate, rates, rate_points, 3);
	d->score += d->r2_permille > 900 ? 35 : d->r2_permille > 700 ? 25 : 0;
	d->score += d->samples > 30 ? 25 : d->samples > 20 ? 20 : d->samples > 10 ? 15 : 0;
	d->score += percent > 200 ? 15 : percent > 100 ? 10 : 0;
}

static void linear_event(struct linear *d, const struct event *e, uint64_t scale)
{
	uint64_t bytes = e->bytes * scale, mb = bytes / MIB;
	double interval = 1;
	int newest = (d->head + RING - 1) % RING;
	uint32_t now;

	if (bytes < 10 * MIB || (d->seen && mb == d->last_mb))
		return;
	if (!d->seen) {
		d->seen = true;
		d->first_time = e->time;
		d->initial_bytes = bytes;
	} else {
		if (d->growth_rate == 0 && d->samples > 10)
			interval = 10;
		else if (d->growth_rate < 102400)
			interval = 5;
		if (d->samples && e->time - d->last_time < interval)
			return;
		d->growth_rate = bytes > d->last_bytes
					 ? (uint64_t)((double)(bytes - d->last_bytes) /
						      (e->time - d->last_time))
					 : 0;
	}
	d->last_mb = mb;
	d->last_bytes = bytes;
	d->last_time = e->time;
	d->samples++;
	now = (uint32_t)((e->time - d->first_time) * 10);
	if (d->count && now - d->ring_time[newest] < COALESCE_S * 10) {
		d->ring_mb[newest] = mb;
	} else {
		d->ring_mb[d->head] = mb;
		d->ring_time[d->head] = now;
		d->head = (d->head + 1) % RING;
		d->count += d->count < RING;
		linear_fit(d);
	}
	linear_score(d, bytes);
	if (d->score >= 60 && d->alert < 0)
		d->alert = e->time;
}

static uint64_t percent_of(uint64_t part, uint64_t whole)
{
	return whole ? part * 100 / whole : 0;
}

static void ratio_event(struct ratio *d, const struct process *p, const struct event *e)
{
	static const uint64_t shares[] = { 90, 80, 70, 60 }, swaps[] = { 10, 5, 1 },
			      growths[] = { 500, 200, 100 };
	static const int share_points[] = { 30, 25, 20, 15 }, swap_points[] = { 20, 15, 10 },
			 growth_points[] = { 15, 10, 5 };
	uint64_t total = p->bytes[FILE_PAGES] + p->bytes[ANON_PAGES] + p->bytes[SHMEM_PAGES];
	/* A fault: an event is about one counter, so one of these two is always zero. */
	int64_t anon = e->member == ANON_PAGES ? e->delta : 0,
		file = e->member == FILE_PAGES ? e->delta : 0;
	uint64_t anon_bytes = p->bytes[ANON_PAGES];

	if (!d->initial_anon)
		d->initial_anon = anon_bytes;
	if (d->last_evaluation >= 0 && e->time - d->last_evaluation < 1)
		return;
	d->last_evaluation = e->time;
	d->score = points_above(percent_of(anon_bytes, total), shares, share_points, 4);
	if (anon > 0)
		d->score += file <= 0 ? 35 : anon > 2 * file ? 30 : anon > file ? 20 : 0;
	d->score += points_above(percent_of(p->bytes[SWAP_ENTRIES], total + p->bytes[SWAP_ENTRIES]),
				 swaps, swap_points, 3);
	if (d->initial_anon && anon_bytes > d->initial_anon)
		d->score += points_above(percent_of(anon_bytes - d->initial_anon, d->initial_anon),
					 growths, growth_points, 3);
	if (d->score >= 60 && d->alert < 0)
		d->alert = e->time;
}

static int divergence_points(const struct process *p, uint64_t total, uint64_t scale)
{
	uint64_t tenths = total ? p->vsz * 10 / (total * scale) : 0;

	return tenths > 30 ? 30 : tenths > 25 ? 25 : tenths > 20 ? 20 : tenths > 18 ? 10 : 0;
}

static void threshold_event(struct threshold *d, const struct process *p, const struct event *e,
			    uint64_t scale)
{
	static const uint64_t minutes[] = { 600, 300, 180, 60 }, shares[] = { 90, 85, 80, 75, 70 },
			      swaps[] = { 10, 5 }, rates[] = { 10 * MIB, MIB };
	static const int minute_points[] = { 35, 30, 20, 10 },
			 share_points[] = { 35, 30, 25, 15, 10 }, swap_points[] = { 15, 10 },
			 rate_points[] = { 15, 10 };
	uint64_t total = p->bytes[FILE_PAGES] + p->bytes[ANON_PAGES] + p->bytes[SHMEM_PAGES],
		 rate = 0, anon_rate = 0;
	double gap = e->time - d->last_event;

	if (!d->seen || total < d->last_total)
		d->monotonic_since = e->time;
	if (d->seen && gap > 0) {
		int64_t delta = (int64_t)(total - d->last_total);

		/* A fault: a negative number is divided as unsigned, which gives 18 GB/s. */
		rate = scale > 1 || delta > 0 ? (uint64_t)(delta * (int64_t)scale * 1000000000) /
							(uint64_t)(gap * 1e9)
					      : 0;
		anon_rate = e->member == ANON_PAGES && e->delta > 0
				    ? (uint64_t)((double)e->delta * (double)scale / gap)
				    : 0;
	}
	d->seen = true;
	d->last_total = total;
	d->last_event = e->time;
	d->score = divergence_points(p, total, scale);
	d->score += points_above((uint64_t)(e->time - d->monotonic_since), minutes, minute_points,
				 4);
	d->score += points_above(percent_of(p->bytes[ANON_PAGES], total), shares, share_points, 5);
	d->score += points_above(percent_of(p->bytes[SWAP_ENTRIES], total + p->bytes[SWAP_ENTRIES]),
				 swaps, swap_points, 2);
	d->score += anon_rate > MIB ? 20 : 0;
	d->score += points_above(rate, rates, rate_points, 2);
	if (d->score > 100)
		d->score = 100;
	if (d->score >= 70 && d->alert < 0)
		d->alert = e->time;
}

static void feed_event(struct process *p, enum member member, uint64_t bytes, double time)
{
	struct event e = { time, member, bytes, (int64_t)(bytes - p->bytes[member]) };

	p->bytes[member] = bytes;
	ratio_event(&p->ratio, p, &e);
	for (int fixed = 0; fixed < 2; fixed++) {
		uint64_t scale = fixed ? 1 : 4096;

		linear_event(&p->linear[fixed], &e, scale);
		threshold_event(&p->threshold[fixed], p, &e, scale);
	}
}

/* Feeds interpolated values, one per second, for the time since the last sample. */
static void feed_sample(struct process *p, double time, const uint64_t bytes[MEMBERS], uint64_t vsz)
{
	uint64_t from[MEMBERS];
	double since = p->time;
	int seconds = since < 0 ? 1 : (int)(time - since);

	if (seconds < 1)
		seconds = 1;
	memcpy(from, p->bytes, sizeof(from));
	p->vsz = vsz;
	p->time = time;
	for (int s = 1; s <= seconds; s++) {
		for (enum member m = 0; m < MEMBERS; m++) {
			double way = (double)s / seconds;
			uint64_t value = bytes[m];

			if (s < seconds)
				value = (uint64_t)((double)from[m] +
						   ((double)bytes[m] - (double)from[m]) * way) /
					4096 * 4096;
			if (value != p->bytes[m])
				feed_event(p, m, value,
					   since < 0 ? time : since + (time - since) * way);
		}
	}
}

/* Finds a process, or adds it. */
static struct process *find_process(struct process **table, int *count, int pid)
{
	struct process *p;

	for (int i = *count - 1; i >= 0; i--)
		if ((*table)[i].pid == pid)
			return &(*table)[i];
	*table = realloc(*table, sizeof(**table) * (size_t)(*count + 1));
	if (!*table)
		exit(1);
	p = &(*table)[(*count)++];
	memset(p, 0, sizeof(*p));
	p->pid = pid;
	p->time = -1;
	for (int i = 0; i < 2; i++)
		p->linear[i].alert = p->threshold[i].alert = -1;
	p->ratio.alert = p->ratio.last_evaluation = -1;
	return p;
}

static void print_verdict(int pid, const char *name, double alert, int score)
{
	if (alert < 0)
		printf("%d %s - %d\n", pid, name, score);
	else
		printf("%d %s %.3f %d\n", pid, name, alert, score);
}

int main(int argc, char **argv)
{
	struct process *table = NULL;
	int count = 0;
	char line[512];
	FILE *in;

	if (argc != 2 || !(in = fopen(argv[1], "r"))) {
		fprintf(stderr, "usage: published TRACE.csv\n");
		return 2;
	}
	while (fgets(line, sizeof(line), in)) {
		unsigned long long anon, file, shmem, swap, vsz;
		double time;
		int pid;

		if (sscanf(line, "%lf,%d,%*[^,],%llu,%llu,%llu,%llu,%llu", &time, &pid, &anon,
			   &file, &shmem, &swap, &vsz) == 7) {
			uint64_t bytes[MEMBERS] = { file * KIB, anon * KIB, swap * KIB,
						    shmem * KIB };

			feed_sample(find_process(&table, &count, pid), time, bytes, vsz * KIB);
		}
	}
	fclose(in);
	for (int i = 0; i < count; i++) {
		const struct process *p = &table[i];

		print_verdict(p->pid, "linear", p->linear[0].alert, p->linear[0].score);
		print_verdict(p->pid, "linear-units", p->linear[1].alert, p->linear[1].score);
		print_verdict(p->pid, "ratio", p->ratio.alert, p->ratio.score);
		print_verdict(p->pid, "threshold", p->threshold[0].alert, p->threshold[0].score);
		print_verdict(p->pid, "threshold-units", p->threshold[1].alert,
			      p->threshold[1].score);
	}
	free(table);
	return 0;
}
