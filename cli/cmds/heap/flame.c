// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Flame graphs. The outermost call is at the bottom.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/heap/flame.h"
#include "output/human.h"
#include "text/escape.h"

#define WIDTH  1180.0
#define LEFT   10.0
#define HEIGHT 17
#define TOP    58
#define BOTTOM 30
/* Narrower calls cannot be seen. */
#define NARROWEST 0.1

struct flame {
	const struct heap_calls *calls;
	double *weight; /* of each call */
	double total;
	uint32_t max_depth; /* of the calls that are wide enough */
	FILE *out;
};

/* Writes text of a file as XML: what cannot be seen is made visible, and markup is escaped. */
static void write_xml(FILE *out, const char *text)
{
	char buf[1024];

	mw_escape(text, buf, sizeof(buf));
	for (const char *p = buf; *p; p++) {
		switch (*p) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*p, out);
		}
	}
}

/* Adds the values of innermost calls up, from the last call to the first. */
static int compute_weights(struct flame *flame)
{
	const struct heap_calls *calls = flame->calls;
	double *of_depth = calloc(calls->max_depth + 2UL, sizeof(*of_depth));

	flame->weight = calloc(calls->count, sizeof(*flame->weight));
	if (!of_depth || !flame->weight) {
		free(of_depth);
		free(flame->weight);
		return -ENOMEM;
	}
	for (size_t i = calls->count; i-- > 0;) {
		const struct heap_call *call = &calls->list[i];
		uint64_t flat = call->flat > call->base_flat ? call->flat : call->base_flat;

		flame->weight[i] = (double)flat + of_depth[call->depth + 1];
		of_depth[call->depth + 1] = 0;
		of_depth[call->depth] += flame->weight[i];
	}
	flame->total = of_depth[0];
	free(of_depth);
	for (size_t i = 0; i < calls->count; i++)
		if (flame->weight[i] / flame->total * WIDTH >= NARROWEST &&
		    calls->list[i].depth > flame->max_depth)
			flame->max_depth = calls->list[i].depth;
	return 0;
}

/* Warm colours, the same for the same name. */
static unsigned int name_colour(const char *name)
{
	uint32_t hash = 2166136261;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619;
	return (205 + hash % 50) << 16 | (60 + (hash >> 8) % 130) << 8 | (hash >> 16) % 55;
}

/* Red: grew; blue: shrank; white: the same. */
static unsigned int change_colour(const struct heap_call *call)
{
	double change = (double)call->cum - (double)call->base_cum;
	double share = change / ((double)call->cum + (double)call->base_cum);
	unsigned int pale = 255 - (unsigned int)(200 * (share < 0 ? -share : share));

	return share < 0 ? pale << 16 | pale << 8 | 255 : 255U << 16 | pale << 8 | pale;
}

static const char *human(const struct heap_calls *calls, uint64_t value, char *buf, size_t size)
{
	return mw_human_uint(value,
			     heap_metric_is_bytes(calls->metric) ? MW_UNIT_BYTES : MW_UNIT_COUNT,
			     buf, size);
}

static void write_title(const struct flame *flame, const struct heap_call *call)
{
	const struct heap_calls *calls = flame->calls;
	double total = (double)(calls->total ?: calls->base_total);
	char value[32];

	fputs("<title>", flame->out);
	write_xml(flame->out, call->name);
	if (*call->place) {
		fputc(' ', flame->out);
		write_xml(flame->out, call->place);
	}
	fprintf(flame->out, ": %s, %.2f %%", human(calls, call->cum, value, sizeof(value)),
		100 * (double)call->cum / total);
	if (calls->has_base)
		fprintf(flame->out, "; base: %s",
			human(calls, call->base_cum, value, sizeof(value)));
	fputs("</title>", flame->out);
}

static int write_frames(const struct flame *flame)
{
	const struct heap_calls *calls = flame->calls;
	double *start = calloc(calls->max_depth + 2UL, sizeof(*start));
	double scale = WIDTH / flame->total;

	if (!start)
		return -ENOMEM;
	for (size_t i = 0; i < calls->count; i++) {
		const struct heap_call *call = &calls->list[i];
		double x = start[call->depth], width = flame->weight[i] * scale;
		uint32_t y = TOP + (flame->max_depth - call->depth) * HEIGHT;

		start[call->depth] = x + width;
		start[call->depth + 1] = x;
		if (width < NARROWEST)
			continue;
		fprintf(flame->out, "<g data-depth=\"%u\">", call->depth);
		write_title(flame, call);
		fprintf(flame->out,
			"<rect x=\"%.3f\" y=\"%u\" width=\"%.3f\" height=\"%d\" fill=\"#%06x\"/>"
			"<text x=\"%.1f\" y=\"%u\">",
			LEFT + x, y, width, HEIGHT - 1,
			calls->has_base ? change_colour(call) : name_colour(call->name),
			LEFT + x + 3, y + 12);
		write_xml(flame->out, call->name);
		fputs("</text></g>\n", flame->out);
	}
	free(start);
	return 0;
}

static void write_head(const struct flame *flame, const char *name, unsigned int height)
{
	const struct heap_calls *calls = flame->calls;
	char value[32];

	fprintf(flame->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"%u\" "
		"viewBox=\"0 0 1200 %u\">\n"
		"<style>text { font: 11px monospace; fill: #000 } #frames g { cursor: pointer }\n"
		"#frames g:hover rect { stroke: #000 } .above rect { opacity: 0.5 }\n"
		".hit rect { fill: #e040fb } .button { cursor: pointer; fill: #00c }\n"
		"#name { font-size: 15px }</style>\n"
		"<script><![CDATA[\n%s]]></script>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fdfdf6\"/>\n"
		"<text id=\"name\" x=\"10\" y=\"22\">",
		height, height, heap_flame_script);
	write_xml(flame->out, name);
	fprintf(flame->out, ": %s ", human(calls, calls->total, value, sizeof(value)));
	write_xml(flame->out, calls->metric == MEMWATCH_HEAP_LIVE_BYTES	       ? "live"
			      : calls->metric == MEMWATCH_HEAP_ALLOCATED_BYTES ? "allocated"
									       : calls->objects);
	if (calls->has_base)
		fprintf(flame->out, "; red grew, blue shrank; base: %s",
			human(calls, calls->base_total, value, sizeof(value)));
	fprintf(flame->out,
		"</text>\n"
		"<text id=\"search\" class=\"button\" x=\"1140\" y=\"22\">Search</text>\n"
		"<text id=\"reset\" class=\"button\" x=\"10\" y=\"44\" style=\"display: none\">"
		"Reset zoom</text>\n"
		"<text id=\"found\" x=\"1050\" y=\"44\"> </text>\n"
		"<text id=\"details\" x=\"10\" y=\"%u\"> </text>\n<g id=\"frames\">\n",
		height - 10);
}

int heap_flame_write(const struct heap_calls *calls, const char *name, FILE *out)
{
	struct flame flame = { .calls = calls, .out = out };
	int err = compute_weights(&flame);

	if (err)
		return err;
	write_head(&flame, name, TOP + (flame.max_depth + 1) * HEIGHT + BOTTOM);
	err = write_frames(&flame);
	fputs("</g>\n</svg>\n", out);
	free(flame.weight);
	return err;
}
