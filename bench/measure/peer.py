# SPDX-License-Identifier: GPL-2.0
"""bench/peer/ipip.c, attached to the devices of a bed: maps, and a proof that it balances."""

import contextlib
import ctypes
import ipaddress
import os
import socket
import struct
import tempfile
from pathlib import Path

import frames
from bed import FAMILIES, PORT, PROTO, MeasureError, Traffic, server_mac
from lab import bpf
from lab.netns import run
from systems import attached

UPDATE_BATCH = 26
RING, GOLDEN, BITS = 65537, 0x9e3779b97f4a7c15, (1 << 64) - 1
SERVERS, FLOWS, SIZE = 4, 16, 64
NAME = "peer xdp"


def slot(source, port):
    """Of the ring, as slot_of() of ipip.c computes it: both in network order."""
    x = (int.from_bytes(source, "little") << 16 | int.from_bytes(port, "little")) * GOLDEN & BITS
    x ^= x >> 32
    return (x * GOLDEN & BITS) // (1 << 32) % RING


class Peer:
    """The program's maps by name, which hold {key: value} in bytes."""

    def __init__(self, folder):
        self.folder = folder

    def fill(self, name, entries):
        keys, values = (ctypes.create_string_buffer(b"".join(part)) for part in zip(*entries))
        fd = bpf.get(self.folder / name)
        try:
            bpf.bpf(UPDATE_BATCH, struct.pack(
                "=QQQQIIQQ", 0, 0, ctypes.addressof(keys), ctypes.addressof(values),
                len(entries), fd, 0, 0))
        finally:
            os.close(fd)

    def serve(self, vip):
        """VIP for both protocols, as the number 0."""
        address = ipaddress.ip_address(FAMILIES[4].vip(vip)).packed
        self.fill("vips", [(address + struct.pack("!HBx", PORT, number), struct.pack("=I", 0))
                           for number in PROTO.values()])
        device = socket.if_nametoindex("srv0")
        self.fill("reals", [(
            struct.pack("=I", n), ipaddress.ip_address(FAMILIES[4].server(n)).packed +
            struct.pack("=I", device) + bytes.fromhex(server_mac(n).replace(":", "")) + bytes(2))
            for n in range(1, SERVERS + 1)])

    def turn(self, chosen):
        """The ring's slot N belongs to server CHOSEN(N)."""
        self.fill("ring", [(struct.pack("=I", n), struct.pack("=I", chosen(n))) for n in range(RING)])


def one(traffic, number):
    """(outer destination, what the ring's slot comes from) of a packet of flow NUMBER."""
    result = traffic.bed.gen.send(**traffic.words(SIZE, fresh=number) | {"flows": 1})
    sink, length, due = traffic.due(SIZE)
    del due["outer"], due["lladdr"]
    result.check(sink, length, due)
    frame = frames.Frame(result.sinks[sink][2])
    if frame.lladdr != server_mac(int(ipaddress.ip_address(frame.outer)) & 0xff):
        raise MeasureError(f"the peer sends {frame.outer}'s packets to {frame.lladdr}")
    return frame.outer, slot(frame.src.packed, struct.pack("!H", frame.sport))


def prove(bed, peer):
    """The ring chooses for new flows, and known ones stay when it changes."""
    def server(n):
        return 1 + n % SERVERS
    traffic = Traffic(bed, 4, "udp", "tun", flows=FLOWS)
    peer.turn(server)
    chosen = []
    for n in range(FLOWS):
        outer, at = one(traffic, traffic.first + n)
        if str(outer) != FAMILIES[4].server(server(at)):
            raise MeasureError(f"the peer's ring has {server(at)} in slot {at}, it sends to {outer}")
        chosen.append(outer)
    if len(set(chosen)) < 2:
        raise MeasureError("the peer sends all flows to one server")
    peer.turn(lambda n: 1)
    if [one(traffic, traffic.first + n)[0] for n in range(FLOWS)] != chosen:
        raise MeasureError("the peer's known flows move with the ring")


@contextlib.contextmanager
def balancing(bed, file):
    """The program of object FILE takes what comes in by gen0, and has proved itself. All new
    flows then go to the first server."""
    with tempfile.TemporaryDirectory() as folder, bpf.pins(folder):
        run(["bpftool", "prog", "load", file, f"{folder}/balance", "type", "xdp", "pinmaps", folder])
        peer = Peer(Path(folder))
        peer.serve(3)
        with attached(bpf.get(f"{folder}/balance")):
            prove(bed, peer)
            yield
