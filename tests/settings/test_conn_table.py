# SPDX-License-Identifier: GPL-2.0
"""The connection table: everything in it is found while it grows and shrinks,
connections expire in time, and there are never more than conn_max."""

import contextlib
import socket
import time

import pytest
from lab import faults
from lab.counters import counts
from lab.genl import MASQ, PERSISTENT, ROUTE, Ipvs
from lab.netns import Namespace, wait_until
from lab.packet import ACK, TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.tables import flood, forget, moved, room_for, size

MANY = 1600         # fills the smallest table; with NAT twice as many slots
SMALLEST = 256

pytestmark = pytest.mark.usefixtures("only_l4lb", "small_table")


def listed(lab, raw):
    """[(client, port)] of all listed connections of a service."""
    return [(c["client"], c["cport"]) for c in lab.conns(vip=raw.vip, vport=raw.port)]


def smallest(lab):
    """Empty the table, wait until it has shrunk, and return its size."""
    forget(lab)
    wait_until(lambda: size(lab) == SMALLEST, 10, what="the smallest table")
    return SMALLEST


# ---- size ----


@pytest.mark.waits
@pytest.mark.stock
@pytest.mark.smoke
@pytest.mark.parametrize("shape", ("nat", "dr"))
def test_grows_and_shrinks(shape, family, request):
    """While it grows, each connection is listed once and keeps its server. It shrinks
    when most connections are gone, and the others stay."""
    lab = request.getfixturevalue(shape)
    first = size(lab)
    raw = Raw(lab, UDP, family, (1, 2))
    created = []
    for _ in range(4):
        created += flood(raw, MANY // 4)
        seen = listed(lab, raw)
        assert len(seen) == len(created)
        assert set(seen) == {(c.address, c.sport) for c in created}
    wait_until(lambda: size(lab) > first, 5, what="a larger table")
    before = raw.dest(1)["inactive"], raw.dest(2)["inactive"]
    assert before == (MANY // 2, MANY // 2)
    servers = {}
    raw.drain()
    for client in created[::20]:
        client.send(payload=b"again")
        servers[client] = client.arrive()[0]
    assert (raw.dest(1)["inactive"], raw.dest(2)["inactive"]) == before

    stay = [client for client, number in servers.items() if number == 2][:20]
    with setting(lab, "expire_nodest_conn", 1):
        for client in stay:
            assert client.row()
        raw.remove(1)
        seen = listed(lab, raw)
        assert len(seen) == len(set(seen)) == MANY // 2
        for client in stay:
            client.send(payload=b"still there")
            assert client.arrive()[0] == 2
        raw.remove(2)
    assert listed(lab, raw) == []
    wait_until(lambda: size(lab) == first, 10, what="a smaller table")


def test_listing_while_it_changes(nat, family):
    """Connections that exist all the time are listed once, however many others come
    and go and however the table changes between two reads."""
    raw, other = Raw(nat, UDP, family), Raw(nat, UDP, family)
    steady = {(c.address, c.sport) for c in flood(raw, 400)}
    chance = {"n": 0}
    with setting(nat, "expire_nodest_conn", 1), \
            nat.director.ns.enter(), open("/proc/net/ip_vs_conn", "rb", buffering=0) as file:
        text = b""
        while piece := file.read(1500):
            text += piece
            chance["n"] += 1
            if chance["n"] % 8 == 1:
                flood(other, 200)
            elif chance["n"] % 8 == 5:
                other.remove(1)
                other.add(1)
    assert chance["n"] > 10
    lines = [line.split() for line in text.decode().splitlines()[1:]]
    ours = [line[2] for line in lines if int(line[4], 16) == raw.port]
    assert len(ours) == len(set(ours)) == len(steady)


def test_listing_is_linear(nat):
    """Eight times as many rows take less than 24 times as long; they would take 64 times
    as long if each read began at the first row."""
    raw = Raw(nat, UDP)

    def seconds():
        times = []
        for _ in range(3):
            start = time.monotonic()
            nat.director.ns.read("/proc/net/ip_vs_conn")
            times.append(time.monotonic() - start)
        return min(times)

    flood(raw, 400)
    few = seconds()
    flood(raw, 2800)
    assert seconds() < 24 * few


def test_replies_go_to_the_newest(nat, family):
    """One client port reaches one server through several services: replies have
    the VIP of the newest connection that still exists."""
    dport = nat.fresh_port()
    raws = [Raw(nat, UDP, family, dport=dport) for _ in range(3)]
    address, sport = raws[0].client().address, raws[0].client().sport
    clients = [raw.client(address, sport) for raw in raws]
    for client in clients:
        client.open()
    answered_newest_first(nat, clients)


def answered_newest_first(nat, clients):
    """Each of CLIENTS gets the replies once the newer connections are gone."""
    with setting(nat, "expire_nodest_conn", 1):
        for client in reversed(clients):
            client.reply()
            answer = client.answered()
            assert (answer.src, answer.sport) == (client.raw.vip, client.raw.port)
            client.raw.remove(1)
    assert [client.row() for client in clients] == [None] * len(clients)


def test_newest_after_growing(nat, family):
    """The same after the table has grown."""
    dport, first = nat.fresh_port(), smallest(nat)
    raws = [Raw(nat, UDP, family, dport=dport) for _ in range(3)]
    address, sport = raws[0].client().address, raws[0].client().sport
    clients = [raw.client(address, sport) for raw in raws]
    for client in clients:
        client.open()
    other = Raw(nat, UDP, family)
    flood(other, MANY)
    wait_until(lambda: size(nat) > first, 5, what="a larger table")
    answered_newest_first(nat, clients)
    with setting(nat, "expire_nodest_conn", 1):
        other.remove(1)


# ---- time ----


@pytest.mark.timer
def test_expiry_is_exact(lab, family):
    """A packet before the timeout goes to its flow's server, one after it to
    another, even if the old connection has not been removed yet."""
    raw = Raw(lab, UDP, family, (1,))
    lab.ipvs.timeouts(udp=2)
    client = raw.client()
    client.open()
    raw.add(2)
    raw.edit(1, weight=0)
    time.sleep(1.2)
    client.send(payload=b"in time")
    assert client.arrive()[0] == 1
    time.sleep(2.3)
    client.send(payload=b"too late")
    assert client.arrive()[0] == 2
    assert len(client.rows()) == 1


# ---- conn_max ----


def test_conn_max_by_default(nat):
    """It is a share of the memory, in the guests more than 50,000."""
    assert int(nat.director.ns.sysctl("net/ipv4/vs/conn_max")) > 50000


@pytest.mark.waits
def test_conn_max_refuses(lab, family):
    """Connections that were answered, or are well used, stay; a new one is refused and
    counted."""
    raw = Raw(lab, TCP, family)
    with room_for(lab, 3):
        clients = [raw.client() for _ in range(3)]
        for client in clients:
            client.establish()
            client.prove()
        before = counts(lab)
        late = raw.client()
        late.send()
        late.nothing_arrives()
        assert moved(lab, before) == {"full": 1}
        assert late.row() is None
        assert [c.state for c in clients] == ["ESTABLISHED"] * 3
        for client in clients:
            client.send(ACK)
            client.arrive()
    late.send()
    late.arrive()


@pytest.mark.waits
@pytest.mark.smoke
def test_conn_max_evicts(lab, family):
    """Unestablished connections make room for new ones, established ones stay."""
    raw = Raw(lab, TCP, family)
    with room_for(lab, 6):
        good = [raw.client() for _ in range(3)]
        for client in good:
            client.establish()
        half = [raw.client() for _ in range(3)]
        for client in half:
            client.open()
        before = counts(lab)
        late = [raw.client() for _ in range(8)]
        for client in late:
            client.open()
        assert moved(lab, before) == {"evicted": 8}
        assert len(listed(lab, raw)) == 6
        assert [c.state for c in good] == ["ESTABLISHED"] * 3
        assert sum(raw.dest(1)[k] for k in ("active", "inactive")) == 6


@pytest.mark.waits
def test_conn_max_and_datagrams(lab, family):
    """A flow of one datagram makes room, then one of a few, then one of a few that was
    answered; one of many does not."""
    raw = Raw(lab, UDP, family)
    many, answered, few, one = clients = [raw.client() for _ in range(4)]
    with room_for(lab, 4):
        for client in clients:
            client.open()
        few.send()
        few.arrive()
        many.prove()
        if lab.shape == "nat":
            answered.reply(number=1).answered()
        else:
            answered.prove()
        before = counts(lab)
        evicted = [one, few, answered] if lab.shape == "nat" else [one, few]
        for number, gone in enumerate(evicted, 1):
            late = raw.client()
            late.open()
            late.prove()
            assert gone.row() is None and late.row() and many.row()
            assert moved(lab, before) == {"evicted": number}
        late = raw.client()
        late.send()
        late.nothing_arrives()
        assert moved(lab, before) == {"evicted": len(evicted), "full": 1}


def test_conn_max_and_templates(nat):
    """A template counts, too; without room for it a persistent client is refused. One
    that a proven connection holds stays."""
    raw = Raw(nat, TCP, flags=PERSISTENT, timeout=60)
    with room_for(nat, 2):
        client = raw.client()
        client.establish()
        client.prove()
        before = counts(nat)
        other = raw.client()
        other.send()
        other.nothing_arrives()
        assert moved(nat, before) == {"full": 1}
        assert len(nat.conns(vip=raw.vip)) >= 2
    with setting(nat, "conn_max", 0):
        other.send()
        other.arrive()


@pytest.mark.parametrize("value, ok", (("0", True), ("1", True), ("2147483647", True),
                                       ("-1", False), ("2147483648", False), ("x", False)))
def test_conn_max_values(nat, value, ok):
    ns = nat.director.ns
    before = ns.sysctl("net/ipv4/vs/conn_max")
    try:
        if ok:
            ns.sysctl("net/ipv4/vs/conn_max", value)
            assert ns.sysctl("net/ipv4/vs/conn_max") == value
        else:
            with pytest.raises(OSError):
                ns.sysctl("net/ipv4/vs/conn_max", value)
            assert ns.sysctl("net/ipv4/vs/conn_max") == before
    finally:
        ns.sysctl("net/ipv4/vs/conn_max", before)


# ---- its end ----


@pytest.mark.smoke
@pytest.mark.parametrize("method", (MASQ, ROUTE), ids=("nat", "dr"))
def test_namespace_with_many_connections_ends(backend, method):
    """The leak scan after this file would find what stays."""
    backend.need_scheduler("rr")        # it refers to the module
    before = backend.refcount()
    ns = Namespace("ends-full")
    try:
        ns.ip("link set lo up", "link add d0 type dummy", "link set d0 up",
              "address add 192.0.2.1/24 dev d0", "address add 198.51.100.1/32 dev d0",
              "address add 2001:db8:2::1/64 dev d0 nodad",
              "address add 2001:db8:1::1/128 dev d0 nodad")
        with Ipvs(ns) as ipvs:
            for vip, rip, af, any_ in (
                    ("198.51.100.1", "192.0.2.9", socket.AF_INET, "0.0.0.0"),
                    ("2001:db8:1::1", "2001:db8:2::9", socket.AF_INET6, "::")):
                ipvs.service(vip, 80, proto=UDP).server(rip, 80, method=method)
                with ns.enter():
                    for port in range(3000, 3000 + MANY // 4):
                        with socket.socket(af, socket.SOCK_DGRAM) as s:
                            s.bind((any_, port))
                            with contextlib.suppress(OSError):
                                s.sendto(b"x", (vip, 80))
            assert len(ns.read("/proc/net/ip_vs_conn").splitlines()) - 1 == MANY // 4 * 2
    finally:
        ns.destroy()
    wait_until(lambda: backend.refcount() == before, 30,
               what="references to the module")


# ---- without memory ----


@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
def test_growing_without_memory(nat, family):
    """The table works at its old size, with longer chains, and grows when it can."""
    first = smallest(nat)
    raw = Raw(nat, UDP, family)
    with faults.failing_workers():
        created = flood(raw, MANY * 5 // 4)
        seen = listed(nat, raw)
        assert len(seen) == len(created) == len(set(seen))
        assert size(nat) == first
        raw.drain()
        for client in created[::50]:
            client.send(payload=b"again")
            client.arrive()
    wait_until(lambda: size(nat) > first, 20, what="a larger table")
    assert len(listed(nat, raw)) == len(created)


@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
def test_full_buckets_without_memory(nat, family):
    """A connection that would need another bucket is refused and counted."""
    smallest(nat)
    raw = Raw(nat, UDP, family)
    with faults.failing_cache("l4lb_conn_bucket"), faults.failing_workers():
        before = counts(nat)["memory"]
        created = flood(raw, MANY * 5 // 4)
        refused = counts(nat)["memory"] - before
        seen = listed(nat, raw)
        assert len(seen) == len(set(seen)) == len(created) - refused
        assert refused
    more = flood(raw, 200)
    assert len(listed(nat, raw)) == len(created) - refused + len(more)


@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
@pytest.mark.parametrize("shape", ("nat", "dr"))
def test_between_two_sizes(shape, family, request):
    """Growing needs a bucket that cannot be allocated: meanwhile connections are in both
    arrays, and each is listed, found and removed as usual."""
    lab = request.getfixturevalue(shape)
    slots = 2 if shape == "nat" else 1
    first, raw = smallest(lab), Raw(lab, UDP, family)
    with contextlib.ExitStack() as stack:
        with faults.failing_workers():
            created = flood(raw, MANY * 5 // 2 // slots)
            stack.enter_context(faults.failing_cache("l4lb_conn_bucket"))
        time.sleep(1)
        assert len(created) * slots > size(lab), "nothing kept it from growing"
        before = counts(lab)["memory"]
        created += flood(raw, 200)
        refused = counts(lab)["memory"] - before
        there = set(listed(lab, raw))
        assert len(listed(lab, raw)) == len(there) == len(created) - refused
        conns = raw.service.stats["conns"]
        raw.drain()
        for client in created[::9]:
            if (client.address, client.sport) in there:
                client.send(payload=b"again")
                client.arrive()
                if shape == "nat":
                    client.reply(payload=b"answer")
                    assert client.answered().src == raw.vip
        assert raw.service.stats["conns"] == conns
        with setting(lab, "expire_nodest_conn", 1):
            raw.remove(1)
        assert listed(lab, raw) == []
    raw.add(1)
    flood(raw, MANY)
    wait_until(lambda: size(lab) > first, 10, what="a larger table")
    assert len(listed(lab, raw)) == MANY
