# SPDX-License-Identifier: GPL-2.0
"""The fast path of replies, while routes change. The counters of /proc/net/l4lb tell which
path a packet took.
"""

import socket
import struct
import time

import pytest
from lab import fast, genl
from lab.flows import GATEWAY, admitted, counted, host, ready, reply_is, rule, side
from lab.packet import ACK, UDP

pytestmark = pytest.mark.usefixtures("only_l4lb")

RATE = 100      # changes a second
NEWROUTE, DELROUTE = 24, 25
# Within the phantom clients' network: a change there ends its route in IPv6, too.
OTHERS = {4: ("10.255.255.0", 24), 6: ("2001:db8:c:ffff::", 64)}


class Routes:
    """Adds and removes one route of the director, which no packet takes."""

    def __init__(self, lab, family):
        kind = socket.AF_INET if family == 4 else socket.AF_INET6
        to, length = OTHERS[family]
        self.sock = lab.director.ns.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.body = struct.pack("=BBBBBBBBI", kind, length, 0, 0, 254, 4, 0, 1, 0) + \
            genl.attr(1, socket.inet_pton(kind, to)) + \
            genl.attr(5, socket.inet_pton(kind, lab.cip(family)))
        self.changes = 0

    def change(self):
        what, flags = (DELROUTE, 5) if self.changes % 2 else (NEWROUTE, 5 | 0x600)
        self.sock.send(struct.pack("=IHHII", 16 + len(self.body), what, flags, 1, 0) + self.body)
        error = struct.unpack_from("=i", self.sock.recv(65536), 16)[0]
        assert not error, f"change {self.changes}: {error}"
        self.changes += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.changes % 2:
            self.change()
        self.sock.close()


def answered(clients, seconds, change):
    """The share of fast packets among replies to CLIENTS, with CHANGE called at RATE."""
    ns = clients[0].raw.lab.director.ns
    before, began, sent = fast.read(ns), time.monotonic(), 0
    for n in range(seconds * RATE):
        change()
        for client in clients:
            client.reply(ACK, b"%d" % n).answered()
            sent += 1
        time.sleep(max(0, began + (n + 1) / RATE - time.monotonic()))
    time.sleep(0.05)
    return fast.grown(ns, before).get("fast", 0) / sent


@pytest.mark.timer
def test_routes_of_others_change(nat, family):
    """Flows stay on the fast path while other routes change all the time, for longer than
    it takes until numbers are used again."""
    raw = ready(nat, UDP, family)
    clients = [admitted(raw) for _ in range(2)]
    assert answered(clients, 2, lambda: None) >= 0.99       # the control
    with Routes(nat, family) as routes:
        assert answered(clients, 12, routes.change) >= 0.99
        assert routes.changes == 12 * RATE


def test_moved_while_another_stays(nat, family):
    """A flow whose route has changed follows at once, by the stack, though another flow has
    kept the old gateway in use since."""
    raw = ready(nat, UDP, family)
    moves, stays = admitted(raw), admitted(raw)
    with side(nat) as tap:
        ns = nat.director.ns
        ns.ip(f"route add {host(moves.address, family)} via {GATEWAY[family]} dev side0")
        reply_is(stays, fast=1)
        with rule(nat, "forward", "oifname side0 drop"), counted(raw, slow_route=1):
            moves.reply(ACK, b"judged")
        raw.fence()
        assert tap.take(lambda p: p.dst == moves.address) == []
        for want in ("slow_route", "fast"):
            reply_is(stays, fast=1)
            with counted(raw, **{want: 1}):
                moves.reply(ACK, b"aside")
                tap.expect(lambda p: p.dst == moves.address)
        ns.ip(f"route del {host(moves.address, family)}")
        reply_is(stays, fast=1)
        reply_is(moves, slow_route=1)
        reply_is(moves, fast=1)


def test_another_gateway_on_the_same_device(nat, family):
    """The next hop is a gateway, not only a device."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    other = nat.cip(family) + "9"       # .29, ::29
    mac = ":".join(f"{b:02x}" for b in nat.client.mac())
    ns = nat.director.ns
    ns.ip(f"neigh replace {other} lladdr {mac} dev eth0 nud permanent",
          f"route add {host(client.address, family)} via {other}")
    try:
        reply_is(client, slow_route=1)
        reply_is(client, fast=1)
        ns.ip(f"route change {host(client.address, family)} via {other} mtu 1400"
              if family == 4 else
              f"route replace {host(client.address, family)} via {other} mtu 1400")
        reply_is(client, fast=1)
        # The new route's MTU applies.
        with counted(raw, slow_route=1):
            client.reply(ACK, bytes(1420))
    finally:
        ns.ip(f"route del {host(client.address, family)}",
              f"neigh del {other} dev eth0")
    raw.drain()


def test_unreachable(nat, family):
    """A client's route that says so is obeyed."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    ns = nat.director.ns
    ns.ip(f"route add unreachable {host(client.address, family)}")
    try:
        for _ in range(2):
            with counted(raw, slow_route=1):
                client.reply(ACK, b"nobody")
    finally:
        ns.ip(f"route del unreachable {host(client.address, family)}")
    raw.fence()
    assert raw.client_tap.take(lambda p: p.dst == client.address) == []
    reply_is(client, fast=1)


def test_many_ways_back(nat, family):
    """Hundreds of routes at once, each with a number of its own."""
    raw = ready(nat, UDP, family)
    ns = nat.director.ns
    clients = [raw.client() for _ in range(300)]
    try:
        # With different metrics IPv4 does not share them.
        ns.ip(*(f"route add {host(c.address, family)} via {nat.cip(family)} metric {n + 1}"
                for n, c in enumerate(clients)))
        for client in clients:
            client.open()
            client.reply(ACK, b"1").answered()
        with counted(raw, fast=300):
            for client in clients:
                client.reply(ACK, b"2")
                assert client.answered().src == raw.vip
    finally:
        ns.ip(*(f"route del {host(c.address, family)}" for c in clients))
    raw.client().open()
