# SPDX-License-Identifier: GPL-2.0
"""Random traffic of one flow through a virtual service, valid and damaged.

Everything follows from three numbers: a seed, the number of a case, and the
number of a step in it. A case is a service and a flow that was established; a
step is one packet, or the fragments of one, from the client's or from the real
server's side. Addresses and ports come from outside (Ends), so that a case can
be played again while its first connection still exists.
"""

import random
import struct

from . import packet
from .farm import pattern
from .genl import ONEPACKET, PERSISTENT
from .packet import (
    ABORT,
    ACK,
    COOKIE_ACK,
    COOKIE_ECHO,
    DATA,
    DSTOPTS,
    FIN,
    FRAGMENT,
    GUE_PORT,
    HOPOPTS,
    ICMP,
    ICMP6,
    INIT,
    INIT_ACK,
    PSH,
    ROUTING,
    RST,
    SCTP,
    SHUTDOWN,
    SHUTDOWN_ACK,
    SYN,
    TCP,
    UDP,
    URG,
)

# (shape, tunnel, is the server of the other family)
METHODS = {"nat": ("nat", None, False), "dr": ("dr", None, False),
           "ipip": ("tun", None, False), "ipip-mixed": ("tun", None, True),
           "gue": ("tun", (1, GUE_PORT, 0), False),
           "gue-csum": ("tun", (1, GUE_PORT, 1), False),
           "gue-mixed": ("tun", (1, GUE_PORT, 0), True),
           "gre": ("tun", (2, 0, 0), False), "gre-csum": ("tun", (2, 0, 1), False),
           "nat-again": ("nat", None, False)}
LANES = [(method, family, proto) for proto in (TCP, UDP, SCTP) for family in (4, 6)
         for method in METHODS]
STEPS = 32              # of a case
ONCE = 40000            # client ports from here on are used in one step only
MTU = 1500
PROTO_NAMES = {TCP: "tcp", UDP: "udp", SCTP: "sctp"}
TCP_FLAGS = (SYN, ACK, ACK, ACK | PSH, ACK | PSH, FIN | ACK, RST, RST | ACK, SYN | ACK, 0, URG,
             FIN | URG | PSH, SYN | FIN, SYN | RST)
CHUNKS = ((INIT,), (DATA,), (DATA,), (COOKIE_ECHO,), (COOKIE_ECHO, DATA), (SHUTDOWN,),
          (SHUTDOWN_ACK,), (ABORT,), (COOKIE_ACK, ABORT), (INIT_ACK,), (200,))
SIZES = (0, 0, 1, 7, 40, 40, 333, 1240, 1352, 1360, 1372, 1380, 1388, 1432, 1440, 1452, 1460)
PAD = b"\x01\x04\0\0\0\0"


class Ends:
    """Addresses and ports of client, service and servers, for play number TRIAL of a run."""

    def __init__(self, lab, case, trial):
        self.family, self.proto, self.shape = case.family, case.proto, lab.shape
        if case.family == 4:
            self.client = f"10.{128 + (trial >> 8 & 127)}.{trial & 255}.9"
        else:
            self.client = f"2001:db8:c:f:{trial:x}::9"
        self.sport = 5000 + trial % 1000
        self.vip = lab.raw_vip(case.family)
        self.other_vip = lab.raw_vip(case.family, 1)
        self.port = 3000 + trial % 5000
        self.dport = self.port + 30000 if lab.shape == "nat" else self.port
        self.servers = [lab.phantom(n, case.server_family) for n in case.numbers]
        self.server = self.servers[0]
        self.dip = lab.dip(case.server_family)
        self.strangers = ("0.0.0.0", "127.0.0.1", "224.0.0.5", "255.255.255.255", self.vip) \
            if case.family == 4 else ("::", "::1", "ff02::1", "::ffff:10.0.0.1", self.vip)

    def request(self):
        return self.client, self.sport, self.vip, self.port

    def reply(self):
        if self.shape == "nat":
            return self.server, self.dport, self.client, self.sport
        return self.vip, self.port, self.client, self.sport


class Case:
    """A service, and STEPS packets of and around one flow."""

    def speaker(self, chance, ends):
        return Speaker(chance, self, ends)

    def __init__(self, seed, number):
        self.seed, self.number = seed, number
        self.method, self.family, self.proto = LANES[number % len(LANES)]
        self.shape, self.tunnel, mixed = METHODS[self.method]
        self.server_family = 10 - self.family if mixed else self.family
        chance = random.Random(f"{seed}/{number}")
        # With two servers the scheduler is sh, with which both modules choose the same.
        self.numbers = chance.choice(((1,), (1,), (1,), (4,), (1, 2)))
        self.options = {"sched": "sh" if len(self.numbers) > 1 else chance.choice(("rr", "wlc"))}
        kind = chance.random()
        if kind < 0.15:
            self.options.update(flags=PERSISTENT, timeout=100)
        elif kind < 0.3 and self.proto == UDP:
            self.options.update(flags=ONEPACKET)

    def __str__(self):
        return f"{self.method} v{self.family} {PROTO_NAMES[self.proto]} servers " \
            f"{self.numbers} {self.options}"

    def opening(self, ends):
        """Both sides' first packets, undamaged."""
        say = Speaker(Plain(), self, ends)
        if self.proto == UDP:
            return [("request", [("client", say.l4(ends.request(), 0, b"first"))])]
        first, answer, third = (SYN, SYN | ACK, ACK) if self.proto == TCP else \
            ((INIT,), (INIT_ACK,), (COOKIE_ECHO,))
        return [("opens", [("client", say.l4(ends.request(), first))]),
                ("answer", [("server", say.l4(ends.reply(), answer))]),
                ("third", [("client", say.l4(ends.request(), third))])]

    def step(self, ends, index):
        """(description, [(side, packet)])"""
        chance = random.Random(f"{self.seed}/{self.number}/{index}")
        return self.speaker(chance, ends).step(ONCE + index)


class Plain(random.Random):
    """Always takes the first choice, and never a chance."""

    def choice(self, options):
        return options[0]

    def random(self):
        return 0.99

    def getrandbits(self, _):
        return 7


class Speaker:
    """Makes one step, with the random choices of CHANCE."""

    def __init__(self, chance, case, ends):
        self.chance, self.case, self.ends = chance, case, ends
        self.family, self.proto = case.family, case.proto
        self.said = []

    def step(self, once):
        pick = self.chance.choice
        side = "server" if self.chance.random() < 0.35 else "client"
        kind = pick(("flow", "flow", "flow", "flow", "new", "fragments", "error", "error",
                     "extended", "other"))
        self.said = [kind]
        if kind == "error":
            data = self.error(side)
        elif kind == "other":
            data = self.other(side)
        else:
            data = self.l4(self.flow(side, kind == "new"), *self.content(),
                           extended=kind == "extended")
        parts = [data[:MTU]]
        if kind == "fragments":
            parts = self.fragments(data)
        elif self.chance.random() < 0.55:
            parts = [self.damage(side, parts[0], once)]
        return f"{side}: {', '.join(self.said)}", [(side, p[:MTU]) for p in parts]

    # -- sound packets

    def flow(self, side, new):
        e = self.ends
        if side == "client":
            src, sport, dst, dport = e.request()
            if new:
                sport += self.chance.randrange(1, 7)
                dport = self.chance.choice((dport, dport, dport, dport + 1))
                dst = self.chance.choice((dst, dst, dst, e.other_vip))
            return src, sport, dst, dport
        src, sport, dst, dport = e.reply()
        if new:
            sport += self.chance.randrange(0, 2)
            dport += self.chance.randrange(1, 7)
        return src, sport, dst, dport

    def content(self):
        flags = {TCP: TCP_FLAGS, SCTP: CHUNKS, UDP: (0,)}[self.proto]
        return self.chance.choice(flags), pattern(self.chance.choice(SIZES))

    def l4(self, flow, flags, payload=b"", extended=False):
        src, sport, dst, dport = flow
        if self.proto == TCP:
            data = packet.tcp(src, dst, sport, dport, flags, payload=payload,
                              options=self.chance.choice((b"", b"", b"\x02\x04\x05\xb4",
                                                          b"\x01" * 40)) if extended else b"")
        elif self.proto == UDP:
            csum = 0 if self.family == 4 and self.chance.random() < 0.1 else None
            data = packet.udp(src, dst, sport, dport, payload, csum=csum)
        else:
            data = packet.sctp(sport, dport, flags, payload)
        return self.ip(src, dst, self.proto, data, extended)

    def ip(self, src, dst, proto, data, extended=False):
        pick = self.chance.choice
        # In a tunnel: a lower TTL ends at the next router, whose error is about the director.
        short = (3,) if self.ends.shape == "tun" and src == self.ends.client else (3, 2, 1, 0)
        how = {"ttl": pick((64, 64, 64, 64, 64, 255, 255, *short)),
               "tos": pick((0, 0, 0xb8, 3, 0xff))}
        if packet.is6(src):
            if extended:
                proto, data = self.extend(proto, data)
            return packet.ip6(src, dst, proto, data, flow=pick((0, 0, 0xbeef)), **how)
        options = pick(OPTIONS) if extended else b""
        return packet.ip4(src, dst, proto, data, df=pick((False, True)), options=options,
                          ident=self.chance.getrandbits(16), **how)

    def extend(self, proto, data):
        """Put IPv6 extension headers before DATA."""
        kinds = [self.chance.choice((DSTOPTS, DSTOPTS, ROUTING, FRAGMENT, packet.AH))
                 for _ in range(self.chance.choice((1, 1, 2, 4)))]
        if self.chance.random() < 0.3:
            kinds.insert(0, HOPOPTS)
        self.said.append(f"extension headers {kinds}")
        for kind in reversed(kinds):
            if kind == FRAGMENT:
                body = struct.pack("!BBHI", proto, 0, 0, self.chance.getrandbits(32))
            elif kind == ROUTING:
                body = struct.pack("!BBBB", proto, 0, self.chance.choice((0, 2, 4)), 0) + bytes(4)
            elif kind == packet.AH:
                body = struct.pack("!BB", proto, 4) + bytes(22)
            else:
                n = self.chance.choice((0, 0, 1, 3))
                body = struct.pack("!BB", proto, n) + PAD + (PAD + b"\x01\0") * n
            proto, data = kind, body + data
        return proto, data

    def fragments(self, data):
        """The fragments of DATA: in order or not, doubled, with one missing, overlapping."""
        cut = packet.fragment6 if self.family == 6 else packet.fragment4
        try:
            if self.family == 6:
                parts = cut(data, self.chance.choice((56, 104, 600, 1280)),
                            ident=self.chance.getrandbits(32))
            else:
                parts = cut(data, self.chance.choice((28, 68, 104, 600, 1280)))
        except (struct.error, ZeroDivisionError):
            return [data[:MTU]]
        parts = parts[:24]
        how = self.chance.choice(("in order", "in order", "reversed", "shuffled", "doubled",
                                  "one missing", "overlapping"))
        self.said.append(f"{len(parts)} pieces, {how}")
        if how == "reversed":
            parts.reverse()
        elif how == "shuffled":
            self.chance.shuffle(parts)
        elif how == "doubled":
            parts.insert(self.chance.randrange(len(parts)), self.chance.choice(parts))
        elif how == "one missing":
            del parts[self.chance.randrange(len(parts))]
        elif how == "overlapping":
            at = self.chance.randrange(len(parts))
            parts.insert(at, shifted(parts[at], self.family, self.chance.choice((-8, 8))))
        return parts

    def error(self, side):
        """An ICMP error about a packet of the other side; or another ICMP message."""
        e, pick = self.ends, self.chance.choice
        six = self.family == 6
        if self.chance.random() < 0.1:
            self.said.append("no error")
            kind = pick((128, 129)) if six else pick((8, 0))
            return packet.icmp_packet(e.client, e.vip, kind, 0, 7, payload=b"hello")
        src, dst = e.client, e.vip
        if side == "client":
            flow = (e.vip, e.port, e.client, e.sport)
        else:
            src, dst = (e.server, e.client) if e.shape == "nat" else (e.vip, e.client)
            flow = (e.client, e.sport, e.server, e.dport) if e.shape == "nat" else e.request()
        if packet.is6(src) != six or packet.is6(dst) != six:
            src = e.client
        if self.chance.random() < 0.15:
            flow = (flow[0], flow[1] ^ pick((0, 1)), flow[2], flow[3] ^ 1)
            self.said.append("about another flow")
        quote = self.l4(flow, *self.content(), extended=self.chance.random() < 0.15)
        head = 40 if six else 20
        quote = quote[:pick((head + 8, head + 8, head + 20, 548, 1232, self.chance.randrange(
            head + 30)))]
        if self.chance.random() < 0.3:
            self.said.append("damaged quote")
            quote = bytes(scratch(self.chance, bytearray(quote)))
        elif self.chance.random() < 0.1:
            self.said.append("about an error")
            quote = packet.icmp_packet(flow[0], flow[2], *self.error_kind(six), 0, payload=quote)
        kind, code = self.error_kind(six)
        # No redirects: the stack would believe them, and remember them in the next case.
        rest = pick((0, 1, 67, 68, 576, 1279, 1280, 1400, 65535, 0xffffffff))
        self.said.append(f"type {kind} code {code} rest {rest}")
        csum = 0x1234 if self.chance.random() < 0.1 else None
        if csum:
            self.said.append("wrong sum")
        return packet.icmp_packet(src, dst, kind, code, rest, payload=quote[:MTU - 100], csum=csum,
                                  ttl=pick((64, 64, 64, 2, 1)))

    def error_kind(self, six):
        kinds = ((1, 4), (1, 0), (2, 0), (3, 0), (4, 1), (1, 255), (100, 0)) if six else \
            ((3, 3), (3, 1), (3, 4), (11, 0), (4, 0), (12, 0), (3, 255))
        return self.chance.choice(kinds)

    def other(self, side):
        """A packet of a protocol that is not balanced, or one packet in another."""
        src, _, dst, _ = self.ends.request() if side == "client" else self.ends.reply()
        proto = self.chance.choice((0, 2, 4, 41, 47, 50, 51, 59, 97, 136, 255))
        self.said.append(f"protocol {proto}")
        inner = self.l4(self.flow("client", False), *self.content())
        return self.ip(src, dst, proto, inner[:self.chance.choice((0, 1, 20, 60, 900))])

    # -- damage

    def damage(self, side, data, once):
        chance = self.chance
        hurt = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            hurt = chance.choice((self._field, self._field, self._field, self._cut, self._longer,
                                  self._source, self._scratch))(hurt)
        # For other destinations the stack would look for neighbours, and answer seconds later.
        put_back = slice(16, 20) if self.family == 4 else slice(24, 40)
        if len(hurt) >= put_back.stop:
            hurt[put_back] = data[put_back]
        if chance.random() < 0.85:
            self.said.append("IP header repaired")
            hurt = repair_ip(hurt)
        # With these ip_vs starts, or ends, connections that later steps must not meet.
        if too_short(bytes(hurt)):
            hurt = self._other_port(hurt, once) if side == "client" else bytearray(data)
        if chance.random() < 0.65:
            self.said.append("checksum repaired")
            hurt = repair_l4(hurt)
        elif side == "client" and not sound(bytes(hurt)):
            hurt = self._other_port(hurt, once)
        return bytes(hurt)

    def _field(self, data):
        fields = list(IP_FIELDS[self.family])
        at = header_length(data)
        if at:
            fields += [(name, at + off, size, values)
                       for name, off, size, values in L4_FIELDS[self.proto]] * 2
        name, off, size, values = self.chance.choice(fields)
        value = self.chance.choice((*values, self.chance.getrandbits(8 * size)))
        if off + size <= len(data):
            self.said.append(f"{name} = {value:#x}")
            data[off:off + size] = value.to_bytes(size, "big")
        return data

    def _cut(self, data):
        size = self.chance.choice((self.chance.randrange(len(data) + 1),
                                   self.chance.randrange(min(80, len(data) + 1))))
        fit = self.chance.random() < 0.6
        self.said.append(f"cut at {size}{', lengths fit' if fit else ''}")
        del data[size:]
        return fit_lengths(data) if fit else data

    def _longer(self, data):
        n = self.chance.choice((1, 3, 8, 60))
        fit = self.chance.random() < 0.5
        self.said.append(f"{n} bytes longer{', lengths fit' if fit else ''}")
        data += bytes(n)
        return fit_lengths(data) if fit else data

    def _source(self, data):
        source = self.chance.choice(self.ends.strangers)
        self.said.append(f"source {source}")
        at = 12 if self.family == 4 else 8
        raw = packet.packed(source)
        if len(data) >= at + len(raw):
            data[at:at + len(raw)] = raw
        return data

    def _scratch(self, data):
        self.said.append("scratched")
        return scratch(self.chance, data)

    def _other_port(self, data, once):
        at = header_length(data)
        if at and len(data) >= at + 2:
            self.said.append(f"source port {once}")
            data[at:at + 2] = struct.pack("!H", once)
        return data


class PlainSpeaker(Speaker):
    """Mostly packets that the fast path takes: segments and datagrams of the flow, first
    packets of others; some of them damaged."""

    def step(self, once):
        chance = self.chance
        if self.proto == SCTP or chance.random() < 0.35:
            return super().step(once)
        side = "server" if chance.random() < 0.35 else "client"
        flow, flags = self.flow(side, False), chance.choice((ACK, ACK, ACK, ACK | PSH, ACK | URG))
        self.said = ["plain"]
        if side == "client" and chance.random() < 0.3:
            self.said = ["plain, new"]
            flow, flags = (flow[0], once, *flow[2:]), chance.choice((SYN, SYN, SYN | 0xc0))
        data = self.l4(flow, flags, pattern(chance.choice(SIZES)))[:MTU]
        if chance.random() < 0.25:
            data = self.damage(side, data, once)
        return f"{side}: {', '.join(self.said)}", [(side, data[:MTU])]


class PlainCase(Case):
    """A case whose steps a PlainSpeaker makes."""

    def speaker(self, chance, ends):
        return PlainSpeaker(chance, self, ends)


# IPv4 options; no Timestamp, which would differ in the second run.
OPTIONS = (b"\x07\x07\x04\0\0\0\0", b"\x83\x07\x04\x0a\0\0\1",
           b"\x94\x04\0\0", b"\x01" * 40, b"\x07\xff\x04\0", b"\x07\0\0\0", b"\x88\x04\0\1",
           b"\x82\x0b" + bytes(9), b"\x07\x07\x08\0\0\0\0")

# (name, offset, bytes, interesting values); random values are used, too
IP_FIELDS = {
    4: (("version and length", 0, 1, (0x44, 0x46, 0x4f, 0x55, 0x65, 0x40)),
        ("tos", 1, 1, (0, 1, 2, 3, 0xff)), ("total length", 2, 2, (0, 19, 20, 27, 28, 0xffff)),
        ("fragment", 6, 2, (0x2000, 0x2001, 1, 0x1fff, 0x8000, 0xe000, 0x6000)),
        ("ttl", 8, 1, (0, 1, 2, 255)), ("protocol", 9, 1, (1, 4, 6, 17, 47, 50, 58, 132, 255))),
    6: (("version", 0, 1, (0x40, 0x50, 0x70, 0x6f)), ("flow label", 1, 3, (0, 0xfffff)),
        ("payload length", 4, 2, (0, 1, 7, 8, 20, 0xffff)),
        ("next header", 6, 1, (0, 6, 17, 41, 43, 44, 50, 51, 58, 59, 60, 132, 135, 255)),
        ("hop limit", 7, 1, (0, 1, 2, 255))),
}
L4_FIELDS = {
    TCP: (("source port", 0, 2, (0, 20)), ("sequence", 4, 4, (0, 0xffffffff)),
          ("data offset", 12, 1, (0, 0x10, 0x40, 0x60, 0xf0, 0x5f)),
          ("flags", 13, 1, (0, 2, 0xff)), ("window", 14, 2, (0,)),
          ("checksum", 16, 2, (0, 0xffff)), ("urgent", 18, 2, (1,))),
    UDP: (("source port", 0, 2, (0, 20)), ("length", 4, 2, (0, 7, 8, 9, 0xffff)),
          ("checksum", 6, 2, (0, 0xffff))),
    SCTP: (("source port", 0, 2, (0, 20)), ("tag", 4, 4, (0, 0xffffffff)),
           ("CRC", 8, 4, (0, 0xffffffff)), ("chunk", 12, 1, (0, 1, 6, 14, 255)),
           ("chunk flags", 13, 1, (0, 0xff)), ("chunk length", 14, 2, (0, 1, 3, 4, 5, 0xffff))),
}


def header_length(data):
    """The length of the IP header, without extension headers; None if there is none."""
    if len(data) >= 20 and data[0] >> 4 == 4 and data[0] & 15 >= 5:
        return (data[0] & 15) * 4
    return 40 if len(data) >= 40 and data[0] >> 4 == 6 else None


def scratch(chance, data):
    """Change single bits and bytes anywhere."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        if not data:
            break
        at = chance.randrange(min(len(data), 80))
        data[at] = chance.choice((data[at] ^ 1 << chance.randrange(8), chance.randrange(256)))
    return data


def shifted(part, family, by):
    """The same fragment with its offset changed by BY bytes."""
    part = bytearray(part)
    if family == 4:
        frag, = struct.unpack_from("!H", part, 6)
        struct.pack_into("!H", part, 6, frag & 0xe000 | (frag + by // 8) & 0x1fff)
        return bytes(repair_ip(part))
    frag, = struct.unpack_from("!H", part, 42)
    struct.pack_into("!H", part, 42, (frag + by) & 0xffff)
    return bytes(part)


def fit_lengths(data):
    """Set the lengths in the IP header, and in UDP's, to the actual length."""
    at = header_length(data)
    if not at:
        return data
    if data[0] >> 4 == 4:
        struct.pack_into("!H", data, 2, len(data) & 0xffff)
        proto = data[9]
    else:
        struct.pack_into("!H", data, 4, len(data) - 40 & 0xffff)
        proto = data[6]
    if proto == UDP and len(data) >= at + 8:
        struct.pack_into("!H", data, at + 4, len(data) - at)
    return data


def repair_ip(data):
    """Correct the IPv4 header checksum: otherwise the stack drops the packet at once."""
    at = header_length(data)
    if at and data[0] >> 4 == 4 and len(data) >= at:
        data[10:12] = b"\0\0"
        data[10:12] = struct.pack("!H", packet.checksum(bytes(data[:at])))
    return data


def l4_part(data):
    """The Packet of DATA, or None if it is not a whole packet."""
    try:
        p = packet.Packet(bytes(data))
    except (ValueError, struct.error, IndexError):
        return None
    if p.mf or p.offset or p.hlen > len(p.raw):
        return None
    return p


def too_short(data):
    """Is it TCP whose data offset is less than 20 bytes?"""
    p = l4_part(data)
    return bool(p) and p.proto == TCP and len(p.l4) > 12 and p.l4[12] >> 4 < 5


def repair_l4(data):
    p = l4_part(data)
    check = {TCP: 16, UDP: 6, SCTP: 8, ICMP: 2, ICMP6: 2}.get(p.proto) if p else None
    if check is None or len(p.l4) < check + (4 if p.proto == SCTP else 2):
        return data
    l4, size = bytearray(p.l4), 4 if p.proto == SCTP else 2
    l4[check:check + size] = bytes(size)
    if p.proto == SCTP:
        value = struct.pack("<I", packet.crc32c(bytes(l4)))
    else:
        head = b"" if p.proto == ICMP else packet.pseudo(p.src, p.dst, p.proto, len(l4))
        value = struct.pack("!H", packet.checksum(head + bytes(l4)))
        if p.proto == UDP and value == b"\0\0":
            value = b"\xff\xff"
    data[p.hlen + check:p.hlen + check + size] = value
    return data


def sound(data):
    """Is every checksum right, as far as there are any?"""
    p = l4_part(data)
    try:
        return bool(p) and p.bad_checksum() is None
    except (IndexError, struct.error):
        return False
