// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "config": shows and changes the configuration of the module through /dev/memwatch.
 * The whole command line is checked before anything is changed.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "common/cgroup.h"
#include "output/json.h"
#include "common/library.h"
#include "common/message.h"
#include "common/parse.h"
#include "common/root.h"
#include "output/human.h"
#include "text/escape.h"

#define MASK_BYTES 1024

struct config_flags {
	bool force;
};

static const struct mw_option config_options[] = {
	{ "force", 'f', MW_OPTION_FLAG, offsetof(struct config_flags, force), NULL,
	  "also change what is in force for sessions that are running", NULL },
	{ 0 },
};

/* The request of the command line. */
struct request {
	const struct mw_cli *cli;
	struct memwatch_config config;
	unsigned char mask[MASK_BYTES];
	struct memwatch_filter filters[MEMWATCH_FILTERS_MAX];
	unsigned int nr_filters;
	bool clear_filters;
	unsigned int shown; /* a bit for each key without a value: 1U << PERIOD */
};

static int refuse_value(const char *key, const char *value, const char *why)
{
	return mw_error(MW_EXIT_USAGE, "config", "%s: '%s' %s", key, value, why);
}

static int parse_bounded_time(const char *key, const char *value, uint64_t low, uint64_t high,
			      uint64_t *ret)
{
	char a[32], b[32];
	int err = mw_parse_duration(value, ret);

	if (err)
		return refuse_value(key, value, mw_parse_duration_why(err));
	if (*ret < low || *ret > high)
		return mw_error(MW_EXIT_USAGE, "config", "%s: '%s' is not between %s and %s", key,
				value, mw_human_uint(low, MW_UNIT_NS, a, sizeof(a)),
				mw_human_uint(high, MW_UNIT_NS, b, sizeof(b)));
	return 0;
}

static int parse_period(struct request *r, const char *value)
{
	uint64_t ns = 0;
	int rc = parse_bounded_time("period", value, MEMWATCH_PERIOD_MIN_NS, MEMWATCH_PERIOD_MAX_NS,
				    &ns);

	r->config.period_ns = ns;
	r->config.flags |= MEMWATCH_CONFIG_PERIOD;
	return rc;
}

static int parse_limbo(struct request *r, const char *value)
{
	uint64_t ns = 0;
	int rc = parse_bounded_time("limbo", value, 0, MEMWATCH_LIMBO_MAX_NS, &ns);

	r->config.limbo_ns = ns;
	r->config.flags |= MEMWATCH_CONFIG_LIMBO;
	return rc;
}

static int parse_policy(struct request *r, const char *value)
{
	if (!strcmp(value, "fair"))
		r->config.policy = MEMWATCH_POLICY_FAIR;
	else if (!strcmp(value, "fifo"))
		r->config.policy = MEMWATCH_POLICY_FIFO;
	else if (!strcmp(value, "active"))
		r->config.policy = MEMWATCH_POLICY_ACTIVE;
	else
		return refuse_value("policy", value, "is none of fair, fifo and active");
	r->config.flags |= MEMWATCH_CONFIG_POLICY;
	return 0;
}

static int parse_idle_stop(struct request *r, const char *value)
{
	static const char *const words[] = { "0", "1", "off", "on", "no", "yes" };

	for (unsigned int i = 0; i < 6; i++) {
		if (strcmp(value, words[i]))
			continue;
		r->config.idle_stop = i % 2;
		r->config.flags |= MEMWATCH_CONFIG_IDLE_STOP;
		return 0;
	}
	return refuse_value("idle-stop", value, "is neither on nor off");
}

static int parse_cpumask(struct request *r, const char *value)
{
	static const char path[] = "/sys/devices/system/cpu/possible";
	char possible[128];
	int last;

	if (!strcmp(value, "all")) {
		last = mw_root_line(r->cli, path, possible, sizeof(possible));
		if (last <= 0)
			return mw_error(MW_EXIT_FAILED, "config", "cpumask: %s: %s", path,
					last ? strerror(-last) : "is empty");
		value = possible;
	}
	last = mw_parse_cpus(value, r->mask, sizeof(r->mask));
	if (last < 0)
		return refuse_value("cpumask", value,
				    "is neither a list of CPUs, such as 0-3,8, nor all");
	r->config.cpumask = (uintptr_t)r->mask;
	r->config.cpumask_bytes = (uint32_t)last / 8 + 1;
	r->config.flags |= MEMWATCH_CONFIG_CPUMASK;
	return 0;
}

static int parse_cgroup_filter(struct request *r, const char *value, struct memwatch_filter *f)
{
	uint64_t id;
	int err = 0;

	f->kind = MEMWATCH_FILTER_CGROUP;
	if (mw_parse_uint(value, &id))
		err = value[0] == '/' ? mw_cgroup_id(r->cli, value, &id) : -EINVAL;
	if (err == -EINVAL)
		return refuse_value("filter=cgroup", value,
				    "is neither a cgroup id nor a path that begins with /");
	if (err)
		return mw_error(MW_EXIT_NOTHING, "config", "filter=cgroup: '%s': %s", value,
				strerror(-err));
	f->value = id;
	return 0;
}

static int parse_filter(struct request *r, const char *value)
{
	struct memwatch_filter *f = &r->filters[r->nr_filters];
	uint64_t uid;
	int rc = 0;

	if (!strcmp(value, "none")) {
		r->clear_filters = true;
		return 0;
	}
	if (r->nr_filters == MEMWATCH_FILTERS_MAX)
		return mw_error(MW_EXIT_USAGE, "config",
				"filter: '%s' exceeds the maximum of %d "
				"filters",
				value, MEMWATCH_FILTERS_MAX);
	if (!strncmp(value, "comm:", 5)) {
		f->kind = MEMWATCH_FILTER_COMM;
		if (!value[5] || strlen(value + 5) >= sizeof(f->comm))
			return refuse_value("filter", value, "must have a name of 1 to 15 bytes");
		strcpy(f->comm, value + 5);
	} else if (!strncmp(value, "uid:", 4)) {
		f->kind = MEMWATCH_FILTER_UID;
		if (mw_parse_uint(value + 4, &uid) || uid > UINT32_MAX)
			return refuse_value("filter", value, "must have a numeric user id");
		f->value = uid;
	} else if (!strncmp(value, "cgroup:", 7)) {
		rc = parse_cgroup_filter(r, value + 7, f);
	} else {
		return refuse_value(
			"filter", value,
			"is not comm:NAME, uid:NUMBER, cgroup:/PATH, cgroup:ID or none");
	}
	r->nr_filters++;
	return rc;
}

enum { PERIOD, LIMBO, POLICY, IDLE_STOP, CPUMASK, FILTER, NR_KEYS };

static const struct {
	const char *name;
	int (*parse)(struct request *r, const char *value);
} keys[] = {
	[PERIOD] = { "period", parse_period },	  [LIMBO] = { "limbo", parse_limbo },
	[POLICY] = { "policy", parse_policy },	  [IDLE_STOP] = { "idle-stop", parse_idle_stop },
	[CPUMASK] = { "cpumask", parse_cpumask }, [FILTER] = { "filter", parse_filter },
};

static int report_unknown_key(const char *word)
{
	const char *best = NULL;

	for (unsigned int i = 0; i < NR_KEYS; i++)
		best = mw_nearest(word, best, keys[i].name);
	mw_error(MW_EXIT_USAGE, "config", "unknown key '%s'", word);
	if (best)
		mw_hint("did you mean '%s'?", best);
	else
		mw_hint("the keys are period, limbo, policy, idle-stop, cpumask and filter");
	return MW_EXIT_USAGE;
}

static int parse_operand(struct request *r, char *word)
{
	char *value = strchr(word, '=');

	if (value)
		*value++ = '\0';
	for (unsigned int i = 0; i < NR_KEYS; i++) {
		if (strcmp(word, keys[i].name))
			continue;
		if (value)
			return keys[i].parse(r, value);
		r->shown |= 1U << i;
		return 0;
	}
	return report_unknown_key(word);
}

/* @target: the defaults, or what is in force */
static int apply_request(struct request *r, struct memwatch_ctx *ctx,
			 struct memwatch_device *device, uint32_t target)
{
	int err = memwatch_device_target(device, target);

	if (!err && r->config.flags)
		err = memwatch_device_set_config(device, &r->config);
	if (!err && r->clear_filters)
		err = memwatch_device_clear_filters(device);
	for (unsigned int i = 0; i < r->nr_filters && !err; i++) {
		err = memwatch_device_add_filter(device, &r->filters[i]);
		if (err == -EEXIST) {
			mw_note(r->cli, "the filter exists already");
			err = 0;
		} else if (err == -ENOSPC) {
			mw_error(MW_EXIT_FAILED, "config",
				 "the module already has the maximum of %d filters",
				 MEMWATCH_FILTERS_MAX);
			mw_hint("'memwatchctl config filter=none' removes all filters");
			return MW_EXIT_FAILED;
		}
	}
	return err ? mw_module_failed(ctx, err, "config", NULL) : 0;
}

/* Whether a path is printed as it is, and is one argument when it is given to a command again. */
static bool is_one_word(const char *path)
{
	for (; *path; path++)
		if (!isgraph((unsigned char)*path) || strchr("\\*?[]{}()<>$`\"'&;|~#!^", *path))
			return false;
	return true;
}

static const char *format_filter(const struct memwatch_filter *f, struct mw_cgroups *cgroups,
				 char *buf, size_t size)
{
	const char *path = NULL;

	switch (f->kind) {
	case MEMWATCH_FILTER_COMM:
		snprintf(buf, size, "comm:%s", f->comm);
		break;
	case MEMWATCH_FILTER_UID:
		snprintf(buf, size, "uid:%" PRIu64, (uint64_t)f->value);
		break;
	default:
		path = mw_cgroups_path(cgroups, f->value);
		if (path && is_one_word(path))
			snprintf(buf, size, "cgroup:%s", path);
		else
			snprintf(buf, size, "cgroup:%" PRIu64, (uint64_t)f->value);
	}
	return buf;
}

/* What is shown. */
struct view {
	const struct request *request;
	const struct memwatch_config *config;
	char cpus[1024];
	struct memwatch_filter filters[MEMWATCH_FILTERS_MAX];
	unsigned int nr_filters;
	struct mw_cgroups *cgroups;
};

static bool shows_key(const struct view *v, int key)
{
	return !v->request->shown || v->request->shown & 1U << key;
}

static void write_filter_json(const struct memwatch_filter *f, struct mw_json *json)
{
	static const char *const kind[] = { "unknown", "cgroup", "uid", "comm" };

	mw_json_row(json, NULL);
	mw_json_string(json, "kind", kind[f->kind <= MEMWATCH_FILTER_COMM ? f->kind : 0]);
	if (f->kind == MEMWATCH_FILTER_COMM)
		mw_json_string(json, "comm", f->comm);
	else
		mw_json_uint(json, f->kind == MEMWATCH_FILTER_UID ? "uid" : "cgroup_id", f->value);
	mw_json_object_end(json);
}

static const char *policy_name(uint32_t policy)
{
	switch (policy) {
	case MEMWATCH_POLICY_FAIR:
		return "fair";
	case MEMWATCH_POLICY_FIFO:
		return "fifo";
	case MEMWATCH_POLICY_ACTIVE:
		return "active";
	default:
		return "unknown";
	}
}

static void print_config_json(const struct view *v)
{
	struct mw_json json;

	mw_json_init(&json, stdout);
	if (shows_key(v, PERIOD))
		mw_json_uint(&json, "period_ns", v->config->period_ns);
	if (shows_key(v, LIMBO))
		mw_json_uint(&json, "limbo_ns", v->config->limbo_ns);
	if (shows_key(v, POLICY))
		mw_json_string(&json, "policy", policy_name(v->config->policy));
	if (shows_key(v, IDLE_STOP))
		mw_json_bool(&json, "idle_stop", v->config->idle_stop);
	if (shows_key(v, CPUMASK))
		mw_json_string(&json, "cpumask", v->cpus);
	if (shows_key(v, FILTER)) {
		mw_json_array(&json, "filters");
		for (unsigned int i = 0; i < v->nr_filters; i++)
			write_filter_json(&v->filters[i], &json);
		mw_json_array_end(&json);
	}
	mw_json_finish(&json);
}

/* Prints the duration so that it can be used as an argument. */
static void print_config_duration(const char *key, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" } };

	for (unsigned int i = 0; i < 4; i++) {
		if (ns % units[i].ns)
			continue;
		printf("%s=%" PRIu64 "%s\n", key, ns / units[i].ns, units[i].name);
		return;
	}
}

static void print_config_table(const struct view *v)
{
	char buf[PATH_MAX];

	if (shows_key(v, PERIOD))
		print_config_duration("period", v->config->period_ns);
	if (shows_key(v, LIMBO))
		print_config_duration("limbo", v->config->limbo_ns);
	if (shows_key(v, POLICY))
		printf("policy=%s\n", policy_name(v->config->policy));
	if (shows_key(v, IDLE_STOP))
		printf("idle-stop=%s\n", v->config->idle_stop ? "on" : "off");
	if (shows_key(v, CPUMASK))
		printf("cpumask=%s\n", v->cpus);
	if (!shows_key(v, FILTER))
		return;
	if (!v->nr_filters)
		printf("filter=none\n");
	for (unsigned int i = 0; i < v->nr_filters; i++)
		mw_escape_line(stdout, "filter=%s",
			       format_filter(&v->filters[i], v->cgroups, buf, sizeof(buf)));
}

static int show_config(const struct request *r, struct memwatch_ctx *ctx,
		       struct memwatch_device *device)
{
	unsigned char mask[MASK_BYTES] = { 0 };
	struct memwatch_config config = { .cpumask = (uintptr_t)mask, .cpumask_bytes = MASK_BYTES };
	struct view v = { .request = r, .config = &config };
	int err = memwatch_device_target(device, MEMWATCH_CONFIG_DEFAULT)
			  ?: memwatch_device_get_config(device, &config);

	for (; !err && v.nr_filters < MEMWATCH_FILTERS_MAX; v.nr_filters++) {
		int rc = memwatch_device_get_filter(device, v.nr_filters, &v.filters[v.nr_filters]);

		if (rc < 0)
			err = rc;
		if (rc <= 0)
			break;
	}
	if (err)
		return mw_module_failed(ctx, err, "config", NULL);
	mw_format_cpus(mask, sizeof(mask), v.cpus, sizeof(v.cpus));
	mw_cgroups_new(r->cli, &v.cgroups);
	if (r->cli->format == MW_FORMAT_JSON)
		print_config_json(&v);
	else
		print_config_table(&v);
	mw_cgroups_free(v.cgroups);
	return MW_EXIT_DONE;
}

static const char *const config_usage[] = {
	"config [--force] [KEY | KEY=VALUE]...",
	"",
	"Shows or changes the defaults, with which every session starts. Without arguments,",
	"all keys are shown, in a form that can be used as arguments. A change lasts until",
	"the module is unloaded. Sessions that run are not affected without --force.",
	"",
	"  period=DURATION     time between ticks, 100us to 1s",
	"  limbo=DURATION      time before a freed RMID may be allocated again, 0 to 1s",
	"  policy=fair|fifo|active  which process gets an RMID when there are too few:",
	"                      users share them and those that run take turns, or the",
	"                      one that has waited longest, or the one that ran last",
	"  idle-stop=on|off    whether the tick stops on an idle CPU",
	"  cpumask=LIST|all    the CPUs that have a tick, such as 0-3,8",
	"  filter=comm:NAME    measure only processes with this name",
	"  filter=uid:NUMBER   measure only processes of this user",
	"  filter=cgroup:/PATH measure only processes in this cgroup (also cgroup:ID)",
	"  filter=none         remove all filters, before others of this command are added",
	"",
	"If there are filters of several kinds, a process must match one of each kind.",
	NULL,
};

static int config_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	const struct config_flags *c = config;
	struct memwatch_device *device = NULL;
	struct request r = { .cli = cli };
	bool changes;
	int err, rc = 0;

	for (int i = 0; i < argc && !rc; i++)
		rc = parse_operand(&r, argv[i]);
	if (!rc)
		rc = mw_library_new(cli, &ctx);
	if (rc)
		return rc;
	changes = r.config.flags || r.nr_filters || r.clear_filters;
	err = memwatch_device_open(ctx, &device);
	if (err)
		return mw_module_failed(ctx, err, "config", NULL);
	if (changes)
		rc = apply_request(&r, ctx, device, MEMWATCH_CONFIG_DEFAULT);
	if (changes && c->force && !rc)
		rc = apply_request(&r, ctx, device, MEMWATCH_CONFIG_FORCE);
	if (!rc && (!changes || r.shown))
		rc = show_config(&r, ctx, device);
	memwatch_device_close(device);
	return rc;
}

const struct mw_cmd mw_cmd_config = {
	.name = "config",
	.summary = "show or change the configuration of the module",
	.usage = config_usage,
	.options = config_options,
	.run = config_run,
	.flags = MW_CMD_JSON,
	.config_size = sizeof(struct config_flags),
	.operands_max = -1,
};
