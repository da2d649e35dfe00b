# SPDX-License-Identifier: GPL-2.0
"""Malformed packets: no crash, nothing forwarded broken, and good traffic goes on
meanwhile.

conftest.py also fails each test here that leaves a warning in the kernel log.
"""

import random
import struct

import pytest
from lab import packet
from lab.backend import Backend
from lab.counters import counts
from lab.farm import pattern
from lab.genl import PERSISTENT
from lab.packet import ACK, FIN, RST, SCTP, SYN, TCP, UDP
from lab.raw import Raw


@pytest.fixture(autouse=True)
def forget_routes(topologies):
    """Some packets are valid ICMP errors: the stack would keep the path MTU that
    it learns from them for ten minutes."""
    yield
    for lab in topologies.built.values():
        lab.director.ns.forget_paths()


class Victims:
    """One TCP and one UDP service of each family, each with a live flow."""

    def __init__(self, lab):
        self.lab = lab
        self.flows = []
        for family in (4, 6):
            for proto in (TCP, UDP):
                raw = Raw(lab, proto, family)
                client = raw.client()
                if proto == TCP:
                    client.establish()
                else:
                    client.open()
                self.flows.append(client)

    def flow(self, proto, family=4):
        return next(c for c in self.flows
                    if (c.raw.proto, c.raw.family) == (proto, family))

    def alive(self):
        """New and old flows still work, and nothing was miscounted."""
        for client in self.flows:
            raw = client.raw
            raw.drain()
            again = raw.client()
            again.open()
            client.send(SYN if raw.proto == TCP else 0, b"")
            client.arrive()
            if self.lab.shape == "nat":
                again.reply(SYN | ACK).answered()


def transport4(proto, client, data):
    return packet.ip4(client.address, client.raw.vip, proto, data)


def rows_ipv4(c):
    """Broken IPv4 headers around a good datagram."""
    src, vip = c.address, c.raw.vip
    good = packet.udp(src, vip, c.sport, c.raw.port, b"payload")

    def ip(**kwargs):
        return packet.ip4(src, vip, UDP, good, **kwargs)

    yield "version 0", ip(version=0)
    yield "version 5", ip(version=5)
    yield "version 6", ip(version=6)
    for ihl in range(5):
        yield f"ihl {ihl}", ip(ihl=ihl)
    yield "ihl 15, short", packet.ip4(src, vip, UDP, b"\0" * 30, ihl=15)
    for length in (0, 19, 20, 27, 34, 36, 65535):
        yield f"total length {length}", ip(length=length)
    yield "bad header checksum", ip(csum=0xbad)
    yield "ttl 0", ip(ttl=0)
    yield "DF and MF", ip(df=True, mf=True)
    yield "last fragment alone", ip(offset=1480)
    yield "fragment beyond 64K", ip(offset=65528)
    yield "first fragment of 8", packet.ip4(src, vip, UDP, good[:8], mf=True)
    yield "source is the VIP", packet.ip4(vip, vip, UDP, packet.udp(
        vip, vip, c.raw.port, c.raw.port))
    for source in ("0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "198.51.100.255"):
        yield f"source {source}", packet.ip4(source, vip, UDP, packet.udp(
            source, vip, c.sport, c.raw.port))
    for name, options in (("record route", b"\x07\x07\x04\0\0\0\0"),
                          ("loose source route", b"\x83\x07\x04\x0a\0\0\1"),
                          ("option past the end", b"\x07\xff\x04\0"),
                          ("option length 0", b"\x07\0\0\0"), ("timestamp", b"\x44\x0c\x05\0" + bytes(8))):
        yield name, ip(options=options)
    for size in range(0, 28):
        yield f"cut at {size}", ip()[:size]


def rows_ipv6(c):
    src, vip = c.address, c.raw.vip
    good = packet.udp(src, vip, c.sport, c.raw.port, b"payload")

    def ext(kind, chain, following=UDP, payload=good):
        data = payload
        for body in reversed(chain):
            data = struct.pack("!B", following) + body + data
            following = kind
        return packet.ip6(src, vip, following, data)

    pad = b"\0\x01\x04\0\0\0\0"
    yield "version 4", packet.ip6(src, vip, UDP, good, version=4)
    for length in (0, 1, 7, 14, 16, 65535):
        yield f"payload length {length}", packet.ip6(src, vip, UDP, good, length=length)
    yield "hop limit 0", packet.ip6(src, vip, UDP, good, ttl=0)
    for n in (1, 2, 8, 60):
        yield f"{n} destination options", ext(packet.DSTOPTS, [pad] * n)
    yield "hop-by-hop twice", ext(packet.HOPOPTS, [pad] * 2)
    yield "hop-by-hop too long", ext(packet.HOPOPTS, [b"\xff" + pad[1:]])
    yield "options past the end", ext(packet.DSTOPTS, [b"\xff" + pad[1:]])
    yield "routing type 0", ext(packet.ROUTING, [b"\x02\0\1\0\0\0\0" + packet.packed(vip)])
    yield "routing type 4", ext(packet.ROUTING, [b"\x02\4\1\0\0\0\0" + packet.packed(vip)])
    yield "ends in a header", ext(packet.DSTOPTS, [pad], payload=b"")
    yield "no next header", packet.ip6(src, vip, packet.NONE, good)
    yield "authentication header", packet.ip6(src, vip, 51, bytes([UDP, 4]) + bytes(22) + good)
    yield "atomic fragment", ext(packet.FRAGMENT, [struct.pack("!BHI", 0, 0, 9)])
    yield "last fragment alone", ext(packet.FRAGMENT, [struct.pack("!BHI", 0, 1600, 10)])
    yield "fragment beyond 64K", ext(packet.FRAGMENT, [struct.pack("!BHI", 0, 65528, 11)])
    yield "fragment not times 8", ext(packet.FRAGMENT, [struct.pack("!BHI", 0, 1, 12)])
    yield "source is the VIP", packet.ip6(vip, vip, UDP, packet.udp(
        vip, vip, c.raw.port, c.raw.port))
    for source in ("::", "::1", "ff02::1", "::ffff:10.0.0.1"):
        yield f"source {source}", packet.ip6(source, vip, UDP, packet.udp(
            source, vip, c.sport, c.raw.port))
    yield "UDP checksum 0", packet.ip6(src, vip, UDP, packet.udp(
        src, vip, c.sport, c.raw.port, b"x", csum=0))
    for size in range(0, 48):
        yield f"cut at {size}", packet.ip6(src, vip, UDP, good)[:size]


def rows_tcp(c):
    def ip(data):
        return packet.ip(c.address, c.raw.vip, TCP, data)

    def tcp(flags=ACK, sport=None, **kwargs):
        return packet.tcp(c.address, c.raw.vip, c.sport if sport is None else sport,
                          c.raw.port, flags, **kwargs)

    for doff in (0, 1, 2, 3, 4, 6, 15):
        yield f"data offset {doff}", ip(tcp(doff=doff))
        yield f"SYN, data offset {doff}", ip(tcp(SYN, sport=7, doff=doff))
    for flags in range(64):
        yield f"flags {flags:#x}", ip(tcp(flags, sport=9000 + flags))
    yield "source port 0", ip(tcp(SYN, sport=0))
    yield "bad checksum", ip(tcp(csum=0x1111))
    yield "checksum 0", ip(tcp(csum=0))
    yield "junk options", ip(tcp(SYN, sport=8, options=b"\x03\xff\x01\x02" * 10))
    yield "urgent", ip(tcp(packet.URG | FIN | packet.PSH, sport=6))
    yield "SYN with data", ip(tcp(SYN, sport=5, payload=pattern(100)))
    for size in range(0, 21):
        yield f"cut at {size}", ip(tcp(SYN, sport=4)[:size])


def rows_udp(c):
    def ip(data):
        return packet.ip(c.address, c.raw.vip, UDP, data)

    for length in (0, 1, 7, 8, 12, 14, 16, 65535):
        yield f"length {length}", ip(packet.udp(c.address, c.raw.vip, c.sport, c.raw.port,
                                                b"hello", length=length))
    yield "bad checksum", ip(packet.udp(c.address, c.raw.vip, c.sport, c.raw.port, b"x",
                                        csum=0x1111))
    yield "source port 0", ip(packet.udp(c.address, c.raw.vip, 0, c.raw.port, b"x"))
    for size in range(0, 9):
        yield f"cut at {size}", ip(packet.udp(c.address, c.raw.vip, c.sport, c.raw.port)[:size])


def rows_icmp(c):
    """Errors about an established flow, valid and malformed in every part."""
    raw = c.raw
    six = raw.family == 6
    head = 40 if six else 20
    reply = packet.l4_packet(raw.proto, raw.vip, raw.port, c.address, c.sport,
                             payload=pattern(40), ttl=60)

    def error(kind, code, quote, rest=0, **kwargs):
        return packet.icmp_packet(c.address, raw.vip, kind, code, rest, payload=quote, **kwargs)

    kinds = (1, 2, 3, 4, 100, 127) if six else (3, 4, 5, 11, 12)
    for kind in kinds:
        for code in (0, 1, 4, 255):
            yield f"type {kind} code {code}", error(kind, code, reply)
    unreachable = kinds[0]
    for size in range(0, len(reply)):
        yield f"quote cut at {size}", error(unreachable, 1, reply[:size])
    whole = error(unreachable, 1, reply)
    for size in range(0, head + 10):
        yield f"cut at {size}", whole[:size]
    too_big = (2, 0) if six else (3, 4)
    for mtu in (0, 1, 67, 68, 576, 1279, 1280, 65535, 0xffffffff):
        yield f"mtu {mtu}", error(*too_big, reply, rest=mtu)
    yield "bad checksum", error(unreachable, 1, reply, csum=0x2222)
    nested = reply
    for depth in range(1, 4):
        nested = error(unreachable, 1, nested)
        yield f"error in error, depth {depth}", nested
    for n in range(16):
        bad = bytearray(reply)
        bad[0] = (bad[0] & 0xf0) | n if not six else (n << 4) | (bad[0] & 15)
        yield f"quoted first byte {bad[0]:#x}", error(unreachable, 1, bytes(bad))
    if six:
        deep = packet.ip6(raw.vip, c.address, packet.DSTOPTS,
                          struct.pack("!BB", raw.proto, 255) + reply[40:])
        yield "quoted options past the end", error(unreachable, 1, deep)
        frag = packet.ip6(raw.vip, c.address, packet.FRAGMENT,
                          struct.pack("!BBHI", raw.proto, 0, 800, 5) + reply[40:])
        yield "quoted later fragment", error(unreachable, 1, frag)
    else:
        yield "quoted later fragment", error(unreachable, 1, packet.ip4(
            raw.vip, c.address, raw.proto, reply[20:], offset=800))
        yield "quoted options past the end", error(unreachable, 1, bytes([0x4f]) + reply[1:])
        yield "fragmented error", packet.ip4(c.address, raw.vip, packet.ICMP,
                                             packet.icmp(3, 1, 0, reply), mf=True)
        yield "later fragment of an error", packet.ip4(
            c.address, raw.vip, packet.ICMP, packet.icmp(3, 1, 0, reply), offset=80)
    yield "redirect to the VIP", error(137 if six else 5, 1, reply)


def rows_tunnel(c):
    """Tunnel packets to the director, and ICMP errors about its own."""
    raw = c.raw
    six = raw.family == 6
    inner = c.packet(payload=b"inner")
    proto = packet.IPV6 if six else packet.IPIP
    nested = inner
    for depth in range(1, 6):
        nested = packet.ip(c.address, raw.vip, proto, nested)
        yield f"IPIP depth {depth}", nested
    for body in (b"", b"\x45", inner[:10], inner[:20], b"\xff" * 40):
        yield f"IPIP with {len(body)} bytes", packet.ip(c.address, raw.vip, proto, body)
        yield f"GRE with {len(body)} bytes", packet.ip(
            c.address, raw.vip, packet.GRE, b"\xb0\0\x08\0" + body)
    outer = packet.ip(raw.lab.dip(raw.family), raw.address(1), proto, inner)
    kind = 1 if six else 3
    for size in range(0, len(outer)):
        yield f"error about a tunnel, cut at {size}", packet.icmp_packet(
            raw.address(1), raw.lab.dip(raw.family), kind, 1, 0, payload=outer[:size])
    yield "tunnel MTU 0", packet.icmp_packet(
        raw.address(1), raw.lab.dip(raw.family), *((2, 0) if six else (3, 4)), 0, payload=outer)


TABLES = {"ipv4": (rows_ipv4, UDP, 4), "ipv6": (rows_ipv6, UDP, 6),
          "tcp4": (rows_tcp, TCP, 4), "tcp6": (rows_tcp, TCP, 6),
          "udp4": (rows_udp, UDP, 4), "udp6": (rows_udp, UDP, 6),
          "icmp4-tcp": (rows_icmp, TCP, 4), "icmp4-udp": (rows_icmp, UDP, 4),
          "icmp6-tcp": (rows_icmp, TCP, 6), "icmp6-udp": (rows_icmp, UDP, 6),
          "tunnel4": (rows_tunnel, UDP, 4), "tunnel6": (rows_tunnel, UDP, 6)}


@pytest.mark.smoke
@pytest.mark.parametrize("table", TABLES)
def test_table(lab, table):
    """Send every row to the VIP: what leaves the director must be well formed,
    and the flow must live on."""
    rows, proto, family = TABLES[table]
    victims = Victims(lab)
    flow = victims.flow(proto, family)
    count = 0
    for _, data in rows(flow):
        ethertype = packet.ETH_IP6 if family == 6 else packet.ETH_IP
        flow.raw.client_tap.send(data, ethertype=ethertype)
        count += 1
    assert count > 8
    flow.raw.fence()
    check_outgoing(flow.raw)
    victims.alive()


def check_outgoing(raw):
    """Every forwarded packet has a valid IPv4 header, and so does the packet
    inside a tunnel of ours."""
    for tap in raw.taps.values():
        for p in tap.take(lambda p: True):
            while p.family == 4:
                assert packet.fold(p.raw[:p.hlen]) == 0xffff, p
                assert p.ttl > 0, p
                if p.proto != packet.IPIP or len(p.l4) < 20 or p.mf or p.offset \
                        or p.src != raw.lab.dip(4):
                    break
                p = p.inner()


@pytest.mark.ip_vs_differs("it drops SCTP with a wrong checksum", only="sctp")
def test_bad_transport_checksum_stays_bad(nat, family, proto):
    """An incremental update must not heal a broken checksum: a corrupted
    packet that leaves with a good sum is silent data corruption."""
    raw = Raw(nat, proto, family)
    client = raw.client()
    client.open()
    good = client.packet(ACK, b"some data to damage")
    bad = bytearray(good)
    bad[-3] ^= 0x40
    raw.client_tap.send(bytes(bad))
    raw.fence()
    for p in raw.taps[1].take(lambda p: p.src == client.address):
        assert p.bad_checksum(), p
    back = bytearray(client.reply_packet(ACK, b"some data to damage"))
    back[-3] ^= 0x40
    raw.taps[1].send(bytes(back))
    raw.fence()
    for p in raw.client_tap.take(lambda p: p.dst == client.address and p.proto == proto):
        assert p.bad_checksum(), p


def mutate(chance, data):
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        how = chance.randrange(5)
        at = chance.randrange(len(data)) if data else 0
        if how == 0 and data:
            data[at] = chance.randrange(256)
        elif how == 1 and data:
            data[at] ^= 1 << chance.randrange(8)
        elif how == 2:
            del data[at:]
        elif how == 3:
            data += bytes(chance.randrange(256) for _ in range(chance.randrange(40)))
        elif len(data) > at + 2:
            struct.pack_into("!H", data, at, chance.choice((0, 1, 0x7fff, 0x8000, 0xffff)))
    if chance.random() < 0.7 and len(data) >= 20 and data[0] == 0x45:
        # Repair the header checksum, or the stack drops the packet before our hook.
        data[10:12] = b"\0\0"
        data[10:12] = struct.pack("!H", packet.checksum(bytes(data[:20])))
    return bytes(data)


@pytest.mark.smoke
def test_random_mutations(lab, seed):
    """Thousands of damaged packets of every kind, from both sides."""
    chance = random.Random(seed)
    victims = Victims(lab)
    seeds = []
    for rows, proto, family in TABLES.values():
        if rows not in (rows_ipv4, rows_ipv6):
            seeds += [data for _, data in rows(victims.flow(proto, family)) if len(data) > 8]
    for c in victims.flows:
        seeds += [c.packet(ACK, pattern(64))] * 30
        seeds += packet.fragment4(c.packet(ACK, pattern(900)), 400) * 10 \
            if c.raw.family == 4 else packet.fragment6(c.packet(ACK, pattern(2000)), 1280) * 10
    replies = [c.reply_packet(ACK, pattern(64)) for c in victims.flows]
    tap = victims.flows[0].raw.client_tap
    server = victims.flows[0].raw.taps[1]
    for i in range(3000):
        data = mutate(chance, chance.choice(seeds))
        six = data[:1] and data[0] >> 4 == 6
        tap.send(data, ethertype=packet.ETH_IP6 if six else packet.ETH_IP)
        if i % 4 == 0:
            data = mutate(chance, chance.choice(replies))
            six = data[:1] and data[0] >> 4 == 6
            server.send(data, ethertype=packet.ETH_IP6 if six else packet.ETH_IP)
        if i % 500 == 0:
            for c in victims.flows:
                c.raw.drain()
    victims.flows[0].raw.fence()
    victims.alive()


def test_mutations_with_persistence_and_marks(nat, seed):
    """Damaged packets to persistent services of both families."""
    chance = random.Random(seed + 1)
    raws = [Raw(nat, UDP, 4, (1, 2), flags=PERSISTENT, timeout=60),
            Raw(nat, TCP, 6, (1, 2), flags=PERSISTENT, timeout=60, sched="wlc")]
    for raw in raws:
        client = raw.client()
        client.open()
        for _ in range(700):
            data = mutate(chance, client.packet(chance.choice((SYN, ACK, FIN, RST)), b"abc"))
            six = data[:1] and data[0] >> 4 == 6
            raw.client_tap.send(data, ethertype=packet.ETH_IP6 if six else packet.ETH_IP)
        raw.fence()
        raw.drain()
        assert raw.client().open() in (1, 2)


def test_not_for_us_at_the_link_layer(nat, family):
    """A frame for another machine, received in promiscuous mode, is not balanced."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    nat.director.ns.run("ip link set eth0 promisc on")
    try:
        raw.client_tap.send(client.packet(), mac=b"\x02\0\0\0\0\x99")
        client.nothing_arrives()
        assert client.row() is None
    finally:
        nat.director.ns.run("ip link set eth0 promisc off")


def test_firewall_goes_first(nat, family):
    """Packets that an input chain drops at filter priority are not balanced;
    input chains after our hook do not see balanced packets."""
    if Backend.fast_path == "2":
        pytest.skip("no input chain sees a first packet that is scheduled at ingress: runs without --fast-path 2")
    raw = Raw(nat, UDP, family)
    nat.director.ns.nft(f"""
table inet l4lb_fw {{
 counter behind {{ }}
 chain first {{ type filter hook input priority filter; udp dport {raw.port} udp sport 7 drop; }}
 chain after {{ type filter hook input priority 110; udp dport {raw.port} counter name behind; }}
}}
""")
    try:
        blocked = raw.client(sport=7)
        blocked.send(payload=b"no")
        blocked.nothing_arrives()
        assert blocked.row() is None
        client = raw.client()
        client.open()
        out = nat.director.ns.nft("list counter inet l4lb_fw behind")
        assert "packets 0 " in out, out
    finally:
        nat.director.ns.nft("delete table inet l4lb_fw")


def broken_replies(client, number=1):
    """Replies that have ports, but an incomplete transport header."""
    raw = client.raw
    src, sport = raw.address(number), raw.dport
    if raw.proto == TCP:
        yield client.reply_packet(ACK, doff=4)
        l4 = packet.tcp(src, client.address, sport, client.sport, ACK)
        if raw.family == 6:
            # The stack passes on a first fragment without all headers (RFC 8200, 4.5).
            yield packet.ip6(src, client.address, packet.FRAGMENT,
                             struct.pack("!BBHI", TCP, 0, 1, 77) + l4[:8])
    else:
        l4 = packet.sctp(sport, client.sport)[:14]
    yield packet.ip(src, client.address, raw.proto, l4[:14])


@pytest.mark.usefixtures("only_l4lb")
@pytest.mark.parametrize("proto", (TCP, SCTP), ids=("tcp", "sctp"))
def test_reply_that_cannot_be_translated(nat, family, proto):
    """It is dropped, or it would leave with the real server's address. Packets of
    no connection are routed."""
    raw = Raw(nat, proto, family)
    client, stranger = raw.client(), raw.client()
    client.open()

    def seen_by(who):
        for data in broken_replies(who):
            raw.taps[1].send(data)
        raw.fence()
        return len(raw.client_tap.take(lambda p: p.dst == who.address))

    before = counts(nat)["header"]
    assert seen_by(client) == 0
    assert counts(nat)["header"] - before == len(list(broken_replies(client)))
    assert seen_by(stranger) == len(list(broken_replies(stranger)))
