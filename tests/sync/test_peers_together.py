# SPDX-License-Identifier: GPL-2.0
"""Directors that are peers of each other, under loss."""

import contextlib
import errno
import socket
import time

import pytest
from lab import daemons, genl
from lab.netns import Namespace, wait_until
from lab.peers import PORT, Fake, Peers
from lab.settings import setting
from lab.sync_group import PEER, cable

pytestmark = pytest.mark.usefixtures("only_l4lb")

KEY = bytes(range(32))
SMALL = 400         # bytes of a message: few records, so there are many messages


def address(family, number, end):
    return f"172.31.{number}.{end}" if family == 4 else f"fd00:31:{number}::{end}"


@contextlib.contextmanager
def directors(lab, count):
    """COUNT namespaces beside the topology's director, each with a cable of its own to it;
    yields [(namespace, their end, the director's)], as cable number from 1 on."""
    first, out = lab.director.ns, []
    with contextlib.ExitStack() as stack:
        for n in range(1, count + 1):
            other, device = Namespace(f"{first.name}-s{n}"), f"peer{n}"
            stack.callback(other.destroy)
            other.sysctl("net/ipv6/conf/default/accept_dad", 0)
            first.ip(f"link add {device} type veth peer name {device} netns {other.name}")
            for ns, end in ((first, 1), (other, 2)):
                ns.ip(f"addr add {address(4, n, end)}/24 dev {device}",
                      f"addr add {address(6, n, end)}/64 dev {device} nodad",
                      f"link set {device} up")
            out.append(other)
        yield out


class Traffic:
    """One-way UDP flows through the director; each is announced with its first packet."""

    def __init__(self, lab):
        self.lab, self.vip, self.port = lab, lab.vip(4), lab.fresh_port()
        self.service = lab.ipvs.service(self.vip, self.port, proto=17, sched="rr")
        self.service.server(lab.rip(1, 4), 9, method=lab.method)
        self.ports = []

    def send(self, count, burst=20):
        for n in range(count):
            with self.lab.client.ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind(("", 0))
                sock.sendto(b"x", (self.vip, self.port))
                self.ports.append(sock.getsockname()[1])
            if n % burst == burst - 1:
                time.sleep(0.01)

    def known(self, ns):
        return {c["cport"] for c in genl.conns(ns) if c["vport"] == self.port}


@contextlib.contextmanager
def announced(lab, **options):
    """The director announces flows at once; its group's device is a cable to nobody."""
    with cable(lab.director.ns), setting(lab, "sync_threshold", "1 2"):
        daemons.start(lab.ipvs, "master", maxlen=SMALL, **options)
        try:
            yield Traffic(lab)
        finally:
            daemons.stop_all(lab.ipvs)


def joined(peers, family, count):
    for n in range(1, count + 1):
        peers[0].present(address(family, n, 2))
        peers[n].present(address(family, n, 1))


@contextlib.contextmanager
def all_peers(lab, others, family, key=None):
    """Peers of the director and of OTHERS, who know the director only."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(Peers(ns)) for ns in (lab.director.ns, *others)]
        for one in peers:
            one.set(multicast=False, key=key or b"")
        for n in range(1, len(peers)):
            peers[0].add(address(family, n, 2))
            peers[n].add(address(family, n, 1))
        joined(peers, family, len(others))
        yield peers


@contextlib.contextmanager
def lossy(ns, device, what):
    ns.run(["tc", "qdisc", "add", "dev", device, "root", "netem", *what.split()])
    try:
        yield
    finally:
        ns.run(["tc", "qdisc", "del", "dev", device, "root"], check=False)


@pytest.mark.smoke
@pytest.mark.parametrize("key", [None, KEY], ids=["unsigned", "signed"])
def test_two(nat, family, key):
    with directors(nat, 1) as others, announced(nat) as traffic, \
            all_peers(nat, others, family, key) as peers:
        traffic.send(200)
        wait_until(lambda: traffic.known(others[0]) >= set(traffic.ports), 5,
                   what="all connections there")
        one = peers[1].list()[address(family, 1, 1)]
        assert (one["gaps"], one["lost"]) == (0, 0)


def test_three(nat):
    with directors(nat, 2) as others, announced(nat) as traffic, \
            all_peers(nat, others, 4, KEY) as peers:
        traffic.send(200)
        for ns in others:
            wait_until(lambda: traffic.known(ns) >= set(traffic.ports),    # noqa: B023
                       5, what="all connections there")
        # A third one that has another key learns nothing.
        peers[2].set(key=bytes(32))
        peers[2].set(key=bytes(32))
        before = peers[2].count("records_in")
        traffic.send(50)
        wait_until(lambda: traffic.known(others[0]) >= set(traffic.ports), 5, what="the second")
        assert peers[2].count("records_in") == before


@pytest.mark.parametrize("key", [None, KEY], ids=["unsigned", "signed"])
def test_loss(nat, key):
    """5 % of the messages are lost and 10 % overtake others: all connections arrive."""
    with directors(nat, 1) as others, announced(nat) as traffic, \
            all_peers(nat, others, 4, key) as peers, \
            lossy(nat.director.ns, "peer1", "delay 10ms reorder 90% loss 5%"):
        traffic.send(4000)
        wait_until(lambda: traffic.known(others[0]) >= set(traffic.ports), 5,
                   what="all connections there")
        one = peers[1].list()[address(4, 1, 1)]
        assert one["gaps"] > 5
        assert one["repaired"] > 5
        assert one["lost"] == 0
        there = peers[0].list()[address(4, 1, 2)]
        # What is sent again is little more than what was lost.
        assert there["resent"] <= 3 * one["gaps"]


def test_memory(nat):
    """However many messages there were, those that are kept have at most 4 MiB."""
    with directors(nat, 1) as others, announced(nat) as traffic, \
            all_peers(nat, others, 4) as peers:
        most = 0
        for _ in range(8):
            traffic.send(2000, burst=6)
            most = max(most, peers[0].settings()["kept"])
        assert peers[0].count("messages_out") == 0, "to peers only"
        assert peers[0].count("peer_out") > 1200, "more messages than the window has"
        assert 100_000 < most <= 4 << 20
        again = peers[0].settings()["kept"]
        assert again == most, "as many as the window has, of one size"
        peers[0].delete(address(4, 1, 2))
        assert peers[0].settings()["kept"] == 0


def test_port(nat):
    with directors(nat, 1) as others, contextlib.ExitStack() as stack:
        one, two = (stack.enter_context(Peers(ns)) for ns in (nat.director.ns, others[0]))
        one.set(port=9001)
        with nat.director.ns.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("", 9001))
            genl.is_refused(lambda: one.add(address(4, 1, 2)), errno.EADDRINUSE)
        one.add(address(4, 1, 2))
        two.add(address(4, 1, 1), port=9001)
        one.present(address(4, 1, 2))
        two.present(address(4, 1, 1))
        one.delete(address(4, 1, 2))
        one.set(port=PORT)


def test_sent_again(nat):
    """The director numbers its messages from 1, and sends again what it is asked for; when
    its daemon starts again, it is another sender, and begins anew."""
    ns = nat.director.ns
    with cable(ns) as other, Peers(ns) as peers, setting(nat, "sync_threshold", "1 2"):
        peers.set(key=KEY)
        peers.add(PEER[4])
        senders = []
        for _ in range(2):
            with Fake(other, key=KEY) as fake, daemons.running(nat.ipvs, "master"):
                traffic = Traffic(nat)
                fake.join()
                first = sent(fake, traffic)
                second = sent(fake, traffic)
                assert (first[0]["sequence"], second[0]["sequence"]) == (1, 2)
                fake.nack((0, 1, 2 ** 64 - 1))
                for tail, data in (first, second):
                    again = fake.until(lambda t, d: t["flags"] & 4)
                    assert again == ({**tail, "flags": 4}, data)
                senders.append(first[0]["sender"])
        assert senders[0] != senders[1]


def sent(fake, traffic):
    """A message about a new connection of TRAFFIC."""
    traffic.send(1)
    return fake.until(lambda t, _: t["stream"] != 255)


def test_namespace_ends(nat):
    """With its peers, while messages come."""
    for _ in range(3):
        with directors(nat, 1) as others, announced(nat) as traffic, Peers(nat.director.ns) as one:
            one.add(address(4, 1, 2))
            two = Peers(others[0])
            two.add(address(4, 1, 1))
            one.present(address(4, 1, 2))
            traffic.send(200)
            two.sock.close()


