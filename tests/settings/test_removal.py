# SPDX-License-Identifier: GPL-2.0
"""Removed real servers: what becomes of their connections and counters, and what a removal
costs."""

import contextlib
import socket
import time

import pytest
from lab.genl import PERSISTENT, ROUTE, Ipvs
from lab.netns import Namespace, wait_until
from lab.packet import TCP, UDP
from lab.raw import Raw
from lab.rows import large
from lab.settings import setting

ROUNDS = 15
PORTS = 60_000      # that a socket sends to
AT_MOST = 1.2
TRIES = 4
DEFAULT, KEEP = 0, 1     # on_loss


# ---- connections ----

def counters(raw):
    return {k: v for k, v in raw.dest(1)["stats"].items() if not k.endswith("ps")}


@pytest.mark.smoke
def test_over_at_once(nat, family, proto, only_l4lb):
    """With expire_nodest_conn a removed server's connections are over when the command returns,
    also if the server is added again at once: nothing shows them, no reply is translated, and
    the client's next packet begins a new one. Its counters go on."""
    raw = Raw(nat, proto, family)
    with setting(nat, "expire_nodest_conn", 1):
        client, silent = raw.client(), raw.client()
        for each in (client, silent):
            each.establish()
        before = counters(raw)
        raw.remove(1)
        assert client.row() is None
        raw.add(1)
        assert client.row() is None
        assert (raw.dest(1)["active"], raw.dest(1)["inactive"]) == (0, 0)
        assert counters(raw) == before
        silent.reply(number=1)
        raw.fence()
        assert not raw.client_tap.take(lambda p: p.dst == silent.address and p.src == raw.vip)
        client.send()
        assert client.arrive()[0] == 1
        assert raw.dest(1)["stats"]["conns"] == before["conns"] + 1
        assert sum(raw.dest(1)[k] for k in ("active", "inactive")) == 1


def test_removed_and_added_often(nat, family, only_l4lb):
    """Each time the connections end, and none is counted twice."""
    raw = Raw(nat, UDP, family)
    with setting(nat, "expire_nodest_conn", 1):
        for n in range(1, 6):
            client = raw.client()
            client.open()
            dest = raw.dest(1)
            assert (dest["inactive"], dest["stats"]["conns"]) == (1, n)
            raw.remove(1)
            raw.add(1)
        assert raw.dest(1)["inactive"] == 0


def test_templates_are_over(nat, family, only_l4lb):
    """Templates, too: a persistent client is not bound any more."""
    raw = Raw(nat, TCP, family, (1, 2), flags=PERSISTENT, timeout=600)
    with setting(nat, "expire_nodest_conn", 1):
        address = nat.client_address(family)
        first = raw.client(address).open()
        raw.remove(first)
        raw.add(first)
        assert raw.dest(first)["persistent"] == 0
        # rr goes on with the other one.
        assert raw.client(address).open() == 3 - first
        assert raw.dest(first)["persistent"] == 0


def test_spared_before(nat, l4lb, only_l4lb):
    """A removal also ends connections of servers that were removed while the setting was 0;
    an explicit on_loss still spares them, until it is taken back."""
    raw = Raw(nat, UDP, 4, (1, 2))
    l4lb.set_policy(raw.service, on_loss=KEEP)
    client = raw.client()
    raw.remove(client.open())
    other = Raw(nat, UDP, 4)
    with setting(nat, "expire_nodest_conn", 1):
        other.remove(1)
        assert client.row()
        l4lb.set_policy(raw.service, on_loss=DEFAULT)
        other.add(1)
        other.remove(1)
        assert client.row() is None


@contextlib.contextmanager
def connected(count):
    """A namespace with COUNT connections of a local client to the only server of a service;
    yields another service, without servers."""
    with contextlib.ExitStack() as stack:
        ns = Namespace("removal")
        stack.callback(ns.destroy)
        ns.ip("link set lo up", "link add d0 type dummy", "link set d0 up",
              "address add 192.0.2.1/24 dev d0", "address add 198.51.100.9/32 dev d0")
        ipvs = stack.enter_context(Ipvs(ns))
        ns.sysctl("net/ipv4/vs/conn_max", 0)
        ns.sysctl("net/ipv4/vs/expire_nodest_conn", 1)
        ipvs.service("198.51.100.9", 0, proto=UDP, flags=PERSISTENT, timeout=600).server(
            "192.0.2.9", 0, method=ROUTE)
        s = stack.enter_context(ns.socket(socket.AF_INET, socket.SOCK_DGRAM))
        for number in range(count):
            if number % PORTS == 0:
                sock = stack.enter_context(ns.socket(socket.AF_INET, socket.SOCK_DGRAM))
            with contextlib.suppress(OSError):
                sock.sendto(b"x", ("198.51.100.9", 1 + number % PORTS))
        service = ipvs.service("198.51.100.9", 80, proto=TCP)
        yield service, s


def removal(service, sock):
    """Of the quickest of some: seconds to remove a server that has a connection."""
    best = float("inf")
    for n in range(ROUNDS):
        rip = f"192.0.2.{20 + n}"
        udp = service.ipvs.service("198.51.100.9", 40000 + n, proto=UDP)
        udp.server(rip, 0, method=ROUTE)
        with contextlib.suppress(OSError):
            sock.sendto(b"x", ("198.51.100.9", 40000 + n))
        assert udp.find(rip)["inactive"] == 1
        began = time.perf_counter()
        udp.delete_server(rip, 0)
        best = min(best, time.perf_counter() - began)
        udp.delete()
    return best


@pytest.mark.parametrize("count", (20_000, large(1_000_000)))
def test_removal_costs_the_same(only_l4lb, count):
    """With expire_nodest_conn, with few connections and with many."""
    found = []
    for _ in range(TRIES):      # a slow moment of the machine is no scan of the table
        with connected(0) as few:
            quick = removal(*few)
        with connected(count) as many:
            found.append(removal(*many) / quick)
        if found[-1] <= AT_MOST:
            return
    pytest.fail(f"{', '.join(f'{ratio:.2f}' for ratio in found)} times")


# ---- counters ----

def test_counters_of_a_server_added_again(only_l4lb, nat, family, proto):
    """They go on if its service is the same, and begin at 0 if that was made anew."""
    raw = Raw(nat, proto, family)
    raw.client().open()
    raw.remove(1)
    raw.add(1)
    assert raw.dest(1)["stats"]["conns"] == 1
    raw.client().open()
    assert raw.dest(1)["stats"]["conns"] == 2
    raw.service.delete()
    raw.service.add()
    raw.add(1)
    wait_until(lambda: raw.dest(1)["stats"]["conns"] == 0, 1, what="new counters")
    assert not any(raw.dest(1)["stats"].values())
    raw.client().open()
    assert (raw.dest(1)["stats"]["conns"], raw.dest(1)["stats"]["inpkts"]) == (1, 1)
