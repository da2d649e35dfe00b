# SPDX-License-Identifier: GPL-2.0
"""The fast path's counters in /proc/net/l4lb, and waiting for its devices."""

import contextlib
import os
import time

from . import packet
from .netns import wait_until

COUNTS = ("fast slow_protocol slow_header slow_unknown slow_server slow_policy slow_opens "
          "slow_admit slow_route").split()
# The stack's own packets, neighbour discovery above all, are of other protocols.
NOISE = "slow_protocol"
SETTING = "net/ipv4/vs/fast_path"


def read(ns):
    """{name: packets} of the fast path alone."""
    lines = (line.split() for line in ns.read("/proc/net/l4lb").splitlines())
    return {name: int(value) for name, value in lines if name in COUNTS}


def grown(ns, before, noise=False):
    now = read(ns)
    return {k: now[k] - before[k] for k in COUNTS
            if now[k] != before[k] and (noise or k != NOISE)}


@contextlib.contextmanager
def off(ns):
    """All packets go through the stack, as they do with ip_vs."""
    try:
        before = ns.sysctl(SETTING)
    except FileNotFoundError:
        yield
        return
    ns.sysctl(SETTING, 0)
    try:
        yield
    finally:
        ns.sysctl(SETTING, before)


@contextlib.contextmanager
def counted(ns, **want):
    """Inside, the counters grow by exactly that; names that are not given, not at all.

    A packet counts when it has been dealt with, which may be after its arrival.
    """
    noise = NOISE in want
    before = read(ns)
    yield
    want = {k: v for k, v in want.items() if v}
    got = []

    def enough():
        got[:] = [grown(ns, before, noise)]
        return all(got[0].get(k, 0) >= v for k, v in want.items())
    with contextlib.suppress(AssertionError):
        wait_until(enough, 3)
    if noise:
        # At least so many.
        got[0][NOISE] = min(got[0].get(NOISE, 0), want[NOISE])
    assert got[0] == want, f"counted {got[0]}, not {want}"


def wait_for_hook(ns, tap, source, to, there=True):
    """Until what TAP sends is looked at, or with THERE false is not any more: a stray
    datagram counts."""
    probe = packet.udp_packet(source, 7, to, 9)

    def as_wanted():
        before = read(ns)["slow_unknown"]
        tap.send(probe)
        time.sleep(0.01 if there else 0.03)
        return (read(ns)["slow_unknown"] > before) == there
    wait_until(as_wanted, 5, what=f"{'a' if there else 'no'} hook at the device", step=0.03)


def wait_for_no_hook(ns, tap, source, to):
    wait_for_hook(ns, tap, source, to, there=False)


def quiet():
    """Until the sockets of earlier tests send nothing again, whose service is gone: a
    test that counts for seconds would count that. Only where waiting costs nothing."""
    if os.environ.get("L4LB_VEHICLE") == "virtual-time":
        time.sleep(1000)


def settle():
    """After a change of settings: what is admitted in the same tick is not taken,
    and a tick may be 10 ms."""
    time.sleep(0.025)


def ready(raw):
    """The devices of a Raw service's director are looked at."""
    lab, family = raw.lab, raw.family
    source = lab.client_address(family)
    wait_for_hook(lab.director.ns, raw.client_tap, source, lab.raw_vip(family))
    if lab.shape == "nat":
        tap = lab.tap("rs1")
        wait_for_hook(lab.director.ns, tap, lab.phantom(1, family), source)
        lab.tap("rs1").drain()
    raw.drain()
    return raw
