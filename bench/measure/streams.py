# SPDX-License-Identifier: GPL-2.0
"""Thousands of open TCP downloads, both ends in one thread, in the namespaces of a lab.cluster.
Each gets a message of 512 bytes every two seconds, or sends one itself when it is asked to, which
comes back."""

import collections
import contextlib
import heapq
import resource
import select
import socket
import struct
import threading
import time

MESSAGE, EVERY = 512, 2.0       # bytes, seconds
TICK, TICK_ECHO = 0.01, 0.1
BIN = 0.5                       # seconds
SLOTS = round(EVERY / TICK)
STAMP = struct.Struct("<d")
PADDING = bytes(MESSAGE - STAMP.size)
BACKLOG = 4096


class Stream:
    """The client's end."""

    __slots__ = ("born", "died", "last", "method", "rest", "sock", "worst")

    def __init__(self, sock, method):
        self.sock, self.method = sock, method
        self.born = self.died = None
        self.last = self.worst = 0.0    # of messages: when the last one came, the slowest
        self.rest = b""

    def take(self, data, now):
        """Counts DATA; how many messages it has completed."""
        data = self.rest + data
        whole = len(data) // MESSAGE
        for n in range(whole):
            self.worst = max(self.worst, now - STAMP.unpack_from(data, n * MESSAGE)[0])
        self.rest = data[whole * MESSAGE:]
        if whole:
            self.last = now
        return whole


class Streams(threading.Thread):
    """ECHO: the servers send back what they get, and nothing else. A context manager."""

    def __init__(self, client, servers, vip, ports, *, echo=False):
        super().__init__(daemon=True)
        self.client, self.vip, self.ports, self.echo = client, vip, ports, echo
        self.poll = select.epoll()
        self.listeners, self.ends, self.streams = {}, {}, {}
        self.slots = [[] for _ in range(SLOTS)]
        self.slot, self.due, self.forgotten = 0, [], []
        self.bins = collections.Counter()       # messages received in 1/BIN s
        self.ended, self.asked, self.fault = threading.Event(), False, None
        resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 18, 1 << 18))
        for ns in servers:
            for port in ports.values():
                sock = ns.socket(socket.AF_INET, socket.SOCK_STREAM)
                sock.bind(("", port))
                sock.listen(BACKLOG)
                sock.setblocking(False)
                self.listeners[sock.fileno()] = sock
                self.poll.register(sock, select.EPOLLIN)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()
        for sock in (*self.listeners.values(), *self.ends.values(),
                     *(s.sock for s in self.streams.values())):
            sock.close()
        self.poll.close()

    # -- for the other thread

    def open(self, counts, seconds):
        """Opens COUNTS, {method: number}, evenly in the next SECONDS; returns after them."""
        now = time.monotonic()
        self.due = sorted((now + seconds * n / count, method)
                          for method, count in counts.items() for n in range(count))
        self.wait(seconds)

    def wait(self, seconds):
        time.sleep(seconds)
        if self.fault:
            raise self.fault

    def mark(self):
        """The slowest message is sought from now on."""
        for stream in list(self.streams.values()):
            stream.worst = 0.0

    def ask(self):
        """Every client sends a message."""
        self.asked = True

    def alive(self, method):
        return [s for s in list(self.streams.values())
                if s.method == method and s.born and not s.died]

    def forget(self, streams):
        """STREAMS are lost: they are no longer alive, and the next tick closes them."""
        for stream in streams:
            stream.died = stream.died or time.monotonic()
        self.forgotten += streams

    # -- the thread

    def run(self):
        try:
            tick, step = time.monotonic(), TICK_ECHO if self.echo else TICK
            while not self.ended.is_set():
                now = time.monotonic()
                if now >= tick:
                    tick += step
                    self._tick(now)
                for fd, mask in self.poll.poll(max(0.0, tick - now)):
                    self._serve(fd, mask)
        except Exception as error:  # raised again in the other thread
            self.fault = error

    def _tick(self, now):
        while self.forgotten:
            sock = self.forgotten.pop().sock
            del self.streams[sock.fileno()]
            sock.close()
        while self.due and self.due[0][0] <= now:
            self._connect(heapq.heappop(self.due)[1])
        if self.asked:
            self.asked = False
            for stream in self.streams.values():
                with contextlib.suppress(OSError):
                    stream.sock.send(STAMP.pack(now) + PADDING)
        if not self.echo:
            self._send(now)

    def _send(self, now):
        self.slot = (self.slot + 1) % SLOTS
        message, gone = STAMP.pack(now) + PADDING, []
        for sock in self.slots[self.slot]:
            try:
                sock.send(message)
            except OSError:     # also if it is full, which takes minutes without an answer
                gone.append(sock)
        if gone:
            self.slots[self.slot] = [s for s in self.slots[self.slot] if s not in gone]

    def _connect(self, method):
        sock = self.client.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.connect_ex((self.vip, self.ports[method]))
        self.streams[sock.fileno()] = Stream(sock, method)
        self.poll.register(sock, select.EPOLLOUT)

    def _serve(self, fd, mask):
        if fd in self.streams:
            self._receive(self.streams[fd], mask)
        elif fd in self.listeners:
            self._accept(self.listeners[fd])
        elif fd in self.ends:
            self._answer(self.ends[fd])

    def _accept(self, listener):
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = listener.accept()
                sock.setblocking(False)
                self.ends[sock.fileno()] = sock
                self.poll.register(sock, select.EPOLLIN)
                self.slots[self.slot].append(sock)

    def _answer(self, sock):
        try:
            data = sock.recv(1 << 16)
            if data:
                sock.send(data)
                return
        except OSError:
            pass
        self.poll.unregister(sock)
        del self.ends[sock.fileno()]
        sock.close()

    def _receive(self, stream, mask):
        now = time.monotonic()
        try:
            if not stream.born:
                error = stream.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise OSError(error, "connect")
                stream.born = stream.last = now
                self.poll.modify(stream.sock, select.EPOLLIN)
                return
            data = stream.sock.recv(1 << 16)
            if not data:
                raise OSError(0, "closed")
            self.bins[int(now / BIN)] += stream.take(data, now)
        except OSError:
            stream.died = now
            self.poll.unregister(stream.sock)
