# SPDX-License-Identifier: GPL-2.0
"""Connections of every kind through one director, and whether another one knows them."""

import contextlib
import itertools
import time

from . import fwmark, genl
from .genl import PERSISTENT
from .packet import ACK, SCTP, TCP, UDP
from .raw import Client, Raw

PROTOS = {"tcp": TCP, "udp": UDP, "sctp": SCTP}
# (family, protocol, service)
KINDS = [(family, proto, "plain") for proto in PROTOS for family in (4, 6)] + \
    [(family, proto, service) for family in (4, 6)
     for proto, service in (("tcp", "persistent"), ("udp", "persistent"), ("udp", "mark"))]
SECONDS = 2         # by which two directors' timeouts may differ
SERVERS = (1, 2)


class Matrix:
    """A service for each kind. Two directors that make theirs in the same order have the same
    ones; NUMBER (0 to 55) tells its clients from those of others."""

    _numbers = itertools.count()

    def __init__(self, lab, number=None):
        self.lab = lab
        self.number = next(self._numbers) if number is None else number
        self.services = {kind: self._service(*kind) for kind in KINDS}

    def _service(self, family, proto, service):
        options = {} if service == "plain" else {"flags": PERSISTENT, "timeout": 300}
        if service == "mark":
            return fwmark.Marked(self.lab, fwmark.fresh_mark(), family, SERVERS,
                                 proto=PROTOS[proto], **options)
        return Raw(self.lab, PROTOS[proto], family, SERVERS, **options)

    def client(self, kind, n):
        address = f"{prefix(self.number, kind)}{n + 1}" if kind[0] == 4 else \
            f"{prefix(self.number, kind)}:{n + 1:x}"
        return Client(self.services[kind], address, 5000 + n)

    def play(self, count):
        """COUNT connections of each kind, with three packets from the client."""
        for kind, raw in self.services.items():
            with self._marked(raw):
                for n in range(count):
                    self._connect(self.client(kind, n))

    def _marked(self, raw):
        mark = getattr(raw, "mark", None)
        return fwmark.marking(self.lab, mark, f"udp dport {raw.port}") if mark else \
            contextlib.nullcontext()

    @staticmethod
    def _connect(client):
        if client.raw.proto == UDP:
            client.open()
            client.send()
            client.arrive()
        else:
            client.establish()
        client.send(ACK, b"third")
        client.arrive()

    def rows(self, count):
        """Its connections and templates as another director has to know them."""
        found = rows_of(self.lab.director.ns, self.number)
        templates = sum(service != "plain" for _, _, service in KINDS)
        assert len(found) == count * (len(KINDS) + templates), f"{len(found)} rows"
        return found


def name_of(row):
    return "{proto} {client}:{cport} {vip}:{vport}".format_map(row)


def prefix(number, kind):
    """What the addresses of a Matrix's clients of this KIND begin with."""
    at = KINDS.index(kind)
    return f"10.{200 + number}.{at}." if kind[0] == 4 else f"2001:db8:c:{number + 16:x}{at:02x}:"


def rows_of(ns, number):
    """{connection: its row} of the clients of Matrix NUMBER, with the first and the last
    moment at which it may end: rows are read one after the other, and have whole seconds."""
    clients, began = tuple(prefix(number, kind) for kind in KINDS), time.time()
    rows = [row for row in genl.conns(ns, origin=True) if row["client"].startswith(clients)]
    ended = time.time()
    return {name_of(row): {**row, "ends": (began + row["expires"], ended + row["expires"] + 1)}
            for row in rows}


def differences(sent, got):
    """How what one director GOT differs from what another one has SENT."""
    out = [f"{name}: missing" for name in sent if name not in got]
    out += [f"{name}: nobody has sent it" for name in got if name not in sent]
    for name in sent.keys() & got.keys():
        theirs, ours = sent[name], got[name]
        out += [f"{name}: {key} {ours[key]}, not {theirs[key]}"
                for key in ("server", "dport", "state") if ours[key] != theirs[key]]
        if ours["origin"] != "SYNC":
            out.append(f"{name}: origin {ours['origin']}")
        early, late = theirs["ends"][0] - ours["ends"][1], ours["ends"][0] - theirs["ends"][1]
        if max(early, late) > SECONDS:
            out.append(f"{name}: ends at least {early:.1f} s earlier" if early > 0 else
                       f"{name}: ends at least {late:.1f} s later")
    return sorted(out)


def without_ipv6(rows):
    return {name: row for name, row in rows.items() if ":" not in row["client"]}


def copy_services(ipvs, to):
    """The configuration of IPVS for another director."""
    for s in ipvs.services():
        named = {k: s[k] for k in ("addr", "port", "proto", "fwmark") if k in s}
        original = ipvs.service(**named, af=s["af"], add=False)
        service = to.service(**named, af=s["af"], sched=s["sched"], flags=s["flags"],
                             timeout=s["timeout"], netmask=s["netmask"])
        for d in reversed(original.servers()):
            service.server(d["addr"], d["port"], method=d["method"], weight=d["weight"])
