# SPDX-License-Identifier: GPL-2.0
"""Persistent clients stay with their real servers when another director takes over."""

import contextlib
import time

import pytest
from lab import genl
from lab.genl import PERSISTENT
from lab.netns import wait_until
from lab.packet import ACK, TCP
from lab.raw import Raw
from lab.rows import amount
from lab.second import announcing
from lab.sync_group import DEVICE
from lab.topology import FRONT, HOST

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]

NUMBERS = (1, 2, 3, 4)
TIMEOUT = 30            # seconds of a template
ANNOUNCED = 40          # seconds in which the sweep has announced all connections


class Pair:
    """The director and a second one with a persistent service, of which the clients' packets
    reach one."""

    def __init__(self, lab, other, family):
        self.lab, self.other, self.family = lab, other, family
        options = {"sched": "rr", "flags": PERSISTENT, "timeout": TIMEOUT}
        self.raw = Raw(lab, TCP, family, NUMBERS, **options)
        scope = "" if family == 4 else " nodad preferred_lft 0"
        other.ns.ip(f"addr add {self.raw.vip}/{HOST[family]} dev lo{scope}",
                    f"route add {'10.0.0.0/8' if family == 4 else '2001:db8:c::/48'} "
                    f"via {FRONT[family]}2")
        service = other.ipvs.service(self.raw.vip, self.raw.port, proto=TCP, **options)
        for number in NUMBERS:
            mac = lab.servers[number - 1].mac().hex(":")
            other.ns.ip(f"neigh replace {self.raw.address(number)} lladdr {mac} dev eth0 "
                        "nud permanent")
            service.server(self.raw.address(number), self.raw.dport, method=lab.method)

    def templates(self):
        """{client: real server} of the second director."""
        return {c["client"]: c["server"] for c in genl.conns(self.other.ns)
                if c["vport"] == self.raw.port and not c["cport"]}

    def connections(self):
        """The clients whose connections are established for the second director."""
        return {c["client"] for c in genl.conns(self.other.ns)
                if c["vport"] == self.raw.port and c["state"] == "ESTABLISHED"}

    @contextlib.contextmanager
    def taken_over(self):
        """The clients' packets go to the second director, which hears no more of the first one."""
        tap = self.raw.client_tap
        self.lab.director.ns.ip(f"link set {DEVICE} down")
        before = tap.peer
        tap.peer = bytes.fromhex(self.other.mac.replace(":", ""))
        try:
            yield
        finally:
            tap.peer = before


@pytest.mark.smoke
def test_clients_stay(dr, family, request):
    """Each client's connection goes on for more than two timeouts of its template, which the
    second director has, too; then a new connection goes where the first one went."""
    with announcing(dr) as other:
        both = Pair(dr, other, family)
        clients = [both.raw.client() for _ in range(amount(request.config, few=30, all=1000))]
        numbers = {client: client.establish() for client in clients}
        every = {client.address for client in clients}
        wait_until(lambda: every <= both.connections(), ANNOUNCED, what="all connections", step=1)
        assert every <= both.templates().keys()
        with both.taken_over():
            for _ in range(5):
                time.sleep(TIMEOUT / 2)
                for client in clients:
                    client.send(ACK)
                    assert client.arrive()[0] == numbers[client]
            held = both.templates()
            assert {c.address: both.raw.address(numbers[c]) for c in clients} == {
                a: s for a, s in held.items() if a in every}
            for client in clients:
                assert both.raw.client(client.address).open() == numbers[client]


def test_clients_move_without_templates(dr, family, request):
    """The control: when the second director knows nothing, most go elsewhere."""
    with announcing(dr, announces=False) as other:
        both = Pair(dr, other, family)
        clients = [both.raw.client() for _ in range(amount(request.config, few=30, all=100))]
        numbers = {client: client.establish() for client in clients}
        # Another order, or the same choices would be made again.
        with both.taken_over():
            stayed = sum(both.raw.client(client.address).open() == numbers[client]
                         for client in reversed(clients[1:]))
        assert stayed < len(clients) / 2
