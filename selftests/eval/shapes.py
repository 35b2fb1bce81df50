# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Memory of a process as a function of time, in closed form.

A shape is a function of the time in seconds that returns KiB. Shapes can be added. The
leaked part of a trace is a shape of its own, so it is known exactly, whatever noise and load
are added to it.
"""
import math

KB = 1
MB = 1024
GB = 1024 * 1024
PAGE = 4


def constant(level):
    return lambda t: level


def total(*parts):
    return lambda t: sum(part(t) for part in parts)


def delayed(shape, start):
    """Zero until start, then the shape, whose time begins there."""
    return lambda t: shape(t - start) if t > start else 0


def linear(rate):
    return lambda t: rate * t


def ramp(height, duration):
    """Linear up to a height, then constant."""
    return lambda t: height * min(t / duration, 1)


def power(rate, exponent, span):
    """Superlinear growth; rate is the mean over the span."""
    return lambda t: rate * span * (t / span) ** exponent


def quickening(rate, change, factor, span):
    """Linear, and from a time on several times as fast; rate is the mean over the span."""
    slow = rate * span / (change + factor * (span - change))
    return lambda t: slow * (t + (factor - 1) * max(t - change, 0))


def stairs(rate, period):
    """As linear(rate), in one step per period."""
    return lambda t: rate * period * math.floor(t / period)


def duty(rate, on, off):
    """Grows only while busy; rate is the mean over busy and idle time."""
    def value(t):
        cycle = on + off
        whole, rest = divmod(t, cycle)
        return rate * cycle * (whole + min(rest / on, 1))
    return value


def saturating(height, tau):
    return lambda t: height * (1 - math.exp(-t / tau))


def logarithmic(height, tau, span):
    """Fragmentation: growth that slows down, and reaches height after span."""
    return lambda t: height * math.log1p(t / tau) / math.log1p(span / tau)


def doubling(first, begin, times):
    """A hash table with growing input: each resize doubles it, and takes place at twice the
    time of the one before."""
    def value(t):
        size = first
        for n in range(times):
            if t >= begin * 2 ** n:
                size *= 2
        return size
    return value


def sawtooth(amplitude, period, phase=0.0):
    """Allocation until a garbage collection frees all of it."""
    return lambda t: amplitude * ((t / period + phase) % 1)


def wave(amplitude, period, phase=0.0):
    """A sine from -amplitude to +amplitude."""
    return lambda t: amplitude * math.sin(2 * math.pi * (t / period + phase))


def pulse(height, period, busy, rise, phase=0.0):
    """A batch job: rises for rise seconds, stays, and is freed after busy seconds."""
    def value(t):
        at = (t + phase * period) % period
        return height * min(at / rise, 1) if at < busy else 0
    return value


def ar1(rng, sd, tau, cadence):
    """Noise with a correlation time of tau seconds. Call it with increasing t only."""
    keep = math.exp(-cadence / tau)
    fresh = sd * math.sqrt(1 - keep * keep)
    state = [rng.gauss(0, sd)]

    def value(_):
        state[0] = keep * state[0] + rng.gauss(0, fresh)
        return state[0]
    return value
