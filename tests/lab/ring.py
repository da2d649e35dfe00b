# SPDX-License-Identifier: GPL-2.0
"""Sends packets whose data stay in memory of this process until they are copied.

A packet socket's transmit ring puts only the Ethernet header into the skb's
head: the rest are page fragments, shared with this process, which may change
them while the packet is under way.
"""

import mmap
import socket
import struct

from .netns import wait_until

SOL_PACKET, PACKET_VERSION, PACKET_TX_RING, TPACKET_V2 = 263, 10, 13, 1
AVAILABLE, SEND_REQUEST = 0, 1
FRAME, FRAMES, DATA_AT = 2048, 8, 32


class Ring:
    """A transmit ring on the interface of a Tap; use as a context manager."""

    def __init__(self, tap):
        self.tap, self.next = tap, 0
        self.sock = tap.node.ns.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        self.sock.setsockopt(SOL_PACKET, PACKET_TX_RING, struct.pack(
            "IIII", FRAME * FRAMES, 1, FRAME, FRAMES))
        self.sock.bind((tap.device, 0))
        self.memory = mmap.mmap(self.sock.fileno(), FRAME * FRAMES)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.memory.close()
        self.sock.close()

    def send(self, ip_packet):
        """Returns the packet's offset in self.memory."""
        frame = self.tap.frame(ip_packet)
        at = self.next * FRAME
        self.next = (self.next + 1) % FRAMES
        wait_until(lambda: self._status(at) == AVAILABLE, what="a free slot in the ring")
        self.memory[at + DATA_AT:at + DATA_AT + len(frame)] = frame
        struct.pack_into("=II", self.memory, at, SEND_REQUEST, len(frame))
        self.sock.send(b"")
        return at + DATA_AT + 14

    def _status(self, at):
        return struct.unpack_from("=I", self.memory, at)[0]
