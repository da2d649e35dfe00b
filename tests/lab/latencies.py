# SPDX-License-Identifier: GPL-2.0
"""How long real servers take, as L4LB_CMD_GET_LATENCY tells."""

import socket
import struct

from . import genl
from .genl import attr, attributes

SETS = genl.L4LB.sets
BUCKETS = 28


class Kind:
    """BUCKETS of answers; the SUM of their microseconds; what was REFUSED or UNANSWERED."""

    def __init__(self, payload=None):
        found = {next(k for k, a in SETS["latency-kind"].items() if a.number == kind): value
                 for kind, value in attributes(payload or b"")}
        self.buckets = struct.unpack(f"={BUCKETS}Q", found["buckets"]) if payload else (0,) * BUCKETS
        self.sum, self.refused, self.unanswered = (
            int.from_bytes(found.get(name, b""), "little") for name in ("sum", "refused", "unanswered"))

    @property
    def count(self):
        return sum(self.buckets)

    @property
    def all(self):
        """(answers, refused, unanswered)"""
        return self.count, self.refused, self.unanswered

    def __repr__(self):
        return f"{self.all}, {self.sum} us, {dict((i, n) for i, n in enumerate(self.buckets) if n)}"


def read(l4lb, service=None):
    """{server's address: (handshakes, answers)} of SERVICE, or of all services."""
    out = {}
    for _, payload in l4lb.dump(genl.GET_LATENCY, attr(genl.L_SERVICE, service.ident) if service else b""):
        a = dict(attributes(dict(attributes(payload))[genl.L_LATENCY]))
        af = int.from_bytes(a[SETS["latency"]["af"].number], "little")
        server = socket.inet_ntop(af, a[SETS["latency"]["addr"].number][:4 if af == socket.AF_INET else 16])
        out[server] = tuple(Kind(a.get(SETS["latency"][name].number)) for name in ("handshake", "answer"))
    return out


def bucket(seconds):
    return int(seconds * 1e6).bit_length()
