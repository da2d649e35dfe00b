# SPDX-License-Identifier: GPL-2.0
"""Two directors that both believe to be the master: clients' packets come to either of them,
and for a while neither hears the other."""

import contextlib
import socket
import time

import pytest
from lab import daemons, genl
from lab.netns import allow_files, wait_until
from lab.packet import TCP, UDP
from lab.peers import Peers
from lab.rows import amount
from lab.second import second
from lab.settings import setting
from lab.sync_group import DEVICE, DIRECTOR, PEER, cable
from lab.talk import WAITS, Flow, Listeners
from lab.topology import VIPS

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits, pytest.mark.dear]

WIRES = {"clean": "limit 10000", "lossy": "delay 10ms reorder 90% loss 5%"}
CUT = "loss 100%"
SPLIT = 30          # seconds without a word between the two
HEALED = 70         # seconds after which they know the same
FIRST, SECOND = 0, 1
# Packets to the first VIP come to the first director, those to the second one to the second.
SERVERS = ((1, 2), (3, 4))


class Masters:
    """A topology's director and a second one, with the same services on both VIPs."""

    def __init__(self, lab, other, family):
        self.lab, self.other, self.family = lab, other, family
        self.port = lab.fresh_port()
        self.nodes = lab.director.ns, other.ns
        self.vips = [lab.vip(family, index) for index in (FIRST, SECOND)]
        self.stack = contextlib.ExitStack()
        self.listeners = self._kept(Listeners(lab.servers, self.port, family))
        self.heard = {n: self._datagrams(lab.servers[n - 1].ns, self.port)
                      for numbers in SERVERS for n in numbers}
        for ipvs in (lab.ipvs, other.ipvs):
            for index, proto in ((i, p) for i in (FIRST, SECOND) for p in (TCP, UDP)):
                service = ipvs.service(self.vips[index], self.port, proto=proto, sched="rr")
                for n in SERVERS[index]:
                    service.server(lab.rip(n, family), self.port, method=lab.method)
        self.peers = [self.stack.enter_context(Peers(ns)) for ns in self.nodes]
        self.addresses = PEER[4], DIRECTOR[4]       # as the first and the second know each other
        for one, addr in zip(self.peers, self.addresses, strict=True):
            one.add(addr)
        for one, addr in zip(self.peers, self.addresses, strict=True):
            one.in_step(addr)

    def _kept(self, thing):
        self.stack.callback(thing.close)
        return thing

    def _datagrams(self, ns, port=0):
        """A socket for datagrams in namespace NS."""
        sock = self._kept(ns.socket(self.listeners.family, socket.SOCK_DGRAM))
        sock.bind(("", port))
        sock.setblocking(False)
        return sock

    # -- the network

    def wire(self, what):
        """Both ends of the cable between the directors are WHAT, of netem."""
        for ns in self.nodes:
            ns.run(["tc", "qdisc", "replace", "dev", DEVICE, "root", "netem", *what.split()])

    def lead(self, index, director):
        """Packets to a VIP, and with NAT those of its servers, come to DIRECTOR."""
        self.other.take_over(back=director == FIRST, vips=VIPS[index:index + 1],
                             servers=[self.lab.servers[n - 1] for n in SERVERS[index]])

    # -- clients

    def flows(self, count, index):
        return [self._kept(Flow(self.lab, self.listeners, (self.vips[index], self.port)))
                for _ in range(count)]

    def clients(self, count):
        return [self._datagrams(self.lab.client.ns) for _ in range(count)]

    def servers_of(self, clients):
        """The numbers of the servers that get a datagram of each of CLIENTS."""
        ports = {}

        def arrived():
            for number, sock in self.heard.items():
                with contextlib.suppress(BlockingIOError):
                    while True:
                        ports[sock.recvfrom(64)[1][1]] = number
            return len(ports) >= len(clients)
        for client in clients:
            client.sendto(b"x", (self.vips[FIRST], self.port))
        wait_until(arrived, 5, what=f"{len(clients)} datagrams at the servers")
        return [ports[client.getsockname()[1]] for client in clients]

    def chosen(self, clients):
        """({director: servers of CLIENTS}); the two have chosen different ones."""
        probe = self.clients(1)
        mine = self.servers_of(probe)
        self.lead(FIRST, SECOND)
        # Each takes its servers in turn.
        if self.servers_of(probe) == mine:
            self.servers_of(self.clients(1))
        self.lead(FIRST, FIRST)
        return self.both(clients)

    def both(self, clients):
        """The servers of CLIENTS by the first director, then by the second."""
        first = self.servers_of(clients)
        self.lead(FIRST, SECOND)
        second_ = self.servers_of(clients)
        self.lead(FIRST, FIRST)
        return first, second_

    # -- what they know

    def known(self, flows, director):
        """FLOWS are established at DIRECTOR."""
        ports = {f.port for f in flows}
        wait_until(lambda: ports <= {r["cport"] for r in genl.conns(self.nodes[director])
                                     if r["vport"] == self.port and r["state"] == "ESTABLISHED"},
                   WAITS, what=f"{len(flows)} connections at {self.nodes[director]}")

    def conflicts(self):
        return sum(one.count("conflict") for one in self.peers)

    def equal(self):
        """No comparison finds a difference."""
        found = [one.compare(addr)["difference"]
                 for one, addr in zip(self.peers, self.addresses, strict=True)]
        assert found == [0, 0], self._rows(FIRST) ^ self._rows(SECOND)

    def _rows(self, director):
        return {(r["proto"], r["client"], r["cport"], r["vip"], r["vport"], r["server"])
                for r in genl.conns(self.nodes[director])
                if r["state"] in ("ESTABLISHED", "UDP")}


@pytest.fixture(autouse=True, scope="module")
def many_sockets():
    allow_files(1 << 14)


@contextlib.contextmanager
def masters(lab, family, wire):
    """Both directors send and receive, over a wire of WIRES."""
    with second(lab) as other, cable(lab.director.ns, other.ns), \
            setting(lab, "sync_refresh_period", 10), setting(lab, "sync_threshold", "0 0"):
        # Its namespace ends with the test.
        other.ns.sysctl("net/ipv4/vs/sync_refresh_period", 10)
        other.ns.sysctl("net/ipv4/vs/sync_threshold", "0 0")
        try:
            for ipvs in (lab.ipvs, other.ipvs):
                daemons.start_both(ipvs)
            both = Masters(lab, other, family)
            with both.stack:
                both.wire(WIRES[wire])
                both.lead(SECOND, SECOND)
                yield both
        finally:
            daemons.stop_all(lab.ipvs)
            with setting(lab, "expire_nodest_conn", 1):
                lab.ipvs.flush()
                wait_until(lambda: not genl.conns(lab.director.ns), WAITS, what="no connections")


def talk(flows):
    for flow in flows:
        flow.talk()


def split(both, flows, used, idle):
    """For a while they do not hear each other. Of USED and IDLE, datagrams come to both; the
    last ones of a client come to both at the same time. Returns the servers of USED at both."""
    choices = both.chosen(used), both.chosen(idle)
    for _ in range(SPLIT // 5):
        time.sleep(5)
        talk(flows)
        assert (both.both(used), both.both(idle)) == choices
    for at_first, at_second in choices:
        assert all(a != b for a, b in zip(at_first, at_second, strict=True))
    return choices[0]


def still_masters(both, used, choice):
    """They hear each other, and datagrams of USED go on coming to both: each keeps the server
    that its director has chosen, and the records of the other one are conflicts."""
    before = both.conflicts()

    def conflict():
        assert both.both(used) == choice
        return both.conflicts() > before
    wait_until(conflict, 60, what="a conflict", step=0.4)
    # The first one is the last that they come to, by more than directors can tell.
    for _ in range(6):
        assert both.servers_of(used) == choice[FIRST]
        time.sleep(0.4)


@pytest.mark.parametrize("wire", WIRES)
def test_split_brain(request, lab, family, wire):
    """No connection is lost, none moves to another server than its client's director has chosen,
    and in the end both know the same."""
    count = amount(request.config, all=250, few=10)
    with masters(lab, family, wire) as both:
        flows = both.flows(count, FIRST) + both.flows(count, SECOND)
        for director in (FIRST, SECOND):
            both.known(flows, director)
        both.wire(CUT)
        flows += both.flows(count, FIRST) + both.flows(count, SECOND)
        used, idle = both.clients(count), both.clients(count)
        choice = split(both, flows, used, idle)
        both.wire(WIRES[wire])
        still_masters(both, used, choice)
        end = time.monotonic() + HEALED
        while time.monotonic() < end:
            assert both.servers_of(used) == choice[FIRST]
            talk(flows)
            time.sleep(5)
        both.equal()
        for director in (SECOND, FIRST):
            both.lead(FIRST, director)
            assert both.servers_of(used) == choice[FIRST]
            talk(flows)


def test_the_vip_moves_to_and_fro(request, lab, family):
    """As when both answer for the VIP: each flow goes on, by either, as soon as both know it."""
    rounds = amount(request.config, all=40, pairs=6, few=4)
    with masters(lab, family, "lossy") as both:
        flows = []
        for n in range(rounds):
            flows += both.flows(3, FIRST)
            both.known(flows, (n + 1) % 2)
            both.lead(FIRST, (n + 1) % 2)
            talk(flows)
        # A connection that was taken over counts when it is announced, which takes a second.
        time.sleep(3)
        both.equal()
