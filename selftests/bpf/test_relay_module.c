// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The relay with the real module, without the library: rig.h reads the
 * rings, and ioctls control the module. The test checks that no time and no record is
 * missing, and that the owner of each sample is known.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "../module.h"
#include "rig.h"

#define CPUS_MAX  1024
#define RMIDS_MAX 4096

/**
 * struct seen - what the records of one CPU say
 * @begin_ns: start of the current interval
 * @end_ns: end of the current interval
 * @run_ns: sum over all samples
 * @interval_ns: sum over the samples of the current interval
 * @ticks: ticks
 * @samples: samples
 * @idle: CPU states IDLE
 * @busy: CPU states BUSY
 * @online: CPU states ONLINE
 * @gaps: intervals that are not adjacent, or whose samples do not fill them
 * @behind: ticks and CPU states that do not follow the end of an interval
 * @owner_unknown: samples whose owner was not announced
 * @foreign: records of another CPU
 * @running: a tick or ONLINE was seen
 */
struct seen {
	uint64_t begin_ns, end_ns, run_ns, interval_ns;
	uint64_t ticks, samples, idle, busy, online, gaps, behind;
	uint64_t owner_unknown, foreign;
	bool running;
};

static struct seen seen[CPUS_MAX];

/* The largest generation of each RMID that was announced. */
static uint32_t announced[RMIDS_MAX];
static uint64_t allocs, frees, existing, dumps, execs;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void count_sample(struct seen *s, const struct memwatch_record_sample *rec)
{
	if (rec->h.time_ns != s->end_ns || rec->begin_ns != s->begin_ns) {
		/* the samples of the last interval must have filled it exactly */
		s->gaps += s->interval_ns != s->end_ns - s->begin_ns;
		s->gaps += rec->begin_ns != s->end_ns;
		s->begin_ns = rec->begin_ns;
		s->end_ns = rec->h.time_ns;
		s->interval_ns = 0;
	}
	s->interval_ns += rec->run_ns;
	s->run_ns += rec->run_ns;
	s->samples++;
	if (rec->rmid >= RMIDS_MAX || rec->generation > announced[rec->rmid] ||
	    !rec->rmid != !rec->generation)
		s->owner_unknown++;
}

static void count_record(int cpu, const union rig_record *rec)
{
	struct seen *s = &seen[cpu];

	s->foreign += rec->h.cpu != cpu && rec->h.type != MEMWATCH_RECORD_RDT;
	switch (rec->h.type) {
	case MEMWATCH_RECORD_SAMPLE:
		count_sample(s, &rec->sample);
		break;
	case MEMWATCH_RECORD_TICK:
		s->ticks++;
		if (!s->running) {
			s->begin_ns = s->end_ns = rec->h.time_ns;
			s->running = true;
		}
		s->behind += s->end_ns != rec->h.time_ns;
		break;
	case MEMWATCH_RECORD_CPU_STATE:
		s->idle += rec->cpu.state == MEMWATCH_CPU_IDLE;
		s->busy += rec->cpu.state == MEMWATCH_CPU_BUSY;
		if (rec->cpu.state == MEMWATCH_CPU_ONLINE) {
			s->online++;
			s->gaps += s->running && s->interval_ns != s->end_ns - s->begin_ns;
			s->begin_ns = s->end_ns = rec->h.time_ns;
			s->interval_ns = 0;
			s->running = true;
		} else if (s->running) {
			s->behind += s->end_ns != rec->h.time_ns;
		}
		break;
	case MEMWATCH_RECORD_RMID_ALLOC:
	case MEMWATCH_RECORD_RMID_EXISTING:
		if (rec->rmid.rmid < RMIDS_MAX && rec->rmid.generation > announced[rec->rmid.rmid])
			announced[rec->rmid.rmid] = rec->rmid.generation;
		allocs += rec->h.type == MEMWATCH_RECORD_RMID_ALLOC;
		existing += rec->h.type == MEMWATCH_RECORD_RMID_EXISTING;
		break;
	case MEMWATCH_RECORD_RMID_EXEC:
		execs++;
		break;
	case MEMWATCH_RECORD_RMID_FREE:
		frees++;
		break;
	case MEMWATCH_RECORD_DUMP_END:
		dumps++;
		break;
	}
}

/*
 * All records that were read. They are evaluated at the end, those of owners first, because
 * an owner is announced in the ring of the CPU that forked.
 */
struct store {
	union rig_record *records;
	uint8_t *cpus;
	size_t count, max;
};

static struct store store;

static void store_record(int cpu, const union rig_record *rec)
{
	if (store.count == store.max) {
		store.max = store.max ? store.max * 2 : 1 << 16;
		store.records = realloc(store.records, store.max * sizeof(*store.records));
		store.cpus = realloc(store.cpus, store.max);
		if (!store.records || !store.cpus)
			exit(1);
	}
	store.records[store.count] = *rec;
	store.cpus[store.count++] = cpu;
}

static bool broken; /* a ring was not valid */

static void read_rings(struct rig *rig)
{
	union rig_record rec;
	int got;

	for (int cpu = 0; cpu < rig->nr_cpus; cpu++) {
		while ((got = rig_next(rig, cpu, &rec)) == 1)
			store_record(cpu, &rec);
		broken |= got < 0;
	}
}

static void count_records(void)
{
	memset(seen, 0, sizeof(seen));
	memset(announced, 0, sizeof(announced));
	allocs = frees = existing = dumps = execs = 0;
	for (int owners = 1; owners >= 0; owners--)
		for (size_t i = 0; i < store.count; i++) {
			uint16_t type = store.records[i].h.type;

			if (owners == (type >= MEMWATCH_RECORD_RMID_ALLOC &&
				       type <= MEMWATCH_RECORD_DUMP_END))
				count_record(store.cpus[i], &store.records[i]);
		}
	store.count = 0;
}

/* --------------------------------------------------------------- workload */

static void spin_us(unsigned int us)
{
	uint64_t end = now_ns() + us * 1000ULL;

	while (now_ns() < end)
		;
}

static void *run_thread(void *unused)
{
	for (int i = 0; i < 40; i++) {
		spin_us(200);
		usleep(300);
	}
	return unused;
}

/* Forks, threads, pipes and sleeps for about @ms milliseconds. */
static void run_work(unsigned int ms)
{
	uint64_t end = now_ns() + ms * 1000000ULL;
	pid_t spinner = fork(), ping;
	int there[2], back[2];
	char c = 0;

	if (!spinner) {
		for (;;)
			spin_us(1000);
	}
	if (pipe(there) || pipe(back))
		return;
	ping = fork();
	if (!ping) {
		close(there[1]);
		while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
			;
		_exit(0);
	}
	while (now_ns() < end) {
		pthread_t thread;
		pid_t child;

		for (int i = 0; i < 50; i++) {
			if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
				break;
		}
		child = fork();
		if (!child) {
			if (!pthread_create(&thread, NULL, run_thread, NULL))
				pthread_join(thread, NULL);
			_exit(0);
		}
		usleep(2000);
		waitpid(child, NULL, 0);
	}
	close(there[1]);
	kill(spinner, SIGKILL);
	while (wait(NULL) > 0)
		;
	close(there[0]);
	close(back[0]);
	close(back[1]);
}

/* ------------------------------------------------------------------ module */

static int device;

static bool start_session(void)
{
	struct memwatch_start start = { .size = sizeof(start) };
	struct memwatch_dump dump = { .size = sizeof(dump) };

	device = open("/dev/memwatch", O_RDWR);
	return device >= 0 && !ioctl(device, MEMWATCH_IOC_START, &start) &&
	       !ioctl(device, MEMWATCH_IOC_DUMP, &dump);
}

/* For the sessions to come. */
static bool set_idle_stop(uint32_t on)
{
	struct memwatch_config config = { .size = sizeof(config),
					  .idle_stop = on,
					  .flags = MEMWATCH_CONFIG_IDLE_STOP |
						   MEMWATCH_CONFIG_DEFAULT };
	int fd = open("/dev/memwatch", O_RDWR), err;

	err = ioctl(fd, MEMWATCH_IOC_SET_CONFIG, &config);
	close(fd);
	return !err;
}

/* The thread that reads the rings. */
static struct {
	struct rig *rig;
	volatile bool stop;
	volatile bool pause;
	pthread_t thread;
} reader;

static void *run_reader(void *unused)
{
	while (!reader.stop) {
		if (!reader.pause)
			read_rings(reader.rig);
		usleep(2000);
	}
	return unused;
}

/* The relay, for each mode. It is loaded once, because each load runs the verifier. */
static struct rig relays[MW_RELAY_SWITCH + 1];

/* Loads the relay of @mode, or makes the one that is loaded begin anew. */
static int prepare_relay(struct rig *rig, enum mw_relay_mode mode)
{
	return rig->skel ? rig_reset(rig) : rig_load(rig, mode, 0, 512);
}

/* Returns NULL on failure. */
static struct rig *start_measuring(enum mw_relay_mode mode, size_t pages)
{
	struct rig *rig = &relays[mode];
	int err = prepare_relay(rig, mode);

	if (!err)
		err = rig_open_rings(rig, pages);
	if (!err)
		err = rig_attach(rig);
	if (!tap_ok(!err, "the relay is attached to the module: %s", strerror(-err)))
		return NULL;
	reader.rig = rig;
	reader.stop = reader.pause = false;
	store.count = 0;
	pthread_create(&reader.thread, NULL, run_reader, NULL);
	return tap_ok(start_session(), "a session is started") ? rig : NULL;
}

/* Closing the device stops the session, which makes the last records. */
static void stop_measuring(struct rig *rig)
{
	close(device);
	rig_detach(rig);
	usleep(50000);
	reader.stop = true;
	pthread_join(reader.thread, NULL);
	read_rings(rig);
}

/* For each CPU, produced = delivered + dropped; @loss: records must have been dropped. */
static void check_counts(struct rig *rig, const char *what, bool loss)
{
	uint64_t produced = 0, dropped = 0, received = 0, lost = 0;
	unsigned int wrong = 0;

	for (int cpu = 0; cpu < rig->nr_cpus; cpu++) {
		struct mw_relay_cpu state = rig_cpu(rig, cpu);
		/* What waits for a ring that never comes is lost, too. */
		uint64_t missing = state.dropped + state.held_records;

		wrong += state.produced != rig->rings[cpu].received + missing;
		produced += state.produced;
		dropped += missing;
		received += rig->rings[cpu].received;
		lost += rig->rings[cpu].lost;
	}
	tap_ok(!broken, "%s: all rings are valid", what);
	tap_eq(wrong, 0, "%s: produced = delivered + dropped on each CPU", what);
	tap_eq(produced, received + dropped, "%s: produced = delivered + dropped in all", what);
	if (loss) {
		tap_ok(dropped, "%s: records are dropped (%llu)", what,
		       (unsigned long long)dropped);
		tap_ok(lost <= dropped, "%s: the kernel reports no more losses (%llu)", what,
		       (unsigned long long)lost);
	} else {
		tap_eq(dropped, 0, "%s: no record is dropped", what);
	}
	tap_eq(rig_failures(rig, MW_RELAY_FAIL_OWNER), 0, "%s: each change of owner is seen", what);
	tap_eq(rig_failures(rig, MW_RELAY_FAIL_RECORD_READ), 0, "%s: each record can be read",
	       what);
	tap_eq(rig_failures(rig, MW_RELAY_FAIL_RECORD_INVALID), 0, "%s: each record is valid",
	       what);
	tap_eq(rig_failures(rig, MW_RELAY_FAIL_RMID_RANGE), 0, "%s: each RMID is in range", what);
	tap_note("%s: the clock stepped back %llu times, %llu slots were sent in parts", what,
		 (unsigned long long)rig_failures(rig, MW_RELAY_FAIL_CLOCK),
		 (unsigned long long)rig_failures(rig, MW_RELAY_FAIL_EARLY));
}

/* @owners: check the owners too, which requires that none of their records is lost. */
static void check_partition(struct rig *rig, const char *what, bool owners)
{
	for (int cpu = 0; cpu < rig->nr_cpus && cpu < CPUS_MAX; cpu++) {
		struct seen *s = &seen[cpu];

		if (!s->ticks && !s->online)
			continue;
		tap_note("%s: CPU %d: %llu ns in %llu samples, %llu ticks", what, cpu,
			 (unsigned long long)s->run_ns, (unsigned long long)s->samples,
			 (unsigned long long)s->ticks);
		tap_ok(s->samples, "%s: CPU %d sends samples", what, cpu);
		tap_eq(s->gaps, 0, "%s: the samples of CPU %d have no gaps", what, cpu);
		tap_eq(s->behind, 0, "%s: the ticks of CPU %d follow its samples", what, cpu);
		tap_eq(s->foreign, 0, "%s: the ring of CPU %d has its own records only", what, cpu);
		tap_eq(s->interval_ns, s->end_ns - s->begin_ns,
		       "%s: the run_ns of CPU %d add up to the last interval", what, cpu);
		if (owners)
			tap_eq(s->owner_unknown, 0,
			       "%s: the owner of each sample of CPU %d is announced", what, cpu);
	}
}

/* From ONLINE to STOPPED, all time of each CPU is charged. */
static void test_conservation(enum mw_relay_mode mode)
{
	const char *what = mode == MW_RELAY_SLOT ? "slot" : "switch";
	uint64_t from, to, whole = 0;
	struct rig *rig;

	from = now_ns();
	rig = start_measuring(mode, 1024);
	if (!rig)
		return;
	run_work(2000);
	stop_measuring(rig);
	to = now_ns();
	count_records();
	check_counts(rig, what, false);
	check_partition(rig, what, true);
	for (int cpu = 0; cpu < rig->nr_cpus && cpu < CPUS_MAX; cpu++)
		whole += seen[cpu].run_ns;
	tap_ok(whole > 1900000000ULL * rig->nr_cpus,
	       "%s: the run_ns of all CPUs cover the workload (%llu ms)", what,
	       (unsigned long long)whole / 1000000);
	tap_ok(whole < (to - from) * rig->nr_cpus,
	       "%s: the run_ns of all CPUs do not exceed the time (%llu ms)", what,
	       (unsigned long long)(to - from) * rig->nr_cpus / 1000000);
	tap_ok(allocs + existing > 2, "%s: RMIDs are assigned (%llu new, %llu existing)", what,
	       (unsigned long long)allocs, (unsigned long long)existing);
	tap_ok(frees > 2, "%s: RMIDs are freed (%llu, and %llu execs)", what,
	       (unsigned long long)frees, (unsigned long long)execs);
	tap_eq(dumps, 1, "%s: there is one dump", what);
	rig_close_rings(rig);
}

/* In mode slot, batches do not fit as a whole or in parts. */
static void test_stalled_reader(enum mw_relay_mode mode)
{
	struct rig *rig = start_measuring(mode, mode == MW_RELAY_SLOT ? 1 : 4);

	if (!rig)
		return;
	run_work(300);
	reader.pause = true;
	run_work(1000);
	reader.pause = false;
	run_work(300);
	stop_measuring(rig);
	count_records();
	check_counts(rig,
		     mode == MW_RELAY_SLOT ? "slot, reader stalled for a second"
					   : "switch, reader stalled for a second",
		     true);
	rig_close_rings(rig);
}

static void test_idle_stop(void)
{
	uint64_t idle = 0, busy = 0, ticks = 0, work_ms;
	struct rig *rig;

	if (!tap_ok(set_idle_stop(1), "idle_stop is set"))
		return;
	rig = start_measuring(MW_RELAY_SLOT, 1024);
	if (!rig)
		return;
	usleep(1000000);
	work_ms = now_ns() / 1000000;
	run_work(300);
	work_ms = now_ns() / 1000000 - work_ms;
	stop_measuring(rig);
	count_records();
	check_counts(rig, "idle_stop", false);
	check_partition(rig, "idle_stop", true);
	for (int cpu = 0; cpu < rig->nr_cpus && cpu < CPUS_MAX; cpu++) {
		idle += seen[cpu].idle;
		busy += seen[cpu].busy;
		ticks += seen[cpu].ticks;
	}
	tap_ok(idle > 10, "idle_stop: CPUs become idle (%llu times)", (unsigned long long)idle);
	tap_ok(busy > 10, "idle_stop: CPUs become busy (%llu times)", (unsigned long long)busy);
	tap_ok(ticks < (900 + work_ms) * (uint64_t)rig->nr_cpus,
	       "idle_stop: idle CPUs do not tick (%llu ticks)", (unsigned long long)ticks);
	set_idle_stop(0);
	rig_close_rings(rig);
}

/* A second relay with a session of its own, while the first one is running. */
static void test_two_relays(void)
{
	struct memwatch_start start = { .size = sizeof(start) };
	struct memwatch_dump dump = { .size = sizeof(dump) };
	struct rig two, *one;
	int second, err;

	/* before there is a session, so that its records do not pile up meanwhile */
	err = rig_load(&two, MW_RELAY_SLOT, 0, 512);
	one = start_measuring(MW_RELAY_SLOT, 1024);
	if (!one)
		return;
	run_work(200);
	if (!err)
		err = rig_open_rings(&two, 1024);
	if (!err)
		err = rig_attach(&two);
	second = open("/dev/memwatch", O_RDWR);
	tap_ok(!err && second >= 0, "second of two: the relay is attached");
	tap_ok(!ioctl(second, MEMWATCH_IOC_START, &start), "second of two: the session is started");
	tap_ok(!ioctl(second, MEMWATCH_IOC_DUMP, &dump), "second of two: the dump is made");
	run_work(300);
	stop_measuring(one);
	count_records();
	check_counts(one, "first of two", false);
	rig_close_rings(one);
	/* the store is empty now: read the rings of the second relay */
	run_work(200);
	close(second);
	rig_detach(&two);
	usleep(50000);
	read_rings(&two);
	count_records();
	check_counts(&two, "second of two", false);
	check_partition(&two, "second of two", true);
	tap_eq(dumps, 1, "second of two: there is one dump");
	tap_ok(existing >= 1, "second of two: the dump has the existing assignments (%llu)",
	       (unsigned long long)existing);
	rig_close(&two);
}

/* The time of CPU 1 is not charged while it is offline, and is charged again from ONLINE on. */
static void test_hotplug(void)
{
	static const char path[] = "/sys/devices/system/cpu/cpu1/online";
	struct rig *rig;
	bool ok = true;
	int fd;

	fd = open(path, O_WRONLY);
	if (fd < 0) {
		tap_skip("hotplug", "CPU 1 cannot be taken offline");
		return;
	}
	if (!module_may_disrupt()) {
		tap_skip("hotplug", MODULE_DISRUPTIVE);
		return;
	}
	rig = start_measuring(MW_RELAY_SLOT, 1024);
	if (!rig)
		return;
	run_work(200);
	ok &= write(fd, "0", 1) == 1;
	run_work(200);
	ok &= pwrite(fd, "1", 1, 0) == 1;
	run_work(200);
	stop_measuring(rig);
	close(fd);
	count_records();
	tap_ok(ok, "hotplug: CPU 1 is set offline and online");
	/* rig.h opens no ring for a CPU that comes back, so all its records are dropped */
	check_counts(rig, "hotplug", true);
	check_partition(rig, "hotplug", false);
	rig_close_rings(rig);
}

int main(void)
{
	const char *obstacle = module_obstacle();

	tap_start();
	if (obstacle)
		tap_skip_all(obstacle);
	if (!tap_ok(!module_load(), "the module is loaded"))
		return tap_done();
	tap_ok(!rig_verifier_stats(), "the verifier accepts every program");
	test_conservation(MW_RELAY_SLOT);
	test_conservation(MW_RELAY_SWITCH);
	test_stalled_reader(MW_RELAY_SWITCH);
	test_stalled_reader(MW_RELAY_SLOT);
	test_idle_stop();
	test_two_relays();
	test_hotplug();
	rig_close(&relays[MW_RELAY_SLOT]);
	rig_close(&relays[MW_RELAY_SWITCH]);
	return tap_done();
}
