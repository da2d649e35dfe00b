# SPDX-License-Identifier: GPL-2.0
"""Fragments that the director routes. A reply's are reassembled, to be translated; others
are nobody's business: they pass as they came, with only their TTL changed."""

import os

import pytest
from lab import packet
from lab.farm import pattern
from lab.packet import AH, ESP, GRE, TCP, UDP
from lab.raw import Raw

OSPF = 89
STRANGER = "192.0.2.77"     # beside the real servers, and none of them


def passed(raw, source, to, pieces, order=None):
    """Send PIECES from the real servers' network. What arrives at the client's side."""
    for n in order or range(len(pieces)):
        raw.taps[1].send(pieces[n])
    raw.fence()
    return raw.client_tap.take(lambda p: p.dst == to and p.src == source)


def look(p):
    return p.offset, p.mf, p.df, p.ident, p.ttl, p.l4


def routed(pieces):
    """PIECES as a router sends them on."""
    return [(*look(p)[:4], p.ttl - 1, p.l4) for p in map(packet.Packet, pieces)]


def cut(source, to, proto, body, **kwargs):
    return packet.fragment4(packet.ip4(source, to, proto, body, **kwargs), 1220)


@pytest.mark.smoke
@pytest.mark.parametrize("proto", (ESP, AH, GRE, OSPF, packet.IPIP),
                         ids=("esp", "ah", "gre", "ospf", "ipip"))
@pytest.mark.parametrize("source", (STRANGER, None), ids=("stranger", "server"))
def test_other_protocols(nat, proto, source):
    """Last to first, which would show a reassembly."""
    raw = Raw(nat, UDP)
    to, source = nat.client_address(), source or raw.address(1)
    pieces = cut(source, to, proto, pattern(2900))
    got = passed(raw, source, to, pieces, (2, 1, 0))
    assert [look(p) for p in got] == routed(pieces)[::-1]


@pytest.mark.parametrize("proto", (UDP, TCP, packet.SCTP), ids=("udp", "tcp", "sctp"))
def test_of_a_stranger(nat, proto, backend):
    """Of the protocols of services, too, if no service can have to do with the sender."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs reassembles everybody's; runs with --backend l4lb")
    raw = Raw(nat, UDP)
    to = nat.client_address()
    pieces = cut(STRANGER, to, proto, pattern(2900))
    got = passed(raw, STRANGER, to, pieces, (2, 1, 0))
    assert [look(p) for p in got] == routed(pieces)[::-1]


def df_pieces(pieces):
    out = []
    for piece in pieces:
        h = bytearray(piece[:20])
        h[6] |= 0x40
        h[10:12] = b"\0\0"
        h[10:12] = packet.checksum(bytes(h)).to_bytes(2, "big")
        out.append(bytes(h) + piece[20:])
    return out


@pytest.mark.parametrize("known", (True, False), ids=("translated", "passing"))
def test_which_must_not_be_fragmented(nat, known, backend):
    """Fragments with DF are as large as the path allows: they leave in the same sizes, as
    the kernel lets them with connection tracking, and the sender gets no error."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs answers that they do not fit; runs with --backend l4lb")
    raw = Raw(nat, UDP)
    client = raw.client()
    client.open()
    whole = client.reply_packet(payload=pattern(2900))
    if not known:
        client.sport += 1
        whole = client.reply_packet(payload=pattern(2900))
    pieces = df_pieces(packet.fragment4(whole, 1220))
    source = raw.vip if known else raw.address(1)
    raw.taps[1].drain()
    got = passed(raw, source, client.address, pieces)
    assert not raw.taps[1].take(lambda p: p.proto == packet.ICMP)
    assert [(p.offset, p.mf, len(p.l4)) for p in got] == \
        [(p.offset, p.mf, len(p.l4)) for p in map(packet.Packet, pieces)]
    assert b"".join(p.l4 for p in got)[8:] == pattern(2900)


@pytest.mark.parametrize("proto", (ESP, AH), ids=("esp", "ah"))
def test_after_the_key_exchange(nat, proto, backend):
    """A server's fragments of ESP and AH get the VIP as their source, each for itself."""
    if not backend.is_l4lb and os.environ.get("L4LB_VEHICLE", "native") not in ("qemu", "native"):
        pytest.skip("this kernel's ip_vs is built without AH and ESP: Debian's have them")
    raw = Raw(nat, UDP, port=500, dport=500)
    client = raw.client(sport=500)
    client.open()
    pieces = cut(raw.address(1), client.address, proto, pattern(2900))
    got = passed(raw, raw.vip, client.address, pieces, (2, 1, 0))
    assert [look(p) for p in got] == routed(pieces)[::-1]
    assert [p.bad_checksum() for p in got] == [None] * 3


def test_a_removed_server(nat):
    """Its connections go on, in fragments, too."""
    raw = Raw(nat, UDP)
    client = raw.client()
    client.open()
    raw.remove(1)
    whole = client.reply_packet(payload=pattern(2900))
    got = passed(raw, raw.vip, client.address, packet.fragment4(whole, 1220))
    assert b"".join(p.l4 for p in got)[8:] == pattern(2900)
