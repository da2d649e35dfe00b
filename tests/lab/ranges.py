# SPDX-License-Identifier: GPL-2.0
"""Services for a range of addresses and ports, as family L4LB names them."""

import contextlib
import ipaddress

from . import genl
from .genl import L4LB, attr, be16, u8, u16, u32
from .packet import TCP
from .raw import Raw
from .topology import SERVERS

RANGE = L4LB.sets["key"]["range"].number
R_ADDR, R_LEN, R_PORT, R_LAST = L4LB.numbers("range")
PREFIX = {4: "100.64.7.64/28", 6: "2001:db8:beef::40/124"}
EXACT = {4: 32, 6: 128}


def nest(prefix, first, last, addr=None, length=None):
    """RANGE; with another address or length than PREFIX has."""
    net = ipaddress.ip_network(prefix)
    return attr(RANGE, [
        attr(R_ADDR, addr or genl.address(str(net.network_address))),
        attr(R_LEN, u8(net.prefixlen if length is None else length)),
        attr(R_PORT, be16(first)), attr(R_LAST, be16(last))])


def ident(prefix, first, last=None, proto=TCP):
    last = first if last is None else last
    return [attr(genl.S_AF, u16(genl.family_of(prefix.partition("/")[0]))),
            attr(genl.S_PROTOCOL, u16(proto)), nest(prefix, first, last)]


def entry(prefix, first, last=None, proto=TCP, *, servers=(), more=(), **settings):
    af = genl.family_of(prefix.partition("/")[0])
    settings.setdefault("sched", "rr")
    return attr(genl.L_ENTRY, [
        attr(genl.L_SERVICE, ident(prefix, first, last, proto) +
             genl.service_options(af, **settings)), *more,
        *([attr(genl.L_DESTS, list(servers))] if servers else [])])


def removal(prefix, first, last=None, proto=TCP):
    return attr(genl.L_ENTRY, [attr(genl.L_SERVICE, ident(prefix, first, last, proto)),
                               attr(genl.L_REMOVE, b"")])


def decode(payload):
    """(protocol, prefix, first port, last port) of a packed SERVICE; None: it has no range."""
    found = dict(genl.attributes(payload))
    if RANGE not in found:
        return None
    r = dict(genl.attributes(found[RANGE]))
    size = 16 if int.from_bytes(found[genl.S_AF], "little") == 10 else 4
    net = ipaddress.ip_network((r[R_ADDR][:size], r[R_LEN][0]))
    return (int.from_bytes(found[genl.S_PROTOCOL], "little"), str(net),
            int.from_bytes(r[R_PORT], "big"), int.from_bytes(r[R_LAST], "big"))


def listed(ns):
    """All services with a range."""
    with genl.L4lb(ns) as l4lb:
        found = [dict(genl.attributes(dict(genl.attributes(p))[genl.L_ENTRY]))[genl.L_SERVICE]
                 for _, p in l4lb.dump(genl.GET_SERVICES, attr(genl.L_RANGES, b""))]
    return sorted(filter(None, map(decode, found)))


def live(l4lb):
    """{as decode() says: its real servers, with their connections} of all services with a range."""
    out = {}
    for _, payload in l4lb.dump(genl.GET_SERVICES, attr(genl.L_RANGES, b"") + attr(genl.L_LIVE, b"")):
        found = dict(genl.attributes(dict(genl.attributes(payload))[genl.L_ENTRY]))
        name = decode(found[genl.L_SERVICE])
        if name:
            out[name] = out.get(name, []) + [
                genl.decode_dest(one) for _, one in genl.attributes(found.get(genl.L_DESTS, b""))]
    return out


@contextlib.contextmanager
def here(lab, *prefixes):
    """Inside, the director takes packets to PREFIXES as its own."""
    for prefix in prefixes:
        ip = "ip -6" if ":" in prefix else "ip"
        lab.director.ns.run(f"{ip} route add local {prefix} dev lo")
    try:
        yield
    finally:
        for prefix in prefixes:
            ip = "ip -6" if ":" in prefix else "ip"
            lab.director.ns.run(f"{ip} route del local {prefix} dev lo")


class Ranged(Raw):
    """A service for PREFIX and the ports FIRST to LAST; clients use .vip and .port."""

    def __init__(self, lab, proto=TCP, family=4, numbers=(1, 2), *, first=None, last=None,
                 prefix=None, dport=0, **settings):
        self.lab, self.proto, self.family = lab, proto, family
        self.server_family, self.numbers, self.method = family, numbers, lab.method
        self.prefix = prefix or PREFIX[family]
        self.first = first or 20000 + 100 * (lab.fresh_port() % 300)
        self.last = self.first + 99 if last is None else last
        self.vip = str(ipaddress.ip_network(self.prefix)[3 if "/" in self.prefix else 0])
        self.port, self.dport = self.first + 7, dport
        self.client_tap = lab.tap("client")
        self.taps = {n: lab.tap(SERVERS[n - 1]) for n in numbers}
        self.ident = ident(self.prefix, self.first, self.last, proto)
        self.set(numbers, **settings)

    def set(self, numbers, mode=None, more=(), **settings):
        with genl.L4lb(self.lab.director.ns) as l4lb:
            l4lb.set_services([entry(
                self.prefix, self.first, self.last, self.proto, more=more, servers=[
                    genl.batch_server(self.address(n), self.dport, method=self.method)
                    for n in numbers], **settings)], mode)

    def policy(self, **values):
        with genl.L4lb(self.lab.director.ns) as l4lb:
            l4lb.request(genl.SET_POLICY, attr(genl.L_SERVICE, self.ident) + attr(
                genl.L_POLICY, [attr(genl.POLICY[k], u32(v)) for k, v in values.items()]))

    def delete(self):
        with genl.L4lb(self.lab.director.ns) as l4lb:
            l4lb.set_services([removal(self.prefix, self.first, self.last, self.proto)],
                              genl.CHANGE)

    def at(self, vip, port):
        """Clients use this VIP and port from now on."""
        self.vip, self.port = str(ipaddress.ip_network(self.prefix)[vip]) \
            if isinstance(vip, int) else vip, port
        return self
