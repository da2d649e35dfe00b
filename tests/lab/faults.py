# SPDX-License-Identifier: GPL-2.0
"""Failing allocations: the kernel's fault injection, which debug kernels have."""

import contextlib
import os
from pathlib import Path

from lab import genl

DEBUG = Path("/sys/kernel/debug")
FAIL_NTH = Path("/proc/thread-self/fail-nth")
ABSENT = "this kernel has no fault injection; runs on the debug kernel (suite stage debug)"


def available():
    return FAIL_NTH.exists() and (DEBUG / "failslab").exists()


def _set(name, value):
    for kind in ("failslab", "fail_page_alloc", "fail_usercopy"):
        file = DEBUG / kind / name
        if file.exists():
            file.write_text(value, encoding="ascii")


@contextlib.contextmanager
def injection():
    """Inside, allocations that may sleep fail, too, and nothing is logged."""
    _set("verbose", "0")
    _set("ignore-gfp-wait", "N")
    try:
        yield
    finally:
        _set("ignore-gfp-wait", "Y")


@contextlib.contextmanager
def failing_cache(name):
    """Inside, nothing is allocated from the slab cache NAME."""
    flag, file = Path("/sys/kernel/slab", name, "failslab"), DEBUG / "failslab"
    flag.write_text("1", encoding="ascii")
    # To open a file may need just this cache: it is open before.
    with open(file / "probability", "w", encoding="ascii") as probability:
        _write(file, cache_filter="Y", **ALWAYS)
        try:
            yield
        finally:
            probability.write("0")
            probability.flush()
            _write(file, cache_filter="N")
            flag.write_text("0", encoding="ascii")


@contextlib.contextmanager
def failing_workers():
    """Inside, the kernel's work items get no pages."""
    _mark_workers("1")
    # Pages for vmalloc() count as high memory, also where there is none.
    _write(DEBUG / "fail_page_alloc", task_filter="Y", ignore_gfp_highmem="N", min_order=0,
           **ALWAYS)
    try:
        yield
    finally:
        _write(DEBUG / "fail_page_alloc", probability=0, task_filter="N", min_order=1,
               ignore_gfp_highmem="Y")
        _mark_workers("0")


# The probability is last: it enables the fault, when the filters are already set.
ALWAYS = {"verbose": 0, "ignore_gfp_wait": "N", "interval": 1, "times": -1, "probability": 100}


def _write(directory, **values):
    for name, value in values.items():
        (directory / name.replace("_", "-")).write_text(str(value), encoding="ascii")


def _mark_workers(mark):
    """Mark kthreadd, too: the workers that it creates inherit the mark."""
    for task in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = (task / "comm").read_text(encoding="ascii")
            if name.startswith(("kworker/", "kthreadd")):
                (task / "make-it-fail").write_text(mark, encoding="ascii")


class Fault:
    """`with Fault(n) as fault:` the N-th allocation of this thread fails;
    afterwards fault.hit says whether there were that many."""

    def __init__(self, nth):
        self.nth, self.hit = nth, False
        self.fd = -1

    def __enter__(self):
        self.fd = os.open(FAIL_NTH, os.O_RDWR)
        os.write(self.fd, b"%d" % self.nth)
        return self

    def __exit__(self, *_):
        # Both copy to or from user space, so the fault may hit them.
        with contextlib.suppress(OSError):
            self.hit = int(os.pread(self.fd, 16, 0)) == 0
            os.write(self.fd, b"0")
        os.close(self.fd)


@contextlib.contextmanager
def failing_every(n, tasks=False):
    """Every N-th slab allocation fails; with TASKS, only those of this process and of its
    children, and their pages, too."""
    mark = Path("/proc/self/make-it-fail")
    kinds = [DEBUG / kind for kind in ("failslab", "fail_page_alloc")[:1 + tasks]]
    # Open, because opening a file takes more than N allocations.
    switches = [os.open(kind / "probability", os.O_WRONLY) for kind in kinds]
    for kind in kinds:
        _write(kind, **ALWAYS | {"interval": n, "task_filter": "NY"[tasks], "probability": 0})
    if tasks:
        mark.write_text("1", encoding="ascii")
    try:
        for switch in switches:
            os.write(switch, b"100")
        yield
    finally:
        for switch in switches:
            _insist(switch, b"0")
            os.close(switch)
        if tasks:
            mark.write_text("0", encoding="ascii")
        for kind in kinds:
            _write(kind, interval=1, task_filter="N")


def _insist(fd, data):
    """A write() that itself lacks memory at times."""
    for _ in range(1000):
        with contextlib.suppress(OSError):
            os.write(fd, data)
            return
    raise RuntimeError("faults cannot be switched off")


class FailingShare:
    """Inside, PERCENT of the allocations from slab CACHES fail; afterwards .count says how
    many did."""

    MANY = 1 << 30

    def __init__(self, caches, percent):
        self.caches = [Path("/sys/kernel/slab", name, "failslab") for name in caches]
        self.percent, self.count = percent, 0

    def __enter__(self):
        for flag in self.caches:
            flag.write_text("1", encoding="ascii")
        _write(DEBUG / "failslab", cache_filter="Y", **ALWAYS | {
            "times": self.MANY, "probability": self.percent})
        return self

    def __exit__(self, *_):
        self.count = self.MANY - int((DEBUG / "failslab/times").read_text("ascii"))
        _write(DEBUG / "failslab", probability=0, cache_filter="N", times=-1)
        for flag in self.caches:
            flag.write_text("0", encoding="ascii")


class Faulty:
    """Mixed into a client of netlink: the NTH allocation of each request fails; HIT: whether
    it made that many."""

    nth, hit = 0, False

    def request(self, command, payload=b"", flags=genl.F_ACK, version=1):
        message = self.message(command, payload, flags, version)
        fault = Fault(self.nth)
        try:
            with fault:
                self.sock.send(message)
        finally:
            self.hit = self.nth and fault.hit
        return self.answers(dump=flags & genl.F_DUMP == genl.F_DUMP)


class FaultyIpvs(Faulty, genl.Ipvs):
    pass


class FaultyL4lb(Faulty, genl.L4lb):
    pass
