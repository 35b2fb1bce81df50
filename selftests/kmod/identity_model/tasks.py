# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Life and death of threads and processes, from the task and sched events alone."""

from .state import (CLONE_PARENT, CLONE_THREAD, DEAD_STATES, FOREVER, PF_KTHREAD, PREEMPTED,
                    SETTLE, Process, Thread)
from .verdicts import BirthDoubt


class TaskEvents:
    # ---------------------------------------------------------- population

    def add_task(self, pid, tgid, ppid, flags, start_ticks, comm):
        """A task that existed when the capture began."""
        process = self.leaders.get(tgid)
        if process is None or pid == tgid:
            if process is None:
                process = Process(tgid, None, bool(flags & PF_KTHREAD), comm, -1)
                self.leaders[tgid] = process
            if pid == tgid:
                process.comm = process.old_comm = comm
                process.start_ticks = start_ticks
                process.parent = ppid
        self.add_thread(process, pid)

    def link_parents(self):
        """After the last add_task(): replace the pids of parents by their processes."""
        for process in self.leaders.values():
            if isinstance(process.parent, int):
                process.parent = self.leaders.get(process.parent)

    def add_thread(self, process, pid):
        thread = Thread(pid, process)
        process.threads[pid] = thread
        process.alive += 1
        process.unfinished += 1
        self.threads[pid] = thread
        return thread

    def thread_of(self, pid):
        thread = self.threads.get(pid)
        if thread is None:
            if pid == 0:
                process = self.idle
            else:
                process = Process(pid, None, False, b"?", self.now)
                process.known = False
                self.stats["unknown tasks"] += 1
                if self.started is not None:
                    self.stats["unknown tasks in a session"] += 1
            thread = self.add_thread(process, pid)
        return thread

    # ------------------------------------------------------------- switches

    def on_switch(self, cpu, event):
        ts, prev_pid, prev_state, next_pid = event[0], event[5], event[6], event[7]
        # Take the thread that was switched in: an exec may have changed its pid since.
        prev = cpu.thread or self.thread_of(prev_pid)
        process = prev.process
        self.note_run(cpu, process, ts)
        dead = prev_state & DEAD_STATES and not prev_state & PREEMPTED
        if dead and not prev.exited:
            # The dead leader, under the pid of the thread that took over its own.
            leader = process.threads.get(process.tgid)
            if leader is not None and leader.exited and not leader.done:
                prev = leader
        if dead and prev.exited and not prev.done and prev.member:
            prev.done = True
            process.unfinished -= 1
            process.off_ns = ts
            if not process.unfinished:
                self.note_gone(cpu, process, event)
        thread = self.threads.get(next_pid) or self.thread_of(next_pid)
        if thread.done and thread.exited and thread.member:
            self.note_ran_dead(thread)
        cpu.thread = thread
        cpu.switch_ts = ts
        cpu.switch_next = next_pid
        cpu.stale_ticks = 0
        if thread.process is not process:
            cpu.run_ticks = 0
            cpu.wait_process = None
        if thread.process.freed:
            self.violation("R7", event, f"{thread.process!r} runs again after its RMID was freed")

    def note_run(self, cpu, process, ts):
        """The process ran until now."""
        if not process.rmid or cpu.rmid():
            process.last_run_chosen = None
        elif process.last_run_chosen is None:
            # It has an RMID, but runs with 0: the policy chose it as idle before this run.
            process.last_run_chosen = process.last_run
        process.last_run = ts
        # A process that has lost its RMID already runs with 0, though no record says so yet.
        if process.rmid and process.rmid == cpu.rmid() and self.last_use.get(process.rmid, 0) < ts:
            self.last_use[process.rmid] = ts

    def note_gone(self, cpu, process, event):
        """Its last thread was switched out for the last time."""
        self.stats["processes gone"] += 1
        self.waiters.pop(process, None)
        process.off_cpu = cpu
        cpu.leaving = process
        if process.rmid and self.started is not None and not self.is_stopping():
            cpu.await_free.append((process, process.generation, event))

    def note_ran_dead(self, thread):
        """
        A dead thread runs again, or its pid belongs to another thread already and the log
        says so later.
        """
        thread.done = False
        thread.ran_dead = True
        thread.process.unfinished += 1
        thread.process.gone = False
        self.stats["dead threads that ran again"] += 1
        self.doubts = [d for d in self.doubts
                       if d.rule != "R7" or d.process is not thread.process]

    # --------------------------------------------------------------- births

    def on_newtask(self, cpu, event):
        parent_thread = self.thread_of(event[4])
        pid, flags, comm = event[5], event[6], event[7]
        parent = parent_thread.process
        if flags & CLONE_THREAD:
            self.add_thread(parent, pid)
            self.stats["threads born"] += 1
            return
        if flags & CLONE_PARENT:
            parent = parent.parent
        creator = parent_thread.process
        process = Process(pid, parent, creator.kernel, comm, event[0])
        process.known = creator.known
        self.leaders[pid] = process
        self.add_thread(process, pid)
        if not process.kernel:
            self.stats["processes born"] += 1

    def on_fork(self, cpu, event):
        thread = self.threads.get(event[6])
        if thread is None or thread.process.tgid != event[6] or thread.process.kernel:
            return
        process = thread.process
        if self.is_stopping() or self.started is None:
            return
        if event[0] - self.started < SETTLE:
            # The scan at the session's start may or may not have found it.
            self.add_waiter(process, event[0])
            return
        ripe = None
        if not self.waiters and not self.may_be_reserved(self.free):
            ripe = set(self.ripe_rmids(event))
        self.await_module(event, "birth", (process, ripe, set(self.free), event))

    def judge_birth(self, event, process, ripe, free, born):
        """
        Called when the module's fork hook has returned. The process must have an RMID if some
        could have been allocated; ripe is the set of these, or None if others wait too; free is
        the set of all that had no owner.
        """
        if ripe is not None:
            self.checks["R6"] += 1
        if process.rmid or process.freed or self.started is None:
            return
        if process.unfinished:
            self.add_waiter(process, born[0], event[0])
        if self.has_rmid_for_birth(ripe, free):
            # Another CPU may have given them away before, and report that later.
            self.birth_doubts.append(BirthDoubt(event[0], born, ripe, free, process))

    def add_waiter(self, process, since, certain=None):
        """It waits for an RMID since some moment between since and certain."""
        if process.rmid or process.kernel or not process.known or process in self.waiters:
            return
        self.waiters[process] = (since, since if certain is None else certain)

    # ------------------------------------------------------------ exec, exit, rename

    def on_exec(self, cpu, event):
        pid, old_pid = event[5], event[6]
        thread = self.threads.get(old_pid)
        process = self.leaders.get(pid)
        if process is None:
            process = self.thread_of(pid).process
        if old_pid != pid and thread is not None and thread.process is process:
            others = self.replace_leader(cpu, process, thread, pid, old_pid)
            if self.leaders.get(pid) is not process or thread.exited:
                self.violation("R9", event, f"{process!r} executes but is not alive")
        else:
            thread = self.threads.get(pid) or self.thread_of(pid)
            others = [other for other in process.threads.values() if other is not thread]
            process.threads = {pid: thread}
            process.exec_by_thread = None
        process.alive = 1
        process.unfinished = 1 + sum(not other.done for other in others)
        process.gone = False
        self.stats["execs"] += 1
        process.comm_pending = None
        process.rename_doubt = None
        if process.kernel:
            # The kernel started a helper: from now on it is a process of user space.
            process.kernel = False
            self.stats["kernel threads that executed"] += 1
            if self.started is not None:
                self.add_waiter(process, event[0])
        elif self.started is not None and not self.is_stopping():
            # A process without an RMID may get one before the module sees this exec.
            process.exec_pending = (process.comm, event, process.rmid)
            self.await_module(event, "exec", (process, process.exec_pending))

    def replace_leader(self, cpu, process, thread, pid, old_pid):
        """
        A thread that executes takes over the pid of its leader. The other threads, which
        are returned, have exited, but may not have been switched out yet.
        """
        self.stats["execs by another thread"] += 1
        del self.threads[old_pid]
        others = [other for other in process.threads.values() if other is not thread]
        for other in others:
            # It was not the dead leader that ran again, but its successor.
            other.done |= other.ran_dead
            other.ran_dead = False
            other.member = not other.done
            if other.pid == pid and other.member:
                # The leader dies under the pid of the thread.
                other.pid = old_pid
                self.threads[old_pid] = other
        process.threads = {pid: thread}
        thread.pid = pid
        self.threads[pid] = thread
        cpu.thread = thread
        process.exec_by_thread = process.generation
        self.checks["R9"] += 1
        return others

    def on_exit(self, cpu, event):
        thread = self.threads.get(event[5])
        if thread is None:
            return
        if thread.pid != event[5] or thread.exited:
            # The pid of the old leader, which the executing thread has taken over.
            thread = cpu.thread if cpu.thread is not None else thread
        if thread.exited:
            return
        thread.exited = True
        process = thread.process
        process.alive -= 1
        if not process.alive:
            self.settle_rename_doubt(process)
        if thread.pid == process.tgid and process.alive > 0:
            self.stats["leaders that left first"] += 1

    def on_rename(self, cpu, event):
        pid, comm = event[5], event[6]
        process = self.leaders.get(pid)
        if process is None:
            return
        self.check_rename_reported(process, event)
        process.old_comm = process.comm
        process.comm = comm
        process.renamed_end = FOREVER
        self.await_module(event, "rename", process)
        if process.rmid and process.unfinished and self.started is not None and \
           not self.is_stopping():
            process.comm_pending = (comm, cpu.number, cpu.ticks, event)
            self.stats["leader renames"] += 1
