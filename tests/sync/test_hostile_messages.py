# SPDX-License-Identifier: GPL-2.0
"""Hostile messages to a backup: whatever they are, an established local flow goes on, no
configuration changes, the kernel reports nothing, and the right counter rises by one."""

import time
from pathlib import Path

import pytest
from lab import daemons, sync_hostile, sync_wire
from lab.genl import PERSISTENT
from lab.netns import wait_until
from lab.packet import ACK, TCP, UDP
from lab.raw import Raw
from lab.rows import amount
from lab.settings import setting
from lab.sync_hostile import ID, ITEMS
from lab.sync_wire import BYPASS, INACTIVE, TEMPLATE, Record, message


class Target:
    """A backup with a service of each family, an established flow, and an attacker."""

    def __init__(self, side, sender, is_l4lb):
        self.side, self.sender, self.is_l4lb = side, sender, is_l4lb
        self.raw = {family: Raw(side.lab, TCP, family) for family in (4, 6)}
        self.flow = self.raw[4].client()
        self.flow.establish()
        self.configured = self.configuration()
        self.fences = 0

    def configuration(self):
        servers = [(d["addr"], d["port"], d["method"], d["weight"])
                   for raw in self.raw.values() for d in raw.service.servers()]
        return servers, len(self.side.ipvs.services()), daemons.listed(self.side.ipvs)

    def another(self, *options, **more):
        """One more service, which belongs to the configuration from now on."""
        raw = Raw(self.side.lab, *options, **more)
        self.configured = self.configuration()
        return raw

    def record(self, family=4, **more):
        raw = self.raw[family]
        client = raw.client()
        return Record(client.address, client.sport, raw.vip, raw.port, raw.address(1), raw.dport,
                      **more)

    def fence(self):
        """Returns when everything sent so far was read."""
        last = self.record()
        self.fences += 1
        self.sender.records(last, sync_id=ID)
        self.side.row(last)

    def fence_when_full(self):
        """The same with a full table (l4lb only). Of two messages that came when nothing was
        waiting, the first is counted before the second, and after everything earlier."""
        wait_until(lambda: self.side.unread() == 0, 30, what="an empty socket")
        for _ in range(2):
            before = self.count("messages_in")
            self.sender.send(message([], ID))
            wait_until(lambda: self.count("messages_in") > before, 5)

    def count(self, name):
        return self.counters()[name]

    def counters(self):
        lines = (line.split() for line in self.side.ns.read("/proc/net/l4lb").splitlines())
        return {name.removeprefix("sync_"): int(value) for name, value in lines}

    def errors(self):
        """{name: number} of the counters of errors; l4lb alone has them."""
        found = self.counters()
        return {name: found[name] for name in sync_wire.ERRORS}

    def unharmed(self):
        self.flow.send(ACK, b"on")
        self.flow.arrive()
        self.flow.reply(ACK, b"too").answered()
        assert self.flow.state == "ESTABLISHED"
        assert self.configuration() == self.configured


@pytest.fixture
def target(side, backend):
    with side.backup(sync_id=ID), side.sender() as sender:
        yield Target(side, sender, backend.is_l4lb)


def check(target, name):
    """Sends the message NAME, and compares what it does with what the list says."""
    records = target.record(), target.record(), target.record(6)
    case = next(c for c in sync_hostile.cases(*records) if c.name == name)
    before = target.errors() if target.is_l4lb else {}
    target.sender.send(case.data)
    target.fence()
    if target.is_l4lb:
        risen = {k: n - before[k] for k, n in target.errors().items() if n != before[k]}
        assert risen == ({case.counter: 1} if case.counter else {}), case.name
    clients = {r.client for r in case.applied
               if not (target.is_l4lb and sync_wire.unsupported(r))}
    for record in records:
        # One that lives for a second may have ended.
        if name != "20-timeout-1" or record.client not in clients:
            assert bool(target.side.rows(client=record.client)) == (record.client in clients), \
                f"{case.name}: {record}"


def names(item):
    one = Record("10.0.0.1", 1, "10.0.0.2", 2, "10.0.0.3", 3)
    six = Record("2001:db8::1", 1, "2001:db8::2", 2, "2001:db8::3", 3)
    return [case.name for case in sync_hostile.cases(one, one, six) if case.item == item]


@pytest.mark.smoke
@pytest.mark.each
@pytest.mark.parametrize("item", ITEMS)
def test_message(target, item):
    for name in names(item):
        check(target, name)
    target.unharmed()


def test_counts_end_at_the_truth(request, target):
    """The same connection active and inactive in turn."""
    count = amount(request.config, all=100_000, pairs=4000, few=2000)
    records = [target.record(), target.record(6)]
    turns = [r.but(flags=flags) for _ in range(10) for flags in (0, INACTIVE) for r in records
             if r.family == 4] + [records[1].but(flags=INACTIVE), records[1]]
    data = message(turns, ID)
    for n in range(count // len(turns)):
        target.sender.send(data)
        if n % 50 == 49:
            target.fence()
    target.fence()
    for family, expected in ((4, (1 + target.fences, 1)), (6, (1, 0))):
        dest = target.raw[family].dest(1)
        assert (dest["active"], dest["inactive"]) == expected
    target.unharmed()


def test_server_removed_meanwhile(target):
    """Records go on coming for a server that is removed, added, and edited."""
    raw = target.raw[6]
    records = [target.record(6) for _ in range(15)]
    data = message(records, ID)
    for _ in range(10):
        target.sender.send(data)
        raw.remove(1)
        target.sender.send(data)
        raw.add(1)
        target.sender.send(data)
        raw.edit(1, weight=3)
        raw.edit(1, weight=1)
        raw.service.edit(sched="wrr")
        raw.service.edit(sched="rr")
        target.fence()
    target.sender.send(data)
    target.fence()
    assert raw.dest(1)["active"] == len(records)
    target.unharmed()


# ---- records that would make a relay

def test_strange_addresses(only_l4lb, target, family):
    """Packets of their connections go nowhere; ip_vs would send them to the server given."""
    raw = target.another(UDP, family)
    own = target.side.lab.dip(family)
    client = raw.client()
    good = Record(client.address, client.sport, raw.vip, raw.port, raw.address(2), raw.dport,
                  UDP, 0)
    raw.taps[2] = target.side.lab.tap("rs2")
    for name, record in sync_hostile.strange_ends(good, own).items():
        target.sender.records(record, sync_id=ID)
        target.fence()
        if name.startswith("server-"):
            client.send()
            raw.fence()
            assert not [n for n, _ in client.arrivals() if n == 2], name
    target.unharmed()


@pytest.mark.smoke
@pytest.mark.parametrize("method", range(5))
def test_unknown_server_is_no_relay(only_l4lb, target, family, method):
    """With no forwarding method; a tunnel to it would look at the missing server (a crash
    of ip_vs, so that this cannot run there)."""
    raw = target.another(UDP, family)
    raw.taps[2] = target.side.lab.tap("rs2")
    client = raw.client()
    record = Record(client.address, client.sport, raw.vip, raw.port, raw.address(2), raw.dport,
                    UDP, 0, method)
    target.sender.records(record, sync_id=ID)
    target.fence()
    assert bool(target.side.rows(client=record.client)) == (method != BYPASS)
    client.send()
    raw.fence()
    assert not [n for n, _ in client.arrivals() if n == 2]
    target.unharmed()


def test_a_thousand_moves(only_l4lb, target):
    """In a second: a connection and a template whose client is here keep their real server."""
    raw = target.another(UDP, 4, (1, 2), flags=PERSISTENT, timeout=300)
    client = raw.client()
    mine = client.open()
    other = Record(client.address, client.sport, raw.vip, raw.port, raw.address(3 - mine),
                   raw.dport, UDP, 0)
    template = other.but(cport=0, flags=TEMPLATE, state=1)
    before, begin = target.count("conflict"), time.monotonic()
    for _ in range(50):
        target.sender.records(*[other, template] * 10, sync_id=ID)
        client.send()
        client.arrive()
    target.fence()
    # The template keeps it for two seconds, the connection for one after its last packet.
    assert time.monotonic() - begin < 2
    assert target.count("conflict") - before == 1000
    rows = target.side.rows(client=client.address)
    assert sorted(row["cport"] for row in rows) == [0, client.sport]
    assert {row["server"] for row in rows} == {raw.address(mine)}
    target.unharmed()


def test_no_module_is_loaded(target, tmp_path):
    """For no name of a persistence engine."""
    asked, loader = tmp_path / "asked", tmp_path / "modprobe"
    loader.write_text(f"#!/bin/sh\necho \"$@\" >>{asked}\n", encoding="ascii")
    loader.chmod(0o755)
    path = Path("/proc/sys/kernel/modprobe")
    before = path.read_text(encoding="ascii")
    path.write_text(str(loader), encoding="ascii")
    try:
        for name in names(16):
            check(target, name)
    finally:
        path.write_text(before, encoding="ascii")
    assert not asked.exists(), asked.read_text(encoding="utf-8")


# ---- damaged messages, last: they leave connections of any service's port

@pytest.mark.smoke
def test_mutants(request, target, seed):
    attack(target, seed, amount(request.config, all=20_000, pairs=2000, few=500), target.fence)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_million_mutants(only_l4lb, target, seed):
    """Memory stays within conn_max; ip_vs has no such limit."""
    with setting(target.side.lab, "conn_max", 20_000):
        attack(target, seed, 1_000_000, target.fence_when_full)


def attack(target, seed, count, fence):
    good = target.record(), target.record(), target.record(6)
    sources = sync_hostile.sources(*good)
    for n, data in enumerate(sync_hostile.mutants(seed, count, sources), 1):
        target.sender.send(data)
        if n % 100 == 0:    # as many as wait in a socket
            fence()
        if n % 1000 == 0:
            target.unharmed()
    fence()
    target.unharmed()
