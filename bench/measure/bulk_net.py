# SPDX-License-Identifier: GPL-2.0
"""A client, a director and a real server with veth between them, and TCP transfers whose ends
copy nothing: pages of a file are sent, and what arrives is dropped. Inside a guest.

    client c0 ---- d0 director d1 ---- s0 server
           c1 ------------------------ s1            direct routing, tunnel: the way back
"""

import hashlib
import os
import selectors
import socket
import struct

from bed import MeasureError
from lab.netns import run
from network import Network

VIP, PLAIN, WRAPPED, SERVER, PORT = "10.9.0.1", "10.8.0.1", "10.8.0.2", "10.1.0.2", 8000
MSG_TRUNC = 0x20        # TCP: drop instead of copying
PIECE, LEAST, PATIENCE = 1 << 20, 1 << 18, 120
HEAD = struct.Struct("<cQ")     # which end sends, and how many bytes


class Bulk(Network):
    """PLAIN and WRAPPED are the server's own addresses behind the director, which only routes to it: to
    WRAPPED by a tunnel device of the kernel, if METHOD is to tunnel."""

    def __init__(self, method):
        self.method = method
        super().__init__("bulk", "cds")
        self.client, self.director, self.server = (self.ns[n] for n in "cds")

    def _build(self):
        c, d, s = self.client, self.director, self.server
        for one, a, other, b in ((c, "c0", d, "d0"), (d, "d1", s, "s0"), (c, "c1", s, "s1")):
            one.ip(f"link add {a} type veth peer name {b} netns {other.name}")
        # Room for the outer header: no system has to cut or to answer "too long".
        d.ip("link set d1 mtu 1600", "link set d0 up", "link set d1 up", "addr add 10.0.0.1/24 dev d0",
             "addr add 10.1.0.1/24 dev d1", f"addr add {VIP}/32 dev lo", f"route add {PLAIN} via {SERVER}")
        c.ip("link set c0 up", "link set c1 up", "addr add 10.0.0.2/24 dev c0",
             "addr add 10.2.0.2/24 dev c1", f"route add {VIP} via 10.0.0.1", f"route add {PLAIN} via 10.0.0.1")
        back = "10.1.0.1 dev s0" if self.method == "nat" else "10.2.0.2 dev s1"
        s.ip("link set s0 mtu 1600", "link set s0 up", "link set s1 up", f"addr add {SERVER}/24 dev s0",
             "addr add 10.2.0.1/24 dev s1", f"addr add {PLAIN}/32 dev lo",
             f"route add 10.0.0.0/24 via {back} advmss 1460")
        if self.method != "nat":
            s.ip(f"addr add {VIP}/32 dev lo")
        if self.method == "tun":
            run(["modprobe", "-q", "ipip"], check=False)
            s.ip("link set tunl0 up")
            s.sysctl("net/ipv4/conf/tunl0/rp_filter", 0)
            s.ip(f"addr add {WRAPPED}/32 dev lo")
            c.ip(f"route add {WRAPPED} via 10.0.0.1")
            d.ip(f"link add wrap type ipip local 10.1.0.1 remote {SERVER}", "link set wrap mtu 1500 up",
                 f"route add {WRAPPED} dev wrap")
        d.sysctl("net/ipv4/ip_forward", 1)
        for ns in (c, d, s):
            ns.sysctl("net/ipv4/conf/all/send_redirects", 0)


def file_of(size):
    """A file in memory with SIZE bytes that do not repeat soon."""
    fd = os.memfd_create("bulk")
    os.write(fd, b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(size // 32)))
    return fd


class Stream:
    """One end of a transfer of SIZE bytes: it sends them, or drops them as they arrive."""

    def __init__(self, sock, sending, size, *, keep=False):
        self.sock, self.sending, self.left, self.parts = sock, sending, size, [] if keep else None
        sock.setblocking(False)
        if not sending:
            self._ask()

    @property
    def event(self):
        return selectors.EVENT_WRITE if self.sending and self.left else selectors.EVENT_READ

    def _ask(self):
        """Fewer looks at what arrives: the director is to be measured, not this program."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, max(1, min(self.left, LEAST)))

    def step(self, buffer, file):
        """A piece of it; true at the end, which the receiver knows first and then closes."""
        if not self.left:
            self.sock.recv(1)
            return True
        if self.sending:
            at = -self.left % PIECE
            self.left -= os.sendfile(self.sock.fileno(), file, at, min(self.left, PIECE - at))
            return False
        size = min(self.left, PIECE)
        got = self.sock.recv_into(buffer, size, 0 if self.parts is not None else MSG_TRUNC)
        if not got:
            raise MeasureError(f"{self.left} bytes did not arrive")
        if self.parts is not None:
            self.parts.append(bytes(buffer[:got]))
        self.left -= got
        self._ask()
        return not self.left


class Ends:
    """Both ends of all streams, in one thread."""

    def __init__(self, net):
        self.net, self.file, self.buffer = net, file_of(PIECE), bytearray(PIECE)
        self.poll = selectors.EpollSelector()
        self.listener = net.server.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.bind(("", PORT))
        self.listener.listen(256)
        self.poll.register(self.listener, selectors.EVENT_READ)

    def close(self):
        for key in list(self.poll.get_map().values()):
            key.fileobj.close()
        self.poll.close()
        os.close(self.file)

    def _add(self, stream):
        self.poll.register(stream.sock, stream.event, stream)
        return stream

    def _accept(self):
        sock = self.listener.accept()[0]
        sock.settimeout(PATIENCE)
        head = sock.recv(HEAD.size)     # one segment
        way, size = HEAD.unpack(head)
        self._add(Stream(sock, way == b"g", size))

    def _step(self, stream):
        event = stream.event
        try:
            ended = stream.step(self.buffer, self.file)
        except BlockingIOError:
            return
        if ended:
            self.poll.unregister(stream.sock)
            stream.sock.close()
        elif stream.event != event:
            self.poll.modify(stream.sock, stream.event, stream)

    def transfer(self, address, way, size, streams, *, keep=False):
        """SIZE bytes in each of STREAMS, b"g": from the server, b"p": to it. Returns the client's
        ends."""
        clients = []
        for _ in range(streams):
            sock = self.net.client.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.settimeout(PATIENCE)
            sock.connect((address, PORT))
            sock.sendall(HEAD.pack(way, size))
            clients.append(self._add(Stream(sock, way == b"p", size, keep=keep)))
        while len(self.poll.get_map()) > 1:
            ready = self.poll.select(PATIENCE)
            if not ready:
                raise MeasureError("a transfer stands still")
            for key, _ in ready:
                if key.fileobj is self.listener:
                    self._accept()
                else:
                    self._step(key.data)
        return clients

    def prove(self, address):
        """What arrives is what was sent."""
        one, = self.transfer(address, b"g", PIECE, 1, keep=True)
        if b"".join(one.parts) != os.pread(self.file, PIECE, 0):
            raise MeasureError("what arrives is not what was sent")
