// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of operations.
 */
#include <sys/types.h>
#include <unistd.h>

#include "storm.h"

const struct storm_operation storm_operations[] = {
	{ "fork", 10, .in_child = storm_birth_fork },
	{ "vfork", 40, .in_worker = storm_birth_vfork },
	{ "spawn", 4, .in_worker = storm_birth_spawn },
	{ "clonevm", 20, .in_worker = storm_birth_clone_vm },
	{ "clone3", 8, .in_worker = storm_birth_clone3 },
	{ "threads", 5, .in_child = storm_thread_many },
	{ "deadleader", 4, .in_child = storm_thread_dead_leader },
	{ "exec", 5, .in_worker = storm_change_exec },
	{ "threadexec", 3, .in_child = storm_thread_exec },
	{ "deadleaderexec", 2, .in_child = storm_thread_dead_leader_exec },
	{ "zombie", 4, .in_worker = storm_death_zombie },
	{ "daemon", 4, .in_worker = storm_death_daemon },
	{ "autoreap", 4, .in_child = storm_death_autoreap },
	{ "kill", 4, .in_worker = storm_death_kill },
	{ "ptrace", 2, .in_worker = storm_death_ptrace },
	{ "sleeper", 2, .in_worker = storm_change_sleeper },
	{ "setuid", 2, .in_child = storm_change_setuid },
	{ "rename", 4, .in_child = storm_change_rename },
	{ "burn", 2, .in_child = storm_change_burn },
};

const unsigned int storm_nr_operations = sizeof(storm_operations) / sizeof(storm_operations[0]);

_Static_assert(sizeof(storm_operations) / sizeof(storm_operations[0]) <= STORM_OPERATIONS_MAX,
	       "every operation has a counter");

void storm_operation_run(const struct storm_operation *operation)
{
	pid_t pid;

	if (operation->in_worker) {
		operation->in_worker();
		return;
	}
	pid = storm_fork();
	if (!pid) {
		operation->in_child();
		_exit(0);
	}
	if (pid > 0)
		storm_reap(pid);
}
