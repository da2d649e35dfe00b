# SPDX-License-Identifier: GPL-2.0
"""Hostile packets, one per row, each with the expected verdict and the counter of
/proc/net/l4lb that counts it.

VERDICT is "forward" (the real server gets it), "reset" and "icmp TYPE/CODE" (the
client gets that, from the VIP), "echo", "nothing", or "stack" (left to the
director's own stack: anything but forwarding). "A|B" is A for IPv4, B for IPv6;
"A or B" is A with NAT, B with other methods. COUNTER is "" if no counter moves.
AGE is "new" for a packet of a new flow, "old" for one of an established flow.
"""

import os
import struct

import pytest
from lab import packet
from lab.counters import counts
from lab.farm import pattern
from lab.packet import (
    ACK,
    DSTOPTS,
    ESP,
    FIN,
    FRAGMENT,
    GRE,
    GUE_PORT,
    HOPOPTS,
    ICMP,
    ICMP6,
    IPIP,
    IPV6,
    NONE,
    PSH,
    ROUTING,
    RST,
    SCTP,
    SYN,
    TCP,
    UDP,
    URG,
)
from lab.raw import Raw, is_error
from lab.ring import Ring

NOTHING, FORWARD, RESET, STACK, BAD, SUM = "nothing", "forward", "reset", "stack", "header", \
    "checksum"


class Scene:
    """A service of each protocol, each with an established flow, from which the
    rows build their packets."""

    def __init__(self, lab, family):
        self.lab, self.family, self.six = lab, family, family == 6
        self.raws = {proto: Raw(lab, proto, family) for proto in (TCP, UDP, SCTP)}
        self.old = {proto: raw.client() for proto, raw in self.raws.items()}
        for client in self.old.values():
            client.establish() if client.raw.proto != UDP else client.open()
        self.tap = lab.tap("client")
        self.vip = lab.raw_vip(family)

    def client(self, proto, age="new"):
        return self.old[proto] if age == "old" else self.raws[proto].client()

    def udp(self, client, data=b"payload", **kwargs):
        return packet.udp(client.address, self.vip, client.sport, client.raw.port, data, **kwargs)

    def tcp(self, client, flags=SYN, **kwargs):
        return packet.tcp(client.address, self.vip, client.sport, client.raw.port, flags, **kwargs)

    def sctp(self, client, chunks=(packet.INIT,), data=b"", **kwargs):
        return packet.sctp(client.sport, client.raw.port, chunks, data, **kwargs)

    def ip(self, client, proto, data, **kwargs):
        return packet.ip(kwargs.pop("source", client.address), self.vip, proto, data, **kwargs)

    def ext(self, client, chain, proto=UDP, data=None):
        data = self.udp(client) if data is None else data
        for kind, body in reversed(chain):
            data, proto = bytes([proto]) + body + data, kind
        return packet.ip6(client.address, self.vip, proto, data)

    def error(self, client, kind, quote=None, rest=0, **kwargs):
        """An error about a reply to CLIENT. KIND: the (type, code) for IPv4 and for IPv6."""
        quote = self.reply(client) if quote is None else quote
        return packet.icmp_packet(client.address, self.vip, *kind[self.six], rest, payload=quote, **kwargs)

    def reply(self, client, size=40, **kwargs):
        return packet.l4_packet(client.raw.proto, self.vip, client.raw.port, client.address,
                                client.sport, payload=pattern(size), **kwargs)

    def verdict(self, client, before):
        """Return (verdict, {counter: increment}) for the packet that CLIENT sent."""
        raw = client.raw
        raw.fence()
        after = counts(self.lab)
        moved = {k: after[k] - before[k] for k in after if after[k] != before[k]}
        arrived = [p for tap in raw.taps.values() for p in tap.take(lambda p: True)]
        got = self.tap.take(lambda p: p.dst == client.address)
        if any(sent_by(p, client.address) for p in arrived):
            return FORWARD, moved
        errors = [p for p in got if is_error(p)]
        if errors:
            return f"icmp {errors[0].type}/{errors[0].code}", moved
        if any(p.flags is not None and p.flags & RST for p in got):
            return RESET, moved
        return ("echo" if got else NOTHING), moved


def sent_by(p, address):
    try:
        while p.is_tunnel:
            p = p.inner()
    except (ValueError, struct.error, IndexError):
        return False
    return p.src == address


def on_udp(make, age="new"):
    """A row whose packet is MAKE(scene, client), for the UDP service."""
    return UDP, age, make


def on_tcp(make, age="new"):
    return TCP, age, make


def on_sctp(make, age="new"):
    return SCTP, age, make


def v4(**kwargs):
    return on_udp(lambda s, c: s.ip(c, UDP, s.udp(c), **kwargs))


def v4_from(source):
    return on_udp(lambda s, c: s.ip(c, UDP, packet.udp(source or s.vip, s.vip, c.sport,
                                                       c.raw.port), source=source or s.vip))


PAD = b"\0\x01\x04\0\0\0\0"
IPV4 = [
    ("version 0", v4(version=0), NOTHING, ""),
    ("version 5", v4(version=5), NOTHING, ""),
    ("header of 4 words", v4(ihl=4), NOTHING, ""),
    ("header of 15 words, cut", on_udp(lambda s, c: s.ip(c, UDP, bytes(30), ihl=15)), NOTHING, ""),
    ("length below the header", v4(length=19), NOTHING, ""),
    ("length beyond the packet", v4(length=1000), NOTHING, ""),
    ("wrong checksum", v4(csum=0xbad), NOTHING, ""),
    ("ttl 0", v4(ttl=0), "icmp 11/0", "ttl"),
    ("ttl 1", v4(ttl=1), "icmp 11/0", "ttl"),
    ("record route", v4(options=b"\x07\x07\x04" + bytes(5)), FORWARD, ""),
    ("loose source route", v4(options=b"\x83\x07\x04\x0a\0\0\x01\0"), NOTHING, ""),
    ("router alert", v4(options=b"\x94\x04\0\0"), FORWARD, ""),
    ("option beyond the header", v4(options=b"\x07\xff\x04\0"), "icmp 12/0", ""),
    ("first fragment alone", v4(mf=True), NOTHING, ""),
    ("last fragment alone", v4(offset=1480), NOTHING, ""),
    ("fragment beyond 64K", v4(offset=65528), NOTHING, ""),
    ("DF and MF", v4(df=True, mf=True), NOTHING, ""),
    ("from the VIP itself", v4_from(None), NOTHING, ""),
    ("from a broadcast address", v4_from("255.255.255.255"), NOTHING, ""),
    ("from a group", v4_from("224.0.0.1"), NOTHING, ""),
    ("from nobody", v4_from("0.0.0.0"), NOTHING, ""),
    ("from 127.0.0.1", v4_from("127.0.0.1"), NOTHING, ""),
]


def ext(*chain, **kwargs):
    return on_udp(lambda s, c: s.ext(c, chain, **kwargs))


IPV6_ROWS = [
    ("hop-by-hop", ext((HOPOPTS, PAD)), FORWARD, ""),
    ("hop-by-hop twice", ext((HOPOPTS, PAD), (HOPOPTS, PAD)), FORWARD, ""),
    ("hop-by-hop longer than the packet", ext((HOPOPTS, b"\xff" + PAD[1:])), NOTHING, ""),
    ("8 headers of options", ext(*[(DSTOPTS, PAD)] * 8), FORWARD, ""),
    ("routing type 0", ext((ROUTING, b"\0\0\0" + bytes(4))), FORWARD, ""),
    ("routing type 4", ext((ROUTING, b"\0\x04\0" + bytes(4))), FORWARD, ""),
    ("destination options", ext((DSTOPTS, PAD)), FORWARD, ""),
    ("atomic fragment", ext((FRAGMENT, struct.pack("!BHI", 0, 0, 7))), FORWARD, ""),
    ("first fragment alone", ext((FRAGMENT, struct.pack("!BHI", 0, 1, 8)),
                                 data=b"\0" * 16), NOTHING, ""),
    ("last fragment alone", ext((FRAGMENT, struct.pack("!BHI", 0, 1600, 9))), NOTHING, ""),
    ("fragment beyond 64K", ext((FRAGMENT, struct.pack("!BHI", 0, 65528, 9))), NOTHING, ""),
    ("authentication header, nobody known", ext((packet.AH, b"\x04" + bytes(22))), STACK, ""),
    ("encrypted", ext((ESP, b"")), STACK, ""),
    ("no next header", on_udp(lambda s, c: packet.ip6(c.address, s.vip, NONE, s.udp(c))),
     NOTHING, BAD),
    ("headers beyond the packet", ext((DSTOPTS, b"\xff" + PAD[1:])), NOTHING, BAD),
    ("jumbo payload", ext((HOPOPTS, b"\0\xc2\x04\0\x01\0\0")), STACK, ""),
    ("hop limit 0", on_udp(lambda s, c: s.ip(c, UDP, s.udp(c), ttl=0)), "icmp 3/0", "ttl"),
    ("payload length 0", on_udp(lambda s, c: s.ip(c, UDP, s.udp(c), length=0)), NOTHING, BAD),
    ("length beyond the packet", on_udp(lambda s, c: s.ip(c, UDP, s.udp(c), length=999)),
     NOTHING, ""),
    ("from a group", v4_from("ff02::1"), NOTHING, ""),
    ("from ::1", v4_from("::1"), NOTHING, ""),
    ("from the VIP itself", v4_from(None), NOTHING, ""),
]


def tcp(flags=SYN, age="new", **kwargs):
    return on_tcp(lambda s, c: s.ip(c, TCP, s.tcp(c, flags, **kwargs)), age)


TCP_ROWS = [
    ("header of 0 words", tcp(doff=0), NOTHING, BAD),
    ("header of 4 words", tcp(doff=4), NOTHING, BAD),
    ("header of 4 words, old flow", tcp(ACK, "old", doff=4), NOTHING, BAD),
    ("header beyond the packet", tcp(doff=15), FORWARD, ""),
    ("cut in the header", on_tcp(lambda s, c: s.ip(c, TCP, s.tcp(c)[:19])), NOTHING, BAD),
    ("cut in the ports", on_tcp(lambda s, c: s.ip(c, TCP, s.tcp(c)[:3])), NOTHING, BAD),
    ("no flags", tcp(0), RESET, ""),
    ("all flags", tcp(0xff), NOTHING, ""),
    ("SYN and FIN", tcp(SYN | FIN), FORWARD, ""),
    ("SYN and RST", tcp(SYN | RST), NOTHING, ""),
    ("SYN with data", tcp(payload=pattern(100)), FORWARD, ""),
    ("FIN, URG and PSH", tcp(FIN | URG | PSH), RESET, ""),
    ("RST without a flow", tcp(RST), NOTHING, ""),
    ("ACK without a flow", tcp(ACK), RESET, ""),
    ("sequence number wraps", tcp(ACK, "old", seq=0xffffffff, payload=b"abc"), FORWARD, ""),
    ("source port 0", on_tcp(lambda s, c: packet.ip(c.address, s.vip, TCP, packet.tcp(
        c.address, s.vip, 0, c.raw.port))), FORWARD, ""),
    ("wrong checksum", tcp(csum=0x1111), NOTHING, SUM),
    ("checksum 0", tcp(csum=0), NOTHING, SUM),
    ("wrong checksum, old flow", tcp(ACK, "old", csum=0x1111), FORWARD, ""),
    ("40 bytes of junk for options", tcp(options=b"\x03\xff\x01\x02" * 10), FORWARD, ""),
    ("port without a service", on_tcp(lambda s, c: packet.tcp_packet(
        c.address, c.sport, s.vip, 9)), RESET, ""),
]


def udp(age="new", data=b"payload", **kwargs):
    return on_udp(lambda s, c: s.ip(c, UDP, s.udp(c, data, **kwargs)), age)


def sctp(chunks=(packet.INIT,), age="new", data=b"", **kwargs):
    return on_sctp(lambda s, c: s.ip(c, SCTP, s.sctp(c, chunks, data, **kwargs)), age)


UDP_SCTP = [
    ("length below the header", udp(length=7), FORWARD, ""),
    ("length beyond the packet", udp(length=999), FORWARD, ""),
    ("no checksum", udp(csum=0), f"{FORWARD}|{NOTHING}", f"|{SUM}"),
    ("wrong checksum", udp(csum=0x1111), NOTHING, SUM),
    ("wrong checksum, old flow", udp("old", csum=0x1111), FORWARD, ""),
    ("cut in the header", on_udp(lambda s, c: s.ip(c, UDP, s.udp(c)[:7])), NOTHING, BAD),
    ("source port 0", on_udp(lambda s, c: packet.udp_packet(
        c.address, 0, s.vip, c.raw.port, b"x")), FORWARD, ""),
    ("no payload", udp(data=b""), FORWARD, ""),
    ("INIT with a tag", sctp(vtag=77), FORWARD, ""),
    ("INIT without a tag", sctp(vtag=0), FORWARD, ""),
    ("wrong CRC", sctp(csum=0x1234), STACK, SUM),
    ("chunk of length 0", sctp(length=0), FORWARD, ""),
    ("ABORT without a flow", sctp((packet.ABORT,)), STACK, ""),
    ("DATA without a flow", sctp((packet.DATA,), data=b"x"), STACK, ""),
    ("cut before the chunk", on_sctp(lambda s, c: s.ip(c, SCTP, s.sctp(c)[:12])), STACK, BAD),
    ("cut in the header", on_sctp(lambda s, c: s.ip(c, SCTP, s.sctp(c)[:11])), STACK, BAD),
]

PORT, HOST, TOO_BIG, LATE, PARAMETER = ((3, 3), (1, 4)), ((3, 1), (1, 3)), ((3, 4), (2, 0)), \
    ((11, 0), (3, 0)), ((12, 0), (4, 0))


def err(kind=PORT, quote=None, proto=UDP, **kwargs):
    """An error about the established flow; QUOTE(scene, client, reply) changes it."""
    def make(s, c):
        said = s.reply(c)
        return s.error(c, kind, quote(s, c, said) if quote else said, **kwargs)
    return proto, "old", make


def deeper(depth):
    def quote(s, c, said):
        for _ in range(depth):
            said = s.error(c, PORT, said)
        return said
    return quote


def rewrapped(proto, head=b""):
    return lambda s, c, said: packet.ip(s.vip, c.address, proto[s.six] if isinstance(
        proto, tuple) else proto, head + said)


ICMP_ROWS = [
    ("port unreachable", err(), FORWARD, ""),
    ("host unreachable", err(HOST), FORWARD, ""),
    ("too big", err(TOO_BIG, rest=1400), FORWARD, ""),
    ("too late", err(LATE), FORWARD, ""),
    ("parameter problem", err(PARAMETER), f"{NOTHING}|{FORWARD}", ""),
    ("source quench, or unknown error", err(((4, 0), (100, 0))), FORWARD, ""),
    ("redirect", err(((5, 1), (137, 0))), NOTHING, ""),
    ("about TCP", err(proto=TCP), FORWARD, ""),
    ("about SCTP", err(proto=SCTP), FORWARD, ""),
    ("about another flow", err(quote=lambda s, c, said: packet.udp_packet(
        s.vip, c.raw.port, c.address, c.sport ^ 1, b"x")), NOTHING, ""),
    ("about nothing", err(quote=lambda *_: b""), NOTHING, BAD),
    ("quote cut in the IP header", err(quote=lambda s, c, said: said[:19]), NOTHING, BAD),
    ("quote cut in the ports", err(quote=lambda s, c, said: said[:43 if s.six else 23]),
     NOTHING, BAD),
    ("quote cut behind the ports", err(quote=lambda s, c, said: said[:44 if s.six else 24]),
     FORWARD, ""),
    ("about a later fragment", err(quote=lambda s, c, said: packet.ip6(
        s.vip, c.address, FRAGMENT, struct.pack("!BBHI", UDP, 0, 800, 5) + said[40:]) if s.six
        else packet.ip4(s.vip, c.address, UDP, said[20:], offset=800)), NOTHING, ""),
    ("about a first fragment", err(quote=lambda s, c, said: packet.ip6(
        s.vip, c.address, FRAGMENT, struct.pack("!BBHI", UDP, 0, 1, 5) + said[40:]) if s.six
        else packet.ip4(s.vip, c.address, UDP, said[20:], mf=True)), FORWARD, ""),
    ("about an error", err(quote=deeper(1)), NOTHING, ""),
    ("about an error about an error", err(quote=deeper(3)), NOTHING, ""),
    ("about IPIP", err(quote=rewrapped((IPIP, IPV6))), NOTHING, ""),
    ("about GRE", err(quote=rewrapped(GRE, b"\0\0\x08\0")), NOTHING, ""),
    ("about GUE", err(quote=lambda s, c, said: packet.udp_packet(
        s.vip, 40000, c.address, GUE_PORT, b"\0\x04\0\0" + said)), NOTHING, ""),
    ("quoted options beyond the packet", err(quote=lambda s, c, said: packet.ip6(
        s.vip, c.address, DSTOPTS, bytes([UDP, 255]) + said[40:]) if s.six
        else bytes([0x4f]) + said[1:40]), NOTHING, BAD),
    ("quoted version wrong", err(quote=lambda s, c, said: b"\x95" + said[1:]), NOTHING, BAD),
    ("MTU 0", err(TOO_BIG, rest=0), FORWARD, ""),
    ("MTU 65535", err(TOO_BIG, rest=65535), FORWARD, ""),
    ("MTU 1279", err(TOO_BIG, rest=1279), FORWARD, ""),
    ("wrong checksum", err(csum=0x2222), f"{NOTHING} or {FORWARD}", f"{SUM} or "),
    ("cut in the ICMP header", (UDP, "old", lambda s, c: packet.ip(
        c.address, s.vip, ICMP6 if s.six else ICMP, b"\x03\x03\0\0\0")), NOTHING, ""),
    ("echo request", (UDP, "new", lambda s, c: packet.icmp_packet(
        c.address, s.vip, 128 if s.six else 8, 0, 1, payload=b"x")), "echo", ""),
]


def tun(make):
    return UDP, "new", make


def wrapped(depth):
    def make(s, c):
        data = s.ip(c, UDP, s.udp(c))
        for _ in range(depth):
            data = packet.ip(c.address, s.vip, IPV6 if s.six else IPIP, data)
        return data
    return make


def gue(head, body=True):
    return tun(lambda s, c: packet.udp_packet(c.address, 40000, s.vip, GUE_PORT, head + (
        s.ip(c, UDP, s.udp(c)) if body else b"")))


TUNNEL = [
    ("IPIP", tun(wrapped(1)), STACK, ""),
    ("IPIP in IPIP, five deep", tun(wrapped(5)), STACK, ""),
    ("IPIP with nothing inside", tun(lambda s, c: s.ip(c, IPV6 if s.six else IPIP, b"")),
     STACK, ""),
    ("GUE of version 3", gue(b"\xc0\x04\0\0"), STACK, ""),
    ("GUE with options beyond the packet", gue(b"\x1f\x04\0\0", False), STACK, ""),
    ("GUE of an unknown protocol", gue(b"\0\xfd\0\0"), STACK, ""),
    ("GUE whose remote checksum is outside", gue(b"\x02\x04\0\1\x80\0\0\0\xff\xff\xff\xff"),
     STACK, ""),
    ("GRE with key, sum and sequence", tun(lambda s, c: s.ip(
        c, GRE, b"\xb0\0\x08\0" + bytes(12) + s.ip(c, UDP, s.udp(c)))), STACK, ""),
    ("GRE with routing and version 7", tun(lambda s, c: s.ip(
        c, GRE, b"\x40\x07\x08\0" + bytes(4))), STACK, ""),
    ("ttl 1, for a tunnel", tun(lambda s, c: s.ip(c, UDP, s.udp(c), ttl=1)),
     "icmp 11/0|icmp 3/0", "ttl"),
    ("our own tunnel's packet to us", tun(lambda s, c: packet.ip(
        s.lab.dip(s.family), s.vip, IPV6 if s.six else IPIP, s.ip(c, UDP, s.udp(c)))), STACK, ""),
]

TABLES = {"ipv4": (IPV4, (4,), 14), "ipv6": (IPV6_ROWS, (6,), 16), "tcp": (TCP_ROWS, (4, 6), 18),
          "udp and sctp": (UDP_SCTP, (4, 6), 12), "icmp": (ICMP_ROWS, (4, 6), 24),
          "tunnel": (TUNNEL, (4, 6), 10)}
CASES = [(table, family) for table, (_, families, _) in TABLES.items() for family in families]


def expected(text, scene):
    text = text.split("|")[-1 if scene.six else 0]
    return text.split(" or ")[0 if scene.lab.shape == "nat" else -1]


@pytest.mark.smoke
@pytest.mark.parametrize("table, family", CASES, ids=[f"{t.replace(' ', '-')}-v{f}"
                                                      for t, f in CASES])
def test_rows(lab, backend, table, family):
    """Every row has its verdict and counter, and the established flows live on."""
    if not backend.is_l4lb:
        pytest.skip("/proc/net/l4lb is l4lb's own; runs with --backend l4lb")
    rows, _, least = TABLES[table]
    assert len(rows) >= least
    scene, wrong = Scene(lab, family), []
    for name, (proto, age, make), verdict, counter in rows:
        client = scene.client(proto, age)
        for raw in scene.raws.values():
            raw.drain()
        data = make(scene, client)
        before = counts(lab)
        scene.tap.send(data, ethertype=packet.ETH_IP6 if family == 6 else packet.ETH_IP)
        got = scene.verdict(client, before)
        moved = expected(counter, scene)
        want = (expected(verdict, scene), {moved: 1} if moved else {})
        if want[0] == STACK and got[0] != FORWARD:
            got = (STACK, got[1])
        if got != want:
            wrong.append(f"{name}: {got} instead of {want}")
    assert not wrong, "\n" + "\n".join(wrong)
    for proto, client in scene.old.items():
        client.raw.drain()
        client.send(ACK if proto != UDP else None, b"alive")
        client.arrive()


# ---- the link layer, and how a packet lies in memory ----

STRANGER = b"\x02\0\0\0\0\x99"


def frame(mac=None, ethertype=None, data=None):
    def send(scene, client):
        p = data(scene, client) if data else client.packet(payload=b"link")
        scene.tap.send(p, mac=mac, ethertype=ethertype)
    return send


def vlan(number):
    return frame(ethertype=0x8100, data=lambda s, c: struct.pack(
        "!HH", number, packet.ETH_IP6 if s.six else packet.ETH_IP) + c.packet(payload=b"tag"))


def by_ring(make):
    def send(scene, client):
        with Ring(scene.tap) as ring:
            for p in make(scene, client):
                ring.send(p)
    return send


def pieces(scene, client):
    whole = client.packet(payload=pattern(1600))
    return packet.fragment6(whole, 1280) if scene.six else packet.fragment4(whole, 600)


LINK = [
    ("to another machine", frame(STRANGER), NOTHING),
    ("to all", frame(b"\xff" * 6), NOTHING),
    ("to a group", frame(b"\x01\0\x5e\0\0\x01"), NOTHING),
    ("VLAN 0", vlan(0), FORWARD),
    ("VLAN 5, which is not there", vlan(5), NOTHING),
    ("the other family's type", lambda s, c: s.tap.send(
        c.packet(), ethertype=packet.ETH_IP if s.six else packet.ETH_IP6), NOTHING),
    ("a runt", lambda s, c: s.tap.send(c.packet()[:1]), NOTHING),
    ("nothing but the link header", lambda s, c: s.tap.send(b""), NOTHING),
    ("bytes behind the packet", lambda s, c: s.tap.send(c.packet() + bytes(30)), FORWARD),
    ("as large as the MTU", lambda s, c: s.tap.send(c.packet(payload=pattern(
        1400 if s.six else 1420))), FORWARD),
    ("in page fragments", by_ring(lambda s, c: [c.packet(payload=pattern(1000))]), FORWARD),
    ("reassembled of page fragments", by_ring(pieces), FORWARD),
]


def test_link(nat, family):
    """Unusual link-layer headers and lengths, and packets in page fragments."""
    scene, wrong = Scene(nat, family), []
    for name, send, verdict in LINK:
        client = scene.client(UDP)
        client.raw.drain()
        send(scene, client)
        client.raw.fence()
        got = FORWARD if [p for tap in client.raw.taps.values() for p in tap.take(lambda p: True)
                          if sent_by(p, client.address)] else NOTHING
        if got != verdict:
            wrong.append(f"{name}: {got} instead of {verdict}")
    assert not wrong, "\n" + "\n".join(wrong)


# ---- settings ----

JUNK = ("", "x", "-", "1x", "99999999999999999999", "-99999999999", "0x", "\0", "1" * 4096,
        " " * 4096, "\xe9", "%n", "1\0" * 50, "nan", "1.5", "/etc/passwd")


def test_settings(lab, backend):
    """Every setting keeps its value when an invalid one is written."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs takes what it does not check; runs with --backend l4lb")
    folder, wrong = "/proc/sys/net/ipv4/vs", []
    with lab.director.ns.enter():
        # For a list of CPUs, nothing and white space are valid.
        for name in sorted(set(os.listdir(folder)) - {"est_cpulist"}):
            path = f"{folder}/{name}"
            with open(path, "rb") as f:
                before = f.read()
            for junk in JUNK:
                fd = os.open(path, os.O_RDWR)
                try:
                    os.write(fd, junk.encode("latin-1"))
                    with open(path, "rb") as f:
                        if f.read() != before:
                            wrong.append(f"{name}: took {junk[:20]!r}")
                except OSError:
                    pass
                finally:
                    os.close(fd)
            with open(path, "rb") as f:
                if f.read() != before:
                    wrong.append(f"{name}: {before} has changed")
    assert not wrong, wrong
