# SPDX-License-Identifier: GPL-2.0
"""The fast path's counters in /proc/net/l4lb, and waiting for its devices."""

import contextlib
import os
import time

import pytest

from . import packet, xdp
from .backend import Backend
from .netns import wait_until

COUNTS = ("fast slow_protocol slow_header slow_unknown slow_server slow_policy slow_opens "
          "slow_admit slow_route xdp xdp_offload xdp_exit").split()
# The stack's own packets: neighbour discovery, and reports of multicast listeners, which have
# a hop-by-hop header.
NOISE = ("slow_protocol", "slow_header")
SETTING = "net/ipv4/vs/fast_path"


def read(ns):
    """{name: packets} of the fast path alone."""
    lines = dict(line.split() for line in ns.read("/proc/net/l4lb").splitlines())
    counts = {name: int(lines[name]) for name in COUNTS}
    if xdp.everywhere:
        # What it leaves alone is counted at ingress.
        counts["fast"] += counts["xdp"]
        counts.update(dict.fromkeys(("xdp", "xdp_offload", "xdp_exit"), 0))
    return counts


def grown(ns, before, noise=()):
    now = read(ns)
    return {k: now[k] - before[k] for k in COUNTS
            if now[k] != before[k] and (k in noise or k not in NOISE)}


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
    """Inside, the counters in WANT grow by exactly that much, the others not at all.

    A packet is counted after it was processed, which may be after it has arrived.
    """
    noise = [name for name in NOISE if name in want]
    before = read(ns)
    yield
    want = {k: v for k, v in want.items() if v}
    got = []

    def enough():
        got[:] = [grown(ns, before, noise)]
        return all(got[0].get(k, 0) >= v for k, v in want.items())
    with contextlib.suppress(AssertionError):
        wait_until(enough, 3)
    for name in noise:
        # The counter may grow by more.
        got[0][name] = min(got[0].get(name, 0), want.get(name, 0))
    got[0] = {k: v for k, v in got[0].items() if v}
    assert got[0] == want, f"counted {got[0]}, not {want}"


def wait_for_hook(ns, tap, source, to, there=True):
    """Wait until the fast path sees packets of TAP (THERE false: no longer sees them), by
    sending stray datagrams, which it counts."""
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
    """Wait until sockets of earlier tests no longer retransmit: a test that counts for
    seconds would count their packets. Only in virtual time, where waiting is free."""
    if os.environ.get("L4LB_VEHICLE") == "virtual-time":
        time.sleep(1000)


def settle():
    """Wait after a change of settings: flows admitted in the same tick do not get the fast
    path, and a tick may be 10 ms."""
    time.sleep(0.025)


def ready(raw):
    """Wait until the fast path sees packets at the devices of RAW's director. Skips the test where
    all tests are to do without it."""
    if Backend.fast_path == "0":
        pytest.skip("needs the fast path: runs without --fast-path 0")
    lab, family = raw.lab, raw.family
    if xdp.everywhere:
        xdp.attach(lab)
    source = lab.client_address(family)
    wait_for_hook(lab.director.ns, raw.client_tap, source, lab.raw_vip(family))
    if lab.shape == "nat":
        tap = lab.tap("rs1")
        wait_for_hook(lab.director.ns, tap, lab.phantom(1, family), source)
        lab.tap("rs1").drain()
    raw.drain()
    return raw
