# SPDX-License-Identifier: GPL-2.0
"""Peers of synchronisation: the commands of family L4LB about them, and a peer that is a
program of the test."""

import contextlib
import hashlib
import secrets
import socket
import struct
import sys
import time

from . import genl, packet, sync_wire
from .genl import (
    DEL_PEER,
    GET_SYNC,
    L_PEER,
    L_PUSH,
    L_SYNC,
    NEW_PEER,
    SET_SYNC,
    SYNC_RESYNC,
    SYNC_VERIFY,
    attr,
    attributes,
    be16,
    u32,
)
from .netns import wait_until
from .siphash import MASK, siphash
from .sync_group import DIRECTOR, PEER

ADDR, PORT_ATTR, HOPS = 1, 2, 3
RATE, MULTICAST, PORT_SYNC, KEY, VERIFY = 1, 2, 3, 4, 10
PORT = 8912
PROGRESS = {"bulk_in": 12, "bulk_out": 13, "resyncs": 14, "difference": 15, "verified": 16,
            "expected": 18, "compared": 19}
STATES = ("absent", "joining", "in step")
KEYED, BULK, AGAIN, CONTROL = 1, 2, 4, 8
OTHER = 255
HELLO, NACK, RESYNC, BULK_BEGIN, BULK_END, DIGEST_ASK, DIGEST, SLICES = range(1, 9)
SLICE_COUNT, SUMS = 4096, 128
IP_RECVTTL = 12


class Events:
    """Listens to the changes of peers in namespace NS; a context manager."""

    def __init__(self, ns):
        self.genl = genl.Genl(ns, "L4LB")
        self.genl.sock.setsockopt(genl.SOL_NETLINK, 1, self.genl.group("events"))    # ADD_MEMBERSHIP

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.genl.close()

    def next(self):
        """(address, state) of the next event."""
        data = self.genl.sock.recv(65536)
        found = dict(attributes(dict(attributes(data[20:]))[L_PEER]))
        family = socket.AF_INET if len(found[1]) == 4 else socket.AF_INET6
        return socket.inet_ntop(family, found[1]), STATES[struct.unpack("=I", found[4])[0]]


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
        self.set(key=b"", multicast=True, rate=20000, verify=60)
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

    def set(self, *, rate=None, multicast=None, port=None, key=None, verify=None):
        nest = []
        if verify is not None:
            nest.append(attr(VERIFY, u32(verify)))
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
               "verify": struct.unpack("=I", found[10])[0],
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

    def resync(self, addr=None, push=False):
        self.sock.request(SYNC_RESYNC, attr(L_PUSH, b"") if push else self._which(addr))

    def verify(self, addr=None):
        self.sock.request(SYNC_VERIFY, self._which(addr))

    @staticmethod
    def _which(addr):
        return nested(L_PEER, [attr(ADDR, packet.packed(addr))]) if addr else b""

    def progress(self, addr):
        """Of resyncs and comparisons with a peer."""
        for _, payload in self.sock.dump(GET_SYNC):
            found = dict(attributes(dict(attributes(payload))[L_PEER]))
            if found[1] == packet.packed(addr):
                return {name: int.from_bytes(found[kind], sys.byteorder) if kind in found else None
                        for name, kind in PROGRESS.items()}
        raise KeyError(addr)

    def in_step(self, addr, deadline=10):
        wait_until(lambda: self.list()[addr]["state"] == "in step", deadline,
                   what=f"{addr} in step")

    def compare(self, addr):
        """The result of a comparison that begins now."""
        before = self.progress(addr)["verified"]
        self.verify(addr)
        wait_until(lambda: self.progress(addr)["verified"] > before, 20, what="a comparison")
        return self.progress(addr)

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


def without_trailer(data):
    """The records of a message whose trailer was taken off; padding may be left of it."""
    found = sync_wire.read(data[:2] + struct.pack(">H", len(data)) + data[4:])
    assert found.errors in ([], ["trailing"]), found.errors
    assert len(data) - found.at < 4
    return found.records


class Fake:
    """A peer of the director at the other end of the cable. Once it has joined, it is heard
    as long as the test waits for messages."""

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
        self.ttl, self.echo, self.proven = None, 0, False

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

    def is_control(self, kind, tail, data):
        return bool(tail["flags"] & CONTROL) and data[8] == kind

    def body(self, kind, deadline=5):
        """The body of the next control message of KIND."""
        _, data = self.until(lambda t, d: self.is_control(kind, t, d), deadline)
        return data[12:12 + int.from_bytes(data[10:12], "big")]

    def ask(self, nonce):
        self.send_control(RESYNC, struct.pack(">Q", nonce))

    def bulk_control(self, kind, nonce, records):
        self.send_control(kind, struct.pack(">QI", nonce, records))

    def bulk(self, *records):
        """Records of a resync, in one message."""
        self.control += 1
        self.raw(self.message(sync_wire.message(records), self.control, flags=BULK, stream=OTHER))

    def answer(self, *records, missing=0):
        """Waits for the director's request, and sends RECORDS."""
        (nonce,) = struct.unpack(">Q", self.body(RESYNC))
        self.bulk_control(BULK_BEGIN, nonce, len(records))
        for at in range(0, len(records), 20):
            self.bulk(*records[at:at + 20])
        self.bulk_control(BULK_END, nonce, len(records) + missing)

    def bulk_in(self, nonce, deadline=10):
        """(expected, records, number at the end) of the director's answer to NONCE."""
        expected, records, end = None, [], time.monotonic() + deadline
        while time.monotonic() < end:
            tail, data = self.receive()
            if tail["flags"] & BULK:
                records += without_trailer(data)
            elif tail["flags"] & CONTROL and data[8] in (BULK_BEGIN, BULK_END):
                found, number = struct.unpack(">QI", data[12:24])
                if found == nonce and data[8] == BULK_END:
                    return expected, records, number
                if found == nonce:
                    expected = number
        raise AssertionError("no end came")

    def digest(self, nonce, deadline=10):
        """The director's sums."""
        self.send_control(DIGEST_ASK, struct.pack(">Q", nonce))
        sums = {}
        while len(sums) < SLICE_COUNT:
            body = self.body(DIGEST, deadline)
            answered, first, n = struct.unpack(">QHH", body[:12])
            assert (answered, n) == (nonce, SUMS)
            sums.update(zip(range(first, first + n), struct.unpack(f">{n}Q", body[12:])))
        return [sums[n] for n in range(SLICE_COUNT)]

    def send_sums(self, nonce, sums):
        for first in range(0, len(sums), SUMS):
            self.send_control(DIGEST, struct.pack(f">QHH{SUMS}Q", nonce, first, SUMS,
                                                  *sums[first:first + SUMS]))

    def ask_for_slices(self, nonce, slices):
        body = bytearray(SLICE_COUNT // 8)
        for n in slices:
            body[n // 8] |= 1 << n % 8
        self.send_control(SLICES, struct.pack(">Q", nonce) + body)

    def slices(self, nonce, deadline=5):
        """Those that the director asks for."""
        body = self.body(SLICES, deadline)
        assert struct.unpack(">Q", body[:8]) == (nonce,)
        return {n for n in range(SLICE_COUNT) if body[8 + n // 8] >> n % 8 & 1}

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
                if self.proven:
                    self.hello()
            if match(tail, data):
                return tail, data
        raise AssertionError("no such message came")

    def next_hello(self):
        return self.until(lambda t, d: t["flags"] & CONTROL and d[8] == HELLO)

    def join(self, streams=()):
        """Proves that it is there; afterwards the director believes its messages."""
        self.proven = False
        self.next_hello()
        self.hello(streams)
        def proven(tail, data):
            return tail["flags"] & CONTROL and data[8] == HELLO and \
                struct.unpack(">Q", data[20:28])[0] == self.nonce and data[32] != 0
        self.until(proven)
        self.proven = True
        return self

    def listen(self, seconds):
        """Is heard for so long."""
        with contextlib.suppress(AssertionError):
            self.until(lambda *_: False, seconds)

    def drain(self):
        with contextlib.suppress(BlockingIOError, TimeoutError):
            self.sock.setblocking(False)
            while True:
                self.receive()
        self.sock.settimeout(5)


# ---- sums

def hash_of(record, key):
    """What a director adds to the sum of a slice for RECORD's connection."""
    data = b"".join(packet.packed(a).ljust(16, b"\0")
                    for a in (record.client, record.vip, record.server))
    data += struct.pack(">HHHBB", record.cport, record.vport, record.dport, record.proto,
                        record.is_template)
    return siphash(data, key)


def sums_of(records, key):
    sums = [0] * SLICE_COUNT
    for record in records:
        value = hash_of(record, key)
        sums[value % SLICE_COUNT] = sums[value % SLICE_COUNT] + value & MASK
    return sums
