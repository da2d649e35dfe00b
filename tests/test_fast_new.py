# SPDX-License-Identifier: GPL-2.0
"""Flows that begin at ingress (fast-path new, or fast_path=2): that their first
packets leave as the stack would have sent them, which ones are left to it, and
that limits and defences hold for them, too.
"""

import contextlib
import struct
import threading
import time

import pytest
from test_conn_table import room_for
from test_drops import counts
from test_settings import setting

from lab import fast, flows, packet
from lab.flows import (NEW, OFF, ON, TUNNEL, counted, for_a_term, growth, host, image, one,
                       reply_is, request_is, rule, set_policy, side, watched)
from lab.genl import ONEPACKET, PERSISTENT
from lab.netns import join_all, pinned, run, wait_until
from lab.packet import ACK, FIN, PSH, RST, SYN, TCP, UDP, URG
from lab.raw import Raw
from lab.topology import FRONT, pattern

pytestmark = pytest.mark.usefixtures("only_l4lb")

ECE, CWR = 0x40, 0x80
HOOKS = ("prerouting", "input", "forward", "output", "postrouting")
BOTH = pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))


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


# ---- the same packets ----

def variety(proto, family):
    """Arguments of first packets that ingress takes."""
    ip_args = [{"tos": 0xb8}, {"tos": 0x28 | 2}, {"tos": 3}]
    ip_args += [{"df": True}, {"ident": 0}] if family == 4 else [{"flow": 0x12345}]
    yield from ({"payload": pattern(n)} for n in (0, 1, 2, 333, 1300))
    yield from ({"payload": b"ip", "ip_args": args} for args in ip_args)
    yield {"payload": b"far", "ttl": 255}
    yield {"payload": b"near", "ttl": 3}
    if proto == UDP:
        if family == 4:
            yield {"payload": b"none", "csum": 0}
        yield {"payload": b"the length is wrong", "length": 9}
        yield {"payload": b"and again", "length": 4000}
    else:
        yield from ({"flags": SYN | more} for more in (PSH, URG, ECE | CWR))
        yield {"options": b"\2\4\5\xb4\1\3\3\7\4\2\x08\x0a" + b"time" * 2}
        yield {"payload": b"data that is none", "doff": 15}


def totals(raw):
    def plain(stats):
        return {k: stats[k] for k in ("conns", "inpkts", "outpkts", "inbytes", "outbytes")}
    return plain(raw.service.stats), plain(raw.dest(1)["stats"])


def first_packets(raw, clients, kinds, **want):
    """(What left and the connection's row, of each; what was counted; servers' numbers)"""
    out, before = [], totals(raw)
    for client, kwargs in zip(clients, kinds):
        with counted(raw, **want) if want else contextlib.nullcontext():
            raw.client_tap.send(client.packet(**kwargs))
            left = image(one(client.arrivals)[1])
        row = client.row()
        out.append((left, {**row, "expires": None}, row["expires"]))
    return out, growth(before, totals(raw)), {k: raw.dest(1)[k] for k in ("active", "inactive")}


def both_ways(lab, proto, family, limit=None, **kwargs):
    """The same clients begin at ingress, are forgotten, and begin by the stack."""
    with setting(lab, "expire_nodest_conn", 1):
        raw = ready(lab, proto, family, **kwargs)
        kinds = list(variety(proto, family))[:limit]
        clients = [raw.client() for _ in kinds]
        with at_ingress(lab), watched(raw, *HOOKS) as seen:
            taken = first_packets(raw, clients, kinds, fast=1)
            assert seen() == [0] * len(HOOKS)
        raw.remove(1)
        wait_until(lambda: not any(c.row() for c in clients), 5)
        raw.add(1, **kwargs.get("server") or {})
        with setting(lab, "fast_path", 0), watched(raw, "prerouting", "input") as seen:
            before = fast.read(lab.director.ns)["fast"]
            left = first_packets(raw, clients, kinds)
            assert fast.read(lab.director.ns)["fast"] == before
            assert seen() == [len(kinds)] * 2
    for what, a, b in zip(kinds, taken[0], left[0]):
        assert a[:2] == b[:2], (what, a, b)
        assert abs(a[2] - b[2]) <= 1, (what, a, b)
    assert taken[1:] == left[1:]
    assert [t["conns"] for t in taken[1]] == [t["inpkts"] for t in taken[1]] == [len(kinds)] * 2


@BOTH
def test_same_first_packets(lab, family, proto):
    """Byte for byte, and all counters; no rule of the firewall sees them."""
    both_ways(lab, proto, family)


@pytest.mark.parametrize("outer", (4, 6), ids=("in4", "in6"))
@pytest.mark.parametrize("kind", [*TUNNEL, "ipip"])
def test_same_first_packets_in_tunnels(tun, family, outer, kind):
    both_ways(tun, UDP if outer == family else TCP, family, limit=3, server_family=outer,
              server={"tunnel": TUNNEL[kind]} if kind in TUNNEL else None)


@pytest.mark.parametrize("shape", ("nat", "dr"))
def test_same_first_state(shape, request):
    """secure_tcp has another one."""
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
    """The servers that COUNT flows get, one after the other, and what they count."""
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
    """Each gets the server that it would have got."""
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
    """What a packet of CLIENT has led to."""
    client.raw.fence()
    own = client.address, client.raw.vip
    return [(n, p.proto, p.ttl, len(p.l4)) for n, p in client.arrivals()], \
        [(p.proto, p.type, p.code, p.flags, p.src == own[1], len(p.l4))
         for p in client.raw.client_tap.take(lambda p: p.dst == own[0])], client.state


def wrong_sum(client):
    client.send(payload=b"x", csum=0x1234)


def no_sum(client):
    client.send(payload=b"x", csum=0)


def wrong_header_sum(client):
    client.send(payload=b"x", ip_args={"csum": 0x1234})


def padding(client):
    client.raw.client_tap.send(client.packet(payload=b"x") + b"PADDING" * 2)


def sum_with_padding(client):
    """Wrong, but right with what is behind the packet."""
    raw, behind = client.raw, b"PADDING!"
    l4 = client.packet(payload=b"xx", csum=0)[20 if raw.family == 4 else 40:]
    of = packet.pseudo(client.address, raw.vip, raw.proto, len(l4 + behind))
    raw.client_tap.send(client.packet(payload=b"xx", csum=packet.checksum(of + l4 + behind)) +
                        behind)


def sums_that_cancel(client):
    """Both are wrong; summed up together they are right."""
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
    """For the way to its server: the stack says so, of a flow that has begun."""
    client.send(payload=pattern(1400), ip_args={"df": True} if client.raw.family == 4 else {})


def flagged(flags):
    def send(client):
        client.send(flags, b"x" * bool(flags & ACK))
    send.__name__ = f"flags_{flags:#x}"
    return send


HEADER, UNKNOWN, ROUTE = "slow_header", "slow_unknown", "slow_route"
# What: (where; the protocols; the counter by family; does a connection begin).
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
    **{flagged(flags): ((4, 6), (TCP,), {4: {UNKNOWN: 1}, 6: {UNKNOWN: 1}}, begins)
       for flags, begins in ((ACK, False), (RST, False), (RST | ACK, False), (FIN, False),
                             (FIN | ACK, False), (0, False), (SYN | ACK, True),
                             (SYN | FIN, True), (SYN | RST, False))},
}


@BOTH
@pytest.mark.parametrize("what", LEFT, ids=lambda f: f.__name__)
def test_left_to_the_stack(nat, family, proto, what):
    """It answers what it always has."""
    families, protos, want, begins = LEFT[what]
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
    """Sources that no host has, or this one."""
    if family == 6:
        return "::1", "ff02::1", "::ffff:10.0.0.1", "fe80::7", "::"
    return "127.0.0.1", "127.9.9.9", "224.0.0.5", "255.255.255.255", "0.0.0.0", \
        FRONT[4] + "255", FRONT[4] + "1", lab.raw_vip(4), lab.raw_vip(4, 1)


@BOTH
def test_martian_sources(nat, family, proto):
    """The stack drops them; whatever it does, it does."""
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
    # The stack looks at these no closer.
    passing = "fe80::7", "::", FRONT[4] + "255"
    assert [source for source, got in found if source not in passing and got[0]] == []


def test_source_becomes_this_hosts(nat):
    """An address, a network's broadcast address, whole networks, however many, that
    come after flows have begun: from then on their packets are the stack's."""
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
    """Nor has anybody else these addresses when the host itself has not."""
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
    """A service for this host alone: nobody reaches it by a cable."""
    ready(nat, proto, family)
    raw = Raw(nat, proto, family, vip="127.0.0.1" if family == 4 else "::1")
    with at_ingress(nat):
        client = raw.client()
        with counted(raw, slow_unknown=1):
            client.send(payload=b"x")
        assert outcome(client) == ([], [], None)


def test_own_address_on_another_link(nat):
    """A link-local VIP is one of its link's."""
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
    """It drops what comes on another device than answers would leave by, but does not see
    what begins at ingress: as the manual says."""
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


@pytest.mark.smoke
def test_who_stands_by(nat, family):
    """Without its VIP a director routes packets on; with it, on a device or by a
    route, flows begin."""
    raw = ready(nat, UDP, family)
    ns, to = nat.director.ns, host(raw.vip, family)
    mac = ":".join(f"{b:02x}" for b in nat.client.mac())

    def passes_by():
        client = raw.client()
        with counted(raw, slow_unknown=1):
            client.send(payload=b"on")
            # To whoever has it, where it came from.
            p = raw.client_tap.expect(lambda p: p.dst == raw.vip and p.payload == b"on")
        assert p.ttl == 63 and client.row() is None and client.arrivals() == []

    with at_ingress(nat):
        begun(raw)
        ns.ip(f"addr del {to} dev eth0",
              f"neigh replace {raw.vip} lladdr {mac} dev eth0 nud permanent")
        try:
            passes_by()
            ns.ip(f"route add local {to} dev lo", family=family)
            begun(raw)
            ns.ip(f"route del local {to} dev lo", family=family)
            passes_by()
        finally:
            ns.ip(f"neigh del {raw.vip} dev eth0", f"addr add {to} dev eth0" +
                  (" nodad preferred_lft 0" if family == 6 else ""))
        begun(raw)


@contextlib.contextmanager
def marked(lab, family):
    lab.ipvs.service(fwmark=99, af=10 if family == 6 else 2).server(lab.phantom(2, family))
    try:
        yield
    finally:
        lab.ipvs.service(fwmark=99, af=10 if family == 6 else 2, add=False).delete()


@contextlib.contextmanager
def ready_to_drop(lab, _):
    with setting(lab, "amemthresh", 0), setting(lab, "drop_packet", 1):
        yield


@contextlib.contextmanager
def tracking(lab, _):
    run("modprobe nf_conntrack")
    with setting(lab, "conntrack", 1):
        yield


@BOTH
@pytest.mark.parametrize("context", (marked, ready_to_drop, tracking), ids=lambda f: f.__name__)
def test_meanwhile_by_the_stack(nat, family, proto, context):
    """While there is a service by firewall mark, a flood, or connection tracking."""
    raw = ready(nat, proto, family)
    with at_ingress(nat):
        begun(raw)
        with context(nat, family), watched(raw, "input") as seen:
            for n in range(2):
                begun(raw, slow_unknown=1)
                assert seen() == [n + 1]
        begun(raw)


def test_mark_of_the_other_family(nat, family):
    """Marks are set before anybody knows for what."""
    raw = ready(nat, UDP, family)
    with at_ingress(nat):
        with marked(nat, 10 - family):
            begun(raw, slow_unknown=1)
        begun(raw)


def test_one_packet_service(nat, family):
    raw = ready(nat, UDP, family, (1, 2), flags=ONEPACKET)
    with at_ingress(nat):
        client, got = raw.client(), []
        for n in range(4):
            with counted(raw, slow_unknown=1):
                client.send(payload=b"%d" % n)
                got.append(client.arrive()[0])
        assert got in ([1, 2, 1, 2], [2, 1, 2, 1]) and client.row() is None
        raw.service.edit(flags=0)
        begun(raw)


@pytest.mark.emulated
def test_becomes_a_one_packet_service(nat, family):
    """While flows begin."""
    raw = ready(nat, UDP, family)
    stop = threading.Event()

    def edit():
        with Editor(nat, raw) as service:
            while not stop.is_set():
                service.edit(flags=ONEPACKET)
                service.edit(flags=0)

    with at_ingress(nat):
        before = fast.read(nat.director.ns)["fast"]
        thread = threading.Thread(target=edit)
        thread.start()
        try:
            client, end = raw.client(), time.monotonic() + 3
            for client.sport in range(1024, 65536):
                client.send(payload=b"new")
                if time.monotonic() > end:
                    break
        finally:
            stop.set()
            join_all(thread)
        raw.drain()
        assert fast.read(nat.director.ns)["fast"] > before
        begun(raw)


class Editor:
    """The service, by a control socket of its own."""

    def __init__(self, lab, raw):
        from lab import genl
        self.ipvs = genl.Ipvs(lab.director.ns)
        self.service = self.ipvs.service(raw.vip, raw.port, proto=raw.proto, add=False,
                                         **raw.service.options)

    def __enter__(self):
        return self.service

    def __exit__(self, *_):
        self.ipvs.close()


def none_at_all(raw):
    raw.remove(1)


def drained(raw):
    raw.edit(1, weight=0)


def full(raw):
    raw.edit(1, upper=1, lower=0)


@BOTH
@pytest.mark.parametrize("what", (none_at_all, drained, full), ids=lambda f: f.__name__)
def test_no_server(nat, family, proto, what):
    """The stack says so, once."""
    raw = ready(nat, proto, family)
    with at_ingress(nat):
        begun(raw)
        what(raw)
        client, before = raw.client(), counts(nat)
        with counted(raw, slow_unknown=1):
            client.send(payload=b"x")
            assert client.icmp().type == (3 if family == 4 else 1)
        assert client.row() is None
        assert counts(nat)["no_dest"] == before["no_dest"] + 1
        if what is not none_at_all:
            raw.edit(1)
        else:
            raw.add(1)
        begun(raw)


def test_thresholds(nat, family):
    """Flows that begin at ingress fill a server as others do."""
    raw = ready(nat, UDP, family, (1, 2), server={"upper": 2, "lower": 1})
    with at_ingress(nat):
        got = [begun(raw).number for _ in range(4)]
        assert sorted(got) == [1, 1, 2, 2]
        late = raw.client()
        late.send()
        assert late.icmp()


@BOTH
def test_whose_word_counts(nat, family, proto):
    """The service's, then the namespace's; from the next packet on."""
    raw = ready(nat, proto, family)
    source, vip = nat.client_address(family), nat.raw_vip(family)
    for mode, policy, want in ((2, 0, "fast"), (2, ON, UNKNOWN), (2, OFF, UNKNOWN),
                               (2, NEW, "fast"), (1, 0, UNKNOWN), (1, NEW, "fast"),
                               (1, ON, UNKNOWN), (0, NEW, "fast"), (0, ON, UNKNOWN)):
        with setting(nat, "fast_path", mode):
            set_policy(raw, fast_path=policy)
            fast.wait_for_hook(nat.director.ns, raw.client_tap, source, vip)
            time.sleep(0.03)
            client = begun(raw, **{want: 1})
            if policy == OFF:
                if proto == UDP:
                    request_is(client, slow_policy=1)
            elif proto == UDP:
                request_is(client, fast=1)


def test_another_service_asks_for_it(nat, family):
    """Only its own flows begin at ingress."""
    raw, other = ready(nat, UDP, family), Raw(nat, UDP, family)
    set_policy(other, fast_path=NEW)
    time.sleep(0.03)
    begun(other)
    begun(raw, slow_unknown=1)


def test_persistent(nat, family):
    """A client's flows meet again, whichever way they begin."""
    raw = ready(nat, TCP, family, (1, 2), flags=PERSISTENT, timeout=100)
    with at_ingress(nat):
        first, other = begun(raw), begun(raw)
        assert first.number != other.number
        for client in (first, other):
            again = raw.client(client.address)
            with counted(raw, fast=1):
                again.open()
            assert again.number == client.number
            assert [r["cport"] for r in nat.conns(client=client.address, vport=raw.port)
                    if r["cport"] == 0] == [0]
    with setting(nat, "fast_path", 0):
        again = raw.client(first.address)
        again.open()
        assert again.number == first.number


def test_nat_icmp_send(nat, family):
    """What a real server sends from its own port without having been asked is refused."""
    raw = ready(nat, UDP, family)
    other = Raw(nat, UDP, family)
    server = raw.taps[1]
    stray = packet.udp_packet(raw.address(1), raw.dport, other.vip, other.port, b"stray")
    with at_ingress(nat):
        fast.wait_for_hook(nat.director.ns, server, raw.address(1), other.vip)
        server.drain()
        with setting(nat, "nat_icmp_send", 1):
            begun(raw)
            with counted(raw, slow_unknown=1):
                server.send(stray)
                assert server.expect(lambda p: p.dst == raw.address(1) and p.proto != UDP).code \
                    in (3, 4)
            assert nat.conns(vip=other.vip, vport=other.port) == []
        with counted(raw, fast=1):
            server.send(stray)
            server.expect(lambda p: p.payload == b"stray")
    assert len(nat.conns(vip=other.vip, vport=other.port)) == 1


# ---- and then ----

@pytest.mark.smoke
@BOTH
def test_replies(nat, family, proto):
    """The first is the stack's, whose firewall sees it; those after it are taken."""
    raw = ready(nat, proto, family)
    with at_ingress(nat):
        client = begun(raw)
        if proto == TCP:
            with counted(raw, slow_opens=1):
                client.reply(SYN | ACK).answered()
        with rule(nat, "forward", "meta l4proto { tcp, udp } drop"):
            with counted(raw, **{"fast" if proto == TCP else "slow_admit": 1}):
                client.reply(ACK, b"y")
            raw.fence()
            raw.client_tap.drain()
        if proto == UDP:
            reply_is(client, slow_admit=1)
        reply_is(client, fast=1)
        request_is(client, fast=1)
        assert reply_is(client, fast=1).src == raw.vip


@pytest.mark.timer
def test_a_term(nat):
    """Begun at ingress, a flow goes by the stack once in eight seconds, in each
    direction, like any other; the firewall may end it then."""
    with at_ingress(nat):
        flows = []
        for family in (4, 6):
            raw = ready(nat, UDP, family)
            flows += [begun(raw), begun(raw)]
        ended = flows[1::2]
        for client in flows:
            client.reply(ACK, b"reply").answered()
        before, sent = fast.read(nat.director.ns), 0
        ports = ", ".join(str(c.sport) for c in ended)
        with rule(nat, "input", f"udp sport {{ {ports} }} drop"):
            for _ in for_a_term():
                for client in flows[::2]:
                    client.send(ACK, b"on").arrive()
                    client.reply(ACK, b"and on").answered()
                    sent += 2
            grown = fast.grown(nat.director.ns, before)
            assert grown == {"slow_admit": 4, "fast": sent - 4}
            for client in ended:
                request_is(client, arrives=0, slow_admit=1)
        for client in ended:
            request_is(client, slow_admit=1)
            request_is(client, fast=1)


def test_a_rule_for_replies(nat, family):
    """That replies may be taken does not follow from the request's having been."""
    raw = ready(nat, UDP, family)
    with at_ingress(nat), rule(nat, "forward", f"udp sport {raw.dport} drop"):
        client = begun(raw)
        for _ in range(3):
            with counted(raw, slow_admit=1):
                client.reply(payload=b"no")
            request_is(client, fast=1)
        raw.fence()
        assert raw.client_tap.take(lambda p: p.dst == client.address) == []


def test_repeated(lab, family):
    """A SYN that comes again goes where the first went, and makes nothing new."""
    raw = ready(lab, TCP, family, (1, 2))
    with at_ingress(lab):
        client = begun(raw)
        number, conns = client.number, raw.service.stats["conns"]
        for _ in range(3):
            with counted(raw, slow_opens=1):
                client.send(SYN)
                assert client.arrive()[0] == number
        assert raw.service.stats["conns"] == conns
        assert len(client.rows()) == 1 and client.state == "SYN_RECV"
        assert sum(raw.dest(n)["active"] for n in (1, 2)) == 1
        begun(raw)
        assert raw.service.stats["conns"] == conns + 1


def test_port_used_again(lab, family):
    """A SYN on a closed connection is the stack's; the new one's packets are taken."""
    raw = ready(lab, TCP, family)
    with at_ingress(lab):
        client = established(raw)
        with counted(raw, fast=1):
            client.send(RST)
            client.arrive()
        assert client.state == "CLOSE"
        before = raw.service.stats["conns"]
        with counted(raw, slow_opens=1):
            client.open()
        assert client.state == "SYN_RECV" and raw.service.stats["conns"] == before + 1
        request_is(client, fast=1)
        assert client.state == "ESTABLISHED" and len(client.rows()) == 1


def test_server_gone(nat, family):
    """A flow of a server that was removed is not taken for a new one."""
    raw = ready(nat, UDP, family, (1, 2))
    with at_ingress(nat):
        client = begun(raw)
        raw.remove(client.number)
        request_is(client, arrives=0, slow_server=1)
        with setting(nat, "expire_nodest_conn", 1):
            number = client.number
            request_is(client, slow_server=1)
            assert client.number == 3 - number
        request_is(client, fast=1)


# ---- limits and floods ----

@BOTH
def test_full(lab, family, proto):
    """conn_max: the established stay, who comes then is refused once."""
    raw = ready(lab, proto, family)
    with at_ingress(lab), room_for(lab, 3):
        time.sleep(0.03)
        clients = [established(raw) for _ in range(3)]
        late, before = raw.client(), counts(lab)
        with counted(raw, slow_unknown=1):
            late.send(payload=b"x")
        late.nothing_arrives()
        after = counts(lab)
        assert {k: after[k] - before[k] for k in after if after[k] != before[k]} == {"full": 1}
        assert late.row() is None and all(c.row() for c in clients)
        for client in clients:
            request_is(client, fast=1)
    with at_ingress(lab), counted(raw, fast=1):
        late.send().arrive()


def test_flood_of_new_flows(lab, family):
    """Who has not established anything makes room for others at ingress, too."""
    raw = ready(lab, TCP, family)
    with at_ingress(lab), room_for(lab, 10), pinned():
        time.sleep(0.03)
        good, before = [established(raw) for _ in range(3)], counts(lab)
        flood = [raw.client() for _ in range(100)]
        with counted(raw, fast=100):
            for client in flood:
                client.send()
        raw.fence()
        assert counts(lab)["evicted"] - before["evicted"] == 93
        assert len(lab.conns(vip=raw.vip, vport=raw.port)) == 10
        assert [c.state for c in good] == ["ESTABLISHED"] * 3
        for client in good:
            request_is(client, fast=1)
        assert sum(raw.dest(1)[k] for k in ("active", "inactive")) == 10


@pytest.mark.timer
def test_drop_entry(nat, family):
    """Half-open connections that began at ingress go, the established stay."""
    raw = ready(nat, TCP, family)
    half_open = 200
    with at_ingress(nat), pinned():
        good = [established(raw) for _ in range(3)]
        with counted(raw, fast=half_open):
            for _ in range(half_open):
                raw.client().send()

        def waiting():
            return sum(r["state"] == "SYN_RECV" for r in nat.conns(vip=raw.vip, vport=raw.port))
        wait_until(lambda: waiting() == half_open, 10)
        before = counts(nat)["drop_entry"]
        with setting(nat, "drop_entry", 3):
            # Flows go on beginning at ingress meanwhile.
            begun(raw)
            wait_until(lambda: waiting() < half_open - 8, 20, step=0.3)
        assert counts(nat)["drop_entry"] - before >= 8
        assert [c.state for c in good] == ["ESTABLISHED"] * 3


@pytest.mark.parametrize("rate", (4, 1))
def test_drop_packet(nat, family, rate):
    """Every so many-th new flow, as if none had ever begun at ingress."""
    raw = ready(nat, UDP, family)
    with at_ingress(nat):
        old = begun(raw)
        with setting(nat, "am_droprate", rate), setting(nat, "drop_packet", 3):
            clients, before = [raw.client() for _ in range(12)], counts(nat)["drop_packet"]
            with counted(raw, slow_unknown=12):
                for client in clients:
                    client.send(payload=b"new")
            raw.fence()
            got = [len(client.arrivals()) for client in clients]
            assert got.count(0) == 12 // rate
            assert counts(nat)["drop_packet"] - before == got.count(0)
            assert [bool(c.row()) for c in clients] == [bool(n) for n in got]
            request_is(old, fast=1)
        begun(raw)


def test_another_device(nat, family):
    """A flow is admitted for the device it began by."""
    raw = ready(nat, UDP, family)
    with side(nat) as tap, at_ingress(nat):
        fast.wait_for_hook(nat.director.ns, tap, nat.client_address(family), raw.vip)
        client = begun(raw)
        with counted(raw, slow_admit=1):
            tap.send(client.packet(payload=b"side"))
            client.arrive()
        # By none may the client play the server.
        with counted(raw, slow_admit=1):
            raw.client_tap.send(client.reply_packet(payload=b"false"))
        raw.fence()
