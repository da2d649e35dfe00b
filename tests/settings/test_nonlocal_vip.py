# SPDX-License-Identifier: GPL-2.0
"""A VIP that is on no interface of the director, but routed through it."""

import contextlib

import pytest
from lab import packet
from lab.netns import run
from lab.packet import ACK, TCP, UDP
from lab.raw import Raw
from lab.settings import setting

AWAY = {4: "203.0.113.200", 6: "2001:db8:beef::1"}


@contextlib.contextmanager
def away(nat, family):
    """Inside, the VIP is routed to phantom 2."""
    ip = "ip -6" if family == 6 else "ip"
    nat.director.ns.run(f"{ip} route add {AWAY[family]} via {nat.phantom(2, family)} dev eth1")
    try:
        yield
    finally:
        nat.director.ns.run(f"{ip} route del {AWAY[family]}")


@contextlib.contextmanager
def allowed(lab, backend, value=1):
    """Inside, net.ipv4.vs.nonlocal_vip is VALUE; in-tree ip_vs has no such setting."""
    if backend.is_l4lb:
        with setting(lab, "nonlocal_vip", value):
            yield
    else:
        yield


@pytest.mark.smoke
def test_routed_vip(nat, family, proto, backend):
    """A plain route is enough: requests are balanced, replies come from the VIP,
    with one hop less. ip_vs just routes the packet."""
    with away(nat, family), allowed(nat, backend):
        raw = Raw(nat, proto, family, vip=AWAY[family])
        client = raw.client()
        raw.taps[2] = nat.tap("rs2")
        client.send(payload=b"request")
        number, p = client.arrive()
        if not backend.is_l4lb:
            assert (number, p.dst) == (2, raw.vip)
            return
        assert (number, p.dst, p.dport, p.ttl) == (1, raw.address(1), raw.dport, 63)
        client.reply(payload=b"answer")
        p = client.answered()
        assert (p.src, p.sport, p.payload, p.ttl) == (raw.vip, raw.port, b"answer", 63)
        client.send(ACK, b"more")
        assert client.arrive()[0] == 1
        stats = raw.dest(1)["stats"]
        assert (stats["conns"], stats["inpkts"], stats["outpkts"]) == (1, 2, 1)


def test_off_by_default(nat, family, backend):
    """A standby director that routes to the one with the VIP passes on
    everything."""
    with away(nat, family):
        raw = Raw(nat, TCP, family, vip=AWAY[family])
        raw.taps[2] = nat.tap("rs2")
        client = raw.client()
        client.send()
        assert client.arrive()[0] == 2
        assert client.row() is None
    if backend.is_l4lb:
        assert nat.director.ns.sysctl("net/ipv4/vs/nonlocal_vip") == "0"


def test_others_pass(nat, family, backend):
    """Packets for another port of the VIP, another protocol or another host are routed."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs has no nonlocal_vip; runs with --backend l4lb")
    with away(nat, family), allowed(nat, backend):
        raw = Raw(nat, UDP, family, vip=AWAY[family])
        raw.taps[2] = nat.tap("rs2")
        client = raw.client()
        for about, p in {
                "port": packet.udp_packet(client.address, client.sport, raw.vip, raw.port + 1),
                "protocol": packet.tcp_packet(client.address, client.sport, raw.vip, raw.port),
                "host": packet.udp_packet(client.address, client.sport,
                                          nat.phantom(2, family), raw.port)}.items():
            raw.client_tap.send(p)
            assert client.arrive(what=about)[0] == 2
        echo = packet.icmp_packet(client.address, raw.vip, 8 if family == 4 else 128, 0, 7)
        raw.client_tap.send(echo)
        raw.taps[2].expect(lambda p: p.src == client.address and p.rest == 7, what="echo")
        assert client.row() is None


def test_no_server(nat, family, backend):
    """The client gets an ICMP error, as with a local VIP."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs has no nonlocal_vip; runs with --backend l4lb")
    with away(nat, family), allowed(nat, backend):
        raw = Raw(nat, TCP, family, (), vip=AWAY[family])
        client = raw.client()
        client.send()
        p = client.icmp()
        assert (p.type, p.code) == ((3, 3) if family == 4 else (1, 4))


@pytest.mark.parametrize("shape", ("dr", "tun"))
def test_other_methods(topologies, module_life, shape, family, backend):
    if not backend.is_l4lb:
        pytest.skip("ip_vs has no nonlocal_vip; runs with --backend l4lb")
    lab = topologies[shape]
    lab.flush()
    ip = "ip -6" if family == 6 else "ip"
    run(["modprobe", "-q", "dummy"], check=False)
    lab.director.ns.run("ip link add away0 type dummy")
    try:
        lab.director.ns.run("ip link set away0 up")
        lab.director.ns.run(f"{ip} route add {AWAY[family]} dev away0")
        with allowed(lab, backend):
            raw = Raw(lab, TCP, family, vip=AWAY[family])
            client = raw.client()
            client.send()
            _, p = client.arrive()
            inner = p.inner() if shape == "tun" else p
            assert (inner.dst, inner.ttl) == (raw.vip, 63)
    finally:
        lab.director.ns.run("ip link del away0")


def test_fragments(nat, backend):
    """They are reassembled before the service is looked up."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs has no nonlocal_vip; runs with --backend l4lb")
    with away(nat, 4), allowed(nat, backend):
        raw = Raw(nat, UDP, 4, vip=AWAY[4])
        client = raw.client()
        whole = packet.udp_packet(client.address, client.sport, raw.vip, raw.port, bytes(2000))
        for piece in packet.fragment4(whole, 1400):
            raw.client_tap.send(piece)
        got = raw.taps[1].expect(lambda p: p.src == client.address, 2, what="fragments")
        assert sum(len(p.l4) for p in got) == 2008
