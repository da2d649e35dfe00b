# SPDX-License-Identifier: GPL-2.0
"""/proc/net/l4lb: each packet that is not forwarded counts once, for its reason."""

import pytest
from lab import fast, faults, packet
from lab.counters import counts, read
from lab.farm import pattern
from lab.packet import SYN, TCP, UDP
from lab.raw import Raw

REASONS = ("header checksum no_dest dest_gone no_route ttl too_big memory fragment "
           "martian drop_packet drop_entry guard full evicted same_replies limit no_call_id "
           "no_port").split()

pytestmark = pytest.mark.usefixtures("only_l4lb")


def no_dest(lab, family):
    client = Raw(lab, TCP, family, numbers=()).client()
    yield
    client.send()
    client.icmp()


def dest_gone(lab, family):
    raw = Raw(lab, UDP, family)
    client = raw.client()
    client.open()
    raw.remove(1)
    yield
    client.send()
    client.nothing_arrives()


def ttl(lab, family):
    client = Raw(lab, TCP, family).client()
    yield
    client.send(ttl=1)
    client.icmp()


def too_big(lab, family):
    client = Raw(lab, UDP, family, (4,)).client()
    yield
    client.send(payload=pattern(1440), **({"ip_args": {"df": True}} if family == 4 else {}))
    client.icmp()


def no_route(lab, family):
    raw = Raw(lab, UDP, family, numbers=())
    lost = "172.31.0.9" if family == 4 else "2001:db8:dead::9"
    host = f"unreachable {lost}/{32 if family == 4 else 128}"
    lab.director.ns.ip(f"route add {host}")
    try:
        raw.service.server(lost, raw.port, method=raw.method)
        client = raw.client()
        yield
        client.send()
        client.icmp()
    finally:
        lab.director.ns.ip(f"route del {host}")


def checksum(lab, family):
    client = Raw(lab, UDP, family).client()
    yield
    client.send(payload=b"damaged", csum=0x1234)
    client.nothing_arrives()


def header(lab, family):
    raw = Raw(lab, TCP, family)
    client = raw.client()
    yield
    short = packet.tcp(client.address, raw.vip, client.sport, raw.port, SYN)[:12]
    raw.client_tap.send(packet.ip(client.address, raw.vip, TCP, short))
    client.nothing_arrives()


CASES = {f.__name__: f for f in (no_dest, dest_gone, ttl, too_big, no_route, checksum, header)}


def counted_once(lab, family, reason, case):
    steps = case(lab, family)
    next(steps)
    before = counts(lab)
    for _ in steps:
        pass
    after = counts(lab)
    assert {k: after[k] - before[k] for k in after if after[k] != before[k]} == {reason: 1}


def test_the_reasons_and_their_order(nat):
    assert [name for name, _ in read(nat)] == REASONS + fast.COUNTS


@pytest.mark.parametrize("reason", CASES)
def test_reason(lab, family, reason):
    counted_once(lab, family, reason, CASES[reason])


@pytest.mark.smoke
@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
def test_no_memory_for_the_route(nat, family):
    """The client gets no error: the server may well be reachable."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    raw.fence()     # asks programs for link addresses, which need memory
    before = counts(nat)
    with faults.failing_cache("kmalloc-128"):
        client.send()
        raw.fence()
    after = counts(nat)
    assert {k: after[k] - before[k] for k in after if after[k] != before[k]} == {"memory": 1}
    assert client.arrivals() == []
    assert raw.client_tap.take(lambda p: p.dst == client.address) == []
    client.send()
    client.arrive()


def test_martian(nat, family):
    """A loopback real server and a client from outside."""
    def case(lab, family):
        raw = Raw(lab, UDP, family, numbers=())
        raw.service.server("127.0.0.1" if family == 4 else "::1", raw.port,
                           method=raw.method)
        client = raw.client()
        yield
        client.send()
        client.nothing_arrives()
    counted_once(nat, family, "martian", case)


def test_each_namespace_counts_its_own(nat, topologies):
    other = topologies["dr"]
    before = counts(other)
    counted_once(nat, 4, "no_dest", no_dest)
    assert counts(other) == before
