# SPDX-License-Identifier: GPL-2.0
"""First packets by XDP where more than the choice of a real server matters: persistence,
defences, a full table, ranges."""

import time

import pytest
from lab import fast, packet, ranges, xdp
from lab.counters import counts
from lab.flows import BOTH, counted, reply_is, request_is
from lab.genl import PERSISTENT
from lab.ingress import at_ingress, begun, ready
from lab.netns import pinned
from lab.packet import ACK, SYN, TCP
from lab.ranges import PREFIX, Ranged
from lab.settings import setting
from lab.tables import room_for

pytestmark = [pytest.mark.usefixtures("can_xdp"), pytest.mark.no_xdp("it attaches XDP itself")]


def established(raw, **want):
    """A client whose connection cannot be evicted any more."""
    client = begun(raw, **want)
    if raw.proto == TCP:
        if raw.lab.shape == "nat":
            client.reply(SYN | ACK).answered()
        client.send(ACK).arrive()
    else:
        client.send().arrive()
    return client


def test_persistent(nat, family):
    """A client's flows get the same real server, by XDP and through the stack."""
    raw = ready(nat, TCP, family, (1, 2), flags=PERSISTENT, timeout=100)
    with at_ingress(nat), xdp.attached(nat):
        first, other = begun(raw, xdp=1), begun(raw, xdp=1)
        assert first.number != other.number
        for client in (first, other):
            again = raw.client(client.address)
            with counted(raw, xdp=1):
                again.open()
            assert again.number == client.number
            assert [r["cport"] for r in nat.conns(client=client.address, vport=raw.port)
                    if r["cport"] == 0] == [0]
    with setting(nat, "fast_path", 0):
        again = raw.client(first.address)
        again.open()
        assert again.number == first.number


@pytest.mark.parametrize("proto", (packet.TCP, packet.SCTP), ids=("tcp", "sctp"))
def test_secure_tcp(nat, proto):
    """The first state, and for how long it is kept, are those of the stack."""
    seen = []
    with setting(nat, "secure_tcp", 3):
        raw = ready(nat, proto)
        with at_ingress(nat), xdp.attached(nat):
            client = begun(raw, **({"xdp": 1} if proto == TCP else {"slow_protocol": 1}))
            seen.append((client.state, client.row()["expires"]))
        with setting(nat, "fast_path", 0):
            time.sleep(0.03)
            client = raw.client()
            client.open()
            seen.append((client.state, client.row()["expires"]))
    assert seen[0][0] == seen[1][0] and abs(seen[0][1] - seen[1][1]) <= 1


@BOTH
def test_full(lab, family, proto):
    """conn_max: connections in use stay; a new one is refused by the stack, and counted once."""
    raw = ready(lab, proto, family)
    with at_ingress(lab), room_for(lab, 3), xdp.attached(lab):
        time.sleep(0.03)
        clients = [established(raw, xdp=1).prove() for _ in range(3)]
        late, before = raw.client(), counts(lab)
        with counted(raw, slow_unknown=1):
            late.send(payload=b"x")
        late.nothing_arrives()
        after = counts(lab)
        assert {k: after[k] - before[k] for k in after if after[k] != before[k]} == {"full": 1}
        assert late.row() is None and all(c.row() for c in clients)
        for client in clients:
            request_is(client, xdp=1)


def test_flood(lab, family):
    """Connections that are not established make room for new ones, which begin by XDP."""
    raw = ready(lab, TCP, family)
    with at_ingress(lab), room_for(lab, 10), xdp.attached(lab), pinned():
        time.sleep(0.03)
        good, before = [established(raw, xdp=1) for _ in range(3)], fast.read(lab.director.ns)
        for _ in range(100):
            raw.client().send()
        raw.fence()
        assert fast.grown(lab.director.ns, before)["xdp"] >= 100
        assert all(c.row() for c in good)
        for client in good:
            request_is(client, xdp=1)


@BOTH
def test_range(nat, family, proto):
    """Flows to each address and port of a range begin by XDP, and their replies take it; what is
    beside the range is left to the stack."""
    with ranges.here(nat, PREFIX[family]):
        raw = fast.ready(Ranged(nat, proto, family, (1, 2)))
        with at_ingress(nat), xdp.attached(nat):
            for vip, port in ((0, raw.first), (5, raw.first + 50), (-1, raw.last)):
                client = begun(raw.at(vip, port), xdp=1)
                if proto == TCP:
                    client.reply(SYN | ACK).answered()
                    client.send(ACK).arrive()
                client.reply(ACK, b"y").answered()      # it looks its route up
                p = request_is(client, b"more", xdp=1)
                assert (p.dst, p.dport) == (raw.address(client.number), port)
                p = reply_is(client, xdp=1)
                assert (p.src, p.sport) == (raw.vip, port)
            for port in (raw.first - 1, raw.last + 1):
                client = raw.at(5, port).client()
                with counted(raw, slow_unknown=1):
                    client.send()
                client.nothing_arrives()
