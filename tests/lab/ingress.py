# SPDX-License-Identifier: GPL-2.0
"""Flows that begin at ingress (fast-path new, or fast_path=2)."""

import contextlib
import time

from . import flows
from .flows import counted
from .packet import ACK, SYN, TCP
from .settings import setting
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
