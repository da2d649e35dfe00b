# SPDX-License-Identifier: GPL-2.0
"""Namespaces that end together wait for each other's packets once, not one after the other."""

import ctypes
import os
import socket
import time

import pytest
from lab.genl import Ipvs
from lab.netns import allow_files, setns, wait_until

AT_MOST = 2         # as long as namespaces without services
CLONE_NEWNET = 0x40000000

pytestmark = [pytest.mark.emulated, pytest.mark.usefixtures("only_l4lb")]


class Bare:
    """A network namespace that only an open file holds."""

    def __init__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        back = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self.make()
        setns(back)
        os.close(back)

    def make(self):
        pass


class Used(Bare):
    def make(self):
        with Ipvs(self) as ipvs:
            ipvs.service("198.51.100.1", 80, sched="rr")
            ipvs.service("2001:db8::1", 80, sched="rr")

    @staticmethod
    def socket(*args):
        return socket.socket(*args)


def gone(backend, kind, count):
    """Seconds from the end of COUNT namespaces until a later one has gone, too."""
    before = backend.refcount()
    many = []
    try:
        many += (kind() for _ in range(count))
        last = Used()
    finally:
        began = time.monotonic()
        for each in many:
            os.close(each.fd)
    time.sleep(0.2)         # the kernel has begun with them
    os.close(last.fd)
    wait_until(lambda: backend.refcount() <= before, 120, what="the namespaces' end")
    return time.monotonic() - began


@pytest.mark.parametrize("count", (150, pytest.param(1000, marks=[
    pytest.mark.slow, pytest.mark.timeout(900)])))
def test_together(backend, count):
    allow_files(2 * count + 1000)
    backend.need_scheduler("rr")
    gone(backend, Used, 3)
    ratios = []
    # Another guest may take the processor away meanwhile.
    while len(ratios) < 3 and min(ratios, default=AT_MOST + 1) > AT_MOST:
        unused = gone(backend, Bare, count)
        used = gone(backend, Used, count)
        print(f"{count} unused {unused:.2f} s, used {used:.2f} s")
        ratios.append(used / unused)
    assert min(ratios) <= AT_MOST, ratios
