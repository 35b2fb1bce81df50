// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The relay behind the real module, in a lab guest. Nothing of the library is
 * used: rings are read by the rig, the module is driven by its ioctls. What is
 * tested is conservation: time, records, and owners.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "rig.h"

#define CPUS_MAX  64
#define RMIDS_MAX 4096

/* What was seen of one CPU. */
struct seen {
	uint64_t begin_ns, end_ns; /* of what is accounted for without a gap */
	uint64_t run_ns;	   /* sum of the stretch from begin_ns */
	uint64_t stretch_ns;	   /* of the samples that end at end_ns */
	uint64_t ticks, samples, idle, busy, online, gaps, behind;
	uint64_t owner_unknown;
	uint64_t foreign; /* record of another CPU */
	bool running;
};

static struct seen seen[CPUS_MAX];

/* Highest generation announced for each RMID. */
static uint32_t announced[RMIDS_MAX];
static uint64_t allocs, frees, existing, dumps, execs;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void look_at_sample(struct seen *s, const struct memwatch_record_sample *rec)
{
	if (rec->h.time_ns != s->end_ns || rec->begin_ns != s->begin_ns) {
		/* The stretch before must have been filled up exactly. */
		s->gaps += s->stretch_ns != s->end_ns - s->begin_ns;
		s->gaps += rec->begin_ns != s->end_ns;
		s->begin_ns = rec->begin_ns;
		s->end_ns = rec->h.time_ns;
		s->stretch_ns = 0;
	}
	s->stretch_ns += rec->run_ns;
	s->run_ns += rec->run_ns;
	s->samples++;
	if (rec->rmid >= RMIDS_MAX || rec->generation > announced[rec->rmid] ||
	    !rec->rmid != !rec->generation)
		s->owner_unknown++;
}

static void look_at(int cpu, const union rig_record *rec)
{
	struct seen *s = &seen[cpu];

	s->foreign += rec->h.cpu != cpu && rec->h.type != MEMWATCH_RECORD_RDT;
	switch (rec->h.type) {
	case MEMWATCH_RECORD_SAMPLE:
		look_at_sample(s, &rec->sample);
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
			s->gaps += s->running && s->stretch_ns != s->end_ns - s->begin_ns;
			s->begin_ns = s->end_ns = rec->h.time_ns;
			s->stretch_ns = 0;
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
 * Owners are announced on whatever CPU the fork was, so records of owners are
 * looked at first, and of all rings what was there at one moment.
 */
struct store {
	union rig_record *records;
	uint8_t *cpus;
	size_t count, max;
};

static struct store store;

static void keep(int cpu, const union rig_record *rec)
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

static bool broken;

static void drain(struct rig *rig)
{
	union rig_record rec;
	int got;

	for (int cpu = 0; cpu < rig->nr_cpus; cpu++) {
		while ((got = rig_next(rig, cpu, &rec)) == 1)
			keep(cpu, &rec);
		broken |= got < 0;
	}
}

static void look_at_all(void)
{
	memset(seen, 0, sizeof(seen));
	memset(announced, 0, sizeof(announced));
	allocs = frees = existing = dumps = execs = 0;
	for (int owners = 1; owners >= 0; owners--)
		for (size_t i = 0; i < store.count; i++) {
			uint16_t type = store.records[i].h.type;

			if (owners == (type >= MEMWATCH_RECORD_RMID_ALLOC &&
				       type <= MEMWATCH_RECORD_DUMP_END))
				look_at(store.cpus[i], &store.records[i]);
		}
	store.count = 0;
}

/* --------------------------------------------------------------- workload */

static void spin(unsigned int us)
{
	uint64_t end = now_ns() + us * 1000ULL;

	while (now_ns() < end)
		;
}

/* Forks, threads, pipes and sleeps; about @ms long. */
static void *thread_of_work(void *unused)
{
	for (int i = 0; i < 40; i++) {
		spin(200);
		usleep(300);
	}
	return unused;
}

static void work(unsigned int ms)
{
	uint64_t end = now_ns() + ms * 1000000ULL;
	pid_t spinner = fork(), ping;
	int there[2], back[2];
	char c = 0;

	if (!spinner) {
		for (;;)
			spin(1000);
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
			if (!pthread_create(&thread, NULL, thread_of_work, NULL))
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

static bool module_load(void)
{
	int fd;

	if (!access("/dev/memwatch", F_OK))
		return true;
	fd = open("memwatch.ko", O_RDONLY);
	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		return false;
	close(fd);
	return !access("/dev/memwatch", F_OK);
}

static bool session_start(void)
{
	struct memwatch_start start = { .size = sizeof(start) };
	struct memwatch_dump dump = { .size = sizeof(dump) };

	device = open("/dev/memwatch", O_RDWR);
	return device >= 0 && !ioctl(device, MEMWATCH_IOC_START, &start) &&
	       !ioctl(device, MEMWATCH_IOC_DUMP, &dump);
}

static void session_stop(void)
{
	close(device);
}

static bool set_idle_stop(uint32_t on)
{
	struct memwatch_config config = { .size = sizeof(config),
					  .idle_stop = on,
					  .flags = MEMWATCH_CONFIG_IDLE_STOP };
	int fd = open("/dev/memwatch", O_RDWR), err;

	err = ioctl(fd, MEMWATCH_IOC_SET_CONFIG, &config);
	close(fd);
	return !err;
}

static void *drain_until_told(void *data);

static struct {
	struct rig *rig;
	volatile bool stop;
	volatile bool pause;
	pthread_t thread;
} reader;

static void *drain_until_told(void *unused)
{
	while (!reader.stop) {
		if (!reader.pause)
			drain(reader.rig);
		usleep(2000);
	}
	return unused;
}

static bool begin(struct rig *rig, enum mw_relay_mode mode, size_t pages)
{
	int err = rig_open(rig, mode, 0, 512, pages);

	if (!err)
		err = rig_attach(rig);
	if (!tap_ok(!err, "attach to the module: %s", strerror(-err)))
		return false;
	reader.rig = rig;
	reader.stop = reader.pause = false;
	store.count = 0;
	pthread_create(&reader.thread, NULL, drain_until_told, NULL);
	return tap_ok(session_start(), "start a session");
}

/* STOP makes the last records; then the programs go, then what is left is read. */
static void end(struct rig *rig)
{
	session_stop();
	rig_detach(rig);
	usleep(50000);
	reader.stop = true;
	pthread_join(reader.thread, NULL);
	drain(rig);
}

/* produced = delivered + dropped for each CPU. */
static void check_counts(struct rig *rig, const char *what, bool loss)
{
	uint64_t produced = 0, dropped = 0, received = 0, lost = 0;
	unsigned int wrong = 0;

	for (int cpu = 0; cpu < rig->nr_cpus; cpu++) {
		struct mw_relay_cpu state = rig_cpu(rig, cpu);

		wrong += state.produced != rig->rings[cpu].received + state.dropped;
		produced += state.produced;
		dropped += state.dropped;
		received += rig->rings[cpu].received;
		lost += rig->rings[cpu].lost;
	}
	tap_ok(!wrong && !broken && produced == received + dropped && (loss || !dropped) &&
		       (!loss || (dropped && lost <= dropped)),
	       "%s: produced %llu = delivered %llu + dropped %llu, on each CPU", what,
	       (unsigned long long)produced, (unsigned long long)received,
	       (unsigned long long)dropped);
	tap_note("%s: the kernel told of %llu", what, (unsigned long long)lost);
	tap_ok(!rig_failures(rig, MW_RELAY_FAIL_OWNER) &&
		       !rig_failures(rig, MW_RELAY_FAIL_RECORD_READ) &&
		       !rig_failures(rig, MW_RELAY_FAIL_RECORD_INVALID) &&
		       !rig_failures(rig, MW_RELAY_FAIL_RMID_RANGE),
	       "%s: the relay and the module agree on who runs (%llu unannounced)", what,
	       (unsigned long long)rig_failures(rig, MW_RELAY_FAIL_OWNER));
	tap_note("%s: %llu stamps of the past, %llu slots split", what,
		 (unsigned long long)rig_failures(rig, MW_RELAY_FAIL_CLOCK),
		 (unsigned long long)rig_failures(rig, MW_RELAY_FAIL_EARLY));
}

/* Owners can be known only if no record of them was lost. */
static void check_partition(struct rig *rig, const char *what, bool owners)
{
	for (int cpu = 0; cpu < rig->nr_cpus && cpu < CPUS_MAX; cpu++) {
		struct seen *s = &seen[cpu];

		if (!s->ticks && !s->online)
			continue;
		tap_ok(!s->gaps && !s->behind && !s->foreign && s->samples &&
			       s->stretch_ns == s->end_ns - s->begin_ns,
		       "%s: run_ns of CPU %d partitions its time (%llu ns, %llu samples, %llu "
		       "ticks, %llu gaps, %llu behind)",
		       what, cpu, (unsigned long long)s->run_ns, (unsigned long long)s->samples,
		       (unsigned long long)s->ticks, (unsigned long long)s->gaps,
		       (unsigned long long)s->behind);
		if (!owners)
			continue;
		tap_ok(!s->owner_unknown, "%s: every owner on CPU %d was announced (%llu not)",
		       what, cpu, (unsigned long long)s->owner_unknown);
	}
}

/* From the ONLINE records on, CPU by CPU, nothing may be missing. */
static void test_conservation(enum mw_relay_mode mode)
{
	const char *what = mode == MW_RELAY_SLOT ? "slot" : "switch";
	uint64_t from, to, whole = 0;
	struct rig rig;

	from = now_ns();
	if (!begin(&rig, mode, 1024))
		return;
	work(2000);
	end(&rig);
	to = now_ns();
	look_at_all();
	check_counts(&rig, what, false);
	check_partition(&rig, what, true);
	for (int cpu = 0; cpu < rig.nr_cpus && cpu < CPUS_MAX; cpu++)
		whole += seen[cpu].run_ns;
	tap_ok(whole > 1900000000ULL * rig.nr_cpus && whole < (to - from) * rig.nr_cpus,
	       "%s: that is the time of the workload on all CPUs (%llu ms)", what,
	       (unsigned long long)whole / 1000000);
	tap_ok(allocs + existing > 2 && frees > 2 && dumps == 1,
	       "%s: %llu allocations, %llu existing, %llu freed, %llu execs", what,
	       (unsigned long long)allocs, (unsigned long long)existing, (unsigned long long)frees,
	       (unsigned long long)execs);
	rig_close(&rig);
}

/* In mode slot it is parcels that find no room, whole or in part. */
static void test_stalled_reader(enum mw_relay_mode mode)
{
	struct rig rig;

	if (!begin(&rig, mode, mode == MW_RELAY_SLOT ? 1 : 4))
		return;
	work(300);
	reader.pause = true;
	work(1000);
	reader.pause = false;
	work(300);
	end(&rig);
	look_at_all();
	check_counts(&rig,
		     mode == MW_RELAY_SLOT ? "slot, reader stopped for a second"
					   : "switch, reader stopped for a second",
		     true);
	rig_close(&rig);
}

static void test_idle_stop(void)
{
	uint64_t idle = 0, busy = 0, ticks = 0;
	struct rig rig;

	if (!tap_ok(set_idle_stop(1), "set idle_stop"))
		return;
	if (!begin(&rig, MW_RELAY_SLOT, 1024))
		return;
	usleep(1000000);
	work(300);
	end(&rig);
	look_at_all();
	check_counts(&rig, "idle_stop", false);
	check_partition(&rig, "idle_stop", true);
	for (int cpu = 0; cpu < rig.nr_cpus && cpu < CPUS_MAX; cpu++) {
		idle += seen[cpu].idle;
		busy += seen[cpu].busy;
		ticks += seen[cpu].ticks;
	}
	tap_ok(idle > 10 && busy > 10 && ticks < 1200ULL * rig.nr_cpus,
	       "idle_stop: idle CPUs do not tick (%llu idle, %llu busy, %llu ticks)",
	       (unsigned long long)idle, (unsigned long long)busy, (unsigned long long)ticks);
	set_idle_stop(0);
	rig_close(&rig);
}

/* A second relay, with a session of its own, while the first runs. */
static void test_two(void)
{
	struct memwatch_start start = { .size = sizeof(start) };
	struct memwatch_dump dump = { .size = sizeof(dump) };
	struct rig one, two;
	int second, err;

	if (!begin(&one, MW_RELAY_SLOT, 1024))
		return;
	work(200);
	err = rig_open(&two, MW_RELAY_SLOT, 0, 512, 1024);
	if (!err)
		err = rig_attach(&two);
	second = open("/dev/memwatch", O_RDWR);
	tap_ok(!err && second >= 0 && !ioctl(second, MEMWATCH_IOC_START, &start) &&
		       !ioctl(second, MEMWATCH_IOC_DUMP, &dump),
	       "a second session beside the first");
	work(300);
	end(&one);
	look_at_all();
	check_counts(&one, "first of two", false);
	rig_close(&one);
	/* The first one has been reading into the store; now the second one's. */
	work(200);
	close(second);
	rig_detach(&two);
	usleep(50000);
	drain(&two);
	look_at_all();
	check_counts(&two, "second of two", false);
	check_partition(&two, "second of two", true);
	tap_ok(dumps == 1 && existing >= 1, "the second one got the assignments by its dump (%llu)",
	       (unsigned long long)existing);
	rig_close(&two);
}

/* CPU 1 goes and comes: its time starts again with ONLINE, offline is nobody's. */
static void test_hotplug(void)
{
	static const char path[] = "/sys/devices/system/cpu/cpu1/online";
	struct rig rig;
	bool ok = true;
	int fd;

	fd = open(path, O_WRONLY);
	if (fd < 0) {
		tap_skip("hotplug", "CPU 1 cannot be taken offline");
		return;
	}
	if (!begin(&rig, MW_RELAY_SLOT, 1024))
		return;
	work(200);
	ok &= write(fd, "0", 1) == 1;
	work(200);
	ok &= pwrite(fd, "1", 1, 0) == 1;
	work(200);
	end(&rig);
	close(fd);
	look_at_all();
	tap_ok(ok, "hotplug: CPU 1 goes and comes");
	/* The rig gives a CPU that came back no ring: all of its records are dropped. */
	check_counts(&rig, "hotplug", true);
	check_partition(&rig, "hotplug", false);
	rig_close(&rig);
}

int main(void)
{
	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	if (!tap_ok(module_load(), "load the module"))
		return tap_done();
	tap_ok(!rig_verifier_stats(), "the verifier accepts every program");
	test_conservation(MW_RELAY_SLOT);
	test_conservation(MW_RELAY_SWITCH);
	test_stalled_reader(MW_RELAY_SWITCH);
	test_stalled_reader(MW_RELAY_SLOT);
	test_idle_stop();
	test_two();
	test_hotplug();
	return tap_done();
}
