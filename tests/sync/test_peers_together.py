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
from lab.rows import amount
from lab.settings import setting
from lab.sync_group import DIRECTOR, PEER, cable
from lab.sync_wire import Record

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits, pytest.mark.dear]

KEY = bytes(range(32))
FIRST_PORT = 2000   # of clients
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
            # A namespace takes its time to end, and its devices would stay as long.
            stack.callback(first.run, ["ip", "link", "del", device], check=False)
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
                # Another one each time: a port that comes again is no new connection.
                self.ports.append(FIRST_PORT + len(self.ports))
                sock.bind(("", self.ports[-1]))
                sock.sendto(b"x", (self.vip, self.port))
            if n % burst == burst - 1:
                time.sleep(0.01)

    def known_clients(self, ns):
        return {c["client"] for c in genl.conns(ns) if c["vport"] == self.port}

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




# ---- resyncs

def with_service(traffic, ns, stack):
    """The service of TRAFFIC in NS, too; without it, connections there have no real server."""
    ipvs = stack.enter_context(genl.Ipvs(ns))
    service = ipvs.service(traffic.vip, traffic.port, proto=17, sched="rr")
    service.server(traffic.lab.rip(1, 4), 9, method=traffic.lab.method)


def in_step(peers, deadline=10):
    for n in range(1, len(peers)):
        peers[0].in_step(address(4, n, 2), deadline)
        peers[n].in_step(address(4, n, 1), deadline)


@pytest.mark.smoke
@pytest.mark.parametrize("key", [None, KEY], ids=["unsigned", "signed"])
def test_new_peer_gets_all(nat, key):
    """What was announced before it came."""
    with directors(nat, 1) as others, announced(nat) as traffic:
        traffic.send(600)
        with all_peers(nat, others, 4, key) as peers:
            in_step(peers)
            assert traffic.known(others[0]) >= set(traffic.ports)
            one = peers[1].progress(address(4, 1, 1))
            assert one["bulk_in"] == one["expected"] >= len(set(traffic.ports))
            there = peers[0].progress(address(4, 1, 2))
            assert there["bulk_out"] == one["bulk_in"]


def test_new_peer_under_loss(nat, request):
    """5 % of all messages are lost in both directions: what a resync lacks is found by
    comparison, and sent again."""
    with directors(nat, 1) as others, announced(nat) as traffic, contextlib.ExitStack() as stack:
        traffic.send(amount(request.config, few=3000, all=20000))
        with_service(traffic, others[0], stack)
        stack.enter_context(lossy(nat.director.ns, "peer1", "loss 5%"))
        stack.enter_context(lossy(others[0], "peer1", "loss 5%"))
        peers = stack.enter_context(all_peers(nat, others, 4, KEY))
        in_step(peers, 60)
        assert traffic.known(others[0]) >= set(traffic.ports)
        wait_until(lambda: peers[1].compare(address(4, 1, 1))["difference"] == 0, 60,
                   what="no difference")


@contextlib.contextmanager
def deaf(ns, device):
    """Of what reaches DEVICE, 5 % are lost there: the other end's counters have all."""
    ns.run(["nft", "-f", "-"], text_input=(
        "table netdev deaf { chain in { type filter hook ingress device "
        f"{device} priority 0; numgen random mod 20 == 0 drop; }}; }}"))
    try:
        yield
    finally:
        ns.run("nft delete table netdev deaf", check=False)


def octets(*namespaces):
    """Bytes that the ends of the cable to the first peer have sent."""
    lines = [line.split() for ns in namespaces for line in ns.read("/proc/net/dev").splitlines()]
    return sum(int(words[9]) for words in lines if words[0] == "peer1:")


def test_no_difference_after_loss(nat, request):
    """New connections, while 5 % of the messages are lost and 10 % overtake others: the peer has
    all soon after the last one, and little more is sent than without loss."""
    count = amount(request.config, few=2000, all=20_000)
    with directors(nat, 1) as others, announced(nat) as traffic, contextlib.ExitStack() as stack:
        with_service(traffic, others[0], stack)
        peers = stack.enter_context(all_peers(nat, others, 4, KEY))
        in_step(peers)
        # The comparison at the start would be counted below.
        peers[1].compare(address(4, 1, 1))

        def cost(number):
            before = octets(nat.director.ns, others[0])
            traffic.send(number)
            wait_until(lambda: traffic.known(others[0]) >= set(traffic.ports), 5,
                       what="all connections there")
            return (octets(nat.director.ns, others[0]) - before) / number
        with lossy(nat.director.ns, "peer1", "delay 10ms reorder 90%"):
            plain = cost(count)
            with deaf(others[0], "peer1"):
                more = cost(count) / plain - 1
        result = peers[1].compare(address(4, 1, 1))
        assert result["difference"] == 0
        assert result["compared"] >= len(set(traffic.ports))
        resent = peers[0].list()[address(4, 1, 2)]["resent"]
        print(f"{resent} messages were sent again, {100 * more:.1f} % more traffic")
        assert resent, "nothing was lost"
        assert more <= 0.15


def test_returning_director(nat):
    """It comes back with nothing, and gets all from a peer that has only copies: nobody has
    to have seen their packets."""
    with directors(nat, 2) as others, announced(nat) as traffic, contextlib.ExitStack() as stack:
        for ns in others:
            with_service(traffic, ns, stack)
        with cable(others[0], others[1], "side"):
            peers = stack.enter_context(all_peers(nat, others, 4))
            traffic.send(300)
            wait_until(lambda: traffic.known(others[0]) >= set(traffic.ports), 5, what="copies")
            peers[2].delete(address(4, 2, 1))
            known_before = len(traffic.known(others[1]))
            peers[0].delete(address(4, 2, 2))
            traffic.send(300)
            wait_until(lambda: traffic.known(others[0]) >= set(traffic.ports), 5, what="copies")
            assert len(traffic.known(others[1])) <= known_before
            peers[1].add(PEER[4])
            peers[2].add(DIRECTOR[4])
            peers[2].in_step(DIRECTOR[4])
            assert traffic.known(others[1]) >= set(traffic.ports)


def test_difference_is_repaired(nat):
    """Connections that one side has lost are sent again, and nothing else."""
    with directors(nat, 1) as others, announced(nat) as traffic, contextlib.ExitStack() as stack:
        with_service(traffic, others[0], stack)
        peers = stack.enter_context(all_peers(nat, others, 4))
        in_step(peers)
        traffic.send(500)
        wait_until(lambda: traffic.known(others[0]) >= set(traffic.ports), 5, what="all there")
        addr = address(4, 1, 1)
        assert peers[1].compare(addr)["difference"] == 0
        others[0].sysctl("net/ipv4/vs/expire_nodest_conn", 1)
        with genl.Ipvs(others[0]) as ipvs:
            ipvs.flush()
        wait_until(lambda: not traffic.known(others[0]), 10, what="none there")
        with_service(traffic, others[0], stack)
        before = peers[0].count("bulk_out")
        found = peers[1].compare(addr)
        assert 300 < found["difference"] <= 500
        wait_until(lambda: traffic.known(others[0]) >= set(traffic.ports), 10, what="all again")
        assert peers[0].count("bulk_out") - before < 1000
        assert peers[1].compare(addr)["difference"] == 0


def fill(ns, other, traffic, count):
    """COUNT connections that a peer in namespace OTHER tells of."""
    with Peers(ns) as peers:
        peers.add(PEER[4])
        before = peers.count("records_in")
        with Fake(other) as fake:
            fake.join()
            for n in range(0, count, 30):
                records = [Record(f"10.{9 + (i >> 16)}.{i >> 8 & 255}.{i & 255}", 2000, traffic.vip,
                                  traffic.port, traffic.lab.rip(1, 4), 9, proto=17, state=0)
                           for i in range(n + 1, min(n + 30, count) + 1)]
                fake.records(*records, sequence=n // 30 + 1)
                if n % 1500 == 1470:
                    taken(peers, before + n + 30)
            taken(peers, before + count)


def taken(peers, count):
    wait_until(lambda: peers.count("records_in") >= count, 10, what=f"{count} records")


def test_many_at_once(nat, request):
    """A whole table to an empty peer, as fast as it can: 100,000 connections (in "make
    test-all") in at most 8 s."""
    count, ns = amount(request.config, few=3000, all=100000), nat.director.ns
    with cable(ns) as other, directors(nat, 1) as others, contextlib.ExitStack() as stack:
        traffic = Traffic(nat)
        fill(ns, other, traffic, count)
        with_service(traffic, others[0], stack)
        one, two = (stack.enter_context(Peers(x)) for x in (ns, others[0]))
        one.set(rate=0, verify=0)
        two.set(verify=0)
        one.add(address(4, 1, 2))
        two.add(address(4, 1, 1))
        begin = time.monotonic()
        two.in_step(address(4, 1, 1), 60)
        seconds = time.monotonic() - begin
        assert two.progress(address(4, 1, 1))["bulk_in"] >= count, "nothing came by repair"
        assert len(traffic.known_clients(others[0])) >= count
        assert seconds < 8, f"{count} connections"
