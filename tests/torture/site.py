# SPDX-License-Identifier: GPL-2.0
"""What a round is about: the three topologies with honest and hostile services, a
namespace for hostile messages, and a table full of held connections."""

import contextlib
import os
import sys
import time
from pathlib import Path

from lab import fuzz, genl
from lab.backend import Backend
from lab.lab import Lab
from lab.netns import SLOW, Namespace
from lab.packet import TCP, UDP
from lab.topology import SHAPES

from . import hostile

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench/measure"))

# For honest connections: no client is hashed to another server when weights change.
SCHEDULERS = [name for name in fuzz.SCHEDULERS if name not in ("ovf",)]
# Entries of a director's table: hostile packets fill it, and entries replace each other.
CONN_MAX = 100_000
TOUCHED = 20_000
# Seconds after their time in which expired connections have gone: a sweep of a large table.
LATEST = 20
# Seconds for which they may keep a processor from other work, more than what is usual.
PAUSE = 0.5


class Module(Backend):
    """l4lb; the generator of held connections, whose name begins alike, is no part of it."""

    def __init__(self):
        super().__init__("l4lb")

    def family(self):
        return [name for name in super().family() if name != "l4lb_gen"]


class Site:
    """One topology: its honest services on the VIP, hostile ones on the raw VIP."""

    def __init__(self, shape):
        self.lab = Lab(shape)
        self.port = self.lab.http_port()
        self.target = hostile.Target(self.lab)
        self.l4lb = None

    def entries(self, dice, schedulers=SCHEDULERS):
        """Services with random ones of SCHEDULERS, and random weights."""
        lab = self.lab
        out = [genl.batch_entry(lab.vip(family), self.port, [genl.batch_server(
            lab.rip(n, family), self.port, method=lab.method, weight=dice.randint(1, 9))
            for n in (1, 2, 3, 4)], proto, sched=dice.choice(schedulers))
            for family in (4, 6) for proto in (TCP, UDP)]
        out += self.target.entries(lambda: dice.choice(schedulers), lambda: dice.randint(0, 9))
        # Some that nothing is sent to, which come and go.
        return out + [genl.batch_entry(lab.raw_vip(4, 1), 9000 + n, [lab.phantom(1)])
                      for n in range(dice.choice((0, 20)))]

    def open(self, dice, schedulers=SCHEDULERS):
        """Configures the module that was just loaded."""
        self.lab._ipvs = None
        self.l4lb = genl.L4lb(self.lab.director.ns)
        self.lab.director.ns.sysctl("net/ipv4/vs/conn_max", CONN_MAX)
        self.reload(dice, schedulers)

    def reload(self, dice, schedulers=SCHEDULERS):
        self.l4lb.set_services(self.entries(dice, schedulers), genl.REPLACE)

    def close(self):
        if self.l4lb:
            self.l4lb.close()
            self.l4lb = None
        self.lab.flush()


class Sites:
    """All topologies."""

    def __init__(self):
        self.all = [Site(shape) for shape in SHAPES]

    def __iter__(self):
        return iter(self.all)

    def __getitem__(self, shape):
        return next(site for site in self.all if site.lab.shape == shape)

    def destroy(self):
        for site in self.all:
            site.close()
            site.lab.topo.destroy()


class Held:
    """COUNT connections in one table, made by bench/gen's generator."""

    def __init__(self, count):
        self.count, self.stack, self.took = count, contextlib.ExitStack(), 0

    def __enter__(self):
        from bed import Bed, Traffic
        from systems import service_lines
        self.bed = self.stack.enter_context(Bed(servers=4).stand())
        self.bed.ns.sysctl("net/ipv4/vs/conn_max", 2 * self.count)
        self.bed.ns.run(["ipvsadm", "-R"], text_input="\n".join(
            service_lines(4, "udp", 2, "dr", servers=4)) + "\n")
        self.bed.ns.run("ipvsadm --set 0 0 7000")
        self.traffic = Traffic(self.bed, method="dr", flows=self.count, scheduled=True)
        began = time.monotonic()
        self.traffic.each(64)
        self.took = time.monotonic() - began
        return self

    def __exit__(self, *what):
        return self.stack.__exit__(*what)

    def touch(self):
        """Packets of connections at random; raises unless all pass."""
        self.traffic.random(64, min(self.count, TOUCHED))

    def there(self):
        """The number of connections in the table, as the kernel counts them for servers."""
        from scale import connections
        return connections(self.bed.ns)

    def expire(self):
        """A packet of each connection, and then none, until all have expired; raises if they do
        too early or late, or keep a processor from other work. Returns {what: number} for
        the record."""
        timeout, usual = round(20 + 2 * self.took), longest_pause(1)
        self.bed.ns.run(f"ipvsadm --set 0 0 {timeout}")
        first = time.monotonic()
        self.traffic.each(64)
        last, began, pause = time.monotonic(), None, 0
        while left := self.there():
            now = time.monotonic()
            began = began or (now if left < self.count else None)
            if now > last + timeout + LATEST * SLOW:
                raise RuntimeError(f"{left} connections do not expire")
            if now > first + timeout - 1:
                pause = max(pause, longest_pause(0.05))
            else:
                time.sleep(0.05)
        began = began or time.monotonic()
        if began < first + timeout - 1:
            raise RuntimeError(f"connections end {began - first:.1f} s after their first packet, "
                               f"not after {timeout}")
        if pause > usual + PAUSE * SLOW:
            raise RuntimeError(f"nothing else ran for {pause:.2f} s while connections expired")
        return {"expired": self.count, "pause": round(1000 * pause),
                "seconds of expiry": round(time.monotonic() - began)}


def longest_pause(seconds):
    """By how much the longest of short sleeps, on each processor in turn, is longer than it
    should be; for at least SECONDS."""
    everywhere, end, longest = os.sched_getaffinity(0), time.monotonic() + seconds, 0
    try:
        while time.monotonic() < end:
            for processor in everywhere:
                os.sched_setaffinity(0, {processor})
                began = time.monotonic()
                time.sleep(0.005)
                longest = max(longest, time.monotonic() - began - 0.005)
    finally:
        os.sched_setaffinity(0, everywhere)
    return longest


@contextlib.contextmanager
def own_namespace(name):
    """A namespace in which fuzz.Generator's commands make sense."""
    ns = Namespace(name)
    try:
        ns.ip(*fuzz.SETUP)
        yield ns
    finally:
        ns.destroy()
