# SPDX-License-Identifier: GPL-2.0
"""The cached routes of real servers: how often the kernel is asked for one, and what a device
that goes down costs."""

import fcntl
import socket
import struct
import threading
import time

import pytest
from lab import packet
from lab.genl import MASQ, ROUTE, L4lb, batch_entry, batch_server
from lab.netns import SLOW, join_all, wait_until
from lab.packet import UDP
from lab.raw import Raw
from lab.rows import large
from lab.testmodule import TestModule

SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP = 1
FEW, MANY, MOST = 10, 10_000 if SLOW == 1 else 1000, 60_000
TRIES = 4
AT_MOST = 3      # to drop ten thousand routes takes ten times as long

pytestmark = pytest.mark.usefixtures("only_l4lb")


class Switch:
    """A device of the director that has nothing to do with l4lb."""

    def __init__(self, lab, name):
        self.name = name.encode()
        self.sock = lab.director.ns.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def set(self, up):
        request = struct.pack("16sH14x", self.name, 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(self.sock, SIOCGIFFLAGS, request))[1]
        flags = flags | IFF_UP if up else flags & ~IFF_UP
        fcntl.ioctl(self.sock, SIOCSIFFLAGS, struct.pack("16sH14x", self.name, flags))

    def seconds_down(self):
        self.set(True)
        began = time.perf_counter()
        self.set(False)
        return time.perf_counter() - began


@pytest.fixture
def unrelated(nat):
    nat.director.ns.ip("link add spare type dummy")
    nat.director.ns.sysctl("net/ipv6/conf/spare/disable_ipv6", 1)
    switch = Switch(nat, "spare")
    yield switch
    switch.sock.close()
    nat.director.ns.ip("link del spare")


def routes_made():
    """IPv4 routes that the kernel has made for lookups of this host, in all namespaces.
    Lookups for NAT share one for each next hop; those for direct routing make one each."""
    with open("/proc/net/stat/rt_cache", encoding="ascii") as f:
        names = f.readline().split()
        return sum(int(line.split()[names.index("out_slow_tot")], 16) for line in f)


def test_old_and_new_method(nat):
    """A server is edited from NAT to direct routing: its old connections and its new ones
    alternate, and each kind keeps its route."""
    raw = Raw(nat, UDP)
    old = raw.client()
    old.open()
    raw.edit(1, method=ROUTE)
    new = raw.client()
    new.open()
    before = routes_made()
    for _ in range(50):
        for client in (old, new):
            client.send()
            client.arrive()
    assert routes_made() - before < 10
    raw.edit(1, method=MASQ)
    for client in (old, new):
        client.send()
        client.arrive()


def configured(raw, count, clients):
    """Adds COUNT real servers, 100 a service; returns packets that reach all of them, each of
    a client of its own."""
    servers = [batch_server(f"192.0.2.{100 + n}", 80, method=MASQ)
               for n in range(min(count, 100))]
    ports = range(2000, 2000 + count // len(servers))
    with L4lb(raw.lab.director.ns) as l4lb:
        l4lb.set_services([batch_entry(raw.vip, port, servers, proto=UDP, sched="rr")
                           for port in ports])
    return [packet.udp_packet("10.99.99.9", 3000 + number, raw.vip, ports[number % len(ports)])
            for number in range(clients)]


def quickest_down(nat, unrelated, count, clients):
    """Seconds of the quickest of some rounds, with routes of COUNT real servers in use by
    CLIENTS connections."""
    raw = Raw(nat, UDP)
    packets = configured(raw, count, clients)
    rounds = []
    for _ in range(5):
        raw.send_all(packets, 100)
        rounds.append(unrelated.seconds_down())
    assert len(nat.conns(vip=raw.vip)) >= clients
    nat.ipvs.flush()
    return min(rounds)


@pytest.mark.parametrize("many", (MANY, large(MOST)))
def test_unrelated_device_down(nat, unrelated, many):
    """It costs the same whether ten or thousands of real servers have a route in use. To drop
    thousands takes many times as long each time; a slow moment of the machine passes. Both have
    the same number of connections, so that the processor's caches are as full of other things."""
    ratios = []
    while not ratios or (ratios[-1] > AT_MOST and len(ratios) < TRIES):
        few, many_routes = (quickest_down(nat, unrelated, count, many)
                             for count in (FEW, many))
        ratios.append(many_routes / few)
    assert ratios[-1] <= AT_MOST, ", ".join(f"{ratio:.1f} times" for ratio in ratios)


@pytest.mark.waits
def test_device_down_during_a_long_command(nat, unrelated, backend):
    """RTNL never waits for a configuration command: here, for a scheduler's build()."""
    moody = TestModule(backend, "l4lb_moody")
    assert moody.insmod("build_delay=3000").returncode == 0
    raw = Raw(nat, UDP)
    thread = threading.Thread(target=raw.service.edit, kwargs={"sched": "moody"})
    try:
        thread.start()
        time.sleep(0.5)
        took = [unrelated.seconds_down() for _ in range(5)]
        assert max(took) < 1, took
        assert thread.is_alive(), "the command was too short"
    finally:
        moody["build_delay"] = 0
        join_all(thread)
        raw.service.delete()
        wait_until(lambda: not moody["tables"], 5)
        assert moody.rmmod().returncode == 0


def test_device_goes_away(nat, family):
    """A device can be removed, though a real server's route led through it."""
    raw = Raw(nat, UDP, family)
    lines = ("link add branch type dummy", "link set branch up",
             f"route add {raw.address(1)} dev branch")
    nat.director.ns.ip(*lines, family=family)
    raw.client().send()
    raw.fence()
    began = time.monotonic()
    nat.director.ns.ip("link del branch")      # would wait for its last user
    assert time.monotonic() - began < 5
    assert raw.client().open() == 1
