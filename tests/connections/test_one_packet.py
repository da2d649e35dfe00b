# SPDX-License-Identifier: GPL-2.0
"""One-packet scheduling with NAT: each datagram is scheduled by itself, without a
connection, and its reply still comes from the VIP."""

import socket

import pytest
from lab import packet
from lab.genl import ONEPACKET
from lab.packet import UDP
from lab.raw import Raw

DATAGRAMS = 300
BATCH = 30


def exchange(raw, client, count):
    """COUNT datagrams from one port, each answered: ({server: how many}, replies)."""
    got, replies = {}, []
    for first in range(0, count, BATCH):
        for i in range(first, first + BATCH):
            client.send(payload=b"%d" % i)
        for number, p in client.arrive(BATCH):
            got[number] = got.get(number, 0) + 1
            client.reply(payload=b"re " + p.payload, number=number)
        replies += client.answered(BATCH)
    return got, replies


@pytest.mark.smoke
def test_spread_and_answered(nat, family, backend):
    """300 datagrams from one port over three servers: 100 each, no connections, and
    300 replies from the VIP and its port (with ip_vs, from the servers)."""
    raw = Raw(nat, UDP, family, (1, 2, 3), flags=ONEPACKET)
    client = raw.client()
    got, replies = exchange(raw, client, DATAGRAMS)
    assert got == {1: 100, 2: 100, 3: 100}
    assert client.rows() == []
    sources = {(p.src, p.sport) for p in replies}
    if not backend.is_l4lb:
        assert sources == {(raw.address(n), raw.dport) for n in (1, 2, 3)}
        return
    assert sources == {(raw.vip, raw.port)}
    assert all(p.bad_checksum() is None for p in replies)
    assert sorted(p.payload for p in replies) == \
        sorted(b"re %d" % i for i in range(DATAGRAMS))
    stats = raw.service.stats
    assert (stats["conns"], stats["inpkts"], stats["outpkts"]) == (DATAGRAMS,) * 3
    assert raw.dest(1)["stats"]["outpkts"] == 100
    assert nat.conns(vip=raw.vip, vport=raw.port) == []


@pytest.fixture
def ours(backend):
    if not backend.is_l4lb:
        pytest.skip("ip_vs leaves replies as they are; runs with --backend l4lb")


def reply_source(client):
    """The source (address, port) that the client sees in a reply of server 1."""
    client.reply(payload=b"re", number=1)
    p = client.answered()
    return p.src, p.sport


def test_follows_the_configuration(nat, family, ours):
    """Replies are translated only while the service has the flag, and the server with NAT;
    whether or not others have it."""
    raw = Raw(nat, UDP, family, flags=ONEPACKET)
    other = Raw(nat, UDP, family, flags=ONEPACKET)
    client = raw.client()
    vip, l4lb = (raw.vip, raw.port), (raw.address(1), raw.dport)
    assert reply_source(client) == vip
    raw.service.edit(flags=0)
    assert reply_source(client) == l4lb
    raw.service.edit(flags=ONEPACKET)
    raw.edit(1, weight=0)
    assert reply_source(client) == vip
    raw.edit(1, method=3)
    assert reply_source(client) == l4lb
    other.service.delete()
    raw.edit(1)
    assert reply_source(client) == vip
    raw.service.edit(flags=0)
    assert reply_source(client) == l4lb
    raw.service.edit(flags=ONEPACKET)
    raw.edit(1)
    raw.remove(1)
    assert reply_source(client) == l4lb
    raw.add(1)
    assert reply_source(client) == vip
    raw.service.delete()
    Raw(nat, UDP, family)       # keeps the hooks
    assert reply_source(client) == l4lb


def test_a_server_of_several_services(nat, family, ours):
    """A reply does not tell its service, so it counts as one of the service to which
    the server was added last."""
    one = Raw(nat, UDP, family, flags=ONEPACKET)
    two = Raw(nat, UDP, family, flags=ONEPACKET, dport=one.dport)
    client = one.client()
    assert reply_source(client) == (two.vip, two.port)
    two.service.delete()
    assert reply_source(client) == (one.vip, one.port)


def test_connections_come_first(nat, family, ours):
    """Replies of the same server's connections are translated for the connections."""
    one = Raw(nat, UDP, family, flags=ONEPACKET)
    plain = Raw(nat, UDP, family, dport=one.dport)
    client = plain.client()
    client.open()
    assert reply_source(client) == (plain.vip, plain.port)
    assert reply_source(one.client()) == (one.vip, one.port)


def test_other_packets_of_the_server(nat, family, ours):
    """Packets from another port or of another protocol stay unchanged."""
    raw = Raw(nat, UDP, family, flags=ONEPACKET)
    client = raw.client()
    for p in (packet.udp_packet(raw.address(1), raw.dport + 1, client.address, client.sport),
              packet.tcp_packet(raw.address(1), raw.dport, client.address, client.sport)):
        raw.taps[1].send(p)
        assert client.answered().src == raw.address(1)


def test_an_error_about_a_datagram(nat, family, ours):
    """If the server's port is closed, the client gets the error from the VIP."""
    raw = Raw(nat, UDP, family, flags=ONEPACKET)
    client = raw.client()
    client.send(payload=b"anybody?")
    _, p = client.arrive()
    kind, code = (3, 3) if family == 4 else (1, 4)
    raw.taps[1].send(packet.icmp_packet(raw.address(1), client.address, kind, code,
                                        payload=p.raw))
    error = client.icmp()
    assert (error.src, error.type, error.code) == (raw.vip, kind, code)
    inner = error.inner()
    assert (inner.src, inner.sport) == (client.address, client.sport)
    assert (inner.dst, inner.dport) == (raw.vip, raw.port)
    assert error.bad_checksum() is None


def test_the_directors_own_question(nat, family, ours):
    """A health check on the director gets its answer from the server's own
    address."""
    raw = Raw(nat, UDP, family, flags=ONEPACKET)
    sock = nat.director.ns.socket(socket.AF_INET if family == 4 else socket.AF_INET6,
                                  socket.SOCK_DGRAM)
    with sock:
        sock.settimeout(5)
        sock.bind((nat.dip(family), 0))
        raw.taps[1].send(packet.udp_packet(raw.address(1), raw.dport, nat.dip(family),
                                           sock.getsockname()[1], b"well"))
        data, source = sock.recvfrom(100)
    assert (data, source[:2]) == (b"well", (raw.address(1), raw.dport))
