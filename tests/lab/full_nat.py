# SPDX-License-Identifier: GPL-2.0
"""A virtual service with full NAT, and packets that see it from both sides."""

import contextlib
import ipaddress

from . import genl, packet
from .raw import ACK, SYN, Client, Raw, chunks
from .topology import HOST, NETWORK

FIRST, LAST = 250, 253      # of the director, on the servers' network


def pool(shape="nat", family=4, first=FIRST, last=LAST):
    """The range as a pair of addresses."""
    return tuple(NETWORK[shape][family] + str(n) for n in (first, last))


def lines(lab, word, *ranges):
    """Lines of ip that add or delete (WORD) the addresses of all RANGES on the servers' side."""
    for ends in ranges:
        first, last = map(ipaddress.ip_address, ends)
        for n in range(int(last) - int(first) + 1):
            six = first.version == 6
            yield f"addr {word} {first + n}/{HOST[first.version]} dev {lab.back}" + (
                " nodad preferred_lft 0" if six and word == "add" else "")


@contextlib.contextmanager
def addresses(lab, *ranges):
    """Inside, the director has the addresses of all RANGES, on the servers' side."""
    lab.director.ns.ip(*lines(lab, "add", *ranges))
    try:
        yield
    finally:
        lab.director.ns.ip(*lines(lab, "del", *ranges))


def set_snat(lab, service, ends, **more):
    with genl.L4lb(lab.director.ns) as l4lb:
        l4lb.set_policy(service, snat=ends, **more)


def reserve(lab, *, free):
    """Leaves only the ports FREE, a text such as "2000-2007"; "1-65535" leaves all."""
    first, last = map(int, free.split("-"))
    parts = ([f"1-{first - 1}"] if first > 1 else []) + ([f"{last + 1}-65535"] if last < 65535 else [])
    # An empty list is a write of nothing, which changes nothing.
    lab.director.ns.sysctl("net/ipv4/ip_local_reserved_ports", ",".join(parts) or "\n")


@contextlib.contextmanager
def only_ports(lab, free):
    """Inside, connections get these ports."""
    reserve(lab, free=free)
    try:
        yield
    finally:
        reserve(lab, free="1-65535")


class Full(Raw):
    """A raw service whose real servers see addresses of the range ENDS."""

    def __init__(self, lab, proto=packet.TCP, family=4, numbers=(1,), *, ends=None, **options):
        super().__init__(lab, proto, family, numbers, **options)
        self.ends = ends or pool(lab.shape, family)
        self.snat(self.ends)

    def snat(self, ends, **more):
        set_snat(self.lab, self.service, ends, **more)

    def client(self, address=None, sport=None):
        return FullClient(self, address, sport)

    def is_local(self, address):
        first, last, it = map(ipaddress.ip_address, (*self.ends, address))
        return it.version == first.version and first <= it <= last

    def listed(self, **want):
        """The connections, as family L4LB shows them."""
        with genl.L4lb(self.lab.director.ns) as l4lb:
            return l4lb.conns(vip=self.vip, vport=self.port, **want)


class FullClient(Client):
    """LOCAL: address and port by which its real server knows it, once a packet has arrived."""

    local = None

    def _mine(self, p):
        if self.local:
            return (p.src, p.sport) == self.local or (p.src == self.local[0] and p.offset > 0)
        return self.raw.is_local(p.src) and p.dport == self.raw.dport

    def arrive(self, count=1, what="forwarded packets"):
        got = super().arrive(count, what)
        p = (got if count == 1 else got[0])[1]
        if not self.local:
            self.local = (p.src, p.sport)
        return got

    def reply_packet(self, flags=None, payload=b"", number=None, **kwargs):
        r = self.raw
        src, flags = r.address(number or self.number), SYN | ACK if flags is None else flags
        if r.proto == packet.SCTP:
            return packet.sctp_packet(src, r.dport, *self.local, chunks(flags), payload=payload, **kwargs)
        if r.proto == packet.TCP:
            return packet.tcp_packet(src, r.dport, *self.local, flags, payload=payload, **kwargs)
        return packet.udp_packet(src, r.dport, *self.local, payload, **kwargs)


def attempts(raw, count):
    """The local ends that COUNT new connections get."""
    for _ in range(count):
        raw.client().send()
    raw.fence()
    return [(p.src, p.sport) for p in raw.taps[raw.numbers[0]].take(
        lambda p: raw.is_local(p.src) and p.dport == raw.dport)]
