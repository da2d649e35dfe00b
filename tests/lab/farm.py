# SPDX-License-Identifier: GPL-2.0
"""Applications of real servers and clients: HTTP, UDP and bulk data over sockets."""

import contextlib
import ctypes
import errno
import functools
import hashlib
import itertools
import os
import signal
import socket
import struct
import threading

from . import packet
from .netns import SLOW

# The service ports real servers answer on, TCP and UDP; tests take a fresh one
# each so that connections of an earlier test cannot be mistaken for theirs.
HTTP_PORTS = (80, 443, *range(8000, 8100))


class Farm:
    """All real servers' applications in one forked process.

    GET /anything answers "rsN /anything CLIENT-ADDRESS"; GET /bulk/BYTES answers
    that many bytes of pattern(); a PUT answers the SHA-256 of its body. A UDP
    datagram comes back from the address it was sent to, after a prefix "rsN ".
    """

    def __init__(self, nodes, ports=HTTP_PORTS):
        self.listeners, self.datagrams = [], []
        for node in nodes:
            with node.ns.enter():
                for port in ports:
                    self.listeners.append((node.role, _listen(port)))
                    self.datagrams.append((node.role, _datagram(port)))
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                if os.getppid() == parent:
                    self._close_others()
                    self._serve()
                status = 0
            finally:
                os._exit(status)
        for _, s in self.listeners + self.datagrams:
            s.close()

    def stop(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _close_others(self):
        """An inherited descriptor would keep its namespace alive."""
        keep = {0, 1, 2} | {s.fileno() for _, s in self.listeners + self.datagrams}
        for name in os.listdir("/proc/self/fd"):
            if int(name) not in keep:
                with contextlib.suppress(OSError):
                    os.close(int(name))

    def _serve(self):
        import selectors
        poll = selectors.EpollSelector()
        for name, s in self.listeners:
            poll.register(s, selectors.EVENT_READ, (self._accept, name))
        for name, s in self.datagrams:
            poll.register(s, selectors.EVENT_READ, (self._echo, name))
        while True:
            for key, _ in poll.select():
                handler, name = key.data
                with contextlib.suppress(OSError):
                    handler(name, key.fileobj)

    @staticmethod
    def _accept(name, listener):
        conn, peer = listener.accept()
        conn.setblocking(True)
        threading.Thread(target=_converse, args=(name, conn, peer[0]),
                         daemon=True).start()

    @staticmethod
    def _echo(name, sock):
        data, aux, _, peer = sock.recvmsg(65536, 64)
        aux = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, d[:16] + b"\0\0\0\0")
               for _, _, d in aux]
        sock.sendmsg([name.encode() + b" " + data], aux, 0, peer)


def pattern(size):
    """SIZE bytes that a swapped, lost or repeated block would change."""
    block = _block()
    return (block * (size // len(block) + 1))[:size]


@functools.cache
def _block():
    return b"".join(struct.pack("!I", i * 2654435761 & 0xffffffff) for i in range(16384))


def _listen(port):
    s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", port))
    s.listen(256)
    s.setblocking(False)
    return s


def _datagram(port):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    s.bind(("::", port))
    s.setblocking(False)
    return s


def _converse(name, conn, peer):
    with conn, contextlib.suppress(OSError), conn.makefile("rb") as lines:
        while True:
            request = lines.readline().split()
            if len(request) < 2:
                return
            length, keep = 0, request[-1] != b"HTTP/1.0"
            while True:
                header = lines.readline().strip().lower()
                if not header:
                    break
                if header.startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
                if header == b"connection: close":
                    keep = False
            path = request[1].decode()
            if request[0] == b"PUT":
                digest = hashlib.sha256()
                while length:
                    part = lines.read(min(length, 1 << 16))
                    if not part:
                        return
                    digest.update(part)
                    length -= len(part)
                body = digest.hexdigest().encode()
            elif path.startswith("/bulk/"):
                body = pattern(int(path[6:]))
            else:
                body = f"{name} {path} {peer.removeprefix('::ffff:')}\n".encode()
            conn.sendall(b"HTTP/1.1 200 OK\r\nServer: %s\r\nContent-Length: %d\r\n\r\n"
                         % (name.encode(), len(body)) + body)
            if not keep:
                return


_client_ports = itertools.cycle(range(20001, 65000))


def fresh_port():
    """A client port that no test of this session has used."""
    return next(_client_ports)


def bind_to_fresh_port(sock, address):
    """A port was once in use, by a socket that was not found: then the next one will do."""
    for tries_left in reversed(range(10)):
        try:
            sock.bind((address, fresh_port()))
            return
        except OSError as e:
            if e.errno != errno.EADDRINUSE or not tries_left:
                raise


class Http:
    """One client connection, HTTP/1.1; use as a context manager."""

    def __init__(self, node, address, port=80, source=None, sport=None, *, timeout=8):
        family = socket.AF_INET6 if packet.is6(address) else socket.AF_INET
        self.sock = node.ns.socket(family, socket.SOCK_STREAM)
        self.sock.settimeout(timeout * SLOW)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            source = source or ("::" if packet.is6(address) else "0.0.0.0")
            if sport:
                self.sock.bind((source, sport))
            else:
                bind_to_fresh_port(self.sock, source)
            self.sport = self.sock.getsockname()[1]
            self.sock.connect((address, port))
        except BaseException:
            self.sock.close()
            raise
        self.server = None
        self.lines = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close in order: segments that an end sends again would count in another test."""
        with contextlib.suppress(OSError):
            self.sock.settimeout(1)
            self.sock.shutdown(socket.SHUT_WR)
            self.lines.read()
        self.lines.close()
        self.sock.close()

    def abort(self):
        """Close with a reset, so that nothing waits at this end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.lines.close()
        self.sock.close()

    def request(self, method="GET", path="/", body=b"", close=False):
        head = f"{method} {path} HTTP/1.1\r\nHost: lab\r\n"
        if body:
            head += f"Content-Length: {len(body)}\r\n"
        if close:
            head += "Connection: close\r\n"
        self.sock.sendall(head.encode() + b"\r\n" + body)
        status = self.lines.readline()
        if b" 200 " not in status:
            raise OSError(f"not an HTTP answer: {status!r}")
        length = 0
        while True:
            header = self.lines.readline().strip()
            if not header:
                break
            key, value = header.split(b": ")
            if key == b"Server":
                self.server = value.decode()
            elif key == b"Content-Length":
                length = int(value)
        return self.lines.read(length)


def http_get(node, address, port=80, path="/", **kwargs):
    """One GET on a connection of its own: (server's name, body)."""
    with Http(node, address, port, **kwargs) as h:
        body = h.request(path=path, close=True)
        return h.server, body


def udp_ask(node, address, port=80, data=b"?", source=None, *, sport=None, timeout=8):
    """One datagram and its echo: (server's name, data)."""
    family = socket.AF_INET6 if packet.is6(address) else socket.AF_INET
    with node.ns.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(timeout * SLOW)
        s.bind((source or ("::" if packet.is6(address) else "0.0.0.0"),
                sport or fresh_port()))
        s.connect((address, port))
        s.send(data)
        name, _, rest = s.recv(70000).partition(b" ")
        return name.decode(), rest
