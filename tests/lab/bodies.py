# SPDX-License-Identifier: GPL-2.0
"""Random bodies of the requests of family L4LB, made from its spec. Names and numbers are mostly of
what a test has set up, so that many requests get beyond all checks."""

from . import genl, packet
from .genl import attr
from .packet import TCP, UDP

SETS = genl.L4LB.sets
SCHEDULERS = ("rr", "wrr", "lc", "wlc", "lblcr", "mh", "sh", "ewma")
# What requests may have, of sets that also describe replies.
ASKED = {
    "sched": ("name",), "option": ("name", "value"), "handover": ("message",),
    "trial": ("scheduler", "flows", "clients", "hold", "seed", "without", "live"),
    "trial-server": ("addr", "port", "af"), "drain": ("addr", "port", "af", "seconds", "then"),
    "dest": ("addr", "port", "fwd-method", "weight", "u-thresh", "l-thresh", "addr-family",
             "tun-type", "tun-port", "tun-flags"),
    "entry": ("service", "policy", "dests", "exact", "remove", "owner", "protected", "shadow"),
    "peer": ("addr", "port", "hops"),
    "sync": ("rate", "multicast", "port", "key", "verify"),
    "conn": ("af", "protocol", "client", "client-port", "client-len", "vip", "vport", "server",
             "server-port", "state", "flags"),
}
# Attributes without which a request has no sense; others are there now and then.
NEEDED = {("main", name) for name in ("service", "scheduler", "options", "policy", "dests", "entry",
                                      "sync", "peer", "drain", "handover", "trial")} | {
    ("sched", "name"), ("option", "name"), ("option", "value"), ("handover", "message"),
    ("trial", "scheduler"), ("trial", "flows"), ("entry", "service"), ("peer", "addr"),
    ("conn", "af"), ("snat", "first"), ("snat", "last"),
    *((nest, name) for nest in ("drain", "trial-server") for name in ("addr", "port", "af")),
    *(("dest", name) for name in ("addr", "port", "fwd-method", "weight", "u-thresh",
                                       "l-thresh"))}
RARE = {"remove", "exact", "tun-type", "tun-port", "tun-flags", "live"}
EDGES = (0, 1, 2, 4, 255, 0xffff, 1209600, 1209601, 0x7fffffff, 0x80000000, 0xffffffff)


class Bodies:
    """SERVICES: lists of packed attributes that name one. KNOWN: {attribute, or (its set, it):
    values}, packed or not."""

    def __init__(self, chance, services, **known):
        self.chance, self.services = chance, services
        self.known = {
            "scheduler": SCHEDULERS, "shadow": (*SCHEDULERS, "none"), "sched-name": SCHEDULERS,
            ("sched", "name"): SCHEDULERS, ("option", "name"): ("expire", "entries", "shrink", "order"),
            "value": (0, 1, 9, 60, 1000), "af": (2,), "addr-family": (2,), "protocol": (TCP, UDP),
            "flows": (1, 50, 2000), "clients": (0, 1, 9), "hold": (0, 1, 30), "mode": (0, 1, 3),
            "fwd-method": (0, 2, 3), "weight": (0, 1, 1, 5), "u-thresh": (0, 0, 5), "l-thresh": (0, 2),
            "timeout": (0, 60), "netmask": (0xffffffff,), "owner": ("", "me", "e" * 15),
            "protected": (0, 0, 1), "rate": (0, 20000), "multicast": (0, 1), "verify": (0, 60),
            "seconds": (1, 60), ("peer", "addr"): [packet.packed("203.0.113.9")],
            "key": [b"", bytes(32), b"x"], "tun-type": (0, 1, 2), "state": ("UDP", "SYN_RECV"),
            "flags": (0, 1, 2), "client-len": (0, 8, 24, 32), **known}

    def often(self, share):
        return self.chance.random() < share

    def body(self, command, mode):
        """Of the request of COMMAND."""
        request = genl.L4LB.commands[command][mode]["request"]
        return b"".join(self.attributes("main", request.get("attributes", ())))

    def attributes(self, nest, names):
        out = []
        for name in names:
            share = 0.97 if (nest, name) in NEEDED else 0.1 if name in RARE else 0.3
            if self.often(share):
                out += self.attribute(nest, SETS[nest][name])
        return out

    def attribute(self, nest, a):
        """Packed; an entry comes more than once."""
        return [attr(a.number, self.value(nest, a))
                for _ in range(self.chance.randint(1, 2) if a.name == "entry" else 1)]

    def value(self, nest, a):
        if a.type == "indexed-array":
            return [attr(n, self.nested(a.nest)) for n in range(1, self.chance.choice((2, 2, 2, 3)))]
        if a.type == "nest":
            return self.nested(a.nest)
        if a.type == "flag":
            return b""
        value = self.chance.choice(self.known.get((nest, a.name)) or self.known.get(a.name) or (None,))
        if value is None or self.often(0.02):
            return self.odd(a)
        return value if isinstance(value, bytes) else a.pack(value)

    def odd(self, a):
        """A value of an attribute about which nothing is known, or one that ends badly."""
        if a.format:
            most = len(genl.L4LB.enums[a.enum]) if a.enum else 3
            return a.pack(self.chance.randrange(most) if self.often(0.9) else self.chance.choice(EDGES))
        if a.type == "string":
            return a.pack(self.chance.choice(("", "x", "e" * 15, "e" * 16, "none")))
        return bytes(self.chance.choice((0, 4, 4, 8, 16, 17)))

    def nested(self, nest):
        if nest == "key":
            return self.name()
        if nest == "service":
            return self.name() + (self.settings() if self.often(0.9) else [])
        return self.attributes(nest, ASKED.get(nest) or SETS[nest])

    def name(self):
        """Of a service; a few are of none."""
        if self.often(0.95):
            return list(self.chance.choice(self.services))
        return self.attributes("key", SETS["key"])

    def settings(self):
        return genl.service_options(2, self.chance.choice(SCHEDULERS),
                                    flags=self.chance.choice((0, 0, 1)), timeout=60)
