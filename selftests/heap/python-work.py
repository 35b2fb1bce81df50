# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The memwatch authors
"""Allocates known amounts on known lines, called in every way in which Python calls, and prints
what a profile must say: for each allocation its bytes and the functions, files and lines of the
frames that Python itself sees.

    python-work.py [tracemalloc]

With tracemalloc, which must be on, it prints what that module says of the same objects.
"""
import ctypes
import functools
import json
import os
import re
import sys
import threading
import tracemalloc
import weakref

ALLOCATIONS = 2000
kept = [None] * ALLOCATIONS
stacks = [None] * ALLOCATIONS
lock = threading.Lock()
count = 0
# Each thread has sizes of its own, which do not depend on when the others run.
own = threading.local()


def take():
    """Allocates in its fifth line, and notes who called."""
    global count
    number, count, own.size = count, count + 1, getattr(own, "size", 3001) + 8
    stack = [("take", __file__, take.__code__.co_firstlineno + 5)]
    kept[number] = b"-" * own.size
    frame = sys._getframe(1)
    while frame:
        stack.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno or 0))
        frame = frame.f_back
    stacks[number] = stack


def recursion(depth):
    if depth:
        recursion(depth - 1)
    else:
        take()


def native_recursion(depth):
    # Through a function of C each time.
    return list(map(native_recursion, [depth - 1])) if depth else take()


def generator(n):
    for _ in range(n):
        take()
        yield (yield from
               inner_generator())


def inner_generator():
    take()
    yield 1
    take()


async def coroutine():
    take()
    await other_coroutine()


async def other_coroutine():
    take()


def exceptions():
    try:
        raise ValueError
    except ValueError:
        take()
        try:
            raise KeyError from None
        except KeyError:
            take()
    finally:
        take()


class Klass:
    take()

    def __init__(self):
        take()

    def __del__(self):
        take()

    @property
    def attribute(self):
        return take()

    def __enter__(self):
        take()

    def __exit__(self, *_):
        take()

    def __format__(self, spec):
        take()
        return spec

    def __eq__(self, other):
        take()
        return True

    @classmethod
    def method(cls):
        def closure():
            take()
            return cls
        closure()


def objects():
    first, second = Klass(), Klass()
    with first:
        take()
    first.attribute
    f"{first:x}"
    [first].index(second)
    Klass.method()
    weak = Klass()
    weakref.finalize(weak, take)
    del weak
    # The last one is destroyed by the return.


def größe():
    take()


def 函数():
    take()


def 𠀀():
    take()


def cells(a):
    b = a
    return (lambda: take() or (a, b))()


def comprehensions():
    [take() for _ in range(2)]
    {take() for _ in range(2)}
    {take(): 1 for _ in range(2)}
    list(take() for _ in range(2))


def callbacks():
    sorted([3, 1, 2],
           key=lambda x: take() or x)
    functools.reduce(lambda a, b: take() or b, [1, 2, 3])
    re.sub("a", lambda m: take() or "", "aba")
    functools.partial(take)()
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    array = (ctypes.c_int * 4)(3, 1, 4, 1)
    ctypes.CDLL(None).qsort(array, 4, 4, compare(lambda a, b: take() or 0))
    native_recursion(5)


def multi_line(): (
    take(),
    take(
    ),
    [take()
     for _ in range(1)])


def discarded():
    """Code objects at the same addresses, with names of one length, that differ in one thing."""
    for n in range(300):
        source = ("\n" * (n % 5) + f"def f{n % 7:03}():" + "\n" * (n % 3 + 1) + "  take()\n" +
                  f"f{n % 7:03}()")
        exec(compile(source, f"/no/such/file{n % 11:02}.py", "exec"), {"take": take})


def threads():
    def run(n):
        for _ in range(n):
            with lock:
                recursion(n)

    started = [threading.Thread(target=run, args=(n,)) for n in range(2, 6)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def traced():
    sys.setprofile(lambda *_: None)
    recursion(2)
    sys.setprofile(None)
    sys.settrace(lambda *_: None)
    recursion(2)
    sys.settrace(None)


def without_gil():
    """What is allocated by C: with the GIL, without it, and by a thread that knows no Python."""
    held, released = ctypes.PyDLL(None).malloc, ctypes.CDLL(None).malloc
    for function in (held, released):
        function.argtypes, function.restype = [ctypes.c_size_t], ctypes.c_void_p
    held(1000001)
    released(1000002)
    library = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    start = ctypes.cast(library.malloc, ctypes.c_void_p)
    library.pthread_create(ctypes.byref(thread), None, start, ctypes.c_void_p(1000003))
    library.pthread_join(thread, None)


def forked():
    child = os.fork()
    if not child:
        kept.append(bytearray(2000000))
        os._exit(0)
    os.waitpid(child, 0)


def main():
    recursion(200)
    for _ in generator(2):
        take()
    for run in (coroutine(),):
        try:
            run.send(None)
        except StopIteration:
            pass
    for function in (exceptions, objects, größe, 函数, 𠀀, comprehensions, callbacks, multi_line,
                     discarded, threads, traced, without_gil):
        function()
    cells(1)
    exec("take()")
    eval("[take(), take()]")
    if "tracemalloc" in sys.argv:
        answer = [(sys.getsizeof(kept[n]),
                   [(f.filename, f.lineno) for f in
                    reversed(tracemalloc.get_object_traceback(kept[n]))]) for n in range(count)]
    else:
        forked()
        answer = [(sys.getsizeof(kept[n]), stacks[n]) for n in range(count)]
    print(json.dumps(answer), flush=True)
    # What is kept must still be live.
    os._exit(0)


main()
