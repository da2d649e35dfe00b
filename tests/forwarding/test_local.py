# SPDX-License-Identifier: GPL-2.0
"""The director as a client of its own services, and as one of their servers."""

import contextlib

import pytest
from lab import packet
from lab.farm import Farm, http_get, udp_ask
from lab.netns import wait_until
from lab.packet import UDP
from lab.raw import Raw


@contextlib.contextmanager
def on_director(lab, *ports):
    farm = Farm([lab.director], ports)
    try:
        yield
    finally:
        farm.stop()


@contextlib.contextmanager
def accept_local(lab):
    """The answer of a DR or tunnel server comes from the VIP, which is the
    director's own address: without accept_local it is dropped as a martian."""
    for scope in ("all", "eth0"):
        lab.director.ns.sysctl(f"net/ipv4/conf/{scope}/accept_local", 1)
    try:
        yield
    finally:
        for scope in ("all", "eth0"):
            lab.director.ns.sysctl(f"net/ipv4/conf/{scope}/accept_local", 0)


def service(lab, family, port, proto=packet.TCP):
    s = lab.ipvs.service(lab.vip(family), port, proto=proto, sched="rr")
    for number in (1, 2):
        s.server(lab.rip(number, family), port, method=lab.method)
    return s


@pytest.mark.smoke
def test_client_on_the_director(lab, family):
    port = lab.http_port()
    service(lab, family, port)
    with accept_local(lab):
        got = [http_get(lab.director, lab.vip(family), port, source=lab.dip(family))
               for _ in range(4)]
    assert sorted(name for name, _ in got) == ["rs1", "rs1", "rs2", "rs2"]
    assert {body.split()[2].decode() for _, body in got} == {lab.dip(family)}


def test_udp_client_on_the_director(lab, family):
    port = lab.http_port()
    service(lab, family, port, UDP)
    with accept_local(lab):
        got = [udp_ask(lab.director, lab.vip(family), port, b"local", source=lab.dip(family))
               for _ in range(4)]
    assert sorted(got) == [("rs1", b"local")] * 2 + [("rs2", b"local")] * 2


def test_client_with_the_vip_as_source(nat, family):
    """An unbound socket that connects to a local VIP has that VIP as its source."""
    port = nat.http_port()
    service(nat, family, port)
    name, body = http_get(nat.director, nat.vip(family), port)
    assert name in ("rs1", "rs2")
    assert body.split()[2].decode() == nat.vip(family)


def test_server_on_the_director(lab, family):
    """A real server with a local address gets its packets with any method."""
    port = lab.http_port()
    s = lab.ipvs.service(lab.vip(family), port, sched="rr")
    s.server(lab.dip(family), port, method=lab.method)
    s.server(lab.rip(1, family), port, method=lab.method)
    with on_director(lab, port):
        got = [http_get(lab.client, lab.vip(family), port) for _ in range(4)]
    assert sorted(name for name, _ in got) == ["director", "director", "rs1", "rs1"]
    assert {body.split()[2].decode() for _, body in got} == {lab.cip(family)}


@pytest.mark.parametrize("proto", (packet.TCP, packet.UDP), ids=("tcp", "udp"))
def test_local_server_on_another_port(nat, family, proto):
    """NAT to a local server rewrites the port, and the reply."""
    port, dport = nat.fresh_port(), nat.fresh_port() + 20000
    s = nat.ipvs.service(nat.vip(family), port, proto=proto, sched="rr")
    s.server(nat.dip(family), dport, method=nat.method)
    with on_director(nat, dport):
        if proto == packet.TCP:
            assert http_get(nat.client, nat.vip(family), port)[0] == "director"
        else:
            assert udp_ask(nat.client, nat.vip(family), port)[0] == "director"
    stats = wait_until(lambda: s.stats["outpkts"] and s.stats, 5)
    assert stats["conns"] == 1


def test_local_client_and_local_server(nat, family):
    port, dport = nat.fresh_port(), nat.fresh_port() + 20000
    s = nat.ipvs.service(nat.vip(family), port, sched="rr")
    s.server(nat.dip(family), dport, method=nat.method)
    with on_director(nat, dport):
        assert http_get(nat.director, nat.vip(family), port,
                        source=nat.dip(family))[0] == "director"


def test_loopback_server_is_not_for_strangers(nat, family, backend):
    """NAT to 127.0.0.1 must not work for a packet from outside."""
    port = nat.fresh_port()
    raw = Raw(nat, UDP, family, numbers=(), port=port)
    loop = "127.0.0.1" if family == 4 else "::1"
    raw.service.server(loop, port, method=nat.method)
    with on_director(nat, port):
        client = raw.client()
        client.send(payload=b"x")
        raw.fence()
        assert raw.client_tap.take(
            lambda p: p.dst == client.address and p.proto == UDP) == []
