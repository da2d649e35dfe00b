# SPDX-License-Identifier: GPL-2.0
"""Packets that are forwarded without a real server: cache_bypass, and method bypass."""

import pytest
from lab import packet
from lab.fwmark import Marked, fresh_mark, here, marking
from lab.lab import emptied
from lab.packet import ACK, UDP
from lab.settings import setting

BYPASS = 4
NOBODY = {4: "0.0.0.0", 6: "::"}


@pytest.fixture
def nat(topologies, module_life):
    """All tests here have routing rules."""
    return emptied(topologies, "nat", rules=True)


def elsewhere(nat, raw, family):
    """Make RAW's VIP a host behind the director, phantom 2, as for a transparent
    cache that intercepts its traffic."""
    raw.vip = nat.phantom(2, family)
    raw.taps[2] = nat.tap("rs2")


@pytest.mark.smoke
def test_cache_bypass(nat, family, proto):
    """No server: the packet is forwarded unchanged but for its hop limit, and is not
    counted; replies and errors pass, too."""
    mark = fresh_mark()
    raw = Marked(nat, mark, family, numbers=(), proto=proto)
    elsewhere(nat, raw, family)
    with here(nat, mark, family), marking(nat, mark, f"th dport {raw.port}"), \
            setting(nat, "cache_bypass", 1):
        client = raw.client()
        client.send(payload=b"" if proto != UDP else b"data", ip_args={"tos": 0x28})
        number, p = client.arrive()
        assert (number, p.src, p.dst, p.dport) == (2, client.address, raw.vip, raw.port)
        assert (p.ttl, p.tos) == (63, 0x28)
        row = client.row()
        assert (row["server"], row["dport"]) == (NOBODY[family], 0)
        client.send(ACK, b"more")
        assert client.arrive()[0] == 2
        raw.taps[2].send(packet.l4_packet(proto, raw.vip, raw.port, client.address,
                                          client.sport, payload=b"answer"))
        assert client.answered().src == raw.vip
        totals = raw.service.stats
        assert (totals["conns"], totals["inpkts"], totals["outpkts"]) == (0, 0, 0)


def test_cache_bypass_follows_the_flow(nat, family):
    """A server that comes later gets new flows, not this one."""
    mark = fresh_mark()
    raw = Marked(nat, mark, family, numbers=(), proto=UDP)
    elsewhere(nat, raw, family)
    with here(nat, mark, family), marking(nat, mark, f"th dport {raw.port}"), \
            setting(nat, "cache_bypass", 1):
        client = raw.client()
        client.send()
        assert client.arrive()[0] == 2
        raw.add(1)
        client.send()
        assert client.arrive()[0] == 2
        assert raw.client().open() == 1
        assert len(nat.conns(vport=raw.port)) == 2


@pytest.mark.parametrize("why", ("off", "local", "by address"))
def test_no_cache_bypass(nat, backend, family, why):
    """Refused as usual: without the setting, for the director's own address, and
    for a service that is not by mark. ip_vs sends no error to an IPv4 client
    whose destination is not the director, and lets an IPv6 packet for the
    director's own address loop."""
    mark = fresh_mark()
    raw = Marked(nat, mark, family, numbers=(), proto=UDP)
    if why != "local":
        elsewhere(nat, raw, family)
    if why == "by address":
        raw.service.delete()
        nat.ipvs.service(raw.vip, raw.port, proto=UDP, sched="rr")
    with here(nat, mark, family), marking(nat, mark, f"th dport {raw.port}"), \
            setting(nat, "cache_bypass", int(why != "off")):
        client = raw.client()
        client.send()
        if not backend.is_l4lb and (family == 4) == (why != "local"):
            client.nothing_arrives()
            assert raw.client_tap.take(lambda p: p.dst == client.address) == []
            return
        p = client.icmp()
        assert (p.type, p.code) == ((3, 3) if family == 4 else (1, 4))
        assert client.row() is None


@pytest.mark.parametrize("local", (False, True), ids=("elsewhere", "local"))
def test_method_bypass(nat, family, local):
    """The connection has this real server, but the packet goes to its own destination;
    to the director itself it is dropped, as it would loop for ever."""
    mark = fresh_mark()
    raw = Marked(nat, mark, family, numbers=(), proto=UDP)
    raw.method = BYPASS
    raw.add(1)
    if not local:
        elsewhere(nat, raw, family)
    with here(nat, mark, family), marking(nat, mark, f"th dport {raw.port}"):
        client = raw.client()
        client.send()
        if local:
            client.nothing_arrives()
            assert raw.client_tap.take(lambda p: p.dst == client.address) == []
        else:
            number, p = client.arrive()
            assert (number, p.dst, p.dport, p.ttl) == (2, raw.vip, raw.port, 63)
        assert client.row()["server"] == raw.address(1)


def test_bypass_too_big_and_hop_limit(nat, backend, family):
    """The sender gets the errors that any router sends (not an IPv4 one from ip_vs)."""
    if not backend.is_l4lb and family == 4:
        pytest.skip("ip_vs says nothing here to an IPv4 client; runs with --backend l4lb")
    mark = fresh_mark()
    raw = Marked(nat, mark, family, numbers=(), proto=UDP)
    raw.vip = nat.phantom(4, family)        # behind an MTU of 1,400
    raw.taps[4] = nat.tap("rs4")
    with here(nat, mark, family), marking(nat, mark, f"th dport {raw.port}"), \
            setting(nat, "cache_bypass", 1):
        client = raw.client()
        client.send(payload=bytes(1400), **({"ip_args": {"df": True}} if family == 4 else {}))
        p = client.icmp()
        assert (p.type, p.code, p.rest & 0xffff) == (
            (3, 4, 1400) if family == 4 else (2, 0, 1400))
        client.send(ttl=1)
        p = client.icmp()
        assert (p.type, p.code) == ((11, 0) if family == 4 else (3, 0))
        client.nothing_arrives()
