# SPDX-License-Identifier: GPL-2.0
"""AH and ESP follow the UDP connection between ports 500 of client and VIP."""

import os

import pytest
from lab import packet
from lab.packet import ESP, UDP
from lab.raw import Raw

AH, IKE = 51, 500
KINDS = {"esp": (ESP, b"\0\0\x12\x34" + b"\0\0\0\1" + b"secret" * 8),
         # Next header UDP, 24 bytes long; the bytes after it must not be read.
         "ah": (AH, b"\x11\4\0\0" + b"\0\0\x12\x34" + b"\0\0\0\1" + b"sum" * 4
                + b"\x01\xf4\x01\xf4\0\x10\0\0" + b"datagram")}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def send(raw, client, kind):
    proto, body = KINDS[kind]
    raw.client_tap.send(packet.ip(client.address, raw.vip, proto, body))


def arrived(raw, client, kind):
    """[(server's number, packet, the packet without a tunnel's header)]"""
    proto, out = KINDS[kind][0], []
    for n, tap in raw.taps.items():
        for p in tap.take(lambda p: p.is_tunnel or p.proto == proto):
            inner = p.inner() if p.is_tunnel else p
            if inner.proto == proto and inner.src == client.address:
                out.append((n, p, inner))
    return out


def known_difference(backend, kind, family):
    if not backend.is_l4lb and os.environ.get("L4LB_VEHICLE", "native") not in ("qemu", "native"):
        pytest.skip("this kernel's ip_vs is built without AH and ESP: Debian's have them")
    if not backend.is_l4lb and kind == "ah" and family == 6:
        pytest.skip("ip_vs looks behind an AH header of IPv6; runs with --backend l4lb")


@pytest.mark.smoke
def test_follows_the_key_exchange(lab, family, kind, backend):
    known_difference(backend, kind, family)
    proto, body = KINDS[kind]
    raw = Raw(lab, UDP, family, (1, 2), port=IKE, dport=IKE)
    servers = set()
    for _ in range(2):
        client = raw.client(sport=IKE)
        send(raw, client, kind)
        raw.fence()
        assert arrived(raw, client, kind) == []
        assert client.row() is None         # nothing is scheduled by it
        number = client.open()
        servers.add(number)
        send(raw, client, kind)
        raw.fence()
        (n, p, inner), = arrived(raw, client, kind)
        assert n == number
        assert inner.l4 == body
        assert inner.dst == (raw.address(number) if lab.shape == "nat" else raw.vip)
        assert inner.ttl == 63
        assert p.bad_checksum() is None
    assert servers == {1, 2}
    # Another port than 500 is no key exchange.
    stranger = raw.client()
    stranger.open()
    send(raw, stranger, kind)
    raw.fence()
    assert arrived(raw, stranger, kind) == []


def test_the_other_direction(nat, family, kind, backend):
    """A packet from the server of the key exchange leaves with the VIP as its source;
    one from another server leaves unchanged."""
    known_difference(backend, kind, family)
    proto, body = KINDS[kind]
    raw = Raw(nat, UDP, family, (1, 2), port=IKE, dport=IKE)
    client = raw.client(sport=IKE)
    number = client.open()
    for n, source in ((number, raw.vip), (3 - number, raw.address(3 - number))):
        raw.taps[n].send(packet.ip(raw.address(n), client.address, proto, body))
        p = raw.client_tap.expect(lambda p: p.dst == client.address and p.proto == proto)
        assert (p.src, p.l4) == (source, body)
        assert p.bad_checksum() is None


def test_server_gone(nat, family, kind, backend):
    """AH and ESP are dropped while the server is removed, as the connection's packets are."""
    known_difference(backend, kind, family)
    raw = Raw(nat, UDP, family, (1, 2), port=IKE, dport=IKE)
    client = raw.client(sport=IKE)
    number = client.open()
    raw.remove(number)
    send(raw, client, kind)
    raw.fence()
    assert arrived(raw, client, kind) == []
    raw.add(number)
    send(raw, client, kind)
    raw.fence()
    assert [n for n, _, _ in arrived(raw, client, kind)] == [number]


@pytest.mark.parametrize("length", (0, 1, 7, 8, 11))
def test_cut_short(nat, family, kind, length):
    """Truncated packets, from client and server, do no harm."""
    proto, body = KINDS[kind]
    raw = Raw(nat, UDP, family, port=IKE, dport=IKE)
    client = raw.client(sport=IKE)
    client.open()
    raw.client_tap.send(packet.ip(client.address, raw.vip, proto, body[:length]))
    raw.taps[1].send(packet.ip(raw.address(1), client.address, proto, body[:length]))
    raw.fence()


def behind_options(proto, body):
    """BODY behind an empty hop-by-hop header."""
    return bytes([proto, 0, 1, 4, 0, 0, 0, 0]) + body


def test_behind_another_header(nat, backend):
    """AH behind a hop-by-hop header is AH, too: the UDP header that it protects is not
    scheduled, and no port is rewritten, nor an address but by the key exchange."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs looks behind an AH header of IPv6; runs with --backend l4lb")
    proto, body = KINDS["ah"]
    raw = Raw(nat, UDP, 6, port=IKE, dport=IKE)
    plain = Raw(nat, UDP, 6)
    client, stranger = raw.client(sport=IKE), plain.client()

    def protected(client):
        datagram = packet.udp(client.address, client.raw.vip, client.sport, client.raw.port,
                              b"datagram")
        return packet.ip6(client.address, client.raw.vip, packet.HOPOPTS,
                          behind_options(proto, body[:24] + datagram))
    raw.client_tap.send(protected(stranger))
    raw.fence()
    assert stranger.row() is None
    assert not raw.taps[1].take(lambda p: p.src == stranger.address)
    stranger.open()
    raw.client_tap.send(protected(stranger))
    raw.fence()
    assert not raw.taps[1].take(lambda p: p.src == stranger.address)
    client.open()
    sent = protected(client)
    raw.client_tap.send(sent)
    raw.fence()
    p, = raw.taps[1].take(lambda p: p.src == client.address)
    assert p.dst == raw.address(1)
    assert p.raw[40:] == sent[40:]
