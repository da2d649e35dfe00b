# SPDX-License-Identifier: GPL-2.0
"""Plays the steps of lab.sequences, and checks after each what must hold.

Services are on a RAW_VIP of the topology `nat`, their servers are its phantoms. A service of
its own on the other RAW_VIP, the probe, is never changed: whatever else happened, a connection
through it works.
"""

import contextlib
import ctypes
import errno
import ipaddress
import os
import socket
import subprocess
import time
from collections import Counter

from . import faults, full_nat, genl, packet, ranges, shadows, trials
from .faults import Fault
from .fuzz import SETUP
from .genl import attr
from .kernel_log import SPLAT
from .netns import Namespace, run, wait_until
from .packet import ACK, FIN, PSH, RST, SYN, TCP, UDP
from .raw import Raw
from .sequences import RANGES, SCHEDULERS, SERVERS, SERVICES, SETTINGS, SHORT, Model

FINIT_MODULE = 313
PORT, PROBE_PORT = 2000, 2100
DPORT = 30000       # a server's port is its service's port plus this
TIMEOUTS = 3, 1, 1
# What the kernel itself says when it lacks memory.
OWN_WARNINGS = "kobject|kmem_cache|sysfs|sysctl|cache|unreliable refcount tracker|trace_events"


class WrongError(AssertionError):
    """What a step did is not what the model says."""


class Faulty(genl.Ipvs):
    """The NTH allocation of each request fails."""

    nth = 0

    def request(self, command, payload=b"", flags=genl.F_ACK, version=1):
        message = self.message(command, payload, flags, version)
        with Fault(self.nth) if self.nth else contextlib.nullcontext():
            self.sock.send(message)
        return self.answers(dump=flags & genl.F_DUMP == genl.F_DUMP)


class FaultyL4lb(genl.L4lb):
    nth = 0
    request = Faulty.request


def segment(source, to, kind, proto):
    """A packet between two addresses with ports."""
    if proto == UDP:
        return packet.udp_packet(*source, *to, b"x")
    flags = {"open": SYN, "data": ACK | PSH, "fin": FIN | ACK, "rst": RST,
             "reply": SYN | ACK}.get(kind, ACK)
    return packet.tcp_packet(*source, *to, flags)


def client_address(number):
    return f"10.9.{number >> 8}.{number & 255}"


class Player:
    def __init__(self, lab, backend, log):
        self.lab, self.backend, self.log = lab, backend, log
        self.vip = lab.raw_vip(4, 0)
        self.taps = [lab.tap(f"rs{n}") for n in range(1, SERVERS + 1)]
        self.stack = self.ipvs = self.l4lb = self.raw = None
        self.model = Model()
        self.snats = 0, full_nat.pool(last=full_nat.FIRST), full_nat.pool()

    # -- life

    def begin(self):
        """An empty configuration, but for the probe; the settings' defaults."""
        self.end()
        self.lab.flush()
        if not self.backend.loaded():
            self.backend.load()
        for scheduler in SCHEDULERS:
            run(["modprobe", self.backend.prefix + scheduler])
        ns = self.lab.director.ns
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(full_nat.addresses(self.lab, self.snats[2]))
        self.ipvs = self.stack.enter_context(Faulty(ns))
        self.l4lb = self.stack.enter_context(FaultyL4lb(ns))
        for name in SETTINGS:
            ns.sysctl(f"net.ipv4.vs.{name}", 1 if name == "fast_path" else 0)
        self.model = Model()
        self.add_probe()
        self.ipvs.timeouts(*TIMEOUTS)

    def end(self):
        if self.stack:
            self.stack.close()
        self.stack = None

    def add_probe(self):
        self.raw = Raw(self.lab, UDP, numbers=(1,), port=PROBE_PORT,
                       vip=self.lab.raw_vip(4, 1), dport=PROBE_PORT + DPORT)

    # -- names

    @staticmethod
    def proto(service):
        return UDP if service < SERVICES // 2 else TCP

    def handle(self, service, ipvs=None):
        return (ipvs or self.ipvs).service(self.vip, PORT + service, self.proto(service),
                                           add=False)

    def options(self, sched, flags, timeout):
        return {"sched": sched, "flags": flags, "timeout": timeout}

    @staticmethod
    def server_options(weight, upper, lower):
        return {"method": genl.MASQ, "weight": weight, "upper": upper, "lower": lower}

    # -- what there is

    def dump(self):
        """{service: (its listing, the listings of its servers)}, without the probe."""
        return {s["port"] - PORT: (s, self.handle(s["port"] - PORT).servers())
                for s in self.ipvs.services() if s["addr"] == self.vip}

    def state(self, dump=None):
        """The listings as the model has them."""
        number = {self.lab.phantom(n): n for n in range(1, SERVERS + 1)}
        return {service: {"sched": s["sched"], "flags": s["flags"] & 1, "timeout": s["timeout"],
                          "policy": self.policy(service),
                          "servers": {number[d["addr"]]: (d["weight"], d["upper"], d["lower"])
                                      for d in servers}}
                for service, (s, servers) in (dump or self.dump()).items()}

    def policy(self, service):
        """As the model has it, which knows the ranges of snat by number."""
        return self.without_defaults(self.l4lb.policy(self.handle(service)))

    def without_defaults(self, found):
        found["snat"] = self.snats.index(found["snat"])
        return {name: value for name, value in found.items() if value}

    def sent_policy(self, values):
        return values | ({"snat": self.snats[values["snat"]]} if "snat" in values else {})

    def check(self):
        now = self.state(), self.ranges()
        model = self.model.services, self.model.ranges
        if now != model:
            raise WrongError(f"there is {now}\nthe model has {model}")
        wait_until(lambda: not self.miscounted(), 4, what="servers count what is listed")
        self.probe()
        bad = [text for _, text in self.log.refresh() if SPLAT.search(text)]
        if bad:
            raise WrongError("the kernel reports: " + "\n".join(bad[:5]))

    def miscounted(self):
        """Servers whose counts of connections are not those in the list of connections."""
        there = Counter((c["vport"], c["protocol"], c["server"], c["server_port"],
                         bool(c["flags"] & genl.F_ACTIVE))
                        for c in self.l4lb.conns() if not c["flags"] & genl.F_TEMPLATE)
        return [(service, d) for service, (_, servers) in self.dump().items() for d in servers
                for active, said in ((True, d["active"]), (False, d["inactive"]))
                if said != there[PORT + service, self.proto(service), d["addr"], d["port"], active]
                ] + self.miscounted_ranges()

    def miscounted_ranges(self):
        """The same of servers without a port."""
        wrong = []
        for name, servers in ranges.live(self.l4lb).items():
            there = Counter((c["server"], bool(c["flags"] & genl.F_ACTIVE))
                            for c in self.l4lb.conns_of(ranges.ident(*name[1:], proto=name[0]))
                            if not c["flags"] & genl.F_TEMPLATE)
            wrong += [(name, d, there) for d in servers if
                      (d["active"], d["inactive"]) != (there[d["addr"], True], there[d["addr"], False])]
        return wrong

    def probe(self):
        for tap in (*self.taps, self.raw.client_tap):
            tap.drain()
        client = self.raw.client()
        if client.open() != 1:
            raise WrongError("the probe's connection went to another server")
        client.reply(payload=b"answer")
        client.answered()

    # -- steps

    def play(self, steps):
        """The index of the first step after which something is wrong, and what; or None."""
        at = -1
        try:
            self.begin()
            for name, args, fault in steps:
                at += 1
                with self.log.provoked(OWN_WARNINGS) if fault else contextlib.nullcontext():
                    self.step(name, args, fault)
                self.check()
        except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            return at, f"{type(error).__name__}: {error}"
        return None

    def step(self, name, args, fault):
        how = getattr(self, "play_" + name, None)
        if how:
            how(*args, fault=fault)
        else:
            self.command(name, args, fault)

    def command(self, name, args, fault):
        expected, after = self.model.expect(name, args)
        nth = fault[1] if fault else 0
        with faults.injection():
            self.ipvs.nth = self.l4lb.nth = nth
            try:
                error = 0
                getattr(self, "do_" + name)(*args)
            except OSError as e:
                error = e.errno
            finally:
                self.ipvs.nth = self.l4lb.nth = 0
        # The request was done if only its acknowledgement was lost.
        lost = nth and error == errno.ENOBUFS and (self.state(), self.ranges()) == (
            after.services, after.ranges)
        if lost or error == expected:
            self.model = after if lost or not error else self.model
        elif not nth or error not in SHORT:
            raise WrongError(f"answer {errno.errorcode.get(error, error)}, expected "
                             f"{errno.errorcode.get(expected, expected)}")
        if name == "flush" and not self.model.services and not self.has_probe():
            self.add_probe()

    def has_probe(self):
        return any(s["port"] == PROBE_PORT for s in self.ipvs.services())

    def do_service(self, service, *options):
        self.ipvs.service(self.vip, PORT + service, self.proto(service), **self.options(*options))

    def do_edit(self, service, *options):
        self.handle(service).edit(**self.options(*options))

    def do_policy(self, service, values):
        self.l4lb.set_policy(self.handle(service), **self.sent_policy(values))

    def do_shadow(self, service, sched):
        shadows.give(self.l4lb, self.handle(service), sched)

    def do_trial(self, service, sched, flows, hold, without):
        trials.attempt(self.l4lb, self.handle(service), sched, flows, hold=hold,
                       without=without and (self.lab.phantom(without), PORT + service + DPORT))

    def do_delete(self, service):
        self.handle(service).delete()

    def do_zero(self, service):
        self.handle(service).zero()

    def range(self, number):
        lacks, first, last = RANGES[number]
        prefix = ipaddress.ip_network(f"{self.vip}/{32 - lacks}", strict=False)
        return str(prefix), first, last, TCP

    def ident(self, number):
        return ranges.ident(*self.range(number))

    def ranges(self):
        """The model's, as they are listed."""
        numbers = {(TCP, *self.range(n)[:3]): n for n in range(len(RANGES))}
        known = {self.lab.phantom(n): n for n in range(1, SERVERS + 1)}
        return {numbers[name]: {
            "policy": self.without_defaults(self.l4lb.policy_of(self.ident(numbers[name]))),
            "servers": {known[d["addr"]]: (d["weight"], d["upper"], d["lower"]) for d in servers}}
            for name, servers in ranges.live(self.l4lb).items()}

    def packed_server(self, number, values, port=0):
        return genl.batch_server(self.lab.phantom(number), port, **self.server_options(*values))

    def do_range(self, number, on, servers=(), policy=()):
        if not on:
            self.l4lb.set_services([ranges.removal(*self.range(number))], genl.CHANGE)
            return
        policy = genl.policy_values(self.sent_policy(dict(policy)))
        more = [attr(genl.L_POLICY, policy)] if policy else []
        self.l4lb.set_services([ranges.entry(
            *self.range(number), more=more,
            servers=[self.packed_server(n, values) for n, *values in servers])], genl.ADD)

    def do_range_server(self, number, server, *values):
        self.l4lb.request(genl.SET_SERVER, [
            attr(genl.L_SERVICE, self.ident(number)),
            attr(genl.L_DESTS, [self.packed_server(server, values or (1, 0, 0))]),
            *([] if values else [attr(genl.L_REMOVE, b"")])])

    def do_range_zero(self, number):
        self.l4lb.request(genl.ZERO_SERVICE, attr(genl.L_SERVICE, self.ident(number)))

    def do_flush(self):
        self.ipvs.flush()

    def do_server(self, service, number, *values):
        self.handle(service).server(self.lab.phantom(number), PORT + service + DPORT,
                                    **self.server_options(*values))

    def do_edit_server(self, service, number, *values):
        self.handle(service).edit_server(self.lab.phantom(number), PORT + service + DPORT,
                                         **self.server_options(*values))

    def do_remove(self, service, number):
        self.handle(service).delete_server(self.lab.phantom(number), PORT + service + DPORT)

    def do_batch(self, entries, replace):
        packed = [genl.batch_entry(
            self.vip, PORT + service, proto=self.proto(service),
            servers=[self.packed_server(n, values, PORT + service + DPORT)
                     for n, *values in servers], policy=policy and self.sent_policy(policy[0]),
            **self.options(sched, flags, timeout))
            for service, sched, flags, timeout, servers, *policy in entries]
        if replace:
            packed.append(genl.batch_entry(
                self.raw.vip, PROBE_PORT, proto=UDP, servers=[genl.batch_server(
                    self.lab.phantom(1), PROBE_PORT + DPORT, method=genl.MASQ)]))
        self.l4lb.set_services(packed, genl.REPLACE if replace else genl.MERGE)

    # -- steps that are no commands

    @contextlib.contextmanager
    def broken(self, fault):
        """Within the block, allocations fail as FAULT says."""
        kind, *n = fault or [""]
        with contextlib.ExitStack() as stack:
            if kind == "cache":
                stack.enter_context(faults.failing_cache("l4lb_conn_ipv4"))
            elif kind == "slab":
                stack.enter_context(faults.failing_every(*n))
            elif kind == "workers":
                stack.enter_context(faults.failing_workers())
            elif kind == "task":
                stack.enter_context(faults.failing_every(*n, tasks=True))
            yield

    def play_packets(self, service, kind, first, count, fault):
        proto, port = self.proto(service), PORT + service
        before = self.dump().get(service)
        with self.broken(fault):
            sent = self.send(kind, proto, [
                (n, (client_address(n), 5000 + service), port, port + DPORT)
                for n in range(first, first + count)])
        if before and kind == "open" and proto == UDP and not fault and \
                self.model.takes_all(service):
            # Queued packets may still be on their way.
            wait_until(lambda: self.handle(service).stats["inpkts"]
                       == before[0]["stats"]["inpkts"] + sent, 3, what=f"{sent} packets counted")

    def play_range_packets(self, number, kind, first, count, fault):
        """Each to another port; real servers answer from the same."""
        _, low, high = RANGES[number]
        ports = [low + n % (high - low + 1) for n in range(first, first + count)]
        with self.broken(fault):
            self.send(kind, TCP, [(n, (client_address(n), 6000 + number), port, port)
                                  for n, port in zip(range(first, first + count), ports)])

    def send(self, kind, proto, flows):
        """A packet of each of FLOWS: (number, client, port of the VIP, port of the server). Returns
        how many packets of clients were sent."""
        sent = 0
        for n, client, port, dport in flows:
            server, tap = (self.lab.phantom(1 + n % SERVERS), dport), self.taps[n % SERVERS]
            if kind == "reply":
                tap.try_send(segment(server, client, kind, proto))
            elif kind == "icmp":
                quote = segment(client, server, "data", proto)[:28]
                tap.try_send(packet.icmp_packet(server[0], client[0], 3, 3, payload=quote))
            else:
                sent += self.raw.client_tap.try_send(segment(client, (self.vip, port), kind, proto))
        return sent

    def play_wait(self, fault):
        with self.broken(fault):
            time.sleep(TIMEOUTS[2] + 0.7)

    def play_setting(self, name, value, fault):
        assert not fault
        self.lab.director.ns.sysctl(f"net.ipv4.vs.{name}", value)

    def play_scheduler(self, name, fault):
        assert not fault
        used = name in [s["sched"] for s in self.model.services.values()] or name == "rr"
        module = self.backend.prefix + name

        def removed():
            return run(["rmmod", module], check=False).returncode == 0
        if used and removed():
            raise WrongError(f"{module} was unloaded while a service uses it")
        if not used:
            wait_until(removed, 10, what=f"rmmod {module}")
            run(["modprobe", module])

    def play_namespace(self, services, fault):
        name, refs = "sequences", self.backend.refcount()
        try:
            with self.broken(fault):
                self.use_namespace(name, services)
        except (AssertionError, OSError, RuntimeError):
            if not fault:
                raise
        finally:
            run(["ip", "netns", "del", name], check=False)
        wait_until(lambda: self.backend.refcount() <= refs, 20, what="the namespace's references")

    @staticmethod
    def use_namespace(name, services):
        with contextlib.closing(Namespace(name)) as ns:
            ns.ip(*SETUP, "addr add 198.51.100.160/32 dev d0")
            with genl.Ipvs(ns) as ipvs:
                for n in range(services):
                    ipvs.service("198.51.100.160", 80 + n, UDP, sched=SCHEDULERS[n]).server(
                        "192.0.2.20", 80 + n, method=genl.MASQ)
                    with ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                        s.sendto(b"x", ("198.51.100.160", 80 + n))

    def play_reload(self, fault):
        self.end()
        self.lab.flush()
        self.backend.unload()
        if fault:
            self.load_with(fault[1])
        self.begin()

    def load_with(self, nth):
        """Load the module while an allocation fails: it is loaded or leaves nothing behind."""
        libc = ctypes.CDLL(None, use_errno=True)
        image = os.open(self.backend.modules / "l4lb.ko", os.O_RDONLY | os.O_CLOEXEC)
        try:
            with faults.injection(), Fault(nth):
                error = libc.syscall(FINIT_MODULE, image, b"", 0) and ctypes.get_errno()
        finally:
            os.close(image)
        if error not in (0, errno.ENOMEM, errno.EFAULT, errno.EINVAL) or \
                self.backend.loaded() != (not error):
            raise WrongError(f"loading: {errno.errorcode.get(error, error)}, "
                             f"loaded: {self.backend.loaded()}")
        if self.backend.loaded():
            self.backend.unload()
