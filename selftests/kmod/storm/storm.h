/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the files of the storm share: the operations, and the steps that they consist of.
 */
#ifndef _MW_STORM_H
#define _MW_STORM_H

#include <stdint.h>
#include <sys/types.h>

#define STORM_THREADS_MAX    4
#define STORM_OPERATIONS_MAX 32

/*
 * One way for a process to be born, to change or to die. Exactly one of the two functions
 * is set. @in_worker: called in the worker. @in_child: called in a new child, which the
 * worker waits for; the child exits with status 0 if the function returns.
 */
struct storm_operation {
	const char *name;
	unsigned int weight; /* how often it is drawn, compared with the others */
	void (*in_worker)(void);
	void (*in_child)(void);
};

extern const struct storm_operation storm_operations[];
extern const unsigned int storm_nr_operations;

void storm_operation_run(const struct storm_operation *operation);

/* Statistics, in memory that all processes of the storm share. */
struct storm_shared {
	uint64_t lifetimes;
	uint64_t threads;
	uint64_t execs;
	uint64_t failures;
	uint64_t operations[STORM_OPERATIONS_MAX]; /* by index in storm_operations */
	int last_errno;				   /* of the last failure */
	int stop;
};

extern struct storm_shared *storm_shared;
extern const char *storm_tiny; /* path of the program to execute */

void storm_add(uint64_t *counter, uint64_t n);
void storm_count_failure(void); /* and keep errno */

/* Each worker has its own generator; a child inherits a copy of its state. */
void storm_random_seed(uint64_t seed);
unsigned int storm_random_below(unsigned int n);

uint64_t storm_now_ns(void);
void storm_sleep_us(unsigned int us);
void storm_spin_us(unsigned int us); /* use the CPU for that long */

pid_t storm_fork(void); /* counts the lifetime or the failure */
void storm_reap(pid_t pid);
void storm_exec_tiny(void) __attribute__((noreturn));
void storm_vfork_exec_tiny(void);

/* What a thread, or a process that shares its parent's memory, does before it exits. */
enum storm_body {
	STORM_BODY_EXIT,
	STORM_BODY_SLEEP,
	STORM_BODY_SPIN,
	STORM_BODY_EXEC,
	STORM_BODY_SLEEP_EXEC,
	STORM_BODY_PAUSE, /* for ever */
	STORM_BODY_RENAME,
};

/* @slot: which of the STORM_THREADS_MAX stacks it uses; @us: how long it sleeps or spins. */
int storm_thread_start(unsigned int slot, enum storm_body body, unsigned int us);
pid_t storm_clone_vm(unsigned int slot, enum storm_body body, unsigned int us);

/* birth.c */
void storm_birth_fork(void);
void storm_birth_vfork(void);
void storm_birth_spawn(void);
void storm_birth_clone_vm(void);
void storm_birth_clone3(void);

/* thread.c */
void storm_thread_many(void);
void storm_thread_dead_leader(void);
void storm_thread_exec(void);
void storm_thread_dead_leader_exec(void);

/* death.c */
void storm_death_zombie(void);
void storm_death_daemon(void);
void storm_death_autoreap(void);
void storm_death_kill(void);
void storm_death_ptrace(void);

/* change.c */
void storm_change_exec(void);
void storm_change_sleeper(void);
void storm_change_sleepers_end(void); /* kill the sleepers of this worker */
void storm_change_setuid(void);
void storm_change_rename(void);
void storm_change_burn(void);

#endif /* _MW_STORM_H */
