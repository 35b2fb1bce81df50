# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Allocates in greenlets, which move pieces of the native stack away and back, and prints what a
profile must say: for each allocation its bytes and the frames of the greenlet that made it.
"""
import json
import os
import sys
import threading

import greenlet

ROUNDS = 20
THREADS = 3
lock = threading.Lock()
kept = [None] * 5000
answer = []
size = 5001


def take():
    """Allocates in its fourth line, and notes who called."""
    global size
    with lock:
        kept[len(answer)] = b"-" * size
        frame, stack = sys._getframe(), []
        while frame:
            line = take.__code__.co_firstlineno + 4 if not stack else frame.f_lineno
            stack.append((frame.f_code.co_qualname, frame.f_code.co_filename, line))
            frame = frame.f_back
        answer.append((sys.getsizeof(kept[len(answer)]), stack))
        size += 8


def deep(depth, then):
    """Calls it below some frames, of which every third one is in a loop of its own."""
    if not depth:
        then()
    elif depth % 3:
        deep(depth - 1, then)
    else:
        list(map(deep, [depth - 1], [then]))


def worker(number):
    for n in range(ROUNDS):
        deep((number * 7 + n * 5) % 23, take)
        deep(n % 11, greenlet.getcurrent().parent.switch)
        take()


def starter(greenlets, number):
    child = greenlet.greenlet(worker)
    greenlets.append(child)
    child.switch(number)


def nested():
    """A greenlet that starts one of its own, and ends before it."""
    inner = greenlet.greenlet(worker)
    inner.switch(3)
    take()
    return inner


def scene():
    greenlets = []
    for number in range(6):
        # They begin at various depths of the native stack, which is gone when they run again.
        deep(number * 6, lambda n=number: starter(greenlets, n))
        take()
    for n in range(ROUNDS):
        for child in greenlets:
            deep((n * 7) % 19, child.switch)
            take()
    inner = greenlet.greenlet(nested).switch()
    if inner:
        inner.switch()
    take()


def main():
    threads = [threading.Thread(target=scene) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    scene()
    for thread in threads:
        thread.join()
    print(json.dumps(answer), flush=True)
    # What is kept must still be live.
    os._exit(0)


main()
