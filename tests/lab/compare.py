# SPDX-License-Identifier: GPL-2.0
"""Compares the packets that leave two directors byte by byte, except for values that
a director chooses, and for intended differences (DIFFERENCES)."""

import contextlib
import struct

from . import packet
from .genl import ONEPACKET
from .packet import GRE, GUE_PORT, ICMP, ICMP6, IPIP, IPV6, RST, SCTP, SYN, TCP, UDP
from .raw import is_error
from .topology import FRONT
from .traffic import ONCE, l4_part, sound, too_short

DIRECTOR = FRONT[4] + "1"        # on the clients' side
ROUTERS = ("198.51.100.3", "203.0.113.1")
DIFFERENCES = {
    "udp-zero": "a UDP checksum of 0 stays 0 through NAT; ip_vs computes it",
    "wrong-sum": "a packet with a wrong checksum starts no connection",
    "wrong-crc": "a wrong SCTP CRC stays wrong through NAT; ip_vs makes it right",
    "quoted-sum": "in a packet that an ICMP error quotes, NAT updates the transport checksum",
    "quoted-header-sum": "in a packet that an ICMP error quotes, a wrong IPv4 header checksum "
                         "stays wrong through NAT; ip_vs makes it right",
    "short-icmp": "a packet too short for an ICMP header is routed like any other; ip_vs "
                  "drops it",
    "one-packet": "replies of a one-packet service come from the VIP; ip_vs lets them pass",
    "authentication": "headers behind an IPv6 authentication header are not read; ip_vs "
                      "reads and translates them",
    "options-sum": "an ICMP error about a packet with IP options that the stack has filled in "
                   "quotes a right header checksum",
    "short-header": "a TCP header of less than 20 bytes is not forwarded",
    "record-route": "a reply's IP options get this host's address on the way, as from any router; "
                    "ip_vs, which routes it anew, writes the VIP",
    "two-fragment-headers": "of two IPv6 fragment headers in one packet the second stays; ip_vs "
                            "takes out both",
    "given-up": "a SYN removes the closed connection that it meets, even if no new one follows "
                "because it is a reset, too; ip_vs finds the old one until the next tick, so that "
                "later answers depend on the time",
    "short-chunk": "an SCTP packet without a whole first chunk header goes to the stack, which "
                   "refuses it; ip_vs forwards it if it knows the flow, and drops it if not",
    "short-fragment": "a first IPv6 fragment without a whole transport header goes to the stack, "
                      "which refuses it (RFC 8200); ip_vs forwards it",
    "tunnel-error": "a router's ICMP error about a tunnel packet reaches the client; ip_vs passes "
                    "on only errors about IPv4 in IPv4",
    "tunnelled-fragments": "a tunnel packet is cut only where it does not fit; ip_vs cuts it as "
                           "the packet inside was",
}


def whole(frame):
    """The packet in FRAME, or None if it cannot be parsed."""
    return l4_part(frame[14:]) if frame[14] >> 4 in (4, 6) else None


def canonical(frame, ends):
    """FRAME without values that the director, or a router, chooses: an IPv4
    identification and its header's sum, an IPv6 fragment's identification, GUE's
    source port and sum."""
    data = bytearray(frame + bytes(60))
    addresses = [packet.packed(a) for a in (ends.vip, ends.other_vip, ends.dip, DIRECTOR, *ROUTERS)
           if not packet.is6(a)]
    at, proto = 54, data[20]
    if data[14] >> 4 == 4 and len(data) >= 34:
        at, proto = 14 + (data[14] & 15) * 4, data[23]
        made_up(data, 14, addresses)
    elif data[14] >> 4 == 6 and proto == packet.FRAGMENT:
        data[58:62] = bytes(4)
        at, proto = 62, data[54]
    if proto == UDP and data[at + 2:at + 4] == struct.pack("!H", GUE_PORT):
        p = whole(frame)
        data[at:at + 2] = b"\0\0"
        if data[at + 6:at + 8] != b"\0\0":
            data[at + 6:at + 8] = b"ok" if not p or sound(frame[14:]) else b"no"
    with contextlib.suppress(IndexError):
        p = whole(frame)
        if p and p.is_tunnel:
            made_up(data, 14 + p.hlen + len(p.between), addresses)
    return bytes(data[:len(frame)])


def made_up(data, off, addresses):
    """Mask the values that an IPv4 sender in ADDRESSES chooses, in the header at OFF."""
    if len(data) < off + 20 or data[off] >> 4 != 4 or bytes(data[off + 12:off + 16]) not in addresses:
        return
    at, proto = off + (data[off] & 15) * 4, data[off + 9]
    resets = proto == TCP and len(data) > at + 13 and data[at + 13] & 4
    if resets or proto in (IPIP, IPV6, GRE, ICMP, UDP):
        good = packet.fold(bytes(data[off:at])) == 0xffff
        data[off + 4:off + 6], data[off + 10:off + 12] = b"\0\0", b"ok" if good else b"no"


def same_but(theirs, ours, masks):
    """Do two frames differ in the bytes of MASKS [(offset, size)] only?"""
    theirs, ours = bytearray(theirs), bytearray(ours)
    if len(theirs) != len(ours):
        return False
    for off, size in masks:
        theirs[off:off + size] = ours[off:off + size]
    return theirs == ours


def intended(case, parts, theirs, ours, ends):
    """Which of DIFFERENCES explains that a step's outcomes differ, or None."""
    for name, explains in EXPLAINED.items():
        if explains(case, parts, theirs, ours, ends):
            return name
    if ends.shape != "nat" or len(theirs) != len(ours):
        return None
    names = {by_translation(parts[0][1], *pair) for pair in zip(theirs, ours)
             if pair[0] != pair[1]}
    return None if None in names else "/".join(sorted(names))


def from_the_stack(outcome, ends):
    """Whether OUTCOME is empty, or only answers of the director's own stack."""
    return all(side == "client" and whole(frame) and whole(frame).src in (ends.vip, ends.other_vip)
               for side, frame in outcome)


def wrong_sum(_case, parts, theirs, ours, ends):
    data = put_together(parts)
    return theirs and data is not None and not sound(data) and from_the_stack(ours, ends)


def put_together(parts):
    """The packet that a receiver reassembles from a step's fragments, or None if
    some are missing. Of two with the same offset the first counts. A single packet
    is returned unchanged."""
    if len(parts) == 1:
        return parts[0][1]
    pieces, body = {}, b""
    try:
        for _, data in parts:
            p = packet.Packet(bytes(data))
            pieces.setdefault(p.offset, p)
    except (ValueError, struct.error, IndexError):
        return None
    for offset, p in sorted(pieces.items()):
        if offset > len(body):
            return None
        body += p.l4[len(body) - offset:]
    if pieces[max(pieces)].mf:
        return None
    first = pieces[0]
    make = packet.ip6 if first.family == 6 else packet.ip4
    return make(first.src, first.dst, first.proto, body)


def short_fragment(case, parts, theirs, ours, ends):
    return case.family == 6 and len(ours) > 0 and from_the_stack(ours, ends) and \
        any((whole(frame).type, whole(frame).code) == (4, 3) for _, frame in ours)


def short_header(case, parts, theirs, ours, ends):
    return too_short(parts[0][1]) and from_the_stack(ours, ends)


def short_chunk(case, parts, theirs, ours, ends):
    p = l4_part(put_together(parts) or b"")
    return p and p.proto == SCTP and len(p.l4) < 16 and from_the_stack(ours, ends)


def options_sum(case, parts, theirs, ours, ends):
    if case.family != 4 or len(theirs) != 1 or len(ours) != 1:
        return False
    (side, their), (_, our) = theirs[0], ours[0]
    p = whole(our)
    if not p or p.type not in (3, 11) or len(p.payload) < 20 or p.payload[0] & 15 == 5:
        return False
    at = 14 + p.hlen
    return side == "client" and same_but(their, our, [(at + 2, 2), (at + 18, 2)]) and \
        packet.fold(p.payload[:(p.payload[0] & 15) * 4]) == 0xffff


def record_route(case, parts, theirs, ours, ends):
    """The frames differ only in the IP options and in the header checksum, which
    made_up() may have masked."""
    if ends.shape != "nat" or len(theirs) != 1 or len(ours) != 1:
        return False
    (side, their), (_, our) = theirs[0], ours[0]
    p, q = whole(our), whole(their)
    return bool(p and q) and side == "client" and p.family == 4 and p.hlen > 20 and \
        packet.packed(DIRECTOR) in p.raw[20:p.hlen] and \
        packet.packed(ends.vip) in q.raw[20:q.hlen] and \
        all(x.raw[10:12] == b"ok" or packet.fold(x.raw[:x.hlen]) == 0xffff for x in (p, q)) and \
        same_but(their, our, [(24, 2), (34, p.hlen - 20)])


def two_fragment_headers(case, parts, theirs, ours, ends):
    return case.family == 6 and len(theirs) == len(ours) == 1 and \
        headers(parts[0][1]).count(packet.FRAGMENT) == 2 and \
        whole(ours[0][1]) is not None and whole(theirs[0][1]) is not None and \
        whole(ours[0][1]).l4 == whole(theirs[0][1]).l4


def one_packet(case, parts, theirs, ours, ends):
    if not case.options.get("flags", 0) & ONEPACKET or ends.shape != "nat" or \
            len(theirs) != len(ours):
        return False
    pairs = [(whole(their), whole(our)) for (_, their), (_, our) in zip(theirs, ours)]
    return all(p and q and p.src == ends.server and q.src == ends.vip and
               (p.dst, p.ttl, p.payload) == (q.dst, q.ttl, q.payload) for p, q in pairs)


def authentication(case, parts, theirs, ours, ends):
    if case.family != 6:
        return False
    p = l4_part(parts[0][1])
    if p and is_error(p) and len(p.payload) >= 40 and packet.AH in headers(p.payload):
        # An error about an unknown flow is routed like any other packet.
        sent = parts[0][1]
        return all(frame[14:] == sent[:7] + bytes([sent[7] - 1]) + sent[8:] for _, frame in ours)
    return from_the_stack(ours, ends) and any(packet.AH in headers(data) for _, data in parts)


def headers(data):
    """The protocol numbers in an IPv6 packet, up to an authentication header."""
    found, at = [data[6]], 40
    while found[-1] in (packet.HOPOPTS, packet.ROUTING, packet.FRAGMENT, packet.DSTOPTS) and \
            at + 2 <= len(data):
        size = 8 if found[-1] == packet.FRAGMENT else 8 + data[at + 1] * 8
        found.append(data[at])
        at += size
    return found


def tunnel_error(case, parts, theirs, ours, ends):
    """The hop limit of a tunnel packet ran out at the router behind the director."""
    return case.shape == "tun" and (case.family, case.server_family) != (4, 4) and \
        not theirs and len(ours) == 1 and from_the_stack(ours, ends) and \
        is_error(whole(ours[0][1]))


def short_icmp(case, parts, theirs, ours, ends):
    p = l4_part(parts[0][1])
    return p and p.proto in (ICMP, ICMP6) and len(p.l4) < 8 and len(theirs) == 0 and \
        all(whole(frame) and whole(frame).l4 == p.l4 for _, frame in ours)


def tunnelled_fragments(case, parts, theirs, ours, ends):
    return case.shape == "tun" and len(theirs) > 0 and len(ours) > 0 and \
        (len(theirs) > 1 or theirs[0][1][20] == packet.FRAGMENT) and \
        joined(theirs) is not None and joined(theirs) == joined(ours)


def joined(outcome):
    """Tunnel packets reassembled from OUTCOME: [(side, header without the fragment
    fields, rest)]; None if OUTCOME has anything else."""
    packets, pieces = [], []
    for side, frame in outcome:
        try:
            p = packet.Packet(frame[14:])
        except (ValueError, struct.error):
            return None
        if p.family == 4 and frame[24:26] != b"ok":     # see made_up()
            return None
        pieces.append((p.offset, len(pieces), p))
        body = reassembled(side, sorted(pieces))
        if body:
            packets.append(body)
            pieces = []
    return None if pieces else packets


def reassembled(side, pieces):
    body, first = b"", pieces[0][2]
    for offset, _, p in pieces:
        if offset != len(body) or (p.src, p.dst, p.proto, p.ttl, p.tos) != \
                (first.src, first.dst, first.proto, first.ttl, first.tos):
            return None
        body += p.l4
    if pieces[-1][2].mf:
        return None
    if first.proto == UDP:      # canonical() could not check the sum of a fragment
        body = body[:6] + b"\0\0" + body[8:]
    return side, first.src, first.dst, first.proto, first.ttl, first.tos, first.df, body


def right(p):
    """Is the transport's checksum right? The IP header's may be masked."""
    if p.proto == ICMP:
        return packet.fold(p.l4) == 0xffff
    return packet.l4_right(p.src, p.dst, p.proto, p.l4)


def by_translation(data, theirs, ours):
    """The name of the difference between two frames of NAT, or None."""
    (side, their), (other, our) = theirs, ours
    p, q = whole(our), whole(their)
    if side != other or not p or not q:
        return None
    at = 14 + p.hlen
    if p.proto == UDP and our[at + 6:at + 8] == b"\0\0" and \
            same_but(their, our, [(at + 6, 2)]) and right(q):
        return "udp-zero"
    if p.proto == SCTP and same_but(their, our, [(at + 8, 4)]) and not sound(data) and \
            right(q):
        return "wrong-crc"
    if p.proto in (ICMP, ICMP6) and is_error(p) and right(p) and right(q):
        quoted, header = l4_part(p.payload), []
        if p.family == 4 and packet.fold(p.payload[:(p.payload[0] & 15) * 4]) != 0xffff and \
                packet.fold(q.payload[:(q.payload[0] & 15) * 4]) == 0xffff:
            header = [(at + 18, 2)]
            if same_but(their, our, [(at + 2, 2), *header]):
                return "quoted-header-sum"
        check = {TCP: (16, 2), UDP: (6, 2), SCTP: (8, 4)}.get(quoted.proto) if quoted else None
        if check and same_but(their, our, [(at + 2, 2), (at + 8 + quoted.hlen + check[0],
                                                         check[1]), *header]):
            return "quoted-sum"
    return None


EXPLAINED = {"wrong-sum": wrong_sum, "one-packet": one_packet,
             "authentication": authentication, "short-fragment": short_fragment,
             "short-header": short_header, "short-chunk": short_chunk, "options-sum": options_sum,
             "short-icmp": short_icmp, "tunnel-error": tunnel_error,
             "record-route": record_route, "two-fragment-headers": two_fragment_headers,
             "tunnelled-fragments": tunnelled_fragments}


class Difference(Exception):
    """At step INDEX of a play the outcomes differ."""

    def __init__(self, index, theirs, ours):
        super().__init__(index)
        self.index, self.theirs, self.ours = index, theirs, ours


def ends_flow(parts):
    """Is it a SYN with RST of the flow? After it one module may still have the
    connection when the other has not: see "given-up" in DIFFERENCES."""
    data = put_together(parts) if parts else None
    p = l4_part(data) if data else None
    return bool(p) and p.proto == TCP and p.flags is not None and \
        bool(p.flags & SYN and p.flags & RST) and not once(data)


def compare(case, rendered, theirs, ours, seen):
    """Raise Difference at the first step that DIFFERENCES does not explain. SEEN
    counts the differences that it does."""
    ends, steps = rendered
    for i, ((_, parts), a, b) in enumerate(zip(steps, theirs[0], ours[0])):
        a, b = ([(side, canonical(frame, ends)) for side, frame in x] for x in (a, b))
        if sorted(a) != sorted(b):
            name = intended(case, parts, a, b, ends)
            if name is None:
                raise Difference(i, theirs[0][i], ours[0][i])
            seen[name] = seen.get(name, 0) + 1
            if name in ("wrong-sum", "authentication") and not once(parts[0][1]):
                return  # one of them has a connection, or a state, that the other has not
        if ends_flow(parts):
            seen["given-up"] = seen.get("given-up", 0) + 1
            return
    if theirs[1] != ours[1]:
        raise Difference(len(steps), sorted(theirs[1] - ours[1]), sorted(ours[1] - theirs[1]))


def compare_all(case, rendered, theirs, ours, seen):
    """Like compare(), but without intended differences."""
    ends, steps = rendered
    for i, (a, b) in enumerate(zip(theirs[0], ours[0])):
        if sorted((side, canonical(frame, ends)) for side, frame in a) != \
                sorted((side, canonical(frame, ends)) for side, frame in b):
            raise Difference(i, a, b)
    if theirs[1] != ours[1]:
        raise Difference(len(steps), sorted(theirs[1] - ours[1]), sorted(ours[1] - theirs[1]))


def once(data):
    p = l4_part(data)
    return bool(p) and p.sport is not None and p.sport >= ONCE
