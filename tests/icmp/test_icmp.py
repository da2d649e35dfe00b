# SPDX-License-Identifier: GPL-2.0
"""ICMP errors about balanced flows, in both directions."""



import struct

import pytest
from lab import packet
from lab.netns import wait_until
from lab.packet import ACK, TCP, UDP, icmp_error
from lab.raw import Raw

UNREACHABLE = {4: (3, 3), 6: (1, 4)}
TOO_BIG = {4: (3, 4), 6: (2, 0)}
EXCEEDED = {4: (11, 0), 6: (3, 0)}


def translated(raw, client):
    """The client's packet as the server received it."""
    return packet.l4_packet(raw.proto, client.address, client.sport, raw.address(1),
                            raw.dport, payload=b"request", ttl=63)


@pytest.mark.parametrize("kind", (UNREACHABLE, TOO_BIG, EXCEEDED),
                         ids=("unreachable", "too-big", "exceeded"))
def test_server_complains(nat, family, proto, kind):
    """A real server's error about a request reaches the client as if the VIP
    had sent it, and quotes the packet as the client sent it."""
    raw = Raw(nat, proto, family)
    client = raw.client()
    client.open()
    rest = 1300 if kind is TOO_BIG else 0
    raw.taps[1].send(icmp_error(raw.address(1), translated(raw, client), kind[family], rest))
    p = client.icmp()
    assert (p.src, p.type, p.code, p.rest) == (raw.vip, *kind[family], rest)
    quoted = p.inner()
    assert (quoted.src, quoted.sport) == (client.address, client.sport)
    assert (quoted.dst, quoted.dport) == (raw.vip, raw.port)
    if family == 4:
        assert packet.fold(quoted.raw[:20]) == 0xffff


@pytest.mark.smoke
@pytest.mark.parametrize("kind", (UNREACHABLE, TOO_BIG, EXCEEDED),
                         ids=("unreachable", "too-big", "exceeded"))
def test_client_complains(nat, family, proto, kind):
    """An error about a reply reaches the real server, quoting what it sent."""
    raw = Raw(nat, proto, family)
    client = raw.client()
    client.open()
    client.reply(ACK, b"answer")
    reply = client.answered()
    rest = 1300 if kind is TOO_BIG else 0
    # From the client itself, and from a router on the way.
    for source in (client.address, nat.client_address(family)):
        raw.client_tap.send(icmp_error(source, reply.raw, kind[family], rest))
        p = raw.taps[1].expect(lambda p: p.type == kind[family][0], what="ICMP error")
        assert (p.src, p.dst, p.code, p.rest) == (source, raw.address(1),
                                                  kind[family][1], rest)
        quoted = p.inner()
        assert (quoted.src, quoted.sport) == (raw.address(1), raw.dport)
        assert (quoted.dst, quoted.dport) == (client.address, client.sport)
        if family == 4:
            assert packet.fold(quoted.raw[:20]) == 0xffff


def test_error_about_direct_reply(dr, family, proto):
    """DR: the server's reply bypassed the director, but an error about it comes to
    the VIP; it is forwarded unchanged to the connection's server."""
    raw = Raw(dr, proto, family, (1, 2))
    client = raw.client()
    number = client.open()
    reply = client.reply_packet(ACK, b"answer", number)
    raw.client_tap.send(icmp_error(client.address, reply, TOO_BIG[family], 1300))
    p = raw.taps[number].expect(lambda p: p.type == TOO_BIG[family][0], what="ICMP error")
    assert (p.src, p.dst, p.rest) == (client.address, raw.vip, 1300)
    assert p.payload == reply[:len(p.payload)]


def test_error_about_tunnelled_reply(tun, family, proto):
    raw = Raw(tun, proto, family, (1, 2))
    client = raw.client()
    number = client.open()
    reply = client.reply_packet(ACK, b"answer", number)
    raw.client_tap.send(icmp_error(client.address, reply, TOO_BIG[family], 1300))
    p = raw.taps[number].expect(lambda p: p.proto in (packet.IPIP, packet.IPV6),
                                what="tunnelled ICMP error").inner()
    assert (p.src, p.dst, p.type, p.rest) == (client.address, raw.vip,
                                              TOO_BIG[family][0], 1300)


def test_bad_icmp_checksum_is_dropped(nat, family):
    raw = Raw(nat, UDP, family)
    client = raw.client()
    client.open()
    client.reply(payload=b"answer")
    reply = client.answered()
    raw.client_tap.send(icmp_error(client.address, reply.raw, UNREACHABLE[family], csum=0x1234))
    raw.taps[1].send(icmp_error(raw.address(1), translated(raw, client),
                           UNREACHABLE[family], csum=0x1234))
    raw.fence()
    assert raw.taps[1].take(lambda p: p.type is not None and p.type < 100
                            and p.dst == raw.address(1)) == []
    assert raw.client_tap.take(lambda p: p.dst == client.address
                               and p.src == raw.vip) == []


def test_error_about_nobody(nat, family):
    """An error about an unknown flow of the VIP is not sent to any server; an
    unrelated one passing through is forwarded unchanged."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    unknown = client.reply_packet(payload=b"never sent", number=1)
    vip_reply = packet.udp_packet(raw.vip, raw.port, client.address, client.sport, b"x")
    raw.client_tap.send(icmp_error(client.address, vip_reply, UNREACHABLE[family]))
    raw.fence()
    assert raw.taps[1].take(lambda p: p.type in (1, 3)) == []
    raw.client_tap.send(icmp_error(client.address, unknown, UNREACHABLE[family]))
    p = raw.taps[1].expect(lambda p: p.type == UNREACHABLE[family][0])
    assert p.inner().raw[:20] == unknown[:20]


def test_error_quoting_a_later_fragment(nat):
    """A later fragment has no ports by which to find a flow."""
    raw = Raw(nat, UDP, 4)
    client = raw.client()
    client.open()
    quoted = packet.ip4(raw.vip, client.address, UDP, b"\0" * 32, offset=800)
    raw.client_tap.send(icmp_error(client.address, quoted, UNREACHABLE[4]))
    raw.fence()
    assert raw.taps[1].take(lambda p: p.type == 3) == []


def test_quote_cut_short(nat, family):
    """Routers quote as little as eight bytes behind the IP header."""
    raw = Raw(nat, TCP, family)
    client = raw.client()
    client.open()
    client.reply(ACK)
    reply = client.answered()
    head = 20 if family == 4 else 40
    raw.client_tap.send(icmp_error(client.address, reply.raw, UNREACHABLE[family],
                              quote=head + 8))
    p = raw.taps[1].expect(lambda p: p.type == UNREACHABLE[family][0])
    assert struct.unpack("!HH", p.payload[head:head + 4]) == (raw.dport, client.sport)
    # Seven bytes still hold the ports for v4, three do not.
    raw.client_tap.send(icmp_error(client.address, reply.raw, UNREACHABLE[family],
                              quote=head + 3))
    raw.fence()
    assert raw.taps[1].take(lambda p: p.type == UNREACHABLE[family][0]) == []


@pytest.mark.smoke
def test_tunnel_path_shrinks(tun):
    """A router between director and server reports a smaller MTU about our
    tunnel packet: the next large packet is answered to the client with it."""
    raw = Raw(tun, UDP, 4)
    client = raw.client()
    client.send(payload=b"a" * 1200, ip_args={"df": True})
    _, outer = client.arrive()
    report = packet.icmp_packet(tun.topo.rip(1), tun.dip(), 3, 4, 900, payload=outer.raw[:548])
    raw.taps[1].send(report)

    def told():
        client.send(payload=b"a" * 1200, ip_args={"df": True})
        client.arrivals()
        return [p for p in raw.client_tap.take(lambda p: p.dst == client.address)
                if (p.type, p.code) == (3, 4) and p.rest & 0xffff == 880]

    try:
        quoted = wait_until(told, 5, step=0.1)[0].inner()
        assert (quoted.src, quoted.dst, quoted.dport) == (client.address, raw.vip, raw.port)
    finally:
        tun.director.ns.forget_paths()
