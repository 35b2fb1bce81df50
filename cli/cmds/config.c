// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * config: show and change what the module does, through /dev/memwatch. What
 * is asked for is read and checked whole before anything is changed.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/cgroup.h"
#include "output/json.h"
#include "common/library.h"
#include "common/message.h"
#include "common/parse.h"
#include "common/root.h"
#include "output/human.h"
#include "output/utf8.h"

#define MASK_BYTES 1024

struct config_config {
	bool force;
};

static const struct mw_option config_options[] = {
	{ "force", 'f', MW_OPTION_FLAG, offsetof(struct config_config, force), NULL,
	  "change it although another session is measuring", NULL },
	{ 0 },
};

/* What the command line asks for. */
struct request {
	const struct mw_cli *cli;
	struct memwatch_config config;
	unsigned char mask[MASK_BYTES];
	struct memwatch_filter filters[MEMWATCH_FILTERS_MAX];
	unsigned int nr_filters;
	bool clear_filters;
	unsigned int shown; /* bit for each key that was named without a value */
};

static int refuse(const char *key, const char *value, const char *why)
{
	return mw_error(MW_EXIT_USAGE, "config", "%s: '%s' %s", key, value, why);
}

static int parse_time(const char *key, const char *value, uint64_t low, uint64_t high,
		      uint64_t *ret)
{
	char a[32], b[32];
	int err = mw_parse_duration(value, ret);

	if (err)
		return refuse(key, value, mw_parse_duration_why(err));
	if (*ret < low || *ret > high)
		return mw_error(MW_EXIT_USAGE, "config", "%s: '%s' is not between %s and %s", key,
				value, mw_human_uint(low, MW_UNIT_NS, a, sizeof(a)),
				mw_human_uint(high, MW_UNIT_NS, b, sizeof(b)));
	return 0;
}

static int set_period(struct request *r, const char *value)
{
	uint64_t ns = 0;
	int rc = parse_time("period", value, MEMWATCH_PERIOD_MIN_NS, MEMWATCH_PERIOD_MAX_NS, &ns);

	r->config.period_ns = ns;
	r->config.flags |= MEMWATCH_CONFIG_PERIOD;
	return rc;
}

static int set_limbo(struct request *r, const char *value)
{
	uint64_t ns = 0;
	int rc = parse_time("limbo", value, 0, MEMWATCH_LIMBO_MAX_NS, &ns);

	r->config.limbo_ns = ns;
	r->config.flags |= MEMWATCH_CONFIG_LIMBO;
	return rc;
}

static int set_policy(struct request *r, const char *value)
{
	if (!strcmp(value, "fifo"))
		r->config.policy = MEMWATCH_POLICY_FIFO;
	else if (!strcmp(value, "active"))
		r->config.policy = MEMWATCH_POLICY_ACTIVE;
	else
		return refuse("policy", value, "is not fifo or active");
	r->config.flags |= MEMWATCH_CONFIG_POLICY;
	return 0;
}

static int set_idle_stop(struct request *r, const char *value)
{
	static const char *const words[] = { "0", "1", "off", "on", "no", "yes" };

	for (unsigned int i = 0; i < 6; i++) {
		if (strcmp(value, words[i]))
			continue;
		r->config.idle_stop = i % 2;
		r->config.flags |= MEMWATCH_CONFIG_IDLE_STOP;
		return 0;
	}
	return refuse("idle-stop", value, "is not on or off");
}

static int set_cpumask(struct request *r, const char *value)
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
		return refuse("cpumask", value, "is not a list of CPUs such as 0-3,8 or all");
	r->config.cpumask = (uintptr_t)r->mask;
	r->config.cpumask_bytes = (uint32_t)last / 8 + 1;
	r->config.flags |= MEMWATCH_CONFIG_CPUMASK;
	return 0;
}

static int filter_cgroup(struct request *r, const char *value, struct memwatch_filter *f)
{
	uint64_t id;
	int err = 0;

	f->kind = MEMWATCH_FILTER_CGROUP;
	if (mw_parse_uint(value, &id))
		err = value[0] == '/' ? mw_cgroup_id(r->cli, value, &id) : -EINVAL;
	if (err == -EINVAL)
		return refuse("filter=cgroup", value,
			      "is neither an id nor a path that starts "
			      "with /");
	if (err)
		return mw_error(MW_EXIT_NOTHING, "config", "filter=cgroup: '%s': %s", value,
				strerror(-err));
	f->value = id;
	return 0;
}

static int set_filter(struct request *r, const char *value)
{
	struct memwatch_filter *f = &r->filters[r->nr_filters];
	uint64_t uid;
	int rc = 0;

	if (!strcmp(value, "none")) {
		r->clear_filters = true;
		return 0;
	}
	if (r->nr_filters == MEMWATCH_FILTERS_MAX)
		return refuse("filter", value, "is one too many");
	if (!strncmp(value, "comm:", 5)) {
		f->kind = MEMWATCH_FILTER_COMM;
		if (!value[5] || strlen(value + 5) >= sizeof(f->comm))
			return refuse("filter", value, "needs a name of 1 to 15 bytes");
		strcpy(f->comm, value + 5);
	} else if (!strncmp(value, "uid:", 4)) {
		f->kind = MEMWATCH_FILTER_UID;
		if (mw_parse_uint(value + 4, &uid) || uid > UINT32_MAX)
			return refuse("filter", value, "needs a numeric user id");
		f->value = uid;
	} else if (!strncmp(value, "cgroup:", 7)) {
		rc = filter_cgroup(r, value + 7, f);
	} else {
		return refuse("filter", value,
			      "is not comm:NAME, uid:NUMBER, cgroup:/PATH, cgroup:ID or none");
	}
	r->nr_filters++;
	return rc;
}

static const struct {
	const char *name;
	int (*set)(struct request *r, const char *value);
} keys[] = {
	{ "period", set_period },	{ "limbo", set_limbo },	    { "policy", set_policy },
	{ "idle-stop", set_idle_stop }, { "cpumask", set_cpumask }, { "filter", set_filter },
};

enum { PERIOD, LIMBO, POLICY, IDLE_STOP, CPUMASK, FILTER, NR_KEYS };

static int unknown_key(const char *word)
{
	const char *best = NULL;

	for (unsigned int i = 0; i < NR_KEYS; i++)
		best = mw_nearest(word, best, keys[i].name);
	mw_error(MW_EXIT_USAGE, "config", "unknown key '%s'", word);
	if (best)
		mw_hint("did you mean '%s'?", best);
	else
		mw_hint("the keys are period, limbo, policy, idle-stop, cpumask, filter");
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
			return keys[i].set(r, value);
		r->shown |= 1U << i;
		return 0;
	}
	return unknown_key(word);
}

static int apply(struct request *r, struct memwatch_ctx *ctx, struct memwatch_device *device)
{
	int err = 0;

	if (r->config.flags & ~MEMWATCH_CONFIG_FORCE)
		err = memwatch_device_set_config(device, &r->config);
	if (err == -EBUSY) {
		mw_error(MW_EXIT_FAILED, "config", "another session is measuring");
		mw_hint("it would be changed too; --force does so");
		return MW_EXIT_FAILED;
	}
	if (!err && r->clear_filters)
		err = memwatch_device_clear_filters(device);
	for (unsigned int i = 0; i < r->nr_filters && !err; i++) {
		err = memwatch_device_add_filter(device, &r->filters[i]);
		if (err == -EEXIST) {
			mw_note(r->cli, "this filter exists already");
			err = 0;
		} else if (err == -ENOSPC) {
			return mw_error(MW_EXIT_FAILED, "config", "there are %d filters already",
					MEMWATCH_FILTERS_MAX);
		}
	}
	return err ? mw_module_failed(ctx, err, "config") : 0;
}

static const char *filter_text(const struct memwatch_filter *f, struct mw_cgroups *cgroups,
			       char *buf, size_t size)
{
	char comm[80];
	const char *path;

	switch (f->kind) {
	case MEMWATCH_FILTER_COMM:
		snprintf(buf, size, "comm:%s", mw_utf8_printable(f->comm, comm, sizeof(comm)));
		break;
	case MEMWATCH_FILTER_UID:
		snprintf(buf, size, "uid:%" PRIu64, (uint64_t)f->value);
		break;
	default:
		path = mw_cgroups_path(cgroups, f->value);
		if (path)
			snprintf(buf, size, "cgroup:%s", path);
		else
			snprintf(buf, size, "cgroup:%" PRIu64, (uint64_t)f->value);
	}
	return buf;
}

struct view {
	const struct request *request;
	const struct memwatch_config *config;
	char cpus[1024];
	struct memwatch_filter filters[MEMWATCH_FILTERS_MAX];
	unsigned int nr_filters;
	struct mw_cgroups *cgroups;
};

static bool wants(const struct view *v, int key)
{
	return !v->request->shown || v->request->shown & 1U << key;
}

static void filter_json(const struct memwatch_filter *f, struct mw_json *json)
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
	return policy == MEMWATCH_POLICY_FIFO	  ? "fifo"
	       : policy == MEMWATCH_POLICY_ACTIVE ? "active"
						  : "unknown";
}

static void print_json(const struct view *v)
{
	struct mw_json json;

	mw_json_init(&json, stdout);
	if (wants(v, PERIOD))
		mw_json_uint(&json, "period_ns", v->config->period_ns);
	if (wants(v, LIMBO))
		mw_json_uint(&json, "limbo_ns", v->config->limbo_ns);
	if (wants(v, POLICY))
		mw_json_string(&json, "policy", policy_name(v->config->policy));
	if (wants(v, IDLE_STOP))
		mw_json_bool(&json, "idle_stop", v->config->idle_stop);
	if (wants(v, CPUMASK))
		mw_json_string(&json, "cpumask", v->cpus);
	if (wants(v, FILTER)) {
		mw_json_array(&json, "filters");
		for (unsigned int i = 0; i < v->nr_filters; i++)
			filter_json(&v->filters[i], &json);
		mw_json_array_end(&json);
	}
	mw_json_finish(&json);
}

/* What is printed can be given back as arguments. */
static void print_duration(const char *key, uint64_t ns)
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

static void print_table(const struct view *v)
{
	char buf[1200];

	if (wants(v, PERIOD))
		print_duration("period", v->config->period_ns);
	if (wants(v, LIMBO))
		print_duration("limbo", v->config->limbo_ns);
	if (wants(v, POLICY))
		printf("policy=%s\n", policy_name(v->config->policy));
	if (wants(v, IDLE_STOP))
		printf("idle-stop=%s\n", v->config->idle_stop ? "on" : "off");
	if (wants(v, CPUMASK))
		printf("cpumask=%s\n", v->cpus);
	if (!wants(v, FILTER))
		return;
	if (!v->nr_filters)
		printf("filter=none\n");
	for (unsigned int i = 0; i < v->nr_filters; i++)
		printf("filter=%s\n", filter_text(&v->filters[i], v->cgroups, buf, sizeof(buf)));
}

static int show(const struct request *r, struct memwatch_ctx *ctx, struct memwatch_device *device)
{
	unsigned char mask[MASK_BYTES] = { 0 };
	struct memwatch_config config = { .cpumask = (uintptr_t)mask, .cpumask_bytes = MASK_BYTES };
	struct view v = { .request = r, .config = &config };
	int err = memwatch_device_config(device, &config);

	for (; !err && v.nr_filters < MEMWATCH_FILTERS_MAX; v.nr_filters++) {
		int rc = memwatch_device_filter(device, v.nr_filters, &v.filters[v.nr_filters]);

		if (rc < 0)
			err = rc;
		if (rc <= 0)
			break;
	}
	if (err)
		return mw_module_failed(ctx, err, "config");
	mw_format_cpus(mask, sizeof(mask), v.cpus, sizeof(v.cpus));
	mw_cgroups_new(r->cli, &v.cgroups);
	if (r->cli->format == MW_FORMAT_JSON)
		print_json(&v);
	else
		print_table(&v);
	mw_cgroups_free(v.cgroups);
	return MW_EXIT_DONE;
}

static const char *const config_usage[] = {
	"config [--force] [KEY | KEY=VALUE]...",
	"",
	"Shows or changes the configuration of the module. It takes effect at once and",
	"outlives sessions. What is shown can be given back.",
	"",
	"  period=DURATION     time between ticks, 100us to 1s",
	"  limbo=DURATION      how long a freed RMID rests, 0 to 1s",
	"  policy=fifo|active  who gets an RMID when there are not enough",
	"  idle-stop=on|off    whether an idle CPU stops its tick",
	"  cpumask=LIST|all    CPUs that tick, as 0-3,8",
	"  filter=comm:NAME, filter=uid:NUMBER, filter=cgroup:/PATH or cgroup:ID",
	"                      add a filter: of one kind any must match, of each kind one",
	"  filter=none         remove all filters (before others that are added)",
	NULL,
};

static int config_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	const struct config_config *c = config;
	struct memwatch_device *device = NULL;
	struct request r;
	bool changes;
	int err, rc = 0;

	r = (struct request){ .cli = cli };
	for (int i = 0; i < argc && !rc; i++)
		rc = parse_operand(&r, argv[i]);
	if (!rc)
		rc = mw_library_new(cli, &ctx);
	if (rc)
		return rc;
	changes = r.config.flags || r.nr_filters || r.clear_filters;
	if (c->force)
		r.config.flags |= MEMWATCH_CONFIG_FORCE;
	err = memwatch_device_open(ctx, &device);
	if (err)
		return mw_module_failed(ctx, err, "config");
	if (changes)
		rc = apply(&r, ctx, device);
	if (!rc && (!changes || r.shown))
		rc = show(&r, ctx, device);
	memwatch_device_close(device);
	return rc;
}

const struct mw_cmd mw_cmd_config = {
	.name = "config",
	.summary = "show or change period, limbo, policy, CPUs and filters",
	.usage = config_usage,
	.options = config_options,
	.run = config_run,
	.flags = MW_CMD_JSON,
	.config_size = sizeof(struct config_config),
	.operands_max = -1,
};
