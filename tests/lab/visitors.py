# SPDX-License-Identifier: GPL-2.0
"""A client's slow downloads and its stream of requests, a connection for each, in a thread.
What happens to each of them is counted."""

import collections
import os
import select
import socket
import threading
import time

PATIENCE = 15       # seconds without a byte, after which a visit is lost
LATE = 0.5          # seconds
BIN = 0.1           # seconds
CHUNK = 1 << 16


class Visit:
    """One HTTP request and its answer, which must be SIZE bytes long."""

    def __init__(self, method, path, size, tries=1):
        self.method, self.path, self.size, self.tries = method, path, size, tries
        self.begun = self.last = time.monotonic()
        self.head, self.got, self.pauses = b"", -1, []
        self.sock = None

    @property
    def is_download(self):
        return self.path == "/slow"

    def open(self, ns, to):
        self.sock = ns.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        self.sock.connect_ex(to)

    def ask(self):
        """The connection is made."""
        error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        self.sock.send(f"GET {self.path} HTTP/1.0\r\n\r\n".encode("ascii"))

    def take(self, data, now):
        """Counts DATA of the answer; true when it is complete. It is a page of lab.nginx: a
        line, then blanks."""
        # The first second is for the connection; the server sends at a rate from then on.
        if self.got >= 0:
            self.pauses.append((self.last, now - self.last))
        self.last = now
        if self.got < 0:
            self.head += data
            head, found, data = self.head.partition(b"\r\n\r\n")
            if not found:
                return False
            if b" 200 " not in head.partition(b"\r\n")[0]:
                raise OSError(0, head.partition(b"\r\n")[0].decode("ascii", "replace"))
            self.got = 0
        elif self.got > 100 and data.strip(b" "):
            raise OSError(0, "wrong data")
        self.got += len(data)
        if self.got > self.size:
            raise OSError(0, f"more than {self.size} bytes")
        return self.got == self.size


class Count:
    """What is known of one method's visits of one kind."""

    def __init__(self):
        self.begun = self.complete = self.again = 0
        self.slowest = 0.0
        self.lost = []      # (when, why)


class Visitors(threading.Thread):
    """DOWNLOADS run at once, and RATE requests begin in a second, by turns with each method.
    SIZES: of the pages "slow" and "index.html" of lab.nginx. Every connection that breaks
    before its answer is complete is lost; a request that breaks is sent again once, as browsers
    do, and is lost if that breaks, too."""

    def __init__(self, ns, vip, ports, sizes):
        super().__init__(daemon=True)
        self.ns, self.vip, self.ports, self.sizes = ns, vip, ports, sizes
        self.methods = list(ports)
        self.counts = {(kind, method): Count() for kind in ("download", "request")
                       for method in ports}
        self.bins = collections.Counter()   # requests answered, by 1/BIN s since began
        self.answers = []                   # when requests were answered
        self.rate, self.turn, self.due = 0, 0, 0.0
        self.visits, self.pauses, self.turns = {}, [], []
        self.poll = select.epoll()
        self.ending, self.fault = threading.Event(), None
        self.began = time.monotonic()

    # -- for other threads

    def download(self, count):
        """Begins COUNT downloads in the next round."""
        self.turns = [self.methods[n % len(self.methods)] for n in range(count)]

    def request(self, rate):
        self.due, self.rate = time.monotonic(), rate

    def running(self):
        return sum(v.is_download for v in list(self.visits.values()))

    def receiving(self, since):
        """How many running downloads have got data after SINCE."""
        return sum(v.is_download and v.last > since for v in list(self.visits.values()))

    def lost(self, kind):
        return sum(len(c.lost) for (k, _), c in self.counts.items() if k == kind)

    def stop(self):
        """No new requests; waits for those that are under way, but not for downloads."""
        self.rate = 0
        self.ending.set()
        self.join(2 * PATIENCE)

    # -- the thread

    def run(self):
        try:
            while not self.ending.is_set() or len(self.visits) > self.running():
                self._begin()
                for fd, mask in self.poll.poll(0.02):
                    self._serve(self.visits[fd], mask)
                self._impatient()
        except Exception as error:  # reported by whoever asks
            self.fault = error
            raise

    def _begin(self):
        turns, self.turns = self.turns, []
        for method in turns:
            self._open(Visit(method, "/slow", self.sizes["slow"]))
        # What a busy machine has missed is not made up for.
        self.due = max(self.due, time.monotonic() - LATE)
        while self.rate and self.due <= time.monotonic():
            self.due += 1 / self.rate
            method = self.methods[self.turn % len(self.methods)]
            self.turn += 1
            self._open(Visit(method, "/", self.sizes["index.html"]))

    def _count(self, visit):
        return self.counts["download" if visit.is_download else "request", visit.method]

    def _open(self, visit):
        self._count(visit).begun += visit.tries == 1
        visit.open(self.ns, (self.vip, self.ports[visit.method]))
        self.visits[visit.sock.fileno()] = visit
        self.poll.register(visit.sock, select.EPOLLOUT)

    def _close(self, visit):
        del self.visits[visit.sock.fileno()]
        self.poll.unregister(visit.sock)
        visit.sock.close()

    def _serve(self, visit, mask):
        try:
            if mask & select.EPOLLOUT:
                visit.ask()
                self.poll.modify(visit.sock, select.EPOLLIN)
                return
            data = visit.sock.recv(CHUNK)
            now = time.monotonic()
            if not data:
                raise OSError(0, f"closed after {max(visit.got, 0)} of {visit.size} bytes")
            if visit.take(data, now):
                self._complete(visit, now)
        except OSError as error:
            self._broken(visit, error.strerror)

    def _complete(self, visit, now):
        count = self._count(visit)
        count.complete += 1
        self._close(visit)
        if visit.is_download:
            self.pauses += visit.pauses
            return
        count.slowest = max(count.slowest, now - visit.begun)
        self.bins[int((now - self.began) / BIN)] += 1
        self.answers.append(now)

    def _broken(self, visit, why):
        count = self._count(visit)
        self._close(visit)
        if visit.is_download or visit.tries > 1:
            count.lost.append((time.monotonic(), why))
            self.pauses += visit.pauses
            return
        count.again += 1
        again = Visit(visit.method, visit.path, visit.size, tries=2)
        again.begun = visit.begun
        self._open(again)

    def _impatient(self):
        now = time.monotonic()
        for visit in list(self.visits.values()):
            if now - visit.last > PATIENCE:
                visit.tries = 2
                self._broken(visit, f"no byte in {PATIENCE} s")

    # -- what it has found

    def silence(self, first, last):
        """The longest time without an answer to any request, between FIRST and LAST."""
        at = [first, *(t for t in self.answers if first <= t <= last), last]
        return max(b - a for a, b in zip(at, at[1:], strict=False))

    def pause(self, first, last):
        """The longest time without data of a download that ended and paused then."""
        return max((p for at, p in list(self.pauses) if at + p >= first and at <= last),
                   default=0.0)
