# SPDX-License-Identifier: GPL-2.0
"""Shadows of services: a second scheduler that only counts (attribute SHADOW, L4LB_CMD_GET_SHADOW)."""

import socket

from . import genl
from .genl import attr, attributes, text

STATS = genl.L4LB.sets["shadow"]
SERVER = genl.L4LB.sets["shadow-server"]
OPTION = genl.L4LB.sets["option"]


def give(l4lb, service, name):
    """The service has that shadow from now on; "none": none."""
    l4lb.request(genl.SET_POLICY, [attr(genl.L_SERVICE, service.ident), attr(genl.L_SHADOW, text(name))])


def name_of(l4lb, service):
    """The shadow's scheduler, or None."""
    got = dict(attributes(l4lb.request(genl.GET_POLICY, attr(genl.L_SERVICE, service.ident))[0][1]))
    return got[genl.L_SHADOW].rstrip(b"\0").decode() if genl.L_SHADOW in got else None


def decode_server(payload):
    a = dict(attributes(payload))
    af = int.from_bytes(a[SERVER["af"].number], "little")
    return {"addr": socket.inet_ntop(af, a[SERVER["addr"].number][:4 if af == socket.AF_INET else 16]),
            "port": int.from_bytes(a[SERVER["port"].number], "big"),
            **{k.replace("-", "_"): SERVER[k].read(a[SERVER[k].number]) for k in SERVER
               if k not in ("addr", "port", "af", "pad")}}


def read(l4lb, service):
    """{"scheduler", "age", "seen", "agreed", "refused", "servers": [{"addr", "port", "weight",
    "conns", "active_conns", "inact_conns", "real_conns", ...}], "counts": {name: value}}"""
    found = {"servers": [], "counts": {}}
    for _, payload in l4lb.dump(genl.GET_SHADOW, attr(genl.L_SERVICE, service.ident)):
        for kind, value in attributes(dict(attributes(payload))[genl.L_SHADOW_STATS]):
            name = next(k for k, a in STATS.items() if a.number == kind)
            if name == "server":
                found["servers"].append(decode_server(value))
            elif name == "option":
                option = dict(attributes(value))
                found["counts"][option[OPTION["name"].number].rstrip(b"\0").decode()] = \
                    OPTION["value"].read(option[OPTION["value"].number])
            elif name != "pad":
                found[name] = STATS[name].read(value)
    return found


def totals(found):
    """(choices, the same ones, without a server)"""
    return found["seen"], found["agreed"], found["refused"]


def each(found, what="conns"):
    """WHAT of each real server."""
    return [server[what] for server in found["servers"]]


def loads(found, real=False):
    """[(active, inactive)] of each real server."""
    kinds = ("real_active_conns", "real_inact_conns") if real else ("active_conns", "inact_conns")
    return [tuple(server[kind] for kind in kinds) for server in found["servers"]]


def in_all(pairs):
    return tuple(map(sum, zip(*pairs)))
