# SPDX-License-Identifier: GPL-2.0
"""Random configuration commands of family IPVS, most of them sensible.

The spec defines the grammar: commands, their attributes and types. This file
adds a small set of services and servers, so that commands often meet existing
ones, and the ways in which a command is spoilt.

A command is [name, mode, attributes], with a name of the spec or a number,
"do" or "dump", and attributes as lab.spec packs them: all of it is JSON, and
the same seed gives the same commands everywhere.
"""

import random

from . import genl
from .spec import NESTED

SPEC = genl.IPVS
TCP, UDP, SCTP = 6, 17, 132
V4, V6 = 2, 10

SCHEDULERS = ("rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh", "mh", "sed", "nq", "fo",
              "ovf", "twos", "ewma", "bpf")
ODD_NAMES = ("none", "", "nosuch", "RR", "r" * 15, "r" * 16, "%s%n", "../rr", "rr\0lc", "rr ",
             "none\0rr")
# Seconds near which ip_vs's arithmetic overflows, for every HZ.
SECONDS = (0, 1, 60, 900, *((1 << 31) // hz + n for hz in (100, 250, 300, 1000)
                            for n in (-2, -1, 0, 1)))

VIPS = {V4: ("198.51.100.160", "198.51.100.161", "203.0.113.9"),
        V6: ("2001:db8:1::160", "2001:db8:1::161")}
ODD_VIPS = {V4: ("0.0.0.0", "224.0.0.9", "255.255.255.255", "127.0.0.1", "192.0.2.1"),
            V6: ("::", "::1", "fe80::1", "ff02::1", "::ffff:192.0.2.1")}
SERVERS = {V4: ("192.0.2.20", "192.0.2.21", "10.8.0.1"),
           V6: ("2001:db8:2::20", "2001:db8:2::21", "2001:db8:ffff::1")}
# The lab's interface has 192.0.2.1/24 and 2001:db8:2::1/64.
ODD_SERVERS = {V4: ("0.0.0.0", "255.255.255.255", "224.0.0.5", "192.0.2.255", "192.0.2.0",
                    "192.0.2.1", "127.0.0.1", "127.255.255.255", "240.0.0.1"),
               V6: ("::", "::1", "fe80::1", "ff02::1", "::ffff:192.0.2.20", "fec0::1",
                    "2001:db8:2::1", "2001:db8:2::", "::192.0.2.20")}
SETUP = ("link set lo up", "link add d0 type dummy", "link set d0 addrgenmode none",
         "link set d0 up", "addr add 192.0.2.1/24 brd + dev d0",
         "addr add 2001:db8:2::1/64 dev d0 nodad")

EDGES = {"u8": (0, 1, 2, 255), "u16": (0, 1, 2, 10, 0x7fff, 0x8000, 0xffff),
         "u32": (0, 1, 2, 5, 0x7fffffff, 0x80000000, 0xffffffff)}


def copied(attrs):
    return [list(a) for a in attrs]


def remember(known, *names):
    """Append to KNOWN, which keeps the last twenty."""
    known.append(copied(names[0]) if len(names) == 1 else [copied(n) for n in names])
    del known[:-20]


class Generator:
    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.services, self.servers = [], []    # names of those added lately

    def often(self, share, usual, odd):
        """One of USUAL, or in a SHARE of cases one of ODD."""
        return self.chance.choice(odd if self.chance.random() < share else usual)

    # -- attributes that make sense

    def family(self):
        return self.often(0.3, (V4,), (V6,))

    def name(self, known=0.85):
        """The attributes that name a service; in a share KNOWN of cases a remembered one."""
        if self.services and self.chance.random() < known:
            return copied(self.chance.choice(self.services))
        af = self.family()
        if self.chance.random() < 0.2:
            return [["af", af], ["fwmark", self.often(0.1, (5, 7), (0, 1, 0xffffffff))]]
        return [["af", af],
                ["protocol", self.often(0.05, (TCP, TCP, UDP, SCTP), (0, 1, 50, 300, 0xffff))],
                ["addr", self.chance.choice(self.often(0.1, (VIPS,), (ODD_VIPS,))[af])],
                ["port", self.often(0.1, (80, 443), (0, 1, 0xffff))]]

    def netmask(self, af):
        if af == V6:
            return self.often(0.2, (128, 64, 1), (0, 129, 0xffffffff))
        return self.often(0.3, (0xffffffff, 0x00ffffff), (0, 1, 0xff00ff, 128))

    def service(self, name):
        """All attributes of a service."""
        sched = self.often(0.12, SCHEDULERS, ODD_NAMES)
        # sh and mh have two of the flags 8, 16 and 32, the others none.
        flags = self.often(0.1, (0, 1, 3, 4, 0x40000000, 0xfffffc0), (8, 16, 24, 32, 0xffffffff))
        if sched in ("sh", "mh"):
            flags = self.chance.choice((0, 8, 16, 24, 25, flags))
        else:
            flags &= self.often(0.1, (~0x38,), (~0,))
        out = name + [
            ["sched-name", sched],
            ["flags", {"flags": flags & 0xffffffff,
                       "mask": self.often(0.3, (0xffffffff,), (0, 1, 4, 0x18, 0xffffffc7))}],
            ["timeout", self.often(0.1, (0, 1, 300, 360), EDGES["u32"])],
            ["netmask", self.netmask(name[0][1])]]
        if self.chance.random() < 0.04:
            out.append(["pe-name", self.chance.choice(("", "", "nosuch", "p" * 16, "p" * 17))])
        return out

    def server_name(self, af):
        if self.chance.random() < 0.1:
            af = V4 + V6 - af
        out = [["addr", self.chance.choice(self.often(0.08, (SERVERS,), (ODD_SERVERS,))[af])],
               ["port", self.often(0.1, (80, 8080), (0, 0xffff))]]
        if self.chance.random() < 0.7:
            out.append(["addr-family", self.often(0.05, (af,), (0, 1, V4, V6, 0xffff))])
        return out

    def server_options(self):
        upper = self.often(0.3, (0, 0, 10), EDGES["u32"])
        out = [["fwd-method", self.often(0.15, (0, 2, 2, 3), (1, 4, 5, 7, 8, 0xfffffffa))],
               ["weight", self.often(0.15, (0, 1, 1, 3, 100), EDGES["u32"])],
               ["u-thresh", upper],
               ["l-thresh", self.often(0.1, (0, upper // 2), (upper, upper + 1, 0x80000000))]]
        if self.chance.random() < 0.4:
            out += [["tun-type", self.often(0.1, range(len(SPEC.enums["tun-type"])), (3, 255))],
                    ["tun-port", self.often(0.4, (6080,), (0, 0xffff))],
                    ["tun-flags", self.often(0.1, range(4), EDGES["u16"])]]
        return out

    # -- commands

    def about_service(self, command):
        return [command, "do", [["service", self.name()]]]

    def new_service(self):
        name = self.name(known=0.3)
        remember(self.services, name)
        return ["new-service", "do", [["service", self.service(name)]]]

    def set_service(self):
        return ["set-service", "do", [["service", self.service(self.name())]]]

    def new_server(self):
        service = self.name()
        server = self.server_name(service[0][1])
        remember(self.servers, service, server)
        return ["new-dest", "do", [["service", service],
                                   ["dest", server + self.server_options()]]]

    def old_server(self, command):
        """A command about a server that most probably exists."""
        if self.servers and self.chance.random() < 0.85:
            service, server = map(copied, self.chance.choice(self.servers))
        else:
            service = self.name()
            server = self.server_name(service[0][1])
        if command == "set-dest":
            server += self.server_options()
        return [command, "do", [["service", service], ["dest", server]]]

    def daemon(self, command):
        """A command about a daemon; none ever runs, because its interface is missing."""
        attrs = [["state", self.often(0.1, (1, 2), (0, 3))],
                 ["mcast-ifn", self.often(0.2, ("nosuch0",), ("", "n" * 15, "n" * 16))],
                 ["sync-id", self.chance.choice((0, 1, 255, 256))],
                 ["sync-maxlen", self.chance.choice(EDGES["u16"])],
                 ["mcast-group", self.often(0.2, (0xe0000051,), (0, 0x0a000001))]]
        return [command, "do", [["daemon", attrs[:self.chance.choice((1, 2, 3, 3, 5))]]]]

    def config(self):
        return ["set-config", "do", [
            [name, self.chance.choice((*SECONDS, *EDGES["u32"]))]
            for name in SPEC.commands["set-config"]["do"]["request"]["attributes"]
            if self.chance.random() < 0.6]]

    def plain(self):
        """A command without attributes."""
        return self.chance.choice((
            ["get-service", "dump", []], ["get-dest", "dump", []], ["get-daemon", "dump", []],
            ["get-config", "do", []], ["get-info", "do", []], ["zero", "do", []]))

    def absent(self):
        """A number without a command, or a command in a mode that it does not have."""
        name = self.chance.choice((0, 14, 18, 255, *SPEC.commands))
        mode = self.chance.choice(("do", "dump")) if isinstance(name, int) else \
            "dump" if SPEC.modes(name) == ("do",) else "do"
        return [name, mode, [["service", self.name()]]]

    CHOICES = (
        (16, new_service),
        (12, set_service),
        (4, lambda g: g.about_service("del-service")),
        (3, lambda g: g.about_service("get-service")),
        (2, lambda g: g.about_service("zero")),
        (26, new_server),
        (14, lambda g: g.old_server("set-dest")),
        (8, lambda g: g.old_server("del-dest")),
        (2, lambda g: ["get-dest", "dump", [["service", g.name()]]]),
        (1, lambda g: g.daemon("new-daemon")),
        (0.5, lambda g: g.daemon("del-daemon")),
        (2, config),
        (2, plain),
        (1, absent),
        (0.3, lambda g: ["flush", "do", []]),
    )

    def sensible(self):
        weights = [weight for weight, _ in self.CHOICES]
        return self.chance.choices(self.CHOICES, weights)[0][1](self)

    # -- spoilt commands

    def junk(self, size):
        return {"hex": self.chance.randbytes(size).hex()}

    def other_value(self, a):
        """Any value for attribute A, also of a wrong length."""
        if a.format and self.chance.random() < 0.5:
            return self.chance.choice(EDGES[a.type])
        if a.type == "string" and self.chance.random() < 0.7:
            text = self.chance.choice((*SCHEDULERS, *ODD_NAMES))
            # Some without the final NUL.
            return self.chance.choice((text, {"hex": text.encode().hex()}))
        if a.name == "addr" and self.chance.random() < 0.5:
            return self.chance.choice(SERVERS[V4] + SERVERS[V6] + VIPS[V4] + VIPS[V6])
        size = a.size or a.max_len or 4
        return self.junk(max(0, self.chance.choice((0, 1, size - 1, size, size + 1, 2 * size))))

    def spoil(self, name, attrs):
        """Make one thing wrong in ATTRS, or in a nest of them."""
        known = SPEC.sets[name]
        at = self.chance.randrange(len(attrs) + 1)
        here = attrs[at] if at < len(attrs) else None
        inner = known.get(here[0]) if here else None
        if inner and inner.nest and isinstance(here[1], list) and self.chance.random() < 0.85:
            self.spoil(inner.nest, here[1])
            return
        how = self.chance.choice(("drop", "value", "value", "add", "repeat", "shuffle",
                                  "unknown", "bits", "nest"))
        any_known = self.chance.choice(list(known.values()))
        if how == "drop" and here:
            del attrs[at]
        elif how == "value" and inner and not inner.nest:
            here[1] = self.other_value(inner)
        elif how == "add" and not any_known.nest and any_known.type != "pad":
            attrs.insert(at, [any_known.name, self.other_value(any_known)])
        elif how == "repeat" and here:
            attrs.insert(self.chance.randrange(len(attrs) + 1),
                         [here[0], self.junk(8) if not inner or inner.nest
                          else self.other_value(inner)])
        elif how == "shuffle":
            self.chance.shuffle(attrs)
        elif how == "unknown":
            attrs.insert(at, [self.chance.choice((0, len(known) + 1, 40, 0x3fff)),
                              self.junk(self.chance.choice((0, 1, 4, 60)))])
        elif how == "bits" and here:
            here[2:] = [self.chance.choice((0, NESTED, 0x4000, 0xc000))]
        elif how == "nest" and here:
            here[1] = self.junk(self.chance.choice((0, 1, 3, 4, 8, 16)))

    def command(self):
        command = self.sensible()
        if self.chance.random() < 0.3:
            for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
                self.spoil("cmd", command[2])
        return command

    def commands(self, count):
        return [self.command() for _ in range(count)]


def pack(command):
    """(number, payload, whether it is a dump): the arguments of answers.Player.ask()."""
    name, mode, attrs = command
    return SPEC.request(name) if name in SPEC.commands else name, \
        SPEC.pack("cmd", attrs), mode == "dump"
