# SPDX-License-Identifier: GPL-2.0
"""XDP keeps the Ethernet address of a route's next hop: each change counts from the next frame."""

import contextlib
import itertools
import json
import time

import pytest
from lab import xdp
from lab.flows import admitted, counted, ready, request_is
from lab.netns import run
from lab.packet import ACK, UDP
from lab.topology import SERVERS

pytestmark = [pytest.mark.usefixtures("can_xdp"), pytest.mark.no_xdp("it attaches XDP itself")]


def mac_of(node, device="eth0"):
    return ":".join(f"{b:02x}" for b in node.mac(device))


@pytest.fixture(name="hop")
def next_hop(nat, family):
    """Client's packets go by XDP to the first real server."""
    hop = Hop(nat, family)
    with xdp.attached(nat):
        request_is(hop.client, xdp=1)
        with hop.put_back():
            yield hop


class Hop:
    """The neighbour that has the first real server's address."""

    def __init__(self, lab, family):
        self.lab, self.raw = lab, ready(lab, UDP, family)
        self.client, self.own = admitted(self.raw), itertools.count()

    def ip(self, *words):
        self.lab.director.ns.ip(*(f"neigh {word}" for word in words))

    def name(self, server):
        mac = mac_of(self.lab.nodes[SERVERS[server]])
        return f"{self.raw.address(1)} lladdr {mac} dev eth1 nud permanent"

    def is_at(self, server):
        self.ip(f"replace {self.name(server)}")

    def is_another(self, server):
        """A neighbour of its own, whose address has changed as often as the last one's: once. All
        neighbours end with the device's own address."""
        self.lab.director.ns.ip(f"link set eth1 address 02:00:00:00:77:{next(self.own):02x}")
        self.is_at(server)

    @contextlib.contextmanager
    def put_back(self):
        """At the end, the device and its neighbours are as they were."""
        ns, own = self.lab.director.ns, mac_of(self.lab.director, "eth1")
        had = json.loads(run(["ip", "-n", ns.name, "-j", "neigh", "show", "dev", "eth1", "nud", "permanent"]).stdout)
        try:
            yield
        finally:
            ns.ip(f"link set eth1 address {own}")
            self.ip(*(f"replace {e['dst']} lladdr {e['lladdr']} dev eth1 nud permanent" for e in had))

    def gets(self, server, payload):
        """The next frame, by XDP, goes to SERVER."""
        tap = self.lab.tap(SERVERS[server])
        with counted(self.raw, xdp=1):
            self.client.send(ACK, payload)
            tap.expect(lambda p: p.payload == payload)


@pytest.mark.smoke
def test_address_changes(hop):
    for n, server in enumerate((1, 0, 2, 1, 0)):
        hop.is_at(server)
        hop.gets(server, b"moved %d" % n)
        hop.gets(server, b"stays %d" % n)


def test_other_neighbour(hop):
    """No trace of the former one's address is left."""
    for n, server in enumerate((1, 0, 2, 0)):
        hop.is_another(server)
        hop.gets(server, b"another %d" % n)
        hop.gets(server, b"the same %d" % n)


@pytest.mark.waits
def test_neighbour_let_go(hop):
    """Some 10 s after the last frame the route has none."""
    time.sleep(12)
    hop.is_another(1)
    hop.client.send(ACK)        # the stack: its term is over
    hop.gets(1, b"late")


def test_changes_while_asked(hop):
    """A neighbour that is not sure is asked for, and used on with the address it has."""
    hop.ip(f"replace {hop.name(1).replace('permanent', 'stale')}")
    hop.gets(1, b"stale")
    hop.is_at(0)
    hop.gets(0, b"sure")
