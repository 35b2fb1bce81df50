# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Each read of the counters in the machine's log, and the truth at that moment."""

import bisect
import collections

from .truth import ABMC_CFG, CTR, EVTSEL, PQR, domain_of_cpus, make_guest_clock

EVENTS = {1: "occupancy", 2: "total", 3: "local"}
BANDWIDTH = ("total", "local")
ABMC_ENABLED = 3	# bits 62 and 63 of a configuration that makes a counter count
ABMC_LOCAL = 0x15	# the transactions that are local
NOT_DATA = 62		# bits 62 and 63 of a counter are its status

# How exactly the log's clock can be compared with the time of records, in nanoseconds.
SLACK_NS = 200e3


class CounterRead:
    """
    One read of all counters of an RMID. time: by the guest's clock. value: what the
    register said, by event. place: its line in the log, by event, because the host may stop
    the CPU between two of them. moved: units since the first read, by event, without wraps.
    restarted: the events whose counters were set to 0 since the read before, because they
    were assigned to the RMID.
    """

    def __init__(self, time):
        self.time, self.value = time, {}
        self.place, self.restarted = {}, set()
        self.moved = {}


class RegisterLog:
    """
    ticks: times by domain and CPU. reads: by (domain, RMID), in order. truth: pairs of
    place in the log and values, by (domain, tgid, start time). assigned: RMID and event of an
    assignable counter, by domain and number.
    """

    def __init__(self, path, snaps, width, scale):
        self.scale = scale
        self.wrap = scale << width
        self.ticks = collections.defaultdict(lambda: collections.defaultdict(list))
        self.reads = collections.defaultdict(list)
        self.truth = collections.defaultdict(list)
        self.assigned = {}
        self.domains = sorted(snaps[-1].domain)
        self.parse_log(path, snaps)
        for reads in self.reads.values():
            unwrap_counters(reads, (1 << width) - 1)

    def parse_log(self, path, snaps):
        domain, clock, select, last = domain_of_cpus(snaps), make_guest_clock(snaps), {}, 0
        restarted = collections.defaultdict(set)
        with open(path, encoding="utf-8") as stream:
            for place, line in enumerate(stream):
                part = line.split()
                if part[0] == "process":
                    values = dict(p.split("=", 1) for p in part[2:])
                    key = int(part[1]), int(values["tgid"]), int(values["start"])
                    self.truth[key].append((last, {e: int(values[e]) for e in EVENTS.values()}))
                    continue
                cpu, msr, value = int(part[1]), int(part[3], 16), int(part[4], 16)
                if msr == EVTSEL and part[2] == "w":
                    select[cpu] = self.selected(domain[cpu], value)
                elif msr == ABMC_CFG and value >> 62 == ABMC_ENABLED:
                    rmid, event = value >> 32 & 0x3FF, \
                        "total" if value & 0x7F & ~ABMC_LOCAL else "local"
                    self.assigned[domain[cpu], value >> 48 & 0x1F] = rmid, event
                    restarted[domain[cpu], rmid].add(event)
                elif msr == PQR and part[2] == "r":
                    self.ticks[domain[cpu]][cpu].append(clock(int(part[0])))
                elif msr == CTR and part[2] == "r" and cpu in select:
                    last = place
                    rmid, event = select[cpu]
                    reads = self.reads[domain[cpu], rmid]
                    if not reads or event in reads[-1].value:
                        reads.append(CounterRead(clock(int(part[0]))))
                    reads[-1].value[event], reads[-1].place[event] = value, place
                    if event in restarted[domain[cpu], rmid]:
                        restarted[domain[cpu], rmid].remove(event)
                        reads[-1].restarted.add(event)

    def selected(self, domain, value):
        """RMID and event that are selected by a value of EVTSEL."""
        number = value >> 32 & 0x3FF
        if value >> 31 & 1:
            return self.assigned[domain, number]
        return number, EVENTS.get(value & 0xFF)

    def match_readings(self, domain, rmid, readings):
        """
        For the readings of one account: (time, values, estimated, read), where read is the
        read of the counters that the record is about. That is the last one before the
        record's time. Clocks can be compared up to SLACK_NS; of the reads that are closer
        than that, the one whose values fit is taken, and an earlier one rather than one after
        the record, which may be what the next record is about. A record without a new read is
        about that of the record before.
        """
        reads, out, i = self.reads[domain, rmid], [], 0
        for time, value, estimated in readings:
            end = bisect.bisect_right(reads, time + SLACK_NS, key=lambda r: r.time)
            begin = bisect.bisect_right(reads, time - SLACK_NS, key=lambda r: r.time) - 1
            close = reads[max(begin, i):end] or reads[max(end - 1, 0):end]
            if not close:
                continue
            last = out[-1] if out else None
            before = [r for r in reversed(close) if r.time <= time]
            after = [r for r in close if r.time > time]
            ranked = before + ([last[3]] if last else []) + after
            read = next((r for r in ranked if self.fits(last, value, r)), (before + after)[0])
            i = max(i, reads.index(read) + 1)
            out.append((time, value, estimated, read))
        return out

    def fits(self, last, value, read):
        """
        Does the read say what the record says? last: the matched reading before, from which
        bandwidth must have gone on as the record says.
        """
        for event, v in value.items():
            # An RMID without assignable counters keeps its sum.
            if event not in read.value and not (self.assigned and event in BANDWIDTH):
                return False
            if event == "occupancy" and v != read.value[event] * self.scale:
                return False
            if event != "occupancy" and last and event in last[1] and \
                    v - last[1][event] != (read.moved[event] - last[3].moved[event]) * self.scale:
                return False
        return True

    def missed_wraps(self, domain, account, r0, r1):
        """
        Bytes of the complete wraps of a counter between two reads, which no reader can see.
        They are excused only if some CPU of the domain did not tick during all that time,
        because the emulator did not run it; otherwise the result is 0.
        """
        moved = self.truth_between(domain, account, r0, r1, "total")
        stopped = any(bisect.bisect(t, r1.time - 1e6) <= bisect.bisect(t, r0.time + 1e6)
                      for t in self.ticks[domain].values())
        return moved // self.wrap * self.wrap if stopped else 0

    def moved_since_previous(self, domain, rmid, read, event):
        """Bytes between the previous read of the RMID and this one."""
        reads = self.reads[domain, rmid]
        i = reads.index(read)
        return (read.moved[event] - (reads[i - 1].moved[event] if i else 0)) * self.scale

    def truth_between(self, domain, account, r0, r1, event):
        """What the process moved between two reads."""
        return self.truth_at(domain, account, r1, event) - \
            self.truth_at(domain, account, r0, event)

    def truth_at(self, domain, account, read, event):
        """
        What the process had moved, or the cache it held, according to the machine, when the
        register was read. If read is None: at the end of the log.
        """
        points = self.truth[domain, account.tgid, account.start]
        i = len(points)
        if read:
            place = read.place.get(event, max(read.place.values()))
            i = bisect.bisect_right(points, place, key=lambda p: p[0])
        return points[i - 1][1][event] if i else 0


def unwrap_counters(reads, mask):
    for event in BANDWIDTH:
        moved, before = 0, None
        for read in reads:
            value = read.value.get(event, 1 << 63)
            if event in read.restarted and read is not reads[0]:
                before = 0
            if not value >> NOT_DATA:
                value &= mask
                moved += (value - before) & mask if before is not None else 0
                before = value
            read.moved[event] = moved
