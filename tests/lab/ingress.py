# SPDX-License-Identifier: GPL-2.0
"""Flows that begin at ingress (fast-path new, or fast_path=2)."""

import contextlib
import time

from . import flows
from .flows import counted, growth, image, one
from .netns import wait_until
from .packet import ACK, PSH, SYN, TCP, UDP, URG
from .settings import setting
from .sorts import CWR, ECE, ordinary
from .topology import FRONT


def ready(lab, *args, **kwargs):
    """Like flows.ready(), with a permanent neighbour: the fast path resolves no addresses."""
    if lab.shape == "tun":
        mac = ":".join(f"{b:02x}" for b in lab.nodes["router"].mac("br1"))
        lab.director.ns.ip(*(f"neigh replace {FRONT[f]}3 lladdr {mac} dev eth0 nud permanent"
                             for f in (4, 6)))
    return flows.ready(lab, *args, **kwargs)


@contextlib.contextmanager
def at_ingress(lab):
    """The namespace's flows begin at ingress; waits for a tick, as after changed policies."""
    with setting(lab, "fast_path", 2):
        time.sleep(0.03)
        yield


def begun(raw, **want):
    """A client whose first packet takes the fast path."""
    client = raw.client()
    with counted(raw, **(want or {"fast": 1})):
        client.open()
    return client


def established(raw):
    """A begun() client, one step further: then its connection cannot be evicted."""
    client = begun(raw)
    if raw.proto == TCP:
        if raw.lab.shape == "nat":
            client.reply(SYN | ACK).answered()
        client.send(ACK).arrive()
    else:
        client.send().arrive()
    return client


def _first_sorts(proto, family):
    """Arguments of Client.packet() for first packets that begin a flow at ingress."""
    yield from ordinary(family)
    if proto == UDP:
        if family == 4:
            yield {"payload": b"none", "csum": 0}
        yield {"payload": b"the length is wrong", "length": 9}
        yield {"payload": b"and again", "length": 4000}
    else:
        yield from ({"flags": SYN | more} for more in (PSH, URG, ECE | CWR))
        yield {"options": b"\2\4\5\xb4\1\3\3\7\4\2\x08\x0a" + b"time" * 2}
        yield {"payload": b"data that is none", "doff": 15}


class Firsts:
    """First packets of all sorts, each of a client of its own."""

    def __init__(self, raw, limit=None):
        self.raw = raw
        self.sorts = list(_first_sorts(raw.proto, raw.family))[:limit]
        self.clients = [raw.client() for _ in self.sorts]

    def _totals(self):
        def plain(stats):
            return {k: stats[k] for k in ("conns", "inpkts", "outpkts", "inbytes", "outbytes")}
        return plain(self.raw.service.stats), plain(self.raw.dest(1)["stats"])

    def send(self, **want):
        """([(packet that left, connection's row, its expiry)], growth of counters, server's
        counts). Each packet is counted as in WANT."""
        out, before = [], self._totals()
        for client, kwargs in zip(self.clients, self.sorts):
            with counted(self.raw, **want) if want else contextlib.nullcontext():
                self.raw.client_tap.send(client.packet(**kwargs))
                left = image(one(client.arrivals)[1])
            row = client.row()
            out.append((left, {**row, "expires": None}, row["expires"]))
        return out, growth(before, self._totals()), \
            {k: self.raw.dest(1)[k] for k in ("active", "inactive")}

    def forget(self, **server):
        """Their connections end with their server, which is added again. The namespace has
        expire_nodest_conn."""
        self.raw.remove(1)
        wait_until(lambda: not any(c.row() for c in self.clients), 5)
        self.raw.add(1, **server)

    def compare(self, taken, left):
        """Two results of send()."""
        for what, a, b in zip(self.sorts, taken[0], left[0]):
            assert a[:2] == b[:2], (what, a, b)
            assert abs(a[2] - b[2]) <= 1, (what, a, b)
        assert taken[1:] == left[1:]
