# SPDX-License-Identifier: GPL-2.0
"""Flows of phantom clients on the fast path: helpers for its tests."""

import contextlib
import itertools
import re
import time

import pytest

from . import fast, genl
from .netns import wait_until
from .packet import ACK, GUE_PORT, SYN, TCP, UDP
from .raw import Raw, is_error
from .tap import Tap

TERM = 8        # seconds: L4LB_FAST_TERM
OFF, ON, NEW = 1, 2, 3      # policy fast_path
FORGET, RESET = 0, 1        # policy on_idle
TUNNEL = {"gue": (1, GUE_PORT, 0), "gue-csum": (1, GUE_PORT, 1), "gre": (2, 0, 0),
          "gre-csum": (2, 0, 1)}
# The protocols that the fast path takes.
BOTH = pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
GATEWAY = {4: "198.18.0.2", 6: "2001:db8:18::2"}


def admitted(raw, reply=None):
    """A client whose packets, and with NAT the replies, take the fast path from now on."""
    client = raw.client()
    if raw.proto == TCP:
        client.establish()
    else:
        client.open()
    if raw.lab.shape == "nat" if reply is None else reply:
        client.reply(ACK, b"reply").answered()
    return client


def ready(lab, proto=UDP, family=4, numbers=(1,), **kwargs):
    return fast.ready(Raw(lab, proto, family, numbers, **kwargs))


def counted(raw, **want):
    return fast.counted(raw.lab.director.ns, **want)


def request_is(client, payload=b"x", arrives=1, **want):
    """Send one packet of an open flow, which counts as WANT. Returns the packet that arrived."""
    with counted(client.raw, **want):
        client.send(ACK, payload)
        if arrives:
            return client.arrive()[1]
        client.nothing_arrives()
    return None


def reply_is(client, payload=b"y", **want):
    with counted(client.raw, **want):
        client.reply(ACK, payload)
        return client.answered()


def for_a_term(more=0.5):
    """Yields numbers, five a second, until a term that begins now is over."""
    end = time.monotonic() + TERM + more
    for n in itertools.count(1):
        yield n
        time.sleep(0.2)
        if time.monotonic() >= end:
            break
    time.sleep(0.05)


def set_policy(raw, **values):
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        l4lb.set_policy(raw.service, **values)
    fast.settle()


# ---- looking

def image(p):
    """All of a packet except the fields that differ between any two packets."""
    raw = bytearray(p.raw)
    if p.family == 4 and p.is_tunnel:
        raw[4:6] = raw[10:12] = b"\0\0"
    return p.mac, bytes(raw), p.behind


def one(take):
    got = []

    def arrived():
        got.extend(take())
        return got
    wait_until(arrived, 5, what="a packet")
    assert len(got) == 1, got
    return got[0]


def numbers_of(client):
    """The figures that a user sees, of service, server and connection."""
    raw = client.raw

    def plain(stats):
        return {k: stats[k] for k in ("conns", "inpkts", "outpkts", "inbytes", "outbytes")}
    return plain(raw.service.stats), plain(raw.dest(1)["stats"]), \
        {k: raw.dest(1)[k] for k in ("active", "inactive")}, client.row()


def growth(before, after):
    return [{k: after[i][k] - before[i][k] for k in after[i]} for i in (0, 1)]


# ---- the director's surroundings

def nft(lab, text):
    return lab.director.ns.nft(text)


@contextlib.contextmanager
def rule(lab, hook, text, priority=0):
    """A rule of the director's firewall."""
    nft(lab, f"table inet t {{ chain c {{ type filter hook {hook} priority {priority}; "
             f"{text}; }}; }}")
    try:
        yield
    finally:
        lab.director.ns.nft("delete table inet t")


@contextlib.contextmanager
def watched(raw, *hooks):
    """Yields a function that returns how many packets to RAW's service each of HOOKS has
    seen, also after the director has rewritten or encapsulated them.

    Sockets of earlier tests retransmit to other ports, so they do not count."""
    lab, ports = raw.lab, {raw.port, raw.dport or raw.port, GUE_PORT}
    nft(lab, "table inet w { " + "".join(
        f"chain {hook} {{ type filter hook {hook} priority -390; "
        f"meta l4proto {{ tcp, udp }} th dport {{ {', '.join(map(str, ports))} }} counter; }}; "
        for hook in hooks) + "}")
    try:
        yield lambda: [int(n) for n in re.findall(
            r"packets (\d+)", lab.director.ns.nft("list table inet w"))]
    finally:
        lab.director.ns.nft("delete table inet w")


def host(address, family):
    return f"{address}/{32 if family == 4 else 128}"


@contextlib.contextmanager
def side(lab):
    """A second cable between client and director; yields the client's Tap on it."""
    # Without an address the client's stack sends nothing there.
    lab.client.ns.ip(f"link add side0 type veth peer name side0 netns {lab.director.ns.name}",
                     "link set side0 addrgenmode none", "link set side0 up")
    lab.director.ns.ip("link set side0 up", "addr add 198.18.0.1/24 dev side0",
                       "addr add 2001:db8:18::1/64 dev side0 nodad")
    lab.client.macs.pop("side0", None)
    lab.director.macs.pop("side0", None)
    mac = ":".join(f"{b:02x}" for b in lab.client.mac("side0"))
    lab.director.ns.ip(f"neigh add 198.18.0.2 lladdr {mac} dev side0 nud permanent",
                       f"neigh add 2001:db8:18::2 lladdr {mac} dev side0 nud permanent")
    tap = Tap(lab.client, "side0")
    tap.peer = lab.director.mac("side0")
    try:
        yield tap
    finally:
        tap.close()
        lab.client.ns.ip("link del side0")


def ask(client):
    """The server that a new connection reaches, None if it is refused."""
    raw, got = client.raw, []
    client.send(SYN)

    def outcome():
        got.extend(n for n, _ in client.arrivals())
        return got or raw.client_tap.take(lambda p: p.dst == client.address and is_error(p))

    wait_until(outcome, 5, what="a server's packet or a refusal")
    assert len(got) < 2, got
    return got[0] if got else None


def asked(raw, count, source=None):
    return [ask(raw.client(source)) for _ in range(count)]
