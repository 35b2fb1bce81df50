# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""What the model knows about threads, processes and CPUs, and its constants."""

import collections

CLONE_THREAD = 0x10000
CLONE_PARENT = 0x8000
PF_KTHREAD = 0x200000
DEAD_STATES = 0x30		# EXIT_DEAD and EXIT_ZOMBIE as sched_switch prints them
PREEMPTED = 0x100

REASON_FORK, REASON_SCAN, REASON_PROMOTED, REASON_EXIT, REASON_REVOKED = 1, 2, 3, 4, 5
REASON_FILTERED, REASON_EXEC, REASON_COMM, REASON_STOP = 6, 7, 8, 9

CPU_STOPPED = 5			# state of a memwatch_cpu_state record

FOREVER = 1 << 62		# nanoseconds, later than any event
MS = 1000000
GRACE = 1 * MS			# tolerance between a change and a switch, added to the window
TICKS = 3			# the third tick after an event proves that two periods passed
START = 500 * MS		# in this time the start of a session reaches every CPU
SETTLE = 100 * MS		# around the start and the stop of a session
ACTIVE_TICKS = 40		# policy active: a process that runs this long has an RMID
IDLE_SLACK = 20 * MS		# tolerance of "has been idle for longest"
RECENT_TICKS = 20		# not fifo: who ran within as many ticks counts as running
# Policy fair measures 20 ms in jiffies: twice 10 ms, each rounded up, and one that has begun.
FAIR_RECENT_TICKS = 28
JIFFY = 4 * MS			# of the kernel with the lowest HZ in the matrix
FAIR_TICKS = 1500		# policy fair: a process that runs this long has had its turn
FAIR_SLICE = 88 * MS		# policy fair: 100 ms, less what its jiffies may be short of
FAIR_IDLE = 100 * MS		# policy fair: an owner is idle that has not run for so long
FAIR_JIFFY = 12 * MS		# policy fair: the module cannot tell times apart that are so close
FAIR_RESERVE = 8		# policy fair: one in so many RMIDs may stay free
FAIR_PAUSE = 1000 * MS		# the same for one that has not run since it got its RMID


class Thread:
    """
    exited: its exit event was seen. done: it was switched out after that. member: the
    thread belongs to its process until another thread executes. ran_dead: it ran again
    after it was done.
    """
    __slots__ = ("pid", "process", "exited", "done", "member", "ran_dead")

    def __init__(self, pid, process):
        self.pid = pid
        self.process = process
        self.exited = False
        self.done = False
        self.ran_dead = False
        self.member = True


class Change:
    """A process got or lost an RMID; CPUs may see that between begin and end."""
    __slots__ = ("old", "new", "begin", "end", "level")

    def __init__(self, old, new, begin, level):
        self.level = level
        self.old = old
        self.new = new
        self.begin = begin
        self.end = FOREVER


class Process:
    """
    alive: number of threads without an exit event. unfinished: number of threads that may
    run again. parent: a Process, or the pid of one until Model.link_parents(). known: its
    birth is in the log. last_run: time of the last switch to or from it. last_run_chosen:
    the value of last_run when the policy chose to take its RMID, if the process has run
    since then; otherwise None. exec_by_thread: its generation when a thread other than the
    leader executed. rename_doubt: it lost its RMID before it reported its new name. off_ns,
    off_cpu: when and on which CPU its last thread was switched out. gone: the switch away
    from its last thread is complete.
    """
    __slots__ = ("tgid", "kernel", "comm", "old_comm", "parent", "born", "start_ns",
                 "start_ticks", "threads", "alive", "unfinished", "rmid", "generation", "alloc_ns",
                 "changes", "renamed_end", "exec_pending", "comm_pending", "rename_doubt",
                 "freed", "last_run", "known", "exec_by_thread", "off_ns", "off_cpu", "gone",
                 "last_run_chosen")

    def __init__(self, tgid, parent, kernel, comm, born):
        self.tgid = tgid
        self.parent = parent
        self.kernel = kernel
        self.comm = comm
        self.old_comm = comm
        self.born = born
        self.start_ns = None
        self.start_ticks = None
        self.threads = {}
        self.alive = 0
        self.unfinished = 0
        self.rmid = 0
        self.generation = 0
        self.alloc_ns = 0
        self.changes = []
        self.renamed_end = -FOREVER
        self.exec_pending = None
        self.comm_pending = None
        self.rename_doubt = None
        self.freed = False
        self.last_run = born
        self.last_run_chosen = None
        self.known = True
        self.exec_by_thread = None
        self.off_ns = 0
        self.off_cpu = None
        self.gone = False

    def __repr__(self):
        return f"{self.tgid}({self.comm.decode('latin-1')})"


class Cpu:
    """
    pqr: value of PQR_ASSOC. thread: the one that runs. switch_ts, switch_next: a switch
    whose write of PQR may still follow. leaving: the process whose last thread was switched
    out by it. stale_ticks: ticks in a row with the RMID of another process. armed: has
    logged something of this session. record_ts, record_begin: the newest record about an
    RMID, and where the batch of records that it ends may have begun. task_ts: the newest
    event that was not in an interrupt. owner: of the newest switch record.
    """
    __slots__ = ("number", "pqr", "thread", "switch_ts", "switch_next", "ticks",
                 "stale_ticks", "open_changes", "await_free", "wait_ticks", "owner",
                 "run_ticks", "events", "armed", "leaving", "record_ts", "record_begin",
                 "wait_process", "wait_from", "task_ts", "tick_times")

    def __init__(self, number, pqr):
        self.number = number
        self.pqr = pqr
        self.thread = None
        self.switch_ts = None
        self.switch_next = 0
        self.ticks = 0
        self.stale_ticks = 0
        self.open_changes = []
        self.await_free = []
        self.wait_ticks = 0
        self.owner = None
        self.run_ticks = 0
        self.events = collections.deque(maxlen=12)
        self.armed = False
        self.leaving = None
        self.record_ts = -1
        self.record_begin = 0
        self.wait_process = None
        self.wait_from = None
        self.task_ts = 0
        self.tick_times = collections.deque(maxlen=FAIR_RECENT_TICKS + 1)

    def rmid(self):
        return self.pqr & 0xffffffff
