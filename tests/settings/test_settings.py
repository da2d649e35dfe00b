# SPDX-License-Identifier: GPL-2.0
"""net.ipv4.vs.*: the effect of each setting, and its default."""


import pytest
from lab import packet
from lab.farm import pattern
from lab.genl import PERSISTENT, ROUTE
from lab.netns import wait_until
from lab.packet import ACK, FIN, IPIP, RST, SYN, TCP, UDP
from lab.raw import Raw, is_error
from lab.settings import setting

DEFAULTS = {"conn_reuse_mode": 1, "expire_nodest_conn": 0, "expire_quiescent_template": 0,
            "nat_icmp_send": 0, "pmtu_disc": 1, "sloppy_sctp": 0, "sloppy_tcp": 0,
            "snat_reroute": 1}


def test_defaults(nat):
    assert {name: int(nat.director.ns.sysctl(f"net/ipv4/vs/{name}"))
            for name in DEFAULTS} == DEFAULTS


def test_each_namespace_has_its_own(nat, topologies):
    with setting(nat, "sloppy_tcp", 1):
        assert topologies["dr"].director.ns.sysctl("net/ipv4/vs/sloppy_tcp") == "0"


@pytest.mark.smoke
def test_sloppy_tcp(lab, family):
    """A segment from the middle of a flow opens a connection, a reset never does."""
    raw = Raw(lab, TCP, family)
    with setting(lab, "sloppy_tcp", 1):
        client = raw.client()
        client.send(ACK, b"in the middle")
        assert client.arrive()[0] == 1
        assert client.state == "ESTABLISHED"
        stranger = raw.client()
        stranger.send(RST)
        stranger.nothing_arrives()
        assert stranger.row() is None


def test_expire_nodest_conn_at_once(nat, family, proto):
    """Removing a server ends its connections, and no others."""
    raw = Raw(nat, proto, family, (1, 2))
    clients = {}
    for _ in range(2):
        client = raw.client()
        clients[client.open()] = client
    with setting(nat, "expire_nodest_conn", 1):
        raw.remove(1)
        wait_until(lambda: clients[1].row() is None, 5)
        assert clients[2].row()
    raw.add(1)
    assert (raw.dest(1)["active"], raw.dest(1)["inactive"]) == (0, 0)


@pytest.mark.smoke
def test_expire_nodest_conn_by_a_packet(nat, family):
    """If set after the removal, the next packet opens a connection to another server."""
    raw = Raw(nat, UDP, family, (1, 2))
    client = raw.client()
    first = client.open()
    raw.remove(first)
    client.send()
    client.nothing_arrives()
    with setting(nat, "expire_nodest_conn", 1):
        client.send()
        assert client.arrive()[0] == 3 - first


def test_port_used_anew_after_removal(lab, family, backend):
    """A client reuses its port while its old connection, to a server that has been
    removed, still exists: the SYN gets another server. Other segments of the old
    connection are dropped until the server returns."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs drops it: a documented difference; runs with --backend l4lb")
    raw = Raw(lab, TCP, family, (1, 2))
    client = raw.client()
    first = client.open()
    client.send(ACK)
    client.arrive()
    client.send(FIN | ACK)
    client.arrive()
    raw.remove(first)
    client.send(ACK)
    client.nothing_arrives()
    client.send(SYN)
    assert client.arrive()[0] == 3 - first


def test_expire_nodest_conn_with_weight_zero(nat, family):
    """A SYN moves away from a server of weight 0 even if its connection is alive;
    other segments stay."""
    raw = Raw(nat, TCP, family, (1, 2))
    client = raw.client()
    first = client.establish()
    raw.edit(first, weight=0)
    client.send(SYN)
    assert client.arrive()[0] == first
    with setting(nat, "expire_nodest_conn", 1):
        client.send(ACK)
        assert client.arrive()[0] == first
        client.send(SYN)
        assert client.arrive()[0] == 3 - first


@pytest.mark.parametrize("mode", (0, 1, 3))
def test_port_used_anew_while_draining(dr, family, backend, mode):
    """With direct routing the director sees only one side closing, so a SYN on a
    closed connection stays with its server (conn_reuse_mode 1), unless it drains:
    clients that reuse their ports would keep it busy for ever."""
    raw = Raw(dr, TCP, family, (1, 2))
    with setting(dr, "conn_reuse_mode", mode):
        client = raw.client()
        first = client.establish()
        client.send(FIN | ACK)
        client.arrive()
        client.send(SYN)
        now = client.arrive()[0]
        assert now == (3 - first if mode == 3 else first)
        client.send(ACK)
        client.arrive()
        raw.edit(now, weight=0)
        client.send(SYN)
        assert client.arrive()[0] == now
        client.send(FIN | ACK)
        client.arrive()
        client.send(SYN)
        stays = mode == 0 or (mode == 1 and not backend.is_l4lb)
        assert client.arrive()[0] == (now if stays else 3 - now)


@pytest.mark.smoke
def test_expire_quiescent_template(nat, family):
    """A persistent client leaves a server whose weight becomes 0."""
    raw = Raw(nat, TCP, family, (1, 2), flags=PERSISTENT, timeout=300)
    address = nat.client_address(family)
    first = raw.client(address).open()
    raw.edit(first, weight=0)
    assert raw.client(address).open() == first
    with setting(nat, "expire_quiescent_template", 1):
        assert raw.client(address).open() == 3 - first


@pytest.mark.smoke
def test_pmtu_disc_off(tun):
    """Tunnels: the outer header never has DF, and large packets are fragmented,
    without an ICMP error to the client."""
    raw = Raw(tun, UDP, 4, (4,))
    client = raw.client()
    with setting(tun, "pmtu_disc", 0):
        client.send(payload=b"small", ip_args={"df": True})
        _, p = client.arrive()
        assert (p.df, p.inner().df) == (False, True)
        raw.drain()
        client.send(payload=pattern(1450), ip_args={"df": True})
        pieces = raw.taps[4].expect(lambda p: p.proto == IPIP and p.src == tun.dip(4), 2)
        body = b"".join(p.l4 for p in sorted(pieces, key=lambda p: p.offset))
        inner = packet.Packet(body)
        assert (inner.src, inner.df, inner.payload) == (client.address, True, pattern(1450))
        assert raw.client_tap.take(lambda p: p.dst == client.address) == []


@pytest.mark.smoke
@pytest.mark.parametrize("on", (0, 1), ids=("off", "on"))
def test_nat_icmp_send(nat, family, proto, on):
    """A packet from a real server's service port without a connection is routed
    unchanged, or refused."""
    raw = Raw(nat, proto, family)
    client = raw.client()
    with setting(nat, "nat_icmp_send", on):
        client.reply(ACK, b"stray")
        if not on:
            assert client.answered().src == raw.address(1)
            return
        p = raw.taps[1].expect(lambda p: p.dst == raw.address(1)
                               and p.type == (3 if family == 4 else 1), what="ICMP error")
        assert p.code == (3 if family == 4 else 4)
        assert p.inner().sport == raw.dport
        raw.fence()
        assert raw.client_tap.take(lambda p: p.dst == client.address) == []
        if proto == TCP:
            client.reply(RST)
            assert client.answered().flags & RST


def test_nat_icmp_send_follows_the_configuration(nat, family):
    """What is refused comes from a server that a service has, with NAT, however many services
    have it."""
    one = Raw(nat, TCP, family)
    two = Raw(nat, TCP, family, dport=one.dport)
    client = one.client()

    def refused():
        client.reply(ACK, b"stray", number=1)
        one.fence()
        passed = one.client_tap.take(lambda p: p.dst == client.address)
        errors = one.taps[1].take(lambda p: p.dst == one.address(1) and is_error(p))
        assert len(passed) + len(errors) == 1
        return bool(errors)

    with setting(nat, "nat_icmp_send", 1):
        assert refused()
        one.edit(1, method=ROUTE)
        assert refused()                # for the other service
        two.edit(1, method=ROUTE)
        assert not refused()
        two.edit(1)
        assert refused()
        two.remove(1)
        assert not refused()
        one.remove(1)
        assert not refused()
        two.add(1)
        one.add(1, method=ROUTE)
        assert refused()
        two.service.delete()
        assert not refused()
        one.service.delete()
        Raw(nat, TCP, family)           # keeps the hooks
        assert not refused()


@pytest.mark.smoke
@pytest.mark.parametrize("on", (1, 0), ids=("on", "off"))
def test_snat_reroute(nat, family, on):
    """A policy rule for the VIP as source routes the translated reply; without
    the setting the route is that of the server's address."""
    raw = Raw(nat, UDP, family, (1, 2))
    client = raw.client()
    client.open()
    detour = raw.taps[3 - client.number]
    ns, v6 = nat.director.ns, "-6 " if family == 6 else ""
    ns.run(f"ip {v6}rule add from {raw.vip} lookup 101")
    ns.run(f"ip {v6}route add default via {nat.phantom(3 - client.number, family)} "
           "dev eth1 table 101")
    try:
        with setting(nat, "snat_reroute", on):
            client.reply(payload=b"which way")
            tap = detour if on else raw.client_tap
            p = tap.expect(lambda p: p.dst == client.address and p.proto == UDP)
            assert (p.src, p.sport, p.payload) == (raw.vip, raw.port, b"which way")
    finally:
        ns.run(f"ip {v6}route flush table 101")
        ns.run(f"ip {v6}rule del from {raw.vip} lookup 101")
