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
    """As flows.ready(); who is to be asked for an address is the stack's affair."""
    if lab.shape == "tun":
        mac = ":".join(f"{b:02x}" for b in lab.nodes["router"].mac("br1"))
        lab.director.ns.ip(*(f"neigh replace {FRONT[f]}3 lladdr {mac} dev eth0 nud permanent"
                             for f in (4, 6)))
    return flows.ready(lab, *args, **kwargs)


@contextlib.contextmanager
def at_ingress(lab):
    """The namespace's flows begin there; a policy's change is older than a tick."""
    with setting(lab, "fast_path", 2):
        time.sleep(0.03)
        yield


def begun(raw, **want):
    """A client whose first packet is taken."""
    client = raw.client()
    with counted(raw, **(want or {"fast": 1})):
        client.open()
    return client


def established(raw):
    """One more step: by then its connection may not be driven out."""
    client = begun(raw)
    if raw.proto == TCP:
        if raw.lab.shape == "nat":
            client.reply(SYN | ACK).answered()
        client.send(ACK).arrive()
    else:
        client.send().arrive()
    return client
