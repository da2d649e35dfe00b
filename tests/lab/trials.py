# SPDX-License-Identifier: GPL-2.0
"""Trials of schedulers (L4LB_CMD_TRY_SCHEDULER), and the flows that they invent, once more."""

import socket
import struct

from . import genl, packet
from .siphash import siphash

TRIAL = genl.L4LB.sets["trial"]
SERVER = genl.L4LB.sets["trial-server"]


def request(service, scheduler="rr", flows=1, without=None, live=False, **numbers):
    """The payload of a request; without SCHEDULER or FLOWS if they are None."""
    values = {"scheduler": scheduler, "flows": flows, **numbers}
    inner = [genl.attr(TRIAL[k].number, TRIAL[k].pack(v)) for k, v in values.items() if v is not None]
    if live:
        inner.append(genl.attr(TRIAL["live"].number, b""))
    if without:
        address, port = without
        inner.append(genl.attr(TRIAL["without"].number, [
            genl.attr(SERVER["addr"].number, packet.packed(address)),
            genl.attr(SERVER["port"].number, genl.be16(port)),
            genl.attr(SERVER["af"].number, genl.u16(genl.family_of(address)))]))
    return [genl.attr(genl.L_SERVICE, service.ident), genl.attr(genl.L_TRIAL, inner)]


def decode_server(payload):
    a = dict(genl.attributes(payload))
    af = int.from_bytes(a[SERVER["af"].number], "little")
    return {"addr": socket.inet_ntop(af, a[SERVER["addr"].number][:4 if af == socket.AF_INET else 16]),
            "port": int.from_bytes(a[SERVER["port"].number], "big"),
            **{k: SERVER[k].read(a[SERVER[k].number]) for k in ("weight", "chosen")}}


def attempt(l4lb, service, scheduler, flows, **more):
    """{"scheduler", "flows", "refused", ..., "servers": [{"addr", "port", "weight", "chosen"}]}"""
    found = {"servers": []}
    for _, payload in l4lb.dump(genl.TRY_SCHEDULER, request(service, scheduler, flows, **more)):
        for kind, value in genl.attributes(dict(genl.attributes(payload))[genl.L_TRIAL]):
            name = next(k for k, a in TRIAL.items() if a.number == kind)
            if name == "server":
                found["servers"].append(decode_server(value))
            else:
                found[name] = TRIAL[name].read(value)
    return found


def chosen(found):
    return [server["chosen"] for server in found["servers"]]


def flow(seed, i, clients=0):
    """(client, its port, destination of a service by firewall mark) of the I-th IPv6 flow."""
    def drawn(what, n):
        return siphash(struct.pack("<Q", n), (seed, what))

    def address(number):
        return socket.inet_ntop(socket.AF_INET6, struct.pack("!IIQ", 0x20010db8, 0, number))
    port = drawn(0, i)
    client = drawn(1, (port >> 32) * clients >> 32 if clients else i)
    return address(client), 1024 + (port & 0xffff) % (65536 - 1024), address(drawn(2, i))
