# SPDX-License-Identifier: GPL-2.0
"""Build and take apart IPv4 and IPv6 packets, byte by byte.

Small on purpose: importing a packet library costs seconds on an emulated
machine, and tests need an independent interpretation of the headers. Every
builder computes correct lengths and checksums unless told otherwise, so that a
malformed packet is always a deliberate one.
"""

import functools
import socket
import struct

ICMP, IPIP, TCP, UDP, IPV6, ROUTING, FRAGMENT, GRE, ESP, AH, ICMP6, NONE, DSTOPTS, \
    SCTP = 1, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60, 132
HOPOPTS = 0
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
ETH_IP, ETH_IP6 = 0x0800, 0x86dd
GUE_PORT = 6080
# SCTP chunks
DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, SHUTDOWN, SHUTDOWN_ACK, ERROR, \
    COOKIE_ECHO, COOKIE_ACK, ECNE, CWR, SHUTDOWN_COMPLETE = range(15)


@functools.lru_cache(maxsize=4096)
def packed(address):
    return socket.inet_pton(socket.AF_INET6 if is6(address) else socket.AF_INET, address)


def is6(address):
    return ":" in address


def fold(data):
    """The Internet checksum's one's complement sum."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def checksum(data):
    return ~fold(data) & 0xffff


def pseudo(src, dst, proto, length):
    src, dst = packed(src), packed(dst)
    if len(src) == 4:
        return src + dst + struct.pack("!BBH", 0, proto, length)
    return src + dst + struct.pack("!IHBB", length, 0, 0, proto)


def _l4_sum(src, dst, proto, data):
    return checksum(pseudo(src, dst, proto, len(data)) + data)


def tcp(src, dst, sport, dport, flags=SYN, *, seq=1000, ack=0, payload=b"",
        window=4096, options=b"", doff=None, csum=None):
    if len(options) % 4:
        options += b"\0" * (4 - len(options) % 4)
    if doff is None:
        doff = 5 + len(options) // 4
    head = struct.pack("!HHIIBBHHH", sport, dport, seq & 0xffffffff,
                       ack & 0xffffffff, doff << 4, flags, window, 0, 0)
    data = head + options + payload
    if csum is None:
        csum = _l4_sum(src, dst, TCP, data)
    return data[:16] + struct.pack("!H", csum) + data[18:]


def udp(src, dst, sport, dport, payload=b"", *, length=None, csum=None):
    if length is None:
        length = 8 + len(payload)
    data = struct.pack("!HHHH", sport, dport, length, 0) + payload
    if csum is None:
        csum = _l4_sum(src, dst, UDP, data) or 0xffff
    return data[:6] + struct.pack("!H", csum) + data[8:]


def _crc32c_table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        yield n


CRC32C = tuple(_crc32c_table())


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def sctp(sport, dport, chunks=(INIT,), payload=b"", vtag=0x1234567, *, length=None, csum=None):
    """CHUNKS: types, the last with PAYLOAD; LENGTH: the length field of the first."""
    data = struct.pack("!HHII", sport, dport, vtag, 0)
    for n, kind in enumerate(chunks):
        value = payload if n == len(chunks) - 1 else b""
        said = 4 + len(value) if n or length is None else length
        data += struct.pack("!BBH", kind, 0, said) + value + bytes(-len(value) % 4)
    if csum is None:
        csum = crc32c(data)
    return data[:8] + struct.pack("<I", csum) + data[12:]


def l4_right(src, dst, proto, data):
    """Is the checksum of a whole TCP, UDP, SCTP or ICMPv6 packet right?"""
    if proto == SCTP:
        return crc32c(data[:8] + bytes(4) + data[12:]) == int.from_bytes(data[8:12], "little")
    return fold(pseudo(src, dst, proto, len(data)) + data) == 0xffff


def icmp(kind, code, rest=0, payload=b"", csum=None):
    data = struct.pack("!BBHI", kind, code, 0, rest) + payload
    if csum is None:
        csum = checksum(data)
    return data[:2] + struct.pack("!H", csum) + data[4:]


def icmp6(src, dst, kind, code, rest=0, *, payload=b"", csum=None):
    data = struct.pack("!BBHI", kind, code, 0, rest) + payload
    if csum is None:
        csum = _l4_sum(src, dst, ICMP6, data)
    return data[:2] + struct.pack("!H", csum) + data[4:]


def ip4(src, dst, proto, payload, ttl=64, *, tos=0, df=False, mf=False, offset=0,
        ident=0x1234, options=b"", version=4, ihl=None, length=None, csum=None):
    if len(options) % 4:
        options += b"\0" * (4 - len(options) % 4)
    if ihl is None:
        ihl = 5 + len(options) // 4
    if length is None:
        length = 20 + len(options) + len(payload)
    frag = (0x4000 if df else 0) | (0x2000 if mf else 0) | (offset // 8)
    head = struct.pack("!BBHHHBBH", version << 4 | ihl, tos, length & 0xffff, ident,
                       frag, ttl, proto, 0) + packed(src) + packed(dst) + options
    if csum is None:
        csum = checksum(head)
    return head[:10] + struct.pack("!H", csum) + head[12:] + payload


def ip6(src, dst, proto, payload, ttl=64, *, tos=0, flow=0, version=6, length=None):
    if length is None:
        length = len(payload)
    return struct.pack("!IHBB", version << 28 | tos << 20 | flow, length & 0xffff,
                       proto, ttl) + packed(src) + packed(dst) + payload


def ip(src, dst, proto, payload, **kwargs):
    return (ip6 if is6(src) else ip4)(src, dst, proto, payload, **kwargs)


def tcp_packet(src, sport, dst, dport, flags=SYN, *, ttl=64, ip_args=None, **kwargs):
    return ip(src, dst, TCP, tcp(src, dst, sport, dport, flags, **kwargs),
              ttl=ttl, **(ip_args or {}))


def udp_packet(src, sport, dst, dport, payload=b"", *, ttl=64, ip_args=None, **kwargs):
    return ip(src, dst, UDP, udp(src, dst, sport, dport, payload, **kwargs),
              ttl=ttl, **(ip_args or {}))


def sctp_packet(src, sport, dst, dport, chunks=(INIT,), *, ttl=64, ip_args=None, **kwargs):
    return ip(src, dst, SCTP, sctp(sport, dport, chunks, **kwargs), ttl=ttl, **(ip_args or {}))


def l4_packet(proto, src, sport, dst, dport, *, payload=b"", ttl=64, **kwargs):
    """A first packet of a flow: a SYN, an INIT, or a datagram."""
    make = {TCP: tcp_packet, UDP: udp_packet, SCTP: sctp_packet}[proto]
    return make(src, sport, dst, dport, payload=payload, ttl=ttl, **kwargs)


def icmp_packet(src, dst, kind, code, rest=0, *, payload=b"", ttl=64, csum=None):
    if is6(src):
        return ip6(src, dst, ICMP6,
                   icmp6(src, dst, kind, code, rest, payload=payload, csum=csum), ttl=ttl)
    return ip4(src, dst, ICMP, icmp(kind, code, rest, payload, csum=csum), ttl=ttl)


def fragment4(packet, size):
    """Cut an IPv4 packet into fragments of at most SIZE bytes."""
    ihl = (packet[0] & 15) * 4
    head, body = packet[:ihl], packet[ihl:]
    step = (size - ihl) // 8 * 8
    out = []
    for off in range(0, len(body), step):
        part = body[off:off + step]
        more = off + step < len(body)
        h = bytearray(head)
        struct.pack_into("!H", h, 2, ihl + len(part))
        struct.pack_into("!H", h, 6, (0x2000 if more else 0) | off // 8)
        struct.pack_into("!H", h, 10, 0)
        struct.pack_into("!H", h, 10, checksum(bytes(h)))
        out.append(bytes(h) + part)
    return out


def fragment6(packet, size, ident=0x77):
    """Cut an IPv6 packet without extension headers into fragments."""
    head, body = packet[:40], packet[40:]
    step = (size - 48) // 8 * 8
    out = []
    for off in range(0, len(body), step):
        part = body[off:off + step]
        more = 1 if off + step < len(body) else 0
        ext = struct.pack("!BBHI", head[6], 0, off | more, ident)
        h = head[:4] + struct.pack("!HB", len(part) + 8, FRAGMENT) + head[7:]
        out.append(h + ext + part)
    return out


class Packet:
    """A received packet, parsed as far as its headers go.

    Attributes: family, src, dst, ttl, tos, proto, raw, l4 (bytes after the IP
    headers); df, mf, offset, ident for fragments; sport, dport, payload for TCP,
    UDP and SCTP (of the last chunk); flags, seq, ack for TCP; chunks, their types,
    for SCTP; type, code, rest for ICMP; mac for the frame's destination address, behind
    for what the frame has after the packet (of a Tap).
    """

    def __init__(self, raw, mac=None, offloaded=False):
        self.raw, self.mac, self.offloaded = raw, mac, offloaded
        self.sport = self.dport = self.flags = self.seq = self.ack = None
        self.type = self.code = self.rest = self.chunks = None
        self.payload = b""
        self.df = self.mf = False
        self.offset = 0
        self.ident = None
        version = raw[0] >> 4
        if version == 4:
            self._parse4(raw)
        elif version == 6:
            self._parse6(raw)
        else:
            raise ValueError(f"not an IP packet: {raw[:20].hex()}")
        if self.offset == 0:
            self._parse_l4()

    def _parse4(self, raw):
        self.family = 4
        self.hlen = (raw[0] & 15) * 4
        self.tos, length, self.ident, frag, self.ttl, self.proto = \
            struct.unpack("!xBHHHBB", raw[:10])
        self.raw = raw = raw[:length]
        self.df, self.mf = bool(frag & 0x4000), bool(frag & 0x2000)
        self.offset = (frag & 0x1fff) * 8
        self.src = socket.inet_ntop(socket.AF_INET, raw[12:16])
        self.dst = socket.inet_ntop(socket.AF_INET, raw[16:20])
        self.l4 = raw[self.hlen:]

    def _parse6(self, raw):
        self.family = 6
        word, length, proto, self.ttl = struct.unpack("!IHBB", raw[:8])
        self.tos = word >> 20 & 0xff
        self.raw = raw = raw[:40 + length]
        self.src = socket.inet_ntop(socket.AF_INET6, raw[8:24])
        self.dst = socket.inet_ntop(socket.AF_INET6, raw[24:40])
        at = 40
        # An AH header directly after the IPv6 header counts as the protocol.
        while (proto in (HOPOPTS, ROUTING, DSTOPTS, FRAGMENT) or proto == AH and at > 40) \
                and len(raw) >= at + 8:
            if proto == AH:
                size = 8 + raw[at + 1] * 4
            elif proto == FRAGMENT:
                frag, self.ident = struct.unpack("!HI", raw[at + 2:at + 8])
                self.mf, self.offset = bool(frag & 1), frag & 0xfff8
                size = 8
            else:
                size = 8 + raw[at + 1] * 8
            proto = raw[at]
            at += size
            if self.offset:
                break
        self.proto, self.hlen, self.l4 = proto, at, raw[at:]

    def _parse_l4(self):
        d = self.l4
        # An ICMP quote or a fragment may have only 8 bytes.
        if self.proto in (TCP, UDP, SCTP) and len(d) >= 8:
            self.sport, self.dport = struct.unpack("!HH", d[:4])
        if self.proto == TCP and len(d) >= 20:
            self.seq, self.ack, doff, self.flags = struct.unpack("!IIBB", d[4:14])
            self.payload = d[(doff >> 4) * 4:]
        elif self.proto == UDP and len(d) >= 8:
            self.payload = d[8:]
        elif self.proto == SCTP and len(d) >= 12:
            self._parse_chunks(d[12:])
        elif self.proto in (ICMP, ICMP6) and len(d) >= 8:
            self.type, self.code, self.rest = struct.unpack("!BBxxI", d[:8])
            self.payload = d[8:]

    def _parse_chunks(self, d):
        self.chunks = []
        while len(d) >= 4:
            length = int.from_bytes(d[2:4], "big")
            self.chunks.append(d[0])
            self.payload = d[4:max(length, 4)]
            d = d[max(length, 4) + 3 & ~3:]

    @property
    def is_tunnel(self):
        return self.proto in (IPIP, IPV6, GRE) or \
            (self.proto == UDP and self.dport == GUE_PORT)

    @property
    def between(self):
        """The bytes between the outer and the inner IP header of a tunnel."""
        d = self.l4
        if self.proto == GRE:
            return d[:8 if d[0] & 0x80 else 4]
        if self.proto == UDP:
            return d[:12 + (d[8] & 31) * 4]
        return b""

    def inner(self):
        """The packet carried by a tunnel, or quoted by an ICMP error."""
        if self.is_tunnel:
            return Packet(self.l4[len(self.between):])
        return Packet(self.payload)

    def bad_checksum(self):
        """What is wrong with the checksums, or None; whole packets only."""
        if self.family == 4 and fold(self.raw[:self.hlen]) != 0xffff:
            return f"IPv4 header checksum of {self}"
        if self.mf or self.offset or self.offloaded:
            return None
        d = self.l4
        if self.proto == ICMP:
            return None if fold(d) == 0xffff else f"ICMP checksum of {self}"
        if self.proto == UDP and d[6:8] == b"\0\0" and (self.family == 4 or self.is_tunnel):
            return None
        if self.proto == GRE and d[0] & 0x80 and fold(d) != 0xffff:
            return f"GRE checksum of {self}"
        if self.proto in (TCP, UDP, ICMP6, SCTP) and \
                not l4_right(self.src, self.dst, self.proto, d):
            return f"transport checksum of {self}"
        return None

    def __repr__(self):
        text = f"<v{self.family} {self.src} > {self.dst} ttl {self.ttl} proto {self.proto}"
        if self.sport is not None:
            text += f" {self.sport} > {self.dport}"
        if self.flags is not None:
            text += f" flags {self.flags:#x}"
        if self.type is not None:
            text += f" type {self.type} code {self.code} rest {self.rest:#x}"
        if self.mf or self.offset:
            text += f" frag {self.offset}{'+' if self.mf else ''}"
        return text + f" len {len(self.raw)}>"


def icmp_error(source, about, kind, rest=0, quote=None, **kwargs):
    """An ICMP error from SOURCE about the packet ABOUT, to its sender."""
    p = Packet(about)
    return icmp_packet(source, p.src, kind[0], kind[1], rest,
                              payload=about[:quote or (548 if p.family == 4 else 1200)], **kwargs)
