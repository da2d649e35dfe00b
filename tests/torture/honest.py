# SPDX-License-Identifier: GPL-2.0
"""Honest connections: real sockets through every method and family, which exchange data
as long as a round lasts. A connection that ends, or whose data differ, has failed."""

import contextlib
import socket
import threading
import time

from lab.farm import Http, fresh_port, pattern
from lab.netns import SLOW

TCP_FLOWS, UDP_FLOWS = 3, 2
# Seconds that TCP may take to send a lost segment again, several times.
PATIENCE = 90
# Datagrams may be lost: so many are sent, a second apart.
TRIES = 40
SIZES = (1, 900, 3000, 20000, 60000)


class Stream:
    """A TCP connection that asks for data again and again."""

    def __init__(self, lab, family, port):
        self.name = f"TCP over IPv{family}, {lab.shape}"
        self.http = Http(lab.client, lab.vip(family), port, timeout=PATIENCE)
        self.turn, self.server = 0, None

    def exchange(self):
        size = SIZES[self.turn % len(SIZES)]
        self.turn += 1
        if self.http.request(path=f"/bulk/{size}") != pattern(size):
            raise OSError("other data arrived than were sent")
        if self.server not in (None, self.http.server):
            raise OSError(f"{self.http.server} answers instead of {self.server}")
        self.server = self.http.server

    def close(self):
        self.http.abort()


class Datagrams:
    """A UDP flow from one port, which a server echoes."""

    def __init__(self, lab, family, port):
        self.name = f"UDP over IPv{family}, {lab.shape}"
        self.sock = lab.client.ns.socket(socket.AF_INET6 if family == 6 else socket.AF_INET,
                                         socket.SOCK_DGRAM)
        self.sock.bind(("::" if family == 6 else "0.0.0.0", fresh_port()))
        self.sock.connect((lab.vip(family), port))
        self.sock.settimeout(1 * SLOW)
        self.turn, self.server = 0, None

    def exchange(self):
        self.turn += 1
        text = b"%d " % self.turn + pattern(SIZES[self.turn % 3] // 3)
        for _ in range(TRIES):
            # ICMP errors, forged or not, are no end of the flow.
            with contextlib.suppress(OSError):
                self.sock.send(text)
                name, _, rest = self.sock.recv(4096).partition(b" ")
                if rest == text:
                    break
        else:
            raise OSError(f"no answer to {TRIES} datagrams")
        if self.server not in (None, name):
            raise OSError(f"{name} answers instead of {self.server}")
        self.server = name

    def close(self):
        self.sock.close()


class Honest(threading.Thread):
    """All honest connections of LABS, in a thread; PORTS: {shape: service port}."""

    def __init__(self, labs, ports):
        super().__init__(daemon=True)
        self.flows = [make(lab, family, ports[lab.shape]) for lab in labs for family in (4, 6)
                      for make in [Stream] * TCP_FLOWS + [Datagrams] * UDP_FLOWS]
        for n, flow in enumerate(self.flows):
            flow.name += f", number {n + 1}"
        self.over, self.exchanges, self.faults = threading.Event(), 0, []
        # From the ninth packet on nothing replaces a connection in a full table.
        for _ in range(9):
            self.one_turn()
        if self.faults:
            raise RuntimeError(f"honest connections do not begin: {self.faults}")

    def one_turn(self):
        for flow in [f for f in self.flows if f.name not in dict(self.faults)]:
            try:
                flow.exchange()
                self.exchanges += 1
            except (OSError, ValueError) as e:
                self.faults.append((flow.name, f"exchange {flow.turn}: {e!r}"))

    def run(self):
        while not self.over.is_set():
            self.one_turn()
            time.sleep(0.2)

    def pulse(self):
        """Raises unless every connection is alive, after an exchange that begins now."""
        before = self.exchanges
        end = time.monotonic() + 2 * PATIENCE * SLOW
        while self.exchanges < before + 2 * len(self.flows) and not self.faults:
            if time.monotonic() > end:
                raise RuntimeError("honest connections make no progress")
            time.sleep(0.1)
        if self.faults:
            raise RuntimeError("honest connections failed: " + "; ".join(
                f"{name}: {text}" for name, text in self.faults))

    def end(self):
        """Closes them; {what: number} for the record."""
        self.over.set()
        self.join()
        for flow in self.flows:
            flow.close()
        return {"honest": len(self.flows), "honest alive": len(self.flows) - len(self.faults),
                "exchanges": self.exchanges}
