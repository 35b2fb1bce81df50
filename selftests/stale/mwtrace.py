# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader of trace files (COMM.PID.mwtrace) that shares no code with the library.

It follows docs/heap-format.md and is simple, not fast.
"""
import struct

CHUNKS_OFFSET = 4096
CHUNK_HEADER = 64
READY = 0x6B4E4843
MALLOC, MALLOC_SIZE, MALLOC_SITE, FREE, FREE_SITE, THREAD = range(6)
HEADER = struct.Struct("<8s4I2I2Q16s16s2Q4I4Q6Q")
STATES = {1: "active", 2: "stopped", 3: "ended", 4: "full"}


class Event:
    """An allocation (size is a number) or a free (size is None)."""

    __slots__ = ("time", "tid", "address", "size", "site", "stream", "order")

    def __init__(self, time, tid, address, size, site, stream, order):
        self.time, self.tid, self.address = time, tid, address
        self.size, self.site, self.stream, self.order = size, site, stream, order


class Trace:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        fields = HEADER.unpack_from(self.data)
        (magic, self.version, self.header_bytes, self.chunk_bytes, self.clock, self.pid,
         self.parent_pid, _, _, _, comm, _, _, self.began, state, self.limits, self.depth,
         _, self.chunks, self.lost_nested, self.lost_no_room) = fields[:21]
        if magic != b"\x89MWTRAC\n":
            raise ValueError(f"{path}: no trace")
        self.comm = comm.rstrip(b"\0").decode()
        self.state = STATES[state]
        self.moments = [fields[21:23], fields[23:25], fields[25:27]]
        self.lost = self.lost_nested + self.lost_no_room
        self.bytes = 0
        self.streams = {}
        self._find_chunks()

    def _find_chunks(self):
        for n in range(self.chunks):
            at = CHUNKS_OFFSET + n * self.chunk_bytes
            if at + CHUNK_HEADER > len(self.data):
                break
            ready, used, stream, sequence, tid, _, base = struct.unpack_from("<6IQ", self.data, at)
            if ready == READY:
                self.bytes += used
                self.streams.setdefault(stream, {})[sequence] = (at, used, tid, base)

    def _varint(self, at):
        value = shift = 0
        while True:
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, at

    def _chunk(self, stream, at, used, tid, time):
        slots = [[0, 0, 0] for _ in range(256)]  # site, size, address
        end = at + used
        at += CHUNK_HEADER
        while at < end:
            control = self.data[at]
            kind, time_bytes, length = control & 7, 1 << (control >> 3 & 3), control >> 5
            at += 1
            if kind == THREAD:
                tid, at = self._varint(at)
                at += time_bytes + length
                continue
            slot = slots[self.data[at]]
            at += 1
            if kind in (MALLOC_SITE, FREE_SITE):
                slot[0], at = self._varint(at)
            if kind in (MALLOC_SITE, MALLOC_SIZE):
                slot[1], at = self._varint(at)
            time += int.from_bytes(self.data[at:at + time_bytes], "little")
            at += time_bytes
            if length == 7:
                slot[2] = int.from_bytes(self.data[at:at + 8], "little")
                at += 8
            else:
                code = int.from_bytes(self.data[at:at + length], "little")
                at += length
                slot[2] += ((code >> 1) ^ -(code & 1)) * 8
            size = None if kind in (FREE, FREE_SITE) else slot[1]
            yield Event(time, tid, slot[2], size, slot[0], stream, at)
        assert at == end, "an event crosses the end of its chunk"

    def stream_events(self, stream):
        chunks = self.streams[stream]
        for sequence in range(max(chunks) + 1):
            at, used, tid, base = chunks[sequence]
            yield from self._chunk(stream, at, used, tid, base)

    def events(self):
        """All events in the order of time."""
        everything = [e for stream in sorted(self.streams) for e in self.stream_events(stream)]
        everything.sort(key=lambda e: e.time)  # stable: streams stay in their order
        return everything


class Balance:
    """What a heap does with the events: no address lives twice, each free ends an object."""

    def __init__(self, events):
        self.live, self.unmatched, self.twice = {}, [], []
        self.allocations = self.frees = 0
        for event in events:
            if event.size is None:
                self.frees += 1
                if self.live.pop(event.address, None) is None:
                    self.unmatched.append(event)
            else:
                self.allocations += 1
                if event.address in self.live:
                    self.twice.append(event)
                self.live[event.address] = event
