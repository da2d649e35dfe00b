# SPDX-License-Identifier: GPL-2.0
"""Peers of synchronisation: the commands of family L4LB about them, and a peer that is a
program of the test."""

import contextlib
import hashlib
import secrets
import socket
import struct
import time

from . import genl, packet, sync_wire
from .genl import DEL_PEER, GET_SYNC, L_PEER, L_SYNC, NEW_PEER, SET_SYNC, attr, attributes, be16, u32
from .netns import wait_until
from .sync_group import DIRECTOR, PEER

ADDR, PORT_ATTR, HOPS = 1, 2, 3
RATE, MULTICAST, PORT_SYNC, KEY = 1, 2, 3, 4
PORT = 8912
STATES = ("absent", "joining", "in step")
KEYED, BULK, AGAIN, CONTROL = 1, 2, 4, 8
OTHER = 255
HELLO, NACK = 1, 2
IP_RECVTTL = 12


class Peers:
    """The peers of namespace NS; a context manager, which deletes those it added."""

    def __init__(self, ns):
        self.ns, self.sock = ns, genl.Genl(ns, "L4LB")
        self.added = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for addr in list(self.added):
            self.delete(addr)
        self.set(key=b"", multicast=True)
        self.sock.close()

    def add(self, addr, port=None, hops=False):
        nest = [attr(ADDR, packet.packed(addr))]
        if port is not None:
            nest.append(attr(PORT_ATTR, be16(port)))
        if hops:
            nest.append(attr(HOPS, b""))
        self.sock.request(NEW_PEER, nested(L_PEER, nest))
        self.added.append(addr)

    def delete(self, addr):
        self.sock.request(DEL_PEER, nested(L_PEER, [attr(ADDR, packet.packed(addr))]))
        if addr in self.added:
            self.added.remove(addr)

    def set(self, *, rate=None, multicast=None, port=None, key=None):
        nest = []
        if rate is not None:
            nest.append(attr(RATE, u32(rate)))
        if multicast is not None:
            nest.append(attr(MULTICAST, bytes([multicast])))
        if port is not None:
            nest.append(attr(PORT_SYNC, be16(port)))
        if key is not None:
            nest.append(attr(KEY, key))
        self.sock.request(SET_SYNC, nested(L_SYNC, nest))

    def settings(self):
        ((_, payload),) = self.sock.request(GET_SYNC)
        found = dict(attributes(dict(attributes(payload))[L_SYNC]))
        counters = [dict(attributes(one)) for _, one in attributes(found[6])]
        out = {"rate": struct.unpack("=I", found[1])[0], "multicast": found[2] == b"\1",
               "port": int.from_bytes(found[3], "big"), "sender": struct.unpack("=Q", found[7])[0],
               "kept": struct.unpack("=Q", found[8])[0],
               "key_id": struct.unpack("=I", found[5])[0] if 5 in found else None}
        out["counters"] = {c[1].rstrip(b"\0").decode(): struct.unpack("=Q", c[2])[0]
                           for c in counters}
        return out

    def count(self, name):
        return self.settings()["counters"][f"sync_{name}"]

    def list(self):
        """{address: values}."""
        out = {}
        for _, payload in self.sock.dump(GET_SYNC):
            found = dict(attributes(dict(attributes(payload))[L_PEER]))
            one = {"port": int.from_bytes(found[2], "big"), "hops": 3 in found,
                   "state": STATES[struct.unpack("=I", found[4])[0]]}
            for name, kind in (("sender", 5), ("heard", 6), ("gaps", 7), ("repaired", 8),
                               ("lost", 9), ("resent", 10)):
                one[name] = struct.unpack("=Q", found[kind])[0] if kind in found else None
            family = socket.AF_INET if len(found[1]) == 4 else socket.AF_INET6
            out[socket.inet_ntop(family, found[1])] = one
        return out

    def present(self, addr):
        wait_until(lambda: self.list()[addr]["state"] != "absent", 10, what=f"{addr} heard")


def nested(kind, attrs):
    return attr(kind | 0x8000, b"".join(attrs))


def trailer(sender, sequence, flags=0, stream=0, backlog=0):
    return b"l4lb" + struct.pack(">BBHQQB3xI32x", 1, 64, flags, sender, sequence, stream, backlog)


def with_trailer(data, tail, key=None):
    """The message DATA with a trailer behind it, signed with KEY."""
    data += bytes(-len(data) % 4) + tail
    data = data[:2] + len(data).to_bytes(2, "big") + data[4:]
    if key:
        data = data[:-32] + hashlib.blake2s(data, key=key).digest()
    return data


class Fake:
    """A peer of the director at the other end of the cable."""

    def __init__(self, ns, family=4, *, key=None, hops=255, port=PORT, addr=None):
        self.to = (DIRECTOR[family], PORT)
        kind = socket.AF_INET if family == 4 else socket.AF_INET6
        self.sock = ns.socket(kind, socket.SOCK_DGRAM)
        if family == 4:
            self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
            self.sock.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        else:
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)
            self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)        # SO_RCVBUFFORCE
        self.sock.bind((addr or PEER[family], port))
        self.sock.settimeout(5)
        self.key, self.sender = key, secrets.randbits(63) | 1
        self.control, self.nonce = 0, secrets.randbits(64)
        self.ttl, self.echo = None, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def raw(self, data):
        self.sock.sendto(data, self.to)

    def message(self, data, sequence, *, flags=0, stream=0, sender=None, key=None):
        key = key or self.key
        return with_trailer(data, trailer(sender or self.sender, sequence,
                                          flags | (KEYED if key else 0), stream), key)

    def records(self, *records, sequence, **more):
        self.raw(self.message(sync_wire.message(records), sequence, **more))

    def send_control(self, kind, body):
        self.control += 1
        data = struct.pack(">BBHBBHBBH", 0, 0, 0, 0, 1, 0, kind, 0, len(body)) + body
        out = self.message(data, self.control, flags=CONTROL, stream=OTHER)
        self.raw(out)
        return out

    def hello(self, streams=()):
        """STREAMS: (newest, oldest) of each."""
        body = struct.pack(">QQIBBH", self.nonce, self.echo, 0, 0, len(streams), 0)
        return self.send_control(HELLO, body + b"".join(struct.pack(">QQ", *s) for s in streams))

    def nack(self, *ranges):
        self.send_control(NACK, b"".join(struct.pack(">B3xQQ", *r) for r in ranges))

    def receive(self):
        """(trailer's values, message) of the next datagram, which must be valid."""
        data, more, _, source = self.sock.recvmsg(65536, 64)
        assert source[:2] == self.to[:2]
        self.ttl = struct.unpack("=i", more[0][2])[0]
        tail = data[-64:]
        assert tail[:4] == b"l4lb", data.hex()
        assert int.from_bytes(data[2:4], "big") == len(data)
        flags, sender, sequence, stream, _ = struct.unpack(">HQQB3xI", tail[6:32])
        clean = data[:-32] + bytes(32)
        assert data[-32:] == (hashlib.blake2s(clean, key=self.key).digest() if self.key
                              else bytes(32))
        assert bool(flags & KEYED) == bool(self.key)
        return {"flags": flags & ~KEYED, "sender": sender, "sequence": sequence,
                "stream": stream}, data[:-64]

    def until(self, match, deadline=5):
        """The next message that MATCH(trailer, message) accepts; HELLOs are remembered."""
        end = time.monotonic() + deadline
        while time.monotonic() < end:
            tail, data = self.receive()
            if tail["flags"] & CONTROL and data[8] == HELLO:
                self.echo = struct.unpack(">Q", data[12:20])[0]
            if match(tail, data):
                return tail, data
        raise AssertionError("no such message came")

    def next_hello(self):
        return self.until(lambda t, d: t["flags"] & CONTROL and d[8] == HELLO)

    def join(self, streams=()):
        """Proves that it is there; afterwards the director believes its messages."""
        self.next_hello()
        self.hello(streams)
        def proven(tail, data):
            return tail["flags"] & CONTROL and data[8] == HELLO and \
                struct.unpack(">Q", data[20:28])[0] == self.nonce and data[32] != 0
        self.until(proven)
        return self

    def drain(self):
        with contextlib.suppress(BlockingIOError, TimeoutError):
            self.sock.setblocking(False)
            while True:
                self.receive()
        self.sock.settimeout(5)
