# SPDX-License-Identifier: GPL-2.0
"""The network on which directors announce connections: a cable to a peer's namespace,
a receiver that has joined the multicast group, and a sender of raw datagrams."""

import contextlib
import socket
import struct

from . import packet, sync_wire
from .netns import Namespace, wait_until

GROUP = {4: sync_wire.GROUP, 6: "ff02::51"}
DEVICE = "sync0"
# The two ends of the cable: the director's and the peer's.
DIRECTOR, PEER = {4: "172.31.0.1", 6: "fd00:31::1"}, {4: "172.31.0.2", 6: "fd00:31::2"}
SO_BINDTODEVICE, SO_RCVBUFFORCE = 25, 33
IP_RECVTTL = 12


def family_of(group):
    return socket.AF_INET6 if packet.is6(group) else socket.AF_INET


def device_index(ns, device):
    with ns.enter():
        return socket.if_nametoindex(device)


@contextlib.contextmanager
def cable(ns, peer=None, device=DEVICE):
    """A cable DEVICE from NS to a namespace of its own, or to PEER; yields that one."""
    other = peer or Namespace(f"{ns.name}-peer")
    try:
        for scope in ("all", "default"):
            other.sysctl(f"net/ipv4/conf/{scope}/rp_filter", 0)
        other.sysctl("net/ipv6/conf/default/accept_dad", 0)
        ns.ip(f"link add {device} type veth peer name {device} netns {other.name}")
        for end, address in ((ns, DIRECTOR), (other, PEER)):
            end.ip(f"addr add {address[4]}/24 dev {device}",
                   f"addr add {address[6]}/64 dev {device} nodad", f"link set {device} up")
        wait_until(lambda: up(ns, device) and up(other, device), 10, what=f"{device} up")
        yield other
    finally:
        ns.run(["ip", "link", "del", device], check=False)
        if not peer:
            other.destroy()


def up(ns, device):
    return ns.is_running(device) and ns.has_ipv6(device)


@contextlib.contextmanager
def stuck(ns, device=DEVICE):
    """After 2,000 bytes, 64 leave in a second. Yields a function, after which all do, once
    the first one that waits has; those that still wait at the end of the block are lost."""
    def limit(verb, rate):
        ns.run(["tc", "qdisc", verb, "dev", device, "root", "tbf", "rate", rate, "burst", "2000",
                "limit", "1000000"])
    limit("add", "512bit")
    try:
        yield lambda: limit("change", "1gbit")
    finally:
        ns.run(["tc", "qdisc", "del", "dev", device, "root"])


class Receiver:
    """Has joined GROUP on DEVICE of namespace NS; a context manager."""

    def __init__(self, ns, group=GROUP[4], port=sync_wire.PORT, device=DEVICE):
        family = family_of(group)
        self.sock = ns.socket(family, socket.SOCK_DGRAM)
        index = device_index(ns, device)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        if family == socket.AF_INET:
            self.sock.bind((group, port))
            self.sock.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
            self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, struct.pack(
                "=4s4si", packet.packed(group), bytes(4), index))
        else:
            self.sock.bind((group, port, 0, index))
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, struct.pack(
                "=16si", packet.packed(group), index))
        self.sock.setblocking(False)
        self.ttl = self.source = None       # of the last datagram

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def poll(self):
        """A datagram that has arrived, or None."""
        try:
            data, more, _, self.source = self.sock.recvmsg(65536, 64)
        except BlockingIOError:
            return None
        self.ttl = struct.unpack("=i", more[0][2])[0] if more else None
        return data

    def drain(self):
        """Every datagram that has arrived."""
        return list(iter(self.poll, None))

    def message(self, deadline=10.0):
        """The next datagram."""
        return wait_until(self.poll, deadline, what="a synchronisation message")

    def records(self, match=lambda _: True, count=1, deadline=10.0):
        """Waits for COUNT records that MATCH; returns those that have come, in order."""
        got = []

        def enough():
            for data in self.drain():
                got.extend(filter(match, sync_wire.strict(data)))
            return len(got) >= count
        wait_until(enough, deadline, what=f"{count} records")
        return got


class Sender:
    """Sends datagrams from namespace NS to GROUP by DEVICE; a context manager."""

    def __init__(self, ns, group=GROUP[4], port=sync_wire.PORT, device=DEVICE, *, ttl=1,
                 source=None):
        family = family_of(group)
        self.to = (group, port)
        self.sock = ns.socket(family, socket.SOCK_DGRAM)
        index = device_index(ns, device)
        if family == socket.AF_INET:
            self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack(
                "=4s4si", bytes(4), bytes(4), index))
            self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
            self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        else:
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, ttl)
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
        if source:
            self.sock.bind(source)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendto(data, self.to)
        return self

    def records(self, *records, sync_id=0, version=1):
        return self.send(sync_wire.message(records, sync_id, version))
