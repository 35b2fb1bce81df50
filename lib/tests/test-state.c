// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * State files of the growth monitor: each state that the detectors compute passes the
 * checks, and no state passes that they cannot compute. Also how states are shared when
 * there is not room for all processes.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/context.h"
#include "growth/quota.h"
#include "growth/row.h"
#include "growth/state-check.h"
#include "growth/state-file.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

static struct memwatch_ctx *ctx;
static struct prng prng = { 1 };

/* A process with a history, as the detectors leave it after some hours. */
struct state {
	struct mw_growth_key key;
	struct mw_growth_process process;
	struct mw_growth_history history;
	bool has_history;
};

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const char *check_state(const struct state *state, uint64_t now_ns)
{
	return mw_state_check(&state->key, &state->process,
			      state->has_history ? &state->history : NULL, now_ns);
}

/* Feeds one sample, as the iterator does. */
static void feed_state(struct state *state, const struct mw_growth_sample *sample)
{
	struct mw_growth *g = &state->process.growth;

	if (!g->points)
		mw_growth_init(g, sample->time_ns, mw_growth_signal(sample));
	mw_growth_feed(g, state->has_history ? &state->history : NULL, sample);
	if (!state->has_history && g->flags & MW_GROWTH_F_HISTORY) {
		mw_growth_history_init(&state->history, g);
		state->has_history = true;
	}
}

/* A leak of @pages each five seconds, with noise, over @samples that end now. */
static void make_state(struct state *state, uint32_t pages, uint32_t samples)
{
	uint64_t step = 5 * MW_GROWTH_SECOND, end = clock_ns();
	struct mw_growth_sample sample = { .headroom = 1 << 22, .touch.untouched_s = 60 };

	if (end < step * samples)
		step = end / samples;
	memset(state, 0, sizeof(*state));
	state->key = (struct mw_growth_key){ .start_ns = 1000, .tgid = 4242 };
	memcpy(state->process.comm, "leaker", 7);
	state->process.round = 1;
	for (uint32_t i = 0; i < samples; i++) {
		sample.time_ns = end - step * (samples - i);
		sample.anon = 10000 + i * pages + (uint32_t)prng_below(&prng, 20);
		feed_state(state, &sample);
	}
}

/* Random traces of several kinds: every state on the way must pass. */
static void test_computed(void)
{
	struct mw_growth_sample sample = { 0 };
	const char *wrong = NULL;
	struct state state;
	uint32_t checked = 0, alerts = 0;

	for (uint32_t kind = 0; kind < 40 && !wrong; kind++) {
		memset(&state, 0, sizeof(state));
		state.key.tgid = 1;
		sample = (struct mw_growth_sample){ .time_ns = 1, .headroom = ~0U };
		for (uint32_t i = 0; i < 2000 && !wrong; i++) {
			sample.time_ns += prng_below(&prng, (kind % 3 + 1) * 20 * MW_GROWTH_SECOND);
			sample.anon = kind % 4 == 0   ? (uint32_t)prng_next(&prng)
				      : kind % 4 == 1 ? i * 100
				      : kind % 4 == 2 ? 1000 + i % 300 * 900
						      : (uint32_t)prng_below(&prng, 3000) + i;
			sample.file = (uint32_t)prng_next(&prng) >> prng_below(&prng, 32);
			sample.vsz = (uint32_t)prng_next(&prng);
			sample.headroom = kind % 2 ? mw_growth_sub_sat(150000, sample.anon) : ~0U;
			feed_state(&state, &sample);
			alerts += state.process.growth.flags & MW_GROWTH_F_ALERT;
			wrong = check_state(&state, sample.time_ns);
			checked++;
		}
	}
	tap_ok(!wrong, "%u states that the detectors computed pass: %s", checked,
	       wrong ? wrong : "all");
	tap_ok(alerts > 100, "some of the states hold an alert: %u", alerts);
}

/* Changes one member of a valid state to a value, which must be refused. */
#define EXPECT_REFUSED(member, value)                                                              \
	do {                                                                                       \
		struct state bad_ = good;                                                          \
		bad_.member = (value);                                                             \
		tap_ok(check_state(&bad_, now) != NULL, "%s of %s is refused", #member, #value);   \
	} while (0)

static void test_refused(void)
{
	uint64_t now = clock_ns(), second = MW_GROWTH_SECOND;
	struct state good;

	make_state(&good, 30, 400);
	tap_ok(!check_state(&good, now), "the state of a leak passes: %s",
	       check_state(&good, now) ? check_state(&good, now) : "yes");
	tap_ok(good.has_history && good.history.best.window, "the state has a trend");
	EXPECT_REFUSED(key.tgid, 0);
	EXPECT_REFUSED(key.tgid, 0x80000001);
	EXPECT_REFUSED(key.reserved, 1);
	EXPECT_REFUSED(process.limit, 77);
	EXPECT_REFUSED(process.growth.last_ns, now + second);
	EXPECT_REFUSED(process.growth.first_ns, now);
	EXPECT_REFUSED(process.growth.onset_ns, 0);
	EXPECT_REFUSED(process.growth.top_ns, now + second);
	EXPECT_REFUSED(process.growth.floor, ~0U);
	EXPECT_REFUSED(process.growth.points, 0);
	EXPECT_REFUSED(process.growth.points, 9);
	EXPECT_REFUSED(process.growth.origin, 8);
	EXPECT_REFUSED(process.growth.point[0].ms, 1);
	EXPECT_REFUSED(process.growth.point[1].ms, ~0U);
	EXPECT_REFUSED(process.growth.flags, good.process.growth.flags ^ MW_GROWTH_F_HISTORY);
	EXPECT_REFUSED(process.growth.reason, 9);
	EXPECT_REFUSED(process.growth.verdict, 4);
	EXPECT_REFUSED(process.growth.confidence, 101);
	EXPECT_REFUSED(process.growth.score[1], 101);
	EXPECT_REFUSED(process.growth.slope_bps, ~0ULL);
	EXPECT_REFUSED(process.growth.alert_s, 1);
	EXPECT_REFUSED(process.growth.progress_s, 1);
	EXPECT_REFUSED(process.growth.reserved, 1);
	EXPECT_REFUSED(process.growth.notice_ns, now + second);
	EXPECT_REFUSED(process.growth.notice_ns, 0);
	EXPECT_REFUSED(process.growth.base_s, ~0U);
	EXPECT_REFUSED(process.growth.rise_s, ~0U);
	EXPECT_REFUSED(process.growth.followed_min, 60000);
	EXPECT_REFUSED(history.start_ns, now + second);
	EXPECT_REFUSED(history.level[0].bin, ~0U);
	EXPECT_REFUSED(history.level[3].bin, 1000);
	EXPECT_REFUSED(history.level[1].low, ~0U);
	EXPECT_REFUSED(history.level[2].reserved, 1);
	EXPECT_REFUSED(history.spurt.point[0].ms, ~0U);
	EXPECT_REFUSED(history.spurt.point[2].pages, ~0U);
	EXPECT_REFUSED(history.spurt.slope_bps, ~0ULL);
	EXPECT_REFUSED(history.days.hour, 1000);
	EXPECT_REFUSED(history.days.samples, ~0U);
	EXPECT_REFUSED(history.days.sum, ~0ULL);
	EXPECT_REFUSED(history.best.level, 200); /* would be a shift by 532 */
	EXPECT_REFUSED(history.best.window, 3);
	EXPECT_REFUSED(history.best.window, 255);
	EXPECT_REFUSED(history.fired.level, 4);
	EXPECT_REFUSED(history.attempt.score, 101);
	EXPECT_REFUSED(history.trend[2].r2_permille, 1001);
	EXPECT_REFUSED(history.trend[0].share, 101);
	EXPECT_REFUSED(history.trend[0].slope_bps, ~0ULL);
	memset(good.process.comm, 'x', sizeof(good.process.comm));
	tap_ok(check_state(&good, now) != NULL, "a name without an end is refused");
}

/* What its program did before is recalled when a process has a notice, and a cgroup has none. */
static void test_known(void)
{
	struct mw_state_class class = { .kind = MEMWATCH_CLASS_ANON };
	uint64_t now = clock_ns();
	struct state state;

	make_state(&state, 30, 400);
	class.state = state.process.growth;
	tap_ok(!mw_state_check_class(&class, "/a", &state.history, now), "a cgroup passes");
	state.process.growth.flags |= MW_GROWTH_F_KNOWN;
	class.state = state.process.growth;
	tap_ok(!check_state(&state, now), "a process whose program is known passes");
	tap_ok(mw_state_check_class(&class, "/a", &state.history, now) != NULL,
	       "a cgroup whose program is known is refused");
	make_state(&state, 0, 4);
	tap_ok(!check_state(&state, now), "a process that does not grow passes");
	state.process.growth.flags |= MW_GROWTH_F_KNOWN;
	tap_ok(check_state(&state, now) != NULL,
	       "one that does not grow and whose program is known is refused");
}

/*
 * What the reader has received: processes, how often one says that it was sampled, and how often
 * that its touch is followed; classes.
 */
struct received {
	int processes, sampled, followed, classes;
	char path[64];
	bool has_history;
};

static int count_state(void *userdata, const struct mw_growth_key *key,
		       const struct mw_growth_process *process,
		       const struct mw_growth_history *history)
{
	struct received *received = userdata;

	(void)key;
	(void)history;
	received->processes++;
	received->sampled += !!process->round;
	received->followed += !!process->growth.followed_min;
	return 0;
}

static int count_class(void *userdata, const struct mw_state_class *class, const char *path,
		       const struct mw_growth_history *history)
{
	struct received *received = userdata;

	(void)class;
	received->classes++;
	snprintf(received->path, sizeof(received->path), "%s", path);
	received->has_history = history != NULL;
	return 0;
}

/* A class of a cgroup with the state of a process. */
static struct mw_state_class class_of(const struct state *state)
{
	struct mw_state_class class;

	memset(&class, 0, sizeof(class));
	class.kind = MEMWATCH_CLASS_SHMEM;
	class.level = MEMWATCH_GROWTH_NOTICE;
	class.base_ns = class.since_ns = state->process.growth.first_ns;
	class.state = state->process.growth;
	return class;
}

#define PATH_16 "/system.slice/16" /* of two words, so that one of zeros follows */

/* The states as processes, and, if @classes, as classes of cgroups too. */
static FILE *write_states(const struct state *states, int nr, bool classes)
{
	FILE *file = tmpfile();
	struct mw_state_writer writer;

	mw_state_writer_begin(&writer, file);
	for (int i = 0; i < nr; i++)
		mw_state_writer_put(&writer, &states[i].key, &states[i].process,
				    states[i].has_history ? &states[i].history : NULL);
	if (classes)
		mw_state_writer_begin_classes(&writer, (uint64_t)nr);
	for (int i = 0; classes && i < nr; i++) {
		struct mw_state_class class = class_of(&states[i]);

		mw_state_writer_put_class(&writer, &class, i ? PATH_16 : "/",
					  states[i].has_history ? &states[i].history : NULL);
	}
	if (mw_state_writer_end(ctx, &writer))
		tap_note("%s", memwatch_ctx_error(ctx));
	rewind(file);
	return file;
}

static int read_states(FILE *file, struct received *received)
{
	const struct mw_state_reader reader = { count_state, count_class, received };

	*received = (struct received){ 0 };
	rewind(file);
	return mw_state_file_read(ctx, file, "test", &reader);
}

/* A file that is not ours must not be taken for a damaged one: saving would replace it. */
static void test_other_file(void)
{
	FILE *file = tmpfile();
	struct received received;

	fputs("MMW", file);
	tap_eq(read_states(file, &received), -ENOMSG,
	       "the beginning of another file is no state file");
	fputs("recording of a machine, and what else there is in a file of some size", file);
	tap_eq(read_states(file, &received), -ENOMSG, "another file is no state file");
	fclose(file);
	file = tmpfile();
	fputs("MMg", file);
	tap_eq(read_states(file, &received), -EBADMSG, "the beginning of a state file is damaged");
	fclose(file);
	file = tmpfile();
	tap_eq(read_states(file, &received), -EBADMSG, "an empty file is damaged");
	fclose(file);
}

static void test_file(void)
{
	struct received received;
	int accepted = 0, err;
	struct state states[3];
	FILE *file;
	long size;

	for (int i = 0; i < 3; i++)
		make_state(&states[i], i * 30, 300);
	file = write_states(states, 3, true);
	err = read_states(file, &received);
	tap_eq(err, 0, "a file with three processes and three classes of cgroups is read");
	tap_eq(received.processes, 3, "three processes come from it");
	tap_eq(received.sampled, 0, "none of them was sampled in a round");
	tap_ok(states[2].process.growth.followed_min > 0, "the touch of one was followed");
	tap_eq(received.followed, 0, "the touch of none is");
	tap_eq(received.classes, 3, "three classes come from it");
	tap_str_eq(received.path, PATH_16, "the path of a cgroup comes from it");
	tap_ok(received.has_history, "the history of a class comes from it");
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	for (long at = 0; at < size; at += 1 + (long)prng_below(&prng, 8)) {
		int byte;

		fseek(file, at, SEEK_SET);
		byte = getc(file);
		fseek(file, at, SEEK_SET);
		putc(byte ^ (1 << prng_below(&prng, 8)), file);
		accepted += !read_states(file, &received);
		accepted += received.processes + received.classes;
		fseek(file, at, SEEK_SET);
		putc(byte, file);
	}
	tap_eq(accepted, 0, "with any one bit changed the whole file is refused");
	if (fseek(file, 0, SEEK_END) || putc(0, file))
		tap_note("%s", strerror(errno));
	tap_eq(read_states(file, &received), -EBADMSG, "a file with one more byte is refused");
	fclose(file);

	file = write_states(states, 3, false);
	tap_eq(read_states(file, &received), 0, "a file from before cgroups were kept is read");
	tap_eq(received.processes, 3, "its three processes come from it");
	fclose(file);

	states[1].history.trend[1].level = 200;
	file = write_states(states, 3, true);
	tap_eq(read_states(file, &received), -EBADMSG, "a file with one invalid trend is refused");
	tap_eq(received.processes, 0, "nothing of a file with one invalid trend is used");
	tap_ok(strstr(memwatch_ctx_error(ctx), "trend") != NULL, "the error says why: %s",
	       memwatch_ctx_error(ctx));
	fclose(file);
}

/* Changes one member of a valid class to a value, which must be refused. */
#define EXPECT_CLASS_REFUSED(member, value)                                                        \
	do {                                                                                       \
		struct mw_state_class bad_ = good;                                                 \
		bad_.member = (value);                                                             \
		tap_ok(mw_state_check_class(&bad_, "/a", NULL, now) != NULL,                       \
		       "%s of %s is refused in a class", #member, #value);                         \
	} while (0)

static void test_class(void)
{
	struct mw_state_class good;
	struct state state;
	uint64_t now;

	make_state(&state, 0, 100);
	good = class_of(&state);
	now = clock_ns();
	tap_ok(!mw_state_check_class(&good, "/a", NULL, now), "a class of a cgroup passes");
	tap_ok(mw_state_check_class(&good, "a", NULL, now) != NULL,
	       "a path that does not begin with / is refused");
	EXPECT_CLASS_REFUSED(kind, MEMWATCH_CLASSES);
	EXPECT_CLASS_REFUSED(level, MEMWATCH_GROWTH_CLEAR);
	EXPECT_CLASS_REFUSED(base_ns, good.state.last_ns + 1);
	EXPECT_CLASS_REFUSED(since_ns, ~0ULL);
	EXPECT_CLASS_REFUSED(state.last_ns, now + MW_GROWTH_SECOND);
}

static void test_shares(void)
{
	static const uint32_t few[] = { 3, 50 }, many[] = { 5, 20, 40, 10000 }, one[] = { 500 };

	tap_eq(mw_quota_share(few, 2, 100), MW_GROWTH_NO_LIMIT,
	       "with room for all no share is set");
	tap_eq(mw_quota_share(many, 4, 100), 37, "what small users leave is shared equally");
	tap_eq(mw_quota_share(one, 1, 256), 256, "a single user has all states");
	tap_eq(mw_quota_share(many, 4, 2), 1, "a share is at least one state");
}

static void test_interest(void)
{
	struct mw_growth_sample sample = { .headroom = ~0U, .anon = 1000, .time_ns = 1 };
	struct state still = { 0 }, leak;

	for (int i = 0; i < 20; i++, sample.time_ns += 5 * MW_GROWTH_SECOND)
		feed_state(&still, &sample);
	tap_eq(mw_quota_interest(&still.process.growth), 0, "a process that never grew comes last");
	sample.anon += 200;
	feed_state(&still, &sample);
	tap_eq(mw_quota_interest(&still.process.growth), 2, "growth of 800 KiB keeps its state");
	make_state(&leak, 30, 400);
	leak.process.growth.flags |= MW_GROWTH_F_ALERT;
	tap_eq(mw_quota_interest(&leak.process.growth), 3, "an alert comes first");
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_computed();
	test_refused();
	test_known();
	test_file();
	test_other_file();
	test_class();
	test_shares();
	test_interest();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
