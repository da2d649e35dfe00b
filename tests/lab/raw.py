# SPDX-License-Identifier: GPL-2.0
"""Raw packets through a virtual service; the test plays its clients and its servers.

The service is on a RAW_VIP, its real servers are the topology's phantoms, its
clients phantom addresses: no stack but the director's ever answers.
"""

import struct

from . import packet
from .farm import fresh_port
from .netns import wait_until
from .packet import (
    ABORT,
    ACK,
    COOKIE_ACK,
    COOKIE_ECHO,
    DATA,
    FIN,
    INIT,
    INIT_ACK,
    PSH,
    RST,
    SCTP,
    SYN,
    TCP,
    UDP,
)
from .topology import SERVERS


def chunks(flags):
    """The SCTP chunks that correspond to TCP FLAGS; a tuple of chunks stays as it is."""
    if isinstance(flags, tuple):
        return flags
    said = {SYN: INIT, SYN | ACK: INIT_ACK}
    return (ABORT if flags & RST else said.get(flags, DATA),)


class Raw:
    """A service with phantom servers NUMBERS, in that order of adding."""

    def __init__(self, lab, proto=TCP, family=4, numbers=(1,), weights=None,
                 *, dport=None, port=None, vip=None, server_family=None, method=None,
                 server=None, **options):
        self.lab, self.proto, self.family = lab, proto, family
        self.server_family = server_family or family
        self.numbers = numbers
        self.vip = vip or lab.raw_vip(family)
        self.port = lab.fresh_port() if port is None else port
        self.method = lab.method if method is None else method
        if dport is None:
            dport = self.port + 30000 if lab.shape == "nat" else self.port
        self.dport = dport
        self.client_tap = lab.tap("client")
        self.taps = {n: lab.tap(SERVERS[n - 1]) for n in numbers}
        options.setdefault("sched", "rr")
        self.service = lab.ipvs.service(self.vip, self.port, proto=proto, **options)
        for i, n in enumerate(numbers):
            self.add(n, weight=weights[i] if weights else 1, **(server or {}))

    def address(self, number):
        return self.lab.phantom(number, self.server_family)

    def add(self, number, **options):
        options.setdefault("method", self.method)
        if number not in self.taps:
            self.taps[number] = self.lab.tap(SERVERS[number - 1])
        self.service.server(self.address(number), self.dport, **options)

    def edit(self, number, **options):
        options.setdefault("method", self.method)
        self.service.edit_server(self.address(number), self.dport, **options)

    def remove(self, number):
        self.service.delete_server(self.address(number), self.dport)

    def dest(self, number):
        return self.service.find(self.address(number), self.dport)

    def client(self, address=None, sport=None):
        return Client(self, address, sport)

    def drain(self):
        for tap in (self.client_tap, *self.taps.values()):
            tap.drain()

    def fence(self):
        """Return when the director has processed everything sent so far."""
        source = self.lab.client_address(self.family)
        echo, answer = (8, 0) if self.family == 4 else (128, 129)
        to = self.lab.raw_vip(self.family, 1)
        for n in (1, 2):
            self.client_tap.send(packet.icmp_packet(source, to, echo, 0, n))
            self.client_tap.expect(
                lambda p: p.dst == source and p.type == answer, what="echo reply")

    def send_all(self, packets, at_once=1000):
        """PACKETS from the client, AT_ONCE before the taps are emptied; returns when the director
        has processed all."""
        for number, p in enumerate(packets, 1):
            self.client_tap.send(p)
            if number % at_once == 0:
                self.fence()
                self.drain()
        self.fence()
        self.drain()


class Client:
    """One client address and port of a Raw service, and its flow's packets."""

    def __init__(self, raw, address=None, sport=None):
        self.raw = raw
        self.address = address or raw.lab.client_address(raw.family)
        self.sport = sport or fresh_port()
        self.number = None

    # -- sending

    def packet(self, flags=None, payload=b"", **kwargs):
        """FLAGS: TCP flags, or SCTP chunks; default: a flow's first packet."""
        r = self.raw
        flags = SYN if flags is None else flags
        if r.proto == SCTP:
            return packet.sctp_packet(self.address, self.sport, r.vip, r.port,
                                      chunks(flags), payload=payload, **kwargs)
        if r.proto == TCP:
            return packet.tcp_packet(self.address, self.sport, r.vip, r.port, flags,
                                     payload=payload, **kwargs)
        return packet.udp_packet(self.address, self.sport, r.vip, r.port, payload,
                                 **kwargs)

    def send(self, flags=None, payload=b"", **kwargs):
        self.raw.client_tap.send(self.packet(flags, payload, **kwargs))
        return self

    def reply_packet(self, flags=None, payload=b"", number=None, **kwargs):
        """The real server's answer; default: SYN and ACK, or INIT ACK."""
        r = self.raw
        number = number or self.number or r.numbers[0]
        src, sport = (r.address(number), r.dport or r.port) if r.lab.shape == "nat" else \
            (r.vip, r.port)
        flags = SYN | ACK if flags is None else flags
        if r.proto == SCTP:
            return packet.sctp_packet(src, sport, self.address, self.sport, chunks(flags),
                                      payload=payload, **kwargs)
        if r.proto == TCP:
            return packet.tcp_packet(src, sport, self.address, self.sport, flags,
                                     payload=payload, **kwargs)
        return packet.udp_packet(src, sport, self.address, self.sport, payload, **kwargs)

    def reply(self, flags=None, payload=b"", number=None, **kwargs):
        """Send reply_packet() from the server's side to the director."""
        number = number or self.number or self.raw.numbers[0]
        self.raw.taps[number].send(self.reply_packet(flags, payload, number, **kwargs))
        return self

    # -- receiving

    def _mine(self, p):
        if p.is_tunnel:
            try:
                p = p.inner()
            except (ValueError, struct.error):
                return False  # a packet of another test: a later fragment, or cut short
        return p.src == self.address and (p.sport == self.sport or p.offset > 0)

    def arrivals(self):
        """[(server number, packet)] waiting at the servers."""
        return [(n, p) for n, tap in self.raw.taps.items()
                for p in tap.take(self._mine)]

    def arrive(self, count=1, what="forwarded packets"):
        """Wait for COUNT forwarded packets: [(number, packet)], or one pair."""
        got = []

        def enough():
            got.extend(self.arrivals())
            return len(got) >= count

        wait_until(enough, 5, what=what)
        assert len(got) == count, f"{len(got)} {what} instead of {count}: {got}"
        for number, p in got:
            assert p.bad_checksum() is None, p.bad_checksum()
            if p.is_tunnel:
                assert p.inner().bad_checksum() is None, p.inner().bad_checksum()
            self.number = number
        return got[0] if count == 1 else got

    def open(self):
        """Send a first packet; return the number of the server that got it."""
        self.send()
        return self.arrive()[0]

    def nothing_arrives(self):
        self.raw.fence()
        assert self.arrivals() == []

    def answered(self, count=1):
        """Wait for replies at the client (NAT)."""
        return self.raw.client_tap.expect(
            lambda p: p.dst == self.address and p.dport == self.sport, count,
            what="replies")

    def icmp(self, deadline=5.0):
        """Wait for an ICMP error at the client."""
        return self.raw.client_tap.expect(
            lambda p: p.dst == self.address and is_error(p), deadline=deadline,
            what="ICMP error")

    # -- looking

    def rows(self):
        """This flow's rows in /proc/net/ip_vs_conn; a connection that is being
        replaced may appear together with its successor."""
        return self.raw.lab.conns(client=self.address, cport=self.sport,
                                  vip=self.raw.vip, vport=self.raw.port)

    def row(self):
        """This flow's row in /proc/net/ip_vs_conn, or None."""
        rows = self.rows()
        assert len(rows) <= 1, rows
        return rows[0] if rows else None

    @property
    def state(self):
        row = self.row()
        return row and row["state"]

    def establish(self):
        """Walk a TCP or SCTP flow to ESTABLISHED; return the server's number."""
        number = self.open()
        if self.raw.proto == SCTP:
            return self._associate(number)
        if self.raw.lab.shape == "nat":
            self.reply(SYN | ACK).answered()
        self.send(ACK)
        self.arrive()
        return number

    def prove(self):
        """Do what no forged address can do, so that a full table keeps the flow: TCP that
        is seen to be answered, or nine packets in all."""
        if self.raw.proto == TCP and self.raw.lab.shape == "nat":
            self.reply(ACK).answered()
            return self
        for _ in range(9):
            self.send(ACK)
        self.arrive(9)
        return self

    def _associate(self, number):
        nat = self.raw.lab.shape == "nat"
        if nat:
            self.reply((INIT_ACK,)).answered()
        self.send((COOKIE_ECHO,), b"cookie")
        self.arrive()
        if nat:
            self.reply((COOKIE_ACK,)).answered()
        return number


def is_error(p):
    if p.proto == packet.ICMP:
        return p.type in (3, 4, 5, 11, 12)
    return p.proto == packet.ICMP6 and p.type < 128


__all__ = ["ACK", "FIN", "PSH", "RST", "SYN", "TCP", "UDP", "Client", "Raw", "is_error"]
