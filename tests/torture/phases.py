# SPDX-License-Identifier: GPL-2.0
"""The phases of a round. Each is a function of the Session and of the time at which it
has to end; it returns {what: number} for the record, and raises when something is wrong."""

import contextlib
import ctypes
import os
import random
import sys
import time
import zlib

from lab import faults, genl
from lab.faults import Fault
from lab.genl import PERSISTENT
from lab.netns import run, wait_until
from lab.packet import TCP, UDP
from lab.small import small_lab

from . import hostile
from .site import SCHEDULERS, own_namespace

FINIT_MODULE = 313
# What the kernel logs when it cannot create an object for a module.
CREATION = r"^\S*\s*(kobject_add|kmem_cache_create|sysfs_create|sysfs_slab_add|SLUB: Unable|" \
           r"kobject: )|failed with error -12|Failed to create slab|kernel/trace/trace_events"
CACHES = ("l4lb_conn_bucket", "l4lb_conn_ipv4", "l4lb_conn_ipv6")
RATES = (1, 5, 10, 30)
# Namespaces that end at once.
BATCHES = (1, 3, 10)
OUTSIDE = ("link add out0 type dummy", "link set out0 up", "addr add 192.0.2.1/24 dev out0",
           "addr add 2001:db8:2::1/64 dev out0 nodad")


class Session:
    """What the phases share."""

    def __init__(self, spec, backend, sites, folder):
        self.spec, self.backend, self.sites, self.folder = spec, backend, sites, folder
        self.log, self.debug = None, spec["debug"]

    def seed(self, phase):
        """A seed that depends on the round's and on the phase."""
        return zlib.crc32(phase.encode(), self.spec["seed"])

    def dice(self, phase):
        return random.Random(self.seed(phase))

    def least(self, phase):
        """The number of inputs that a phase sends even if its time is over."""
        return self.spec["least"].get(phase, 0)

    def bases(self, site, side):
        path = self.folder / f"{site.lab.shape}-{side}"
        if not path.exists():
            hostile.write(path, site.target.frames(side))
            site.lab.close_tap(side)
        return path


def left(end):
    return max(1, int(end - time.monotonic()))


def added(total, found):
    for name, number in found.items():
        total[name] = total.get(name, 0) + number
    return total


# ---- packets, while everything changes ----


class Changes:
    """Configuration that changes under traffic, one random step after the other."""

    def __init__(self, session):
        self.sites, self.dice = session.sites, session.dice("changes")
        self.counts = {}
        self.steps = (self.reload, self.swap, self.swap, self.carrier, self.fast_path, self.look)

    def one(self):
        step = self.dice.choice(self.steps)
        name = step(self.dice.choice(self.sites.all))
        self.counts[name] = self.counts.get(name, 0) + 1

    def reload(self, site):
        site.reload(self.dice)
        return "reloads"

    def swap(self, site):
        proto, family, vip, port, _ = self.dice.choice(list(site.target.services()))
        service = site.lab.ipvs.service(vip, port, proto, add=False)
        service.edit(sched=self.dice.choice(SCHEDULERS))
        return "scheduler swaps"

    def carrier(self, site):
        """A real server's cable is pulled for a moment."""
        port = self.dice.choice(("rs1", "rs2", "rs3", "rs4"))
        router = site.lab.nodes["router"].ns
        router.ip(f"link set {port} down")
        time.sleep(self.dice.random() / 5)
        router.ip(f"link set {port} up")
        return "link flaps"

    def fast_path(self, site):
        site.lab.director.ns.sysctl("net/ipv4/vs/fast_path", self.dice.randrange(3))
        return "settings changed"

    def look(self, site):
        site.lab.ipvs.services()
        site.lab.ipvs.zero()
        site.lab.director.ns.read("/proc/net/l4lb")
        return "lists read"


# Hostile packets that meet the module in two ways, and in three.
ENOUGH, MANY = 1000, 50_000


def outcomes(site):
    """{what became of packets: how many}, by the director's counters that never go back."""
    words = [line.split() for line in site.lab.director.ns.read("/proc/net/l4lb").splitlines()]
    return {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdigit()}


def noticed(site, side, before, sent):
    """Raises unless the director has met the clients' packets, SENT of them, in several ways."""
    ways = [name for name, count in outcomes(site).items() if count > before.get(name, 0)]
    if side == "client" and len(ways) < (3 if sent >= MANY else 2):
        raise RuntimeError(f"{site.lab.shape}: clients' packets do not reach the module: {ways}")


def packets(session, end):
    """Hostile packets from clients and from real servers of each method, meanwhile changes."""
    counts, changes, turn = {"packets": 0}, Changes(session), 0
    chunk = session.spec["chunk"]
    while time.monotonic() < end or counts["packets"] < session.least("packets"):
        site = session.sites.all[turn % 3]
        side = ("client", "client", "rs1")[turn // 3 % 3]
        seen = outcomes(site)
        job = hostile.Run(site.lab.nodes[side].ns, "packets", session.bases(site, side), "eth0",
                          seed=session.seed("packets"), first=turn * chunk, count=chunk,
                          seconds=left(end) if time.monotonic() < end else 600)
        while job.running():
            changes.one()
            time.sleep(0.05)
        found = job.result()
        if found["gone"]:
            raise RuntimeError(f"{side}'s device is gone")
        counts["packets"] += found["sent"]
        turn += 1
        # The end of the phase may leave time for a few packets only.
        if found["sent"] >= ENOUGH:
            noticed(site, side, seen, found["sent"])
    for site in session.sites:
        site.lab.director.ns.forget_paths()
    return added(counts, changes.counts)


def messages(session, end):
    """Hostile messages to both families, in a namespace of their own."""
    counts = {"messages": 0, "messages accepted": 0}
    with own_namespace("hostile") as ns:
        bases = hostile.write(session.folder / "messages",
                              hostile.messages(ns, session.seed("messages")))
        first = 0
        while time.monotonic() < end or counts["messages"] < session.least("messages"):
            found = hostile.Run(ns, "messages", bases, seed=session.seed("messages"), first=first,
                                count=session.spec["chunk"], seconds=left(end)
                                if time.monotonic() < end else 600).result()
            first = found["next"]
            counts["messages"] += found["sent"]
            counts["messages accepted"] += found["accepted"]
            # Otherwise soon every command is about a service that exists.
            with genl.Ipvs(ns) as ipvs:
                ipvs.flush()
    return counts


# ---- namespaces and links ----


def live(session, client, director, turn):
    """Connections and traffic in a small lab; returns the running program."""
    with genl.Ipvs(director.ns) as ipvs:
        for vip, rip in (("198.51.100.1", "192.0.2.9"), ("2001:db8:1::1", "2001:db8:2::9")):
            for proto in (TCP, UDP):
                ipvs.service(vip, 80, proto=proto, sched=SCHEDULERS[turn % len(SCHEDULERS)],
                             flags=PERSISTENT * (turn % 2), timeout=300).server(rip, 8080)
    path = session.folder / "small"
    if not path.exists():
        hostile.write(path, [client.frame(p) for vip, source in (
            ("198.51.100.1", "198.51.100.2"), ("2001:db8:1::1", "2001:db8:1::2"))
            for proto in (TCP, UDP) for port in range(1, 40)
            for p in hostile.transport(proto, (source, port, vip, 80)) if len(p) <= hostile.MTU])
    return hostile.Run(client.node.ns, "packets", path, "eth0", progress=False,
                       seed=session.seed(f"live{turn}"), count=0)


def namespaces(session, end):
    """Directors' namespaces end, one or several at once, with connections under traffic."""
    counts, turn = {"namespace exits": 0, "packets": 0}, 0
    while time.monotonic() < end or not turn:
        with contextlib.ExitStack() as stack:
            batch = []
            for n in range(BATCHES[turn % len(BATCHES)]):
                client, director = stack.enter_context(small_lab(f"gone{n}-"))
                batch.append((live(session, client, director, turn + n), director))
            for _, director in batch:
                wait_until(lambda d=director: len(genl.conns(d.ns)) > 20, 30,
                           what="connections before the namespace ends")
            for _, director in batch:
                director.ns.close()
            run("ip -batch -", text_input="".join(
                f"netns del {d.ns.name}\n" for _, d in batch))
            for job, _ in batch:
                # A director's last device goes with its namespace, the sender's with that.
                found = job.result(timeout=60)
                if not found["gone"]:
                    raise RuntimeError("a namespace has ended, but not its devices")
                counts["packets"] += found["sent"]
                counts["namespace exits"] += 1
        turn += 1
    return counts


def links(session, end):
    """The servers' device goes down, goes away and gets another MTU under traffic; a cached
    route must not hold it (unregister_netdevice: waiting)."""
    counts = {"link flaps": 0, "packets": 0}
    with small_lab("flaps-") as (client, director):
        director.ns.ip(*OUTSIDE)
        job = live(session, client, director, 0)
        wait_until(lambda: len(genl.conns(director.ns)) > 20, 30, what="connections")
        while time.monotonic() < end or not counts["link flaps"]:
            director.ns.ip("link set out0 down", "link set out0 up",
                           f"link set out0 mtu {(1280, 576, 9000, 1500)[counts['link flaps'] % 4]}")
            # "ip link del" returns only when the device is free.
            director.ns.run("ip link del out0", timeout=30)
            director.ns.ip(*OUTSIDE)
            counts["link flaps"] += 2
        if not job.running():
            raise RuntimeError("the sender ended before the links did")
        counts["packets"] += job.stop()["sent"]
    return counts


# ---- injected failures ----


def injected(session, end):
    """Every allocation of every command fails once; then a share of the connections' ones
    under traffic."""
    if not faults.available():
        if session.debug:
            raise RuntimeError("the debug kernel injects no failures")
        return {}
    # In a process of its own: a failure must not hit what threads need.
    points = run([sys.executable, "-B", "-m", "torture.points", str(session.seed("injected")),
                  str(left(end) // 2)], timeout=3600).stdout
    counts = {"failures at chosen points": int(points), "packets": 0, "failures by chance": 0}
    site = session.sites["nat"]
    for percent in RATES:
        with faults.FailingShare(CACHES, percent) as share:
            counts["packets"] += hostile.Run(
                site.lab.client.ns, "packets", session.bases(site, "client"), "eth0",
                seed=session.seed(f"share{percent}"), seconds=left(end) // len(RATES) + 1).result()["sent"]
        counts["failures by chance"] += share.count
    if not counts["failures by chance"]:
        raise RuntimeError("no allocation failed under traffic")
    return counts


# ---- the module goes ----


def failing_load(backend, nth, log):
    """Loads the module while its NTH allocation fails; whether there were that many."""
    libc = ctypes.CDLL(None, use_errno=True)
    image = os.open(backend.modules / "l4lb.ko", os.O_RDONLY | os.O_CLOEXEC)
    # sysfs and the slab allocator log a failure to create an object, with a stack. Of a tracepoint
    # whose directory it could not create the kernel loses count when the module goes.
    with log.provoked(CREATION):
        try:
            with faults.injection(), Fault(nth) as fault:
                error = libc.syscall(FINIT_MODULE, image, b"", 0) and ctypes.get_errno()
        finally:
            os.close(image)
        if backend.loaded() != (not error):
            raise RuntimeError(f"failure {nth}: error {error}, and loaded is {backend.loaded()}")
        if not error:
            backend.unload()
    return fault.hit


def unloads(session, end):
    """The module is loaded, configured, used and unloaded while packets keep arriving."""
    site, backend, dice = session.sites["nat"], session.backend, session.dice("unloads")
    counts = {"unloads": 0, "packets meanwhile": 0, "failures at chosen points": 0}
    jobs = [hostile.Run(site.lab.nodes[side].ns, "packets", session.bases(site, side), "eth0",
                        progress=False, seed=session.seed(side), count=0)
            for side in ("client", "rs1")]
    nth = dice.randrange(200)
    while time.monotonic() < end or not counts["unloads"]:
        if faults.available():
            nth = nth + 1 if failing_load(backend, nth + 1, session.log) else 0
            counts["failures at chosen points"] += bool(nth)
        backend.load()
        # Each scheduler more is a module more to load.
        site.open(dice, dice.sample(SCHEDULERS, 2))
        wait_until(lambda: sum(s["stats"]["conns"] for s in site.lab.ipvs.services()) > 20, 60,
                   what="connections before the module goes")
        site.close()
        backend.unload()
        counts["unloads"] += 1
    for job in jobs:
        counts["packets meanwhile"] += job.stop()["sent"]
    # What the stack has learned from hostile packets is no leak of the module.
    site.lab.director.ns.forget_paths()
    return counts


# {name: (function, share of the time)}
BEFORE = {"packets": (packets, 30), "messages": (messages, 20), "namespaces": (namespaces, 18),
          "links": (links, 4), "injected": (injected, 10)}
AFTER = {"unloads": (unloads, 18)}
