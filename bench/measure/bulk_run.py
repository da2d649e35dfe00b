# SPDX-License-Identifier: GPL-2.0
"""Bulk transfers through each system in turn, inside a guest.

    python3 bulk_run.py SPEC FILE

Writes rows {what, system, value, unit, xdp} to FILE (JSON), several for each; a row that failed
has "fault". See bench/bulk for SPEC.
"""

import contextlib
import functools
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from bed import MeasureError
from bulk_net import PLAIN, PORT, SERVER, VIP, WRAPPED, Bulk, Ends
from lab import fast
from lab.ctl import IPVSCTL
from lab.netns import run
from still import Awake
from systems import FLAG, IP_VS, L4LB

WAYS = {b"g": "download", b"p": "upload"}
# Without a director.
ROUTED = {"plain forwarding": PLAIN, "the kernel's tunnel": WRAPPED}
# Ten times as dear for a byte: such transfers have a share of the large size.
SHARE = 16
# (name, value of fast_path, devices with XDP): the kernel itself, ip_vs, and what l4lb can be.
OF_L4LB = (("l4lb", 0, ()), ("l4lb fast 1", 1, ()), ("l4lb xdp client side", 1, ("d0",)),
           ("l4lb xdp", 1, ("d0", "d1")))
# The other ends of the director's devices: see doc/xdp.md for what XDP needs of them.
OTHERS = {"d0": ("client", "c0"), "d1": ("server", "s0")}
REST = 0.1      # seconds, see Awake
WHOLE = "tx off txvlan off tx-vlan-stag-hw-insert off".split()


class Clock:
    """Nanoseconds in which the processor worked: if its clock counts instructions, those. BETWEEN
    measurements idle time passes quickly."""

    def __init__(self, between):
        self.between = between

    @contextlib.contextmanager
    def measured(self):
        """Yields a function that says how much it was so far."""
        with Awake() if self.between else contextlib.nullcontext() as awake:
            def now():
                idle = sum(a.seconds() for a in (awake, self.between)) if awake else 0
                return time.monotonic_ns() - 1e9 * idle
            began = now()
            yield lambda: now() - began


class Table:
    def __init__(self, spec, clock):
        self.spec, self.clock, self.rows = spec, clock, []

    def measure(self, net, ends, system, address, devices=()):
        """All kinds of transfers of one system, with XDP on DEVICES."""
        try:
            ends.prove(address)
            for _ in range(2):      # to warm up
                for way in WAYS:
                    ends.transfer(address, way, self.spec["small"], 2)
        except (OSError, MeasureError) as e:
            self.add(f"{net.method}, all", system, fault=str(e))
            return
        for way, name in WAYS.items():
            for streams in self.spec["streams"]:
                for size in ("small", "large"):
                    each = self.spec[size] if size == "small" else self.spec[size] // streams // (
                        SHARE if comes_in_by(net.method, way) in devices else 1)
                    times = self.spec["times"] if size == "small" else 1
                    if size == "small" and streams > 1:
                        times = 1
                    what = f"{net.method} {name}, {self.spec[size] // 10**6} MB" + (
                        ", one stream" if streams == 1 else f", {streams} streams")
                    self.one(net, (what, system), functools.partial(
                        ends.transfer, address, way, each, streams), times, each * streams / 1000)

    def one(self, net, name, transfer, times, kilobytes):
        """The row of TIMES transfers of so many KILOBYTES each. NAME: what, and the system."""
        before = forwarded(net)
        try:
            with self.clock.measured() as so_far:
                for _ in range(times):
                    transfer()
                spent = so_far()
        except (OSError, MeasureError) as e:
            self.add(*name, fault=str(e))
            return
        grown = forwarded(net)
        self.add(*name, value=round(spent / kilobytes / times, 2),
                 packets={k: grown[k] - before[k] for k in grown if grown[k] != before[k]})

    def add(self, what, system, **row):
        self.rows.append({"what": what, "system": system} | row)
        print(f"{what}: {system}: {row.get('value', row.get('fault'))} {row.get('packets', '')}", flush=True)


def comes_in_by(method, way):
    """The director's device by which the data come in, or None: they go past it."""
    return "d0" if way == b"p" else "d1" if method == "nat" else None


def forwarded(net):
    """The counters of l4lb's fast path, if it is there."""
    with contextlib.suppress(OSError, KeyError):
        now = fast.read(net.director)
        return {name: now[name] for name in ("fast", "xdp")}
    return {}


@contextlib.contextmanager
def with_xdp(net, devices):
    """l4lb's program is attached to DEVICES. Their other ends hide nothing, and all take frames."""
    for device, (end, name) in OTHERS.items() if devices else ():
        with getattr(net, end).enter():
            run(["ethtool", "-K", name, "gro", "on", *(WHOLE if device in devices else ())])
    for device in devices:
        net.director.run([IPVSCTL, "-q", "fast-path", "xdp", "dev", device])
    try:
        yield
    finally:
        if devices:
            net.director.run([IPVSCTL, "fast-path", "no-xdp", "all"])


def serve(net, director, fast_path):
    bed = SimpleNamespace(ns=net.director)
    director.configure(bed, [f"-A -t {VIP}:{PORT} -s rr",
                             f"-a -t {VIP}:{PORT} -r {SERVER}:{PORT} {FLAG[net.method]} -w 1"])
    director.set_fast_path(bed, fast_path)


@contextlib.contextmanager
def standing(method):
    with Bulk(method) as net:
        ends = Ends(net)
        try:
            yield net, ends
        finally:
            ends.close()


def turn(table, method, director, reverse):
    """Everything of one director, or of none. Each system has a network of its own, because
    XDP leaves the devices' offloads changed."""
    if not director:
        for name, address in list(ROUTED.items())[:1 + (method == "tun")]:
            with standing(method) as (net, ends):
                table.measure(net, ends, name, address)
        return
    systems = [("ip_vs", None, ())] if director is IP_VS else OF_L4LB
    with director.loaded():
        for name, value, devices in reversed(systems) if reverse else systems:
            with standing(method) as (net, ends):
                serve(net, director, value)
                with with_xdp(net, devices):
                    table.measure(net, ends, name, VIP, devices)


def measure(spec, clock):
    table = Table(spec, clock)
    with standing("nat") as (_, ends):      # a guest's first use of memory is slow
        for way in WAYS:
            for streams in spec["streams"]:
                ends.transfer(PLAIN, way, 64 * spec["small"] // streams, streams)
    for n in range(spec["rounds"]):
        for method in spec["methods"]:
            directors = [None, IP_VS, L4LB]
            for director in reversed(directors) if n % 2 else directors:
                turn(table, method, director, n % 2)
    return table.rows


def main():
    spec, result = json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])
    with contextlib.nullcontext() if spec["time"] else Awake(REST) as between:
        rows = measure(spec, Clock(between))
    result.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
