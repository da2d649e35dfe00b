# SPDX-License-Identifier: GPL-2.0
"""A node of a topology, and raw packets on its device."""

import errno
import socket
import struct

from . import packet
from .netns import Namespace, wait_until

PACKET_AUXDATA, PACKET_IGNORE_OUTGOING, SOL_PACKET = 8, 23, 263
TP_STATUS_CSUMNOTREADY = 8
SO_RCVBUFFORCE = 33


class Node:
    """A namespace with a role, and its interfaces' link addresses."""

    def __init__(self, topology, role):
        self.role = role
        self.ns = Namespace(topology.prefix + role)
        self.addresses = {}
        self.macs = {}

    def mac(self, device="eth0"):
        if device not in self.macs:
            self.macs[device] = self.ns.mac(device)
        return self.macs[device]

    def __repr__(self):
        return f"<{self.role}>"


class Tap:
    """Raw Ethernet on one interface: receives frames that arrive there, and sends."""

    def __init__(self, node, device="eth0"):
        self.node, self.device = node, device
        self.sock = node.ns.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                   socket.htons(3))
        self.sock.bind((device, 3))
        self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        self.sock.setblocking(False)
        self.peer = None
        self.pending = []

    def close(self):
        self.sock.close()

    def send(self, ip_packet, mac=None, ethertype=None):
        """Send an IP packet to the link address MAC (default: self.peer)."""
        # If the device queue is full, wait for room.
        frame = self.frame(ip_packet, mac, ethertype)
        wait_until(lambda: self._try(frame), what="room in the device queue")

    def try_send(self, ip_packet):
        """Send if that is possible right now; returns whether it was."""
        try:
            return self._try(self.frame(ip_packet))
        except OSError:
            return False

    def frame(self, ip_packet, mac=None, ethertype=None):
        if ethertype is None:
            ethertype = packet.ETH_IP6 if ip_packet[:1] and ip_packet[0] >> 4 == 6 \
                else packet.ETH_IP
        return (mac or self.peer) + self.node.mac(self.device) + \
            struct.pack("!H", ethertype) + ip_packet

    def _try(self, frame):
        try:
            self.sock.send(frame)
            return True
        except OSError as e:
            if e.errno in (errno.EAGAIN, errno.ENOBUFS):
                return False
            raise

    def frames(self):
        """Every IP frame that has arrived: (frame, whether its checksum is still to be made)"""
        while True:
            try:
                frame, aux, _, source = self.sock.recvmsg(70000, 128)
            except BlockingIOError:
                return
            # A bridge floods frames to addresses it has not learned; those are not for us.
            if source[2] == socket.PACKET_OTHERHOST:
                continue
            if frame[12:14] in (b"\x08\x00", b"\x86\xdd"):
                status = struct.unpack("I", aux[0][2][:4])[0] if aux else 0
                yield frame, bool(status & TP_STATUS_CSUMNOTREADY)

    def poll(self):
        """Every IP packet that has arrived and was not taken yet."""
        for frame, offloaded in self.frames():
            try:
                p = packet.Packet(frame[14:], mac=frame[:6], offloaded=offloaded)
            except (ValueError, struct.error):
                continue
            p.behind = frame[14 + len(p.raw):]
            self.pending.append(p)
        return self.pending

    def drain(self):
        self.poll()
        self.pending = []

    def take(self, match):
        """Remove and return the waiting packets that MATCH, in order."""
        self.poll()
        found = [p for p in self.pending if match(p)]
        self.pending = [p for p in self.pending if not match(p)]
        return found

    def expect(self, match, count=1, deadline=5.0, what="packets"):
        """Wait for COUNT matching packets; their checksums must be right."""
        got = []

        def arrived():
            got.extend(self.take(match))
            return len(got) >= count

        try:
            wait_until(arrived, deadline)
        except AssertionError:
            raise AssertionError(
                f"{self.node.role}: {len(got)} of {count} {what}; got {got}, "
                f"also waiting: {self.pending[-8:]}") from None
        bad = [b for b in (p.bad_checksum() for p in got) if b]
        assert not bad, bad
        assert len(got) == count, f"{len(got)} {what} instead of {count}: {got}"
        return got[0] if count == 1 else got
