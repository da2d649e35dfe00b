# SPDX-License-Identifier: GPL-2.0
"""Runs the program hostile, which damages and sends inputs at the speed of C, and makes the
whole inputs that it starts from.

`Target` has services that nobody honest uses, and packets of all kinds to and from them;
`messages` has commands of both netlink families.
"""

import contextlib
import json
import random
import signal
import struct
import subprocess
from pathlib import Path

from lab import fuzz, genl, packet
from lab.genl import attr, u32
from lab.netns import SLOW
from lab.packet import (
    ABORT,
    ACK,
    COOKIE_ECHO,
    DATA,
    DSTOPTS,
    FIN,
    FRAGMENT,
    GRE,
    GUE_PORT,
    HOPOPTS,
    INIT,
    IPIP,
    IPV6,
    PSH,
    ROUTING,
    RST,
    SCTP,
    SYN,
    TCP,
    UDP,
)

from .program import program

PORTS = {TCP: 7001, UDP: 7002, SCTP: 7003}
# An input is at most this long.
ROOM = 4096
MTU = 1500


def write(path, inputs):
    Path(path).write_bytes(b"".join(struct.pack("<H", len(i)) + i for i in inputs))
    return path


def read(path):
    data, out = Path(path).read_bytes(), []
    while data:
        size, = struct.unpack("<H", data[:2])
        out.append(data[2:2 + size])
        data = data[2 + size:]
    return out


class Run:
    """The program while it runs in namespace NS."""

    def __init__(self, ns, *words, progress=True, **options):
        """OPTIONS: seed, first, count, seconds. Without PROGRESS it is a noise in the
        background, which leaves the processor to others."""
        argv = [*([] if progress else ["nice", "-n", "10"]), str(program()), *map(str, words)]
        for name, value in options.items():
            argv += ["-" + {"count": "n", "seconds": "t"}.get(name, name[0]), str(int(value))]
        self.proc = ns.popen(argv, stdout=subprocess.PIPE, text=True,
                             stderr=None if progress else subprocess.DEVNULL)

    def running(self):
        return self.proc.poll() is None

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.proc.send_signal(signal.SIGTERM)
        return self.result()

    def result(self, timeout=7200):
        out, _ = self.proc.communicate(timeout=timeout * SLOW)
        if self.proc.returncode:
            raise RuntimeError(f"hostile: exit status {self.proc.returncode}")
        return json.loads(out)


# ---- packets ----

PAD = b"\x01\x04\0\0\0\0"
EXTENSIONS = {HOPOPTS: b"\0" + PAD, DSTOPTS: b"\0" + PAD, ROUTING: b"\0\x04\0\0\0\0\0",
              FRAGMENT: struct.pack("!BHI", 0, 0, 77), packet.AH: b"\x04" + bytes(22)}
CHAINS = ((HOPOPTS,), (DSTOPTS,), (ROUTING,), (FRAGMENT,), (packet.AH,),
          (HOPOPTS, DSTOPTS, ROUTING, FRAGMENT, DSTOPTS), (DSTOPTS,) * 6)
OPTIONS = (b"\x07\x07\x04\0\0\0\0", b"\x83\x07\x04\x0a\0\0\1", b"\x94\x04\0\0", b"\x01" * 40,
           b"\x44\x0c\x05\0" + bytes(8))
# Not redirects: the stack would believe them, and honest packets would be lost.
ERRORS = {4: ((3, 0), (3, 1), (3, 3), (3, 4), (11, 0), (12, 0), (4, 0)),
          6: ((1, 0), (1, 4), (2, 0), (3, 0), (4, 1), (100, 0))}
MTUS = (0, 67, 576, 1280, 1400, 65535)


def segment(proto, flow, flags, payload=b"", **kwargs):
    """FLOW: source, port, destination, port. FLAGS: TCP's or a tuple of SCTP's chunks."""
    make = {TCP: packet.tcp_packet, UDP: packet.udp_packet, SCTP: packet.sctp_packet}[proto]
    more = () if proto == UDP else (flags,)
    return make(*flow, *more, payload=payload, **kwargs)


def behind(chain, proto, data):
    for kind in reversed(chain):
        data, proto = bytes([proto]) + EXTENSIONS[kind] + data, kind
    return proto, data


def kinds(proto):
    return {TCP: (SYN, ACK, SYN | ACK, FIN | ACK, RST, PSH | ACK, 0, 0xff),
            UDP: (None,), SCTP: ((INIT,), (COOKIE_ECHO,), (DATA,), (ABORT,), (INIT, DATA))}[proto]


def transport(proto, flow):
    """Packets of one flow, whole and in fragments."""
    for flags in kinds(proto):
        yield segment(proto, flow, flags)
        yield segment(proto, flow, flags, b"x" * 100)
    last = segment(proto, flow, kinds(proto)[1 % len(kinds(proto))], b"y" * 1400)
    yield last
    six = packet.is6(flow[0])
    yield from (packet.fragment6 if six else packet.fragment4)(last, 600)
    plain = segment(proto, flow, kinds(proto)[0], b"z" * 20)
    data = plain[40 if six else 20:]
    if six:
        for chain in CHAINS:
            yield packet.ip6(flow[0], flow[2], *behind(chain, proto, data))
    else:
        for options in OPTIONS:
            yield packet.ip4(flow[0], flow[2], proto, data, options=options)
    if proto == UDP:
        yield segment(proto, flow, None, b"no sum", csum=0)


def errors(source, about):
    """ICMP errors from SOURCE about the packet ABOUT, and errors about errors."""
    six = packet.is6(source)
    target = packet.Packet(about).src
    for n, kind in enumerate(ERRORS[6 if six else 4]):
        quote = about[:(548, 28, 48, 20)[n % 4] + (20 if six else 0)]
        whole = packet.icmp_packet(source, target, *kind, MTUS[n % len(MTUS)], payload=quote)
        yield whole
        yield packet.icmp_packet(source, target, *kind, 0, payload=whole[:400])
    yield from (packet.fragment6 if six else packet.fragment4)(
        packet.icmp_packet(source, target, *ERRORS[6 if six else 4][3], 1400,
                           payload=about.ljust(500, b"q")[:500]), 280)
    yield packet.icmp_packet(source, target, 128 if six else 8, 0, 7, payload=b"echo")


def tunnelled(src, dst, inner):
    """INNER in each kind of tunnel."""
    kind = IPV6 if inner[0] >> 4 == 6 else IPIP
    yield packet.ip(src, dst, kind, inner)
    yield packet.ip(src, dst, kind, packet.ip(src, dst, kind, inner))
    ether = struct.pack("!H", packet.ETH_IP6 if kind == IPV6 else packet.ETH_IP)
    yield packet.ip(src, dst, GRE, b"\0\0" + ether + inner)
    yield packet.ip(src, dst, GRE, b"\xb0\0" + ether + bytes(12) + inner)
    for head in (bytes([0, kind, 0, 0]), bytes([1, kind, 0x10, 0]) + bytes(4), b"\x40\0\0\0"):
        yield packet.udp_packet(src, 40000, dst, GUE_PORT, head + inner)


class Target:
    """Services of a lab on a VIP of their own, whose servers never answer."""

    def __init__(self, lab):
        self.lab = lab

    def services(self):
        """(protocol, family, VIP, port, server's port)"""
        for family in (4, 6):
            for proto, port in PORTS.items():
                yield proto, family, self.lab.raw_vip(family), port, \
                    port + 1000 * (self.lab.shape == "nat")

    def entries(self, scheduler=lambda: "wlc", weight=lambda: 1):
        """The services as L4lb.set_services() takes them."""
        for proto, family, vip, port, dport in self.services():
            yield genl.batch_entry(vip, port, [genl.batch_server(
                self.lab.phantom(n, family), dport, method=self.lab.method, weight=weight())
                for n in (1, 2, 3, 4)], proto, sched=scheduler())

    def flows(self):
        """(protocol, request's flow, reply's flow)"""
        for proto, family, vip, port, dport in self.services():
            for n in range(4):
                client = f"10.77.{n}.7" if family == 4 else f"2001:db8:c:77::{n + 7:x}"
                server = self.lab.phantom(1 + n % 4, family)
                reply = (server, dport) if self.lab.shape == "nat" else (vip, port)
                yield proto, (client, 5000 + n, vip, port), (*reply, client, 5000 + n)

    def _from_clients(self):
        for proto, request, _ in self.flows():
            yield from transport(proto, request)
            seen = (request[2], request[3], request[0], request[1])
            yield from errors(request[0], segment(proto, seen, ACK if proto == TCP else (DATA,),
                                                  b"data"))
            yield segment(proto, (*request[:3], 9), kinds(proto)[0])       # no service
            inner = segment(proto, request, kinds(proto)[0])
            yield from tunnelled(request[0], request[2], inner)
            yield from tunnelled(request[0], self.lab.dip(4 if inner[0] >> 4 == 4 else 6), inner)

    def _from_servers(self):
        lab = self.lab
        for proto, request, reply in self.flows():
            family = 6 if packet.is6(request[0]) else 4
            yield from transport(proto, reply)
            seen = (reply[2], reply[3], reply[0], reply[1])
            about = segment(proto, seen, ACK if proto == TCP else (DATA,), b"data")
            server = lab.phantom(1, family)
            yield from errors(server, about)
            if lab.shape == "tun":
                for outer in tunnelled(lab.dip(family), server, about):
                    yield from errors(server, outer)

    def frames(self, side):
        """Frames of the client ("client") or of the first real server ("rs1")."""
        tap = self.lab.tap(side)
        packets = self._from_clients() if side == "client" else self._from_servers()
        whole = [tap.frame(p) for p in packets if len(p) <= MTU]
        arp = tap.peer + tap.node.mac() + b"\x08\x06" + bytes(28)
        return [*whole, arp, tap.peer + tap.node.mac() + b"\x81\0\0\x05\x08\0" + whole[0][14:]]


# ---- messages ----


def other_family(chance, count):
    """Bodies of commands of family L4LB: (command, whether it is a dump, body)."""
    service = [["af", 2], ["protocol", 6], ["addr", fuzz.VIPS[2][0]], ["port", 80]]
    ident = genl.IPVS.pack("svc", service)
    named = attr(genl.L_SERVICE, [ident])
    for _ in range(count):
        options = attr(genl.L_OPTIONS, [genl.option(chance.choice(("expire", "entries", "x")),
                                                    chance.choice((0, 1, 9, 100, 1 << 31)))])
        policy = attr(genl.L_POLICY, [attr(number, u32(chance.choice((0, 1, 2, 60, 1209600))))
                                      for number in chance.sample(list(genl.POLICY.values()), 3)])
        entries = b"".join(genl.batch_entry(
            chance.choice(fuzz.VIPS[af]), chance.choice((80, 443)),
            chance.sample(fuzz.SERVERS[af], 2), chance.choice((TCP, UDP, SCTP)),
            sched=chance.choice(fuzz.SCHEDULERS)) for af in chance.choices((2, 10), k=3))
        yield chance.choice((
            (genl.GET_SCHEDULER, True, b""), (genl.GET_OPTIONS, False, named),
            (genl.SET_OPTIONS, False, named + options), (genl.GET_POLICY, False, named),
            (genl.GET_POLICY, True, b""), (genl.SET_POLICY, False, named + policy),
            (genl.SET_SERVICES, False, attr(genl.L_MODE, u32(chance.randrange(3))) + entries),
            (genl.SET_SERVICES, False, entries), (genl.GET_SERVICES, True, b""),
            (genl.GET_SERVICES, True, named),
            (genl.GET_CONNS, True, genl.conn_filter(vip=fuzz.VIPS[2][0]))))


def messages(ns, seed, count=600):
    """Whole messages of both families, for the module that is loaded."""
    chance = random.Random(seed)
    out = []
    with genl.Ipvs(ns) as ipvs, genl.L4lb(ns) as l4lb:
        for command in fuzz.Generator(seed).commands(count):
            number, body, dump = fuzz.pack(command)
            out.append(ipvs.message(number, body, genl.F_DUMP if dump else genl.F_ACK))
        for number, dump, body in other_family(chance, count // 2):
            out.append(l4lb.message(number, body, genl.F_DUMP if dump else genl.F_ACK))
    return [m for m in out if len(m) <= ROOM]
