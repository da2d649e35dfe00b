# SPDX-License-Identifier: GPL-2.0
"""Flows that begin at ingress (fast-path new, or fast_path=2): their first packets
leave as the stack would have sent them, and unusual ones are left to it. Limits
and defences are in test_fast_new_rules.py.
"""

import contextlib
import struct
import time

import pytest
from lab import fast, packet, xdp
from lab.farm import pattern
from lab.flows import (
    BOTH,
    TUNNEL,
    counted,
    side,
    watched,
)
from lab.ingress import Firsts, at_ingress, begun, ready
from lab.netns import pinned
from lab.packet import ACK, FIN, RST, SYN, TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.topology import FRONT

pytestmark = pytest.mark.usefixtures("only_l4lb")

ECE, CWR = 0x40, 0x80
HOOKS = ("prerouting", "input", "forward", "output", "postrouting")


# ---- the same packets ----

def both_ways(lab, proto, family, limit=None, **kwargs):
    """The same clients' flows begin at ingress, are forgotten, and begin in the stack."""
    with setting(lab, "expire_nodest_conn", 1):
        raw = ready(lab, proto, family, **kwargs)
        firsts = Firsts(raw, limit)
        n = len(firsts.sorts)
        with at_ingress(lab), watched(raw, *HOOKS) as seen:
            taken = firsts.send(fast=1)
            assert seen() == [0] * len(HOOKS)
        firsts.forget(**kwargs.get("server") or {})
        with setting(lab, "fast_path", 0), watched(raw, "prerouting", "input") as seen:
            before = fast.read(lab.director.ns)["fast"]
            left = firsts.send()
            assert fast.read(lab.director.ns)["fast"] == before
            assert seen() == [n] * 2
    firsts.compare(taken, left)
    assert [t["conns"] for t in taken[1]] == [t["inpkts"] for t in taken[1]] == [n] * 2


@BOTH
def test_same_first_packets(lab, family, proto):
    """Bytes and counters are the same; no rule of the firewall sees the packets."""
    both_ways(lab, proto, family)


@pytest.mark.parametrize("outer", (4, 6), ids=("in4", "in6"))
@pytest.mark.parametrize("kind", [*TUNNEL, "ipip"])
def test_same_first_packets_in_tunnels(tun, family, outer, kind):
    both_ways(tun, UDP if outer == family else TCP, family, limit=3, server_family=outer,
              server={"tunnel": TUNNEL[kind]} if kind in TUNNEL else None)


@pytest.mark.parametrize("shape", ("nat", "dr"))
def test_same_first_state(shape, request):
    """With secure_tcp, whose first state differs."""
    lab = request.getfixturevalue(shape)
    with setting(lab, "secure_tcp", 3):
        raw, seen = ready(lab, TCP), []
        for mode in (2, 0):
            with setting(lab, "fast_path", mode):
                time.sleep(0.03)
                client = raw.client()
                with counted(raw, fast=1) if mode else contextlib.nullcontext():
                    client.open()
                seen.append((client.state, client.row()["expires"]))
    assert seen[0][0] == seen[1][0] and abs(seen[0][1] - seen[1][1]) <= 1


def spread(raw, count):
    """([server of each of COUNT flows], [growth of each server's counters])"""
    clients = [raw.client() for _ in range(count)]
    before = [raw.dest(n)["stats"] for n in raw.numbers]
    for client in clients:
        client.send(payload=b"first")
    raw.fence()
    found = {p.sport: n for n, tap in raw.taps.items()
             for p in tap.take(lambda p: p.dport in (raw.port, raw.dport))}
    after = [raw.dest(n)["stats"] for n in raw.numbers]
    grown = [{k: b[k] - a[k] for k in ("conns", "inpkts", "inbytes")}
             for a, b in zip(before, after)]
    return [found.get(c.sport) for c in clients], grown


@BOTH
@pytest.mark.parametrize("sched, weights", (("rr", (1, 1, 1)), ("wrr", (3, 1, 2)),
                                            ("wlc", (3, 1, 2))))
def test_many_flows(nat, family, proto, sched, weights):
    """Each flow gets the same server as it would in the stack."""
    if proto == TCP and sched != "rr":
        pytest.skip("one protocol will do for the schedulers that weigh: see UDP")
    raw = ready(nat, proto, family, (1, 2, 3), sched=sched, weights=weights)
    with pinned():
        with at_ingress(nat), counted(raw, fast=300):
            taken = spread(raw, 300)
        with setting(nat, "fast_path", 0):
            left = spread(raw, 300)
    assert taken == left and None not in taken[0]
    assert sum(s["conns"] for s in taken[1]) == 300


# ---- what is left to the stack ----

def outcome(client):
    """(packets at servers, packets back, connection's state) after a packet of CLIENT."""
    client.raw.fence()
    l4lb = client.address, client.raw.vip
    return [(n, p.proto, p.ttl, len(p.l4)) for n, p in client.arrivals()], \
        [(p.proto, p.type, p.code, p.flags, p.src == l4lb[1], len(p.l4))
         for p in client.raw.client_tap.take(lambda p: p.dst == l4lb[0])], client.state


def wrong_sum(client):
    client.send(payload=b"x", csum=0x1234)


def no_sum(client):
    client.send(payload=b"x", csum=0)


def wrong_header_sum(client):
    client.send(payload=b"x", ip_args={"csum": 0x1234})


def padding(client):
    client.raw.client_tap.send(client.packet(payload=b"x") + b"PADDING" * 2)


def sum_with_padding(client):
    """A wrong checksum that would be right with the bytes behind the packet."""
    raw, behind = client.raw, b"PADDING!"
    l4 = client.packet(payload=b"xx", csum=0)[20 if raw.family == 4 else 40:]
    of = packet.pseudo(client.address, raw.vip, raw.proto, len(l4 + behind))
    raw.client_tap.send(client.packet(payload=b"xx", csum=packet.checksum(of + l4 + behind)) +
                        behind)


def sums_that_cancel(client):
    """Wrong checksums of both headers, whose errors cancel out."""
    whole = client.packet(payload=b"x")
    at = 36 if client.raw.proto == TCP else 26
    header, l4 = (int.from_bytes(whole[n:n + 2], "big") for n in (10, at))
    client.send(payload=b"x", csum=(l4 - 1) % 0xffff, ip_args={"csum": (header + 1) % 0xffff})


def options(client):
    if client.raw.family == 4:
        client.send(payload=b"x", ip_args={"options": b"\x01\x01\x01\x00"})
        return
    whole = client.packet(payload=b"x")
    client.raw.client_tap.send(
        whole[:4] + struct.pack("!HBB", len(whole) - 32, packet.DSTOPTS, whole[7]) +
        whole[8:40] + bytes([whole[6], 0, 1, 4, 0, 0, 0, 0]) + whole[40:])


def fragments(client):
    cut = packet.fragment4 if client.raw.family == 4 else packet.fragment6
    for piece in cut(client.packet(payload=pattern(1400)), 1280):
        client.raw.client_tap.send(piece)


def ends_here(client):
    client.send(ttl=1)


def ftp_data(client):
    client.sport = 20
    client.send(payload=b"x")


def too_big(client):
    """Too big for the path to its server: the flow begins, and the stack sends the error."""
    client.send(payload=pattern(1400), ip_args={"df": True} if client.raw.family == 4 else {})


def flagged(flags):
    def send(client):
        client.send(flags, b"x" * bool(flags & ACK))
    send.__name__ = f"flags_{flags:#x}"
    return send


HEADER, UNKNOWN, ROUTE, OPENS = "slow_header", "slow_unknown", "slow_route", "slow_opens"
# What: (families, protocols, counters by family, whether a connection begins).
LEFT = {
    wrong_sum: ((4, 6), (TCP, UDP), {4: {UNKNOWN: 1}, 6: {UNKNOWN: 1}}, False),
    no_sum: ((6,), (UDP,), {6: {UNKNOWN: 1}}, False),
    wrong_header_sum: ((4,), (TCP, UDP), {4: {UNKNOWN: 1}}, False),
    sum_with_padding: ((4, 6), (TCP, UDP), {4: {UNKNOWN: 1}, 6: {UNKNOWN: 1}}, False),
    sums_that_cancel: ((4,), (TCP, UDP), {4: {UNKNOWN: 1}}, False),
    padding: ((4, 6), (TCP, UDP), {4: {UNKNOWN: 1}, 6: {UNKNOWN: 1}}, True),
    options: ((4, 6), (TCP, UDP), {4: {HEADER: 1}, 6: {"slow_protocol": 1}}, True),
    fragments: ((4, 6), (UDP,), {4: {HEADER: 2}, 6: {"slow_protocol": 2}}, True),
    ends_here: ((4, 6), (TCP, UDP), {4: {HEADER: 1}, 6: {HEADER: 1}}, True),
    ftp_data: ((4, 6), (TCP, UDP), {4: {UNKNOWN: 1}, 6: {UNKNOWN: 1}}, False),
    too_big: ((4, 6), (TCP, UDP), {4: {ROUTE: 1}, 6: {ROUTE: 1}}, True),
    flagged(SYN | ACK): ((4, 6), (TCP,), {4: {OPENS: 1}, 6: {OPENS: 1}}, True),
    **{flagged(flags): ((4, 6), (TCP,), {4: {UNKNOWN: 1}, 6: {UNKNOWN: 1}}, begins)
       for flags, begins in ((ACK, False), (RST, False), (RST | ACK, False), (FIN, False),
                             (FIN | ACK, False), (0, False),
                             (SYN | FIN, True), (SYN | RST, False))},
}


@pytest.mark.waits
@BOTH
@pytest.mark.parametrize("what", LEFT, ids=lambda f: f.__name__)
def test_left_to_the_stack(nat, family, proto, what):
    """The stack answers the same as with fast_path=0."""
    families, protos, want, begins = LEFT[what]
    if what is padding and xdp.everywhere:
        want = {family: {"fast": 1}}        # a frame's end can be moved
    if family not in families or proto not in protos:
        pytest.skip(f"{what.__name__} is not for this family and protocol: see LEFT")
    raw = ready(nat, proto, family, (4,) if what is too_big else (1,))
    with at_ingress(nat):
        begun(raw)
        client = raw.client()
        with counted(raw, **want[family]):
            what(client)
        taken = outcome(client)
    with setting(nat, "fast_path", 0):
        other = raw.client()
        what(other)
        assert taken == outcome(other)
    assert (taken[2] is not None) == begins
    if not begins:
        assert taken[0] == []
    if what in (padding, options, fragments):
        assert len(taken[0]) == 1 + (what is fragments)


def strangers(lab, family):
    """Addresses that no host has, or that are the director's own."""
    if family == 6:
        return "::1", "ff02::1", "::ffff:10.0.0.1", "fe80::7", "::"
    return "127.0.0.1", "127.9.9.9", "224.0.0.5", "255.255.255.255", "0.0.0.0", \
        FRONT[4] + "255", FRONT[4] + "1", lab.raw_vip(4), lab.raw_vip(4, 1)


@pytest.mark.waits
@BOTH
def test_martian_sources(nat, family, proto):
    """They are left to the stack, which does the same as with fast_path=0."""
    raw = ready(nat, proto, family)
    with at_ingress(nat):
        begun(raw)
        found = []
        for source in strangers(nat, family):
            client = raw.client(source)
            with counted(raw, slow_unknown=1):
                client.send(payload=b"x")
            found.append((source, outcome(client)))
    with setting(nat, "fast_path", 0):
        for source, taken in found:
            client = raw.client(source)
            client.send(payload=b"x")
            assert taken == outcome(client), source
    # The stack accepts these.
    passing = "fe80::7", "::", "::ffff:10.0.0.1", FRONT[4] + "255"
    assert [source for source, got in found if source not in passing and got[0]] == []


def test_source_becomes_this_hosts(nat):
    """After flows have begun from it, an address becomes the director's own, a broadcast
    address, or one of many local networks: new flows from it are left to the stack."""
    raw, ns = ready(nat, UDP, 4), nat.director.ns
    nets = [f"route add local 10.79.{n}.0/24 dev lo" for n in range(12)]
    news = (("10.77.1.9", ("addr add 10.77.1.9/32 dev eth0",)),
            ("10.77.2.255", ("addr add 10.77.2.1/24 dev eth0",)),
            ("10.78.3.4", ("route add local 10.78.0.0/16 dev lo",)),
            ("10.79.11.1", nets))

    def left(source):
        client = raw.client(source)
        with counted(raw, slow_unknown=1):
            client.send(payload=b"x")
        outcome(client)     # whatever the stack says, see test_martian_sources()

    def begins(source):
        with counted(raw, fast=1):
            raw.client(source).open()

    with at_ingress(nat):
        begins(None)
        for source, commands in news:
            begins(source)
            ns.ip(*commands)
            try:
                left(source)
                begins("10.80.0.1")
            finally:
                ns.ip(*(c.replace(" add ", " del ") for c in commands))
        for source, _ in news:
            begins(source)


def test_loopback_source_of_nobody(nat):
    """Loopback addresses are no valid sources even if the director has none."""
    raw, ns = ready(nat, UDP, 4), nat.director.ns
    with at_ingress(nat):
        begun(raw)
        ns.ip("addr del 127.0.0.1/8 dev lo")
        try:
            client = raw.client("127.0.0.1")
            with counted(raw, slow_unknown=1):
                client.send(payload=b"x")
            client.nothing_arrives()
            assert client.row() is None
        finally:
            ns.ip("addr add 127.0.0.1/8 dev lo")
        begun(raw)


@BOTH
def test_loopback_address(nat, family, proto):
    """A service on a loopback address cannot be reached from outside."""
    ready(nat, proto, family)
    raw = Raw(nat, proto, family, vip="127.0.0.1" if family == 4 else "::1")
    with at_ingress(nat):
        client = raw.client()
        with counted(raw, slow_unknown=1):
            client.send(payload=b"x")
        assert outcome(client) == ([], [], None)


def test_own_address_on_another_link(nat):
    """A link-local VIP is valid on its own link only."""
    ready(nat, UDP, 6)
    nat.director.ns.ip("addr add fe80::99/128 dev eth1 nodad")
    try:
        raw = Raw(nat, UDP, 6, vip="fe80::99")
        with at_ingress(nat):
            client = raw.client()
            with counted(raw, slow_unknown=1):
                client.send(payload=b"x")
            client.nothing_arrives()
            assert client.row() is None
    finally:
        nat.director.ns.ip("addr del fe80::99/128 dev eth1")


def test_reverse_path_filter(nat):
    """It drops packets from another device than answers would leave by, but does not see
    flows that begin at ingress, as the manual says."""
    raw, ns = ready(nat, UDP, 4), nat.director.ns
    ns.ip(f"route add 10.88.0.0/24 via {raw.address(1)} dev eth1")
    ns.sysctl("net/ipv4/conf/eth0/rp_filter", 1)
    try:
        client = raw.client("10.88.0.5")
        client.send(payload=b"x")
        client.nothing_arrives()
        assert client.row() is None
        with at_ingress(nat):
            with counted(raw, fast=1):
                client.open()
            assert client.row()
    finally:
        ns.sysctl("net/ipv4/conf/eth0/rp_filter", 0)
        ns.ip("route del 10.88.0.0/24")


def test_device_without_ipv6(nat):
    raw = ready(nat, UDP, 6)
    with side(nat) as tap, at_ingress(nat):
        source = nat.client_address(6)
        fast.wait_for_hook(nat.director.ns, tap, source, raw.vip)
        client = raw.client()
        with counted(raw, fast=1):
            tap.send(client.packet())
            client.arrive()
        nat.director.ns.sysctl("net/ipv6/conf/side0/disable_ipv6", 1)
        client = raw.client()
        with counted(raw, slow_unknown=1):
            tap.send(client.packet())
        client.nothing_arrives()
        assert client.row() is None
