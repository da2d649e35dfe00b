# SPDX-License-Identifier: GPL-2.0
"""What each forwarding method does to a packet, header field by field."""

import errno
import struct

import pytest
from lab import packet
from lab.farm import pattern
from lab.genl import MASQ, ROUTE, is_refused
from lab.netns import wait_until
from lab.packet import ACK, PSH, SCTP, SYN, TCP, UDP
from lab.raw import Raw
from lab.topology import PHANTOM_MTU, SERVERS

ECT1, ECT0, CE = 1, 2, 3


def unwrap(lab, p, family=4):
    """The client's packet as the server's application sees it."""
    if lab.shape != "tun":
        return p
    assert p.proto == (packet.IPIP if family == 4 else packet.IPV6), p
    return p.inner()


def check_request(raw, client, number, p, flags, *, payload, tos=0, ttl=63):
    """One forwarded packet, all of it."""
    lab = raw.lab
    inner = unwrap(lab, p, raw.family)
    want_dst, want_port = (raw.address(number), raw.dport) if lab.shape == "nat" else \
        (raw.vip, raw.port)
    assert (inner.src, inner.sport) == (client.address, client.sport)
    assert (inner.dst, inner.dport) == (want_dst, want_port)
    assert inner.ttl == ttl
    assert inner.tos == tos
    assert inner.payload == payload
    assert inner.flags == (flags if raw.proto == TCP else None)
    assert inner.proto == raw.proto
    assert p.mac == lab.nodes[SERVERS[number - 1]].mac()


@pytest.mark.stock
@pytest.mark.smoke
@pytest.mark.each
def test_request(lab, family, proto):
    """It arrives once, with one hop less, translated only by NAT, with right
    checksums; later packets of the flow follow."""
    raw = Raw(lab, proto, family, (1, 2))
    client = raw.client()
    client.send(SYN, b"first", ip_args={"tos": 0x28})
    number, p = client.arrive()
    check_request(raw, client, number, p, SYN, payload=b"first", tos=0x28)
    for i in range(3):
        payload = pattern(200 + i)
        client.send(ACK | PSH, payload)
        again, p = client.arrive()
        assert again == number
        check_request(raw, client, number, p, ACK | PSH, payload=payload)
    assert raw.client_tap.take(lambda q: q.dst == client.address) == []


@pytest.mark.smoke
def test_nat_reply(nat, family, proto):
    """The answer leaves with the VIP as its source, checksums right."""
    raw = Raw(nat, proto, family)
    client = raw.client()
    client.open()
    for payload in (b"", b"x", pattern(333)):
        client.reply(ACK, payload, ip_args={"tos": 0x10})
        p = client.answered()
        assert (p.src, p.sport) == (raw.vip, raw.port)
        assert (p.ttl, p.tos, p.payload) == (63, 0x10, payload)
    # Another port of the server is not the service: forwarded as it is.
    client.raw.taps[1].send(packet.l4_packet(
        proto, raw.address(1), raw.dport + 1, client.address, client.sport))
    assert client.answered().src == raw.address(1)


def test_udp_without_checksum(lab, backend):
    """A zero checksum is legal with IPv4, and stays zero. (NAT by ip_vs may compute one.)"""
    raw = Raw(lab, UDP, 4)
    client = raw.client()
    client.send(payload=b"no sum", csum=0)
    _, p = client.arrive()
    p = unwrap(lab, p)
    assert p.payload == b"no sum"
    if lab.shape != "nat" or backend.is_l4lb:
        assert p.l4[6:8] == b"\0\0"
    if lab.shape == "nat":
        client.reply(payload=b"same", csum=0)
        p = client.answered()
        assert p.payload == b"same"
        assert p.l4[6:8] == b"\0\0" or not backend.is_l4lb


def test_udp_sum_that_folds_to_zero(nat, family):
    """A rewritten UDP checksum of zero must go out as 0xffff: try every value
    of a payload word so that some case hits it."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    client.open()
    fixed = packet.pseudo(client.address, raw.address(1), UDP, 10) + \
        struct.pack("!HHHH", client.sport, raw.dport, 10, 0)
    word = packet.checksum(fixed)
    client.send(payload=struct.pack("!H", word))
    _, p = client.arrive()
    assert p.l4[6:8] == b"\xff\xff"
    back = packet.pseudo(raw.vip, client.address, UDP, 10) + \
        struct.pack("!HHHH", raw.port, client.sport, 10, 0)
    client.reply(payload=struct.pack("!H", packet.checksum(back)))
    assert client.answered().l4[6:8] == b"\xff\xff"


def test_hop_limit_ends(lab, family, proto):
    """TTL 1: time exceeded from the director, nothing forwarded."""
    raw = Raw(lab, proto, family)
    client = raw.client()
    client.send(ttl=1)
    p = client.icmp()
    assert (p.type, p.code) == ((11, 0) if family == 4 else (3, 0))
    quoted = p.inner()
    assert (quoted.src, quoted.dst, quoted.ttl) == (client.address, raw.vip, 1)
    client.nothing_arrives()
    # The tunnel's outer packet has one more router to pass.
    least = 3 if lab.shape == "tun" else 2
    client.send(ttl=least)
    number, p = client.arrive()
    check_request(raw, client, number, p, SYN, payload=b"", ttl=least - 1)


def test_nat_reply_hop_limit(nat, family):
    """The reply's hop count ends here too: no translated packet leaves."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    client.open()
    client.reply(payload=b"late", ttl=1)
    raw.fence()
    assert raw.client_tap.take(
        lambda p: p.dst == client.address and p.proto == UDP) == []


def test_no_server(lab, family, proto):
    """An empty service answers port unreachable from the VIP."""
    raw = Raw(lab, proto, family, numbers=())
    client = raw.client()
    client.send()
    p = client.icmp()
    assert p.src == raw.vip
    assert (p.type, p.code) == ((3, 3) if family == 4 else (1, 4))
    assert p.inner().dport == raw.port


def test_unknown_tcp_flow_is_reset(lab, family):
    """Only a SYN opens a connection; other packets are answered by the director's own
    stack, and so is a SYN to a port without a service."""
    raw = Raw(lab, TCP, family)
    client = raw.client()
    for flags in (ACK, packet.FIN | ACK, PSH | ACK):
        client.send(flags, ack=77)
        assert client.answered().flags & packet.RST
    client.send(packet.RST)
    client.nothing_arrives()
    assert client.row() is None
    raw.client_tap.send(packet.tcp_packet(
        client.address, client.sport, raw.vip, raw.port + 10000, SYN))
    assert client.answered().flags & packet.RST


def test_vip_answers_echo(lab, family):
    """Ping is not balanced: the director answers for its VIP."""
    raw = Raw(lab, TCP, family)
    raw.fence()
    source = lab.client_address(family)
    raw.client_tap.send(packet.icmp_packet(source, raw.vip, 8 if family == 4 else 128,
                                           0, 7, payload=b"ping"))
    p = raw.client_tap.expect(lambda p: p.dst == source, what="echo reply")
    assert (p.type, p.src, p.payload) == (0 if family == 4 else 129, raw.vip, b"ping")


def test_new_service_does_not_touch_other_traffic(nat, family):
    """Packets routed through the director to a real server are left alone."""
    raw = Raw(nat, UDP, family)
    source = nat.client_address(family)
    raw.client_tap.send(packet.udp_packet(source, 5000, raw.address(1), raw.dport, b"direct"))
    p = raw.taps[1].expect(lambda p: p.src == source)
    assert (p.dst, p.dport, p.ttl, p.payload) == (raw.address(1), raw.dport, 63, b"direct")


def test_direct_ignores_server_port(dr, family, proto):
    """Direct routing shows the server's port but never writes it."""
    raw = Raw(dr, proto, family, dport=9)
    client = raw.client()
    client.open()
    client.send(ACK, b"z")
    number, p = client.arrive()
    check_request(raw, client, number, p, ACK, payload=b"z")
    assert client.row()["dport"] == 9


# -- tunnels

@pytest.mark.smoke
@pytest.mark.parametrize("outer", (4, 6), ids=("in4", "in6"))
def test_tunnel_header(tun, family, outer):
    """The outer header: addresses, TTL, TOS and ECN, DF, protocol; and inside,
    the client's packet with one hop less. All four pairs of families."""
    raw = Raw(tun, TCP, family, server_family=outer)
    client = raw.client()
    client.open()
    for tos, outer_tos in ((0, 0), (0xb8, 0xb8), (0x28 | ECT1, 0x28 | ECT1),
                           (0x28 | ECT0, 0x28 | ECT0), (CE, ECT0), (0xb8 | CE, 0xb8 | ECT0)):
        client.send(ACK, b"data", ip_args={"tos": tos})
        _, p = client.arrive()
        assert (p.src, p.dst) == (tun.dip(outer), raw.address(1))
        assert p.proto == (packet.IPIP if family == 4 else packet.IPV6)
        assert p.tos == outer_tos, hex(p.tos)
        inner = p.inner()
        assert (inner.tos, inner.ttl, inner.payload) == (tos, 63, b"data")
        # One hop less for the tunnel, and one for the router behind it.
        assert p.ttl == 62
    if outer == 4 and family == 4:
        for df in (False, True):
            client.send(ACK, ip_args={"df": df})
            _, p = client.arrive()
            assert (p.df, p.inner().df) == (df, df)
    elif outer == 4:
        assert not p.df


@pytest.mark.parametrize("outer", (4, 6), ids=("in4", "in6"))
def test_tunnel_udp(tun, family, outer):
    raw = Raw(tun, UDP, family, server_family=outer)
    client = raw.client()
    for size in (0, 1, 1000):
        client.send(payload=pattern(size))
        _, p = client.arrive()
        assert p.inner().payload == pattern(size)


@pytest.mark.smoke
@pytest.mark.parametrize("method", (MASQ, ROUTE))
def test_mixed_families_need_a_tunnel(tun, family, method):
    raw = Raw(tun, TCP, family, numbers=())
    is_refused(lambda: raw.service.server(
        tun.phantom(1, 10 - family), raw.port, method=method), errno.EINVAL)


# -- sizes

def big_enough(lab, family, outer=None, mtu=PHANTOM_MTU):
    """The largest payload of a UDP packet that still goes to phantom 4 whole."""
    room = mtu
    if lab.shape == "tun":
        # The outer packet may have MTU + 20 bytes.
        room = mtu + 20 - (20 if (outer or family) == 4 else 40)
    return room - (28 if family == 4 else 48), room


@pytest.mark.smoke
def test_too_big(lab, family):
    """A packet larger than the MTU to the server: the sender is told the MTU. One that
    just fits goes through."""
    raw = Raw(lab, UDP, family, (4,))
    client = raw.client()
    fits, mtu = big_enough(lab, family)
    args = {"ip_args": {"df": True}} if family == 4 else {}
    client.send(payload=pattern(fits), **args)
    _, p = client.arrive()
    assert unwrap(lab, p, family).payload == pattern(fits)
    client.send(payload=pattern(fits + 1), **args)
    p = client.icmp()
    assert (p.type, p.code) == ((3, 4) if family == 4 else (2, 0))
    assert p.rest & 0xffff == mtu
    assert p.inner().dport == raw.port
    client.nothing_arrives()


@pytest.mark.parametrize("family, outer", [(4, 6), (6, 4)], ids=("4in6", "6in4"))
def test_too_big_mixed(tun, family, outer):
    raw = Raw(tun, UDP, family, (4,), server_family=outer)
    client = raw.client()
    fits, mtu = big_enough(tun, family, outer)
    args = {"ip_args": {"df": True}} if family == 4 else {}
    client.send(payload=pattern(fits), **args)
    assert client.arrive()[1].inner().payload == pattern(fits)
    client.send(payload=pattern(fits + 1), **args)
    assert client.icmp().rest & 0xffff == mtu
    client.nothing_arrives()


def test_nat_reply_too_big(nat, family):
    """The reply path has an MTU as well (towards the client)."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    client.open()
    host = f"{client.address}/{32 if family == 4 else 128}"
    nat.director.ns.ip(f"route add {host} via {nat.cip(family)} mtu 1400")
    try:
        args = {"ip_args": {"df": True}} if family == 4 else {}
        client.reply(payload=pattern(1420), **args)
        p = raw.taps[1].expect(lambda p: p.type in ((3,) if family == 4 else (2,)),
                               what="ICMP error")
        assert p.rest & 0xffff == 1400
    finally:
        nat.director.ns.ip(f"route del {host}")


def test_fragmented_on_the_way(lab):
    """Without DF the director may cut: the pieces make up the packet."""
    raw = Raw(lab, UDP, 4, (4,))
    client = raw.client()
    client.open()
    client.send(payload=pattern(1450))
    got = client.raw.taps[4]
    pieces = []

    def complete():
        pieces.extend(got.take(lambda p: p.src in (client.address, lab.dip(4))))
        if not pieces:
            return False
        if lab.shape == "tun":
            # Either the outer or the inner packet was cut.
            return sum(len(p.l4) for p in pieces) >= 1478
        return sum(len(p.l4) for p in pieces) == 1458
    wait_until(complete, 5)
    assert len(pieces) == 2
    assert all(len(p.raw) <= PHANTOM_MTU + 20 for p in pieces)
    body = reassemble(pieces)
    if lab.shape == "tun":
        inner = packet.Packet(body) if pieces[0].proto == packet.IPIP else None
        if inner is not None and len(inner.l4) >= 1458:
            body = inner.l4
        else:
            body = reassemble([p.inner() for p in pieces])
    assert body[8:] == pattern(1450)


def reassemble(pieces):
    pieces = sorted(pieces, key=lambda p: p.offset)
    body = b""
    for p in pieces:
        assert p.offset == len(body), pieces
        body += p.l4
    assert not pieces[-1].mf
    return body


@pytest.mark.smoke
def test_fragments_of_client(lab, family, proto):
    """A fragmented request reaches one server, whole or in its pieces."""
    raw = Raw(lab, proto, family, (1, 2))
    client = raw.client()
    number = client.open()
    whole = client.packet(ACK | PSH, pattern(3000))
    cut = packet.fragment4(whole, 1200) if family == 4 else packet.fragment6(whole, 1280)
    assert len(cut) > 2
    for piece in cut:
        raw.client_tap.send(piece)
    body = b""
    pieces = []
    size = 3000 + {TCP: 20, UDP: 8, SCTP: 16}[proto]

    def total():
        pieces.extend(raw.taps[number].take(
            lambda p: client.address in (p.src, p.inner().src if p.proto in
                                         (packet.IPIP, packet.IPV6) and not p.offset
                                         else None) or p.mf or p.offset))
        inner = [p.inner() if p.proto in (packet.IPIP, packet.IPV6) and not p.offset
                 and not p.mf else p for p in pieces]
        return sum(len(p.l4) for p in inner) >= size
    wait_until(total, 5)
    if lab.shape == "tun":
        outer = [p for p in pieces if p.proto in (packet.IPIP, packet.IPV6)]
        if any(p.mf or p.offset for p in outer):
            inner = packet.Packet(reassemble(outer))
            body = inner.l4
            hop = inner.ttl
        else:
            body = reassemble([p.inner() for p in outer])
            hop = outer[0].inner().ttl
    else:
        body = reassemble(pieces)
        hop = pieces[0].ttl
    assert body[-3000:] == pattern(3000)
    assert hop == 63
    pseudo_dst = raw.address(number) if lab.shape == "nat" else raw.vip
    assert packet.l4_right(client.address, pseudo_dst, proto, body)
    others = [n for n, _ in client.arrivals()]
    assert others == []


def test_fragments_of_server(nat, family):
    """A fragmented reply is translated as a whole."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    client.open()
    whole = client.reply_packet(payload=pattern(3000))
    for piece in (packet.fragment4(whole, 1200) if family == 4
                  else packet.fragment6(whole, 1280)):
        raw.taps[1].send(piece)
    pieces = []

    def total():
        pieces.extend(raw.client_tap.take(lambda p: p.dst == client.address))
        return sum(len(p.l4) for p in pieces) >= 3008
    wait_until(total, 5)
    assert {p.src for p in pieces} == {raw.vip}
    body = reassemble(pieces)
    assert body[8:] == pattern(3000)
    assert packet.fold(packet.pseudo(raw.vip, client.address, UDP, len(body))
                       + body) == 0xffff


@pytest.mark.parametrize("options", (
    b"\x94\x04\x00\x00" + b"\x01\x01\x01\x00", b"\x07\x07\x04" + bytes(5),
    b"\x44\x0c\x05\x00" + bytes(8)), ids=("router-alert", "record-route", "timestamp"))
def test_ipv4_options(lab, options):
    """The transport header behind IP options is found and rewritten; the stack fills
    in some of the options, and the header's checksum must follow."""
    raw = Raw(lab, UDP, 4)
    client = raw.client()
    client.send(payload=b"with options", ip_args={"options": options})
    number, p = client.arrive()
    check_request(raw, client, number, p, None, payload=b"with options")


@pytest.mark.parametrize("chain", ("hopopts", "dstopts", "all"))
def test_ipv6_extension_headers(nat, chain):
    """The transport header is behind the extension headers."""
    raw = Raw(nat, UDP, 6)
    client = raw.client()
    pad = b"\x01\x04\0\0\0\0"
    parts = {"hopopts": [(packet.HOPOPTS, pad)], "dstopts": [(packet.DSTOPTS, pad)],
             "all": [(packet.HOPOPTS, pad), (packet.DSTOPTS, pad),
                     (packet.DSTOPTS, pad)]}[chain]
    payload = packet.udp(client.address, raw.vip, client.sport, raw.port, b"behind")
    following = UDP
    for kind, body in reversed(parts):
        payload = struct.pack("!BB", following, 0) + body + payload
        following = kind
    raw.client_tap.send(packet.ip6(client.address, raw.vip, following, payload))
    _, p = client.arrive()
    assert (p.dst, p.dport, p.payload) == (raw.address(1), raw.dport, b"behind")


def test_lost_route(nat, family):
    """A server without a route: host unreachable to the client, no crash."""
    raw = Raw(nat, UDP, family, numbers=())
    lost = "172.31.0.9" if family == 4 else "2001:db8:dead::9"
    kind = "unreachable"
    nat.director.ns.ip(f"route add {kind} {lost}/{32 if family == 4 else 128}")
    try:
        raw.service.server(lost, raw.dport)
        client = raw.client()
        client.send(payload=b"x")
        p = client.icmp()
        assert (p.type, p.code) in ((3, 1), (1, 3), (1, 0))
    finally:
        nat.director.ns.ip(f"route del {kind} {lost}/{32 if family == 4 else 128}")


@pytest.mark.smoke
def test_route_change_is_noticed(nat, family):
    """A cached route must not outlive a route change."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    client.open()
    hop = nat.phantom(2, family)
    tap = nat.tap("rs2")
    host = f"{raw.address(1)}/{32 if family == 4 else 128}"
    nat.director.ns.ip(f"route add {host} via {hop} dev eth1")
    try:
        client.send(payload=b"detour")
        p = tap.expect(lambda p: p.src == client.address)
        assert (p.dst, p.dport) == (raw.address(1), raw.dport)
    finally:
        nat.director.ns.ip(f"route del {host}")
    client.send(payload=b"back")
    assert client.arrive()[0] == 1
