# SPDX-License-Identifier: GPL-2.0
"""Persistence: a client, or its network, stays with one real server."""

import pytest
from lab.genl import PERSISTENT
from lab.netns import wait_until
from lab.packet import ACK, SYN, TCP, UDP
from lab.raw import Raw


def persistent(lab, proto=TCP, family=4, numbers=(1, 2), timeout=300, **kwargs):
    return Raw(lab, proto, family, numbers, flags=PERSISTENT, timeout=timeout, **kwargs)


def templates(lab, raw, **want):
    return [c for c in lab.conns(vip=raw.vip, cport=0, **want)
            if c["vport"] in (0, raw.port)]


@pytest.mark.smoke
def test_client_sticks(lab, family, proto):
    """All connections of one client go to one server, whatever the scheduler
    says; another client gets its turn."""
    raw = persistent(lab, proto, family)
    address = lab.client_address(family)
    first = raw.client(address).open()
    assert [raw.client(address).open() for _ in range(4)] == [first] * 4
    assert raw.client().open() == 3 - first
    rows = templates(lab, raw, client=address)
    assert len(rows) == 1, rows
    assert rows[0]["server"] == raw.address(first)
    assert rows[0]["state"] == "NONE"
    assert 296 <= rows[0]["expires"] <= 300
    dests = {d["addr"]: d for d in raw.service.servers()}
    assert dests[raw.address(first)]["persistent"] == 1
    assert dests[raw.address(first)]["active"] + dests[raw.address(first)]["inactive"] == 5


def test_template_assured(nat, family, proto):
    """Its state is NONE until the server has answered (UDP) or the connection is established."""
    raw = persistent(nat, proto, family)
    client = raw.client()
    if proto == UDP:
        client.open()
        client.reply().answered()
        client.send()
        client.arrive()
    else:
        client.establish()
    assert [r["state"] for r in templates(nat, raw, client=client.address)] == ["ASSURED"]


@pytest.mark.parametrize("mask, inside, outside, shown", [
    ("255.255.255.0", "10.77.1.200", "10.77.2.7", "10.77.1.0"),
    ("255.255.0.0", "10.78.200.1", "10.79.1.1", "10.78.0.0")])
def test_netmask(nat, mask, inside, outside, shown):
    raw = persistent(nat, UDP, 4, netmask=mask)
    base = shown[:-1] + "9"
    first = raw.client(base).open()
    assert raw.client(inside).open() == first
    assert raw.client(outside).open() == 3 - first
    assert templates(nat, raw, client=shown)


def test_prefix(nat):
    raw = persistent(nat, UDP, 6, netmask=64)
    first = raw.client("2001:db8:c:ff01::1").open()
    assert raw.client("2001:db8:c:ff01:ffff::2").open() == first
    assert raw.client("2001:db8:c:ff02::1").open() == 3 - first
    assert templates(nat, raw, client="2001:db8:c:ff01::")


def test_weight_zero_keeps_its_clients(nat, family):
    """A quiesced server still serves the clients that stick to it; new ones go
    elsewhere."""
    raw = persistent(nat, TCP, family)
    address = nat.client_address(family)
    first = raw.client(address).open()
    raw.edit(first, weight=0)
    assert raw.client(address).open() == first
    assert raw.client().open() == 3 - first
    assert raw.client().open() == 3 - first


def test_deleted_server_loses_its_clients(nat, family):
    raw = persistent(nat, TCP, family)
    address = nat.client_address(family)
    first = raw.client(address).open()
    raw.remove(first)
    assert raw.client(address).open() == 3 - first


@pytest.mark.timer
def test_template_expires(nat, family):
    """After its timeout, and without connections, the client may get another server."""
    nat.ipvs.timeouts(udp=1)
    # Longer than the connections' timeout: ip_vs would prolong it for them by 60 s.
    raw = persistent(nat, UDP, family, timeout=4)
    client = raw.client()
    first = client.open()
    wait_until(lambda: not nat.conns(client=client.address), 75, step=0.3)
    wait_until(lambda: raw.service.find(raw.address(first))["persistent"] == 0, 5)
    assert raw.client(client.address).open() == 3 - first


def test_all_ports_of_a_vip(lab, family):
    """Port 0: one template spans all ports; servers with port 0 keep them."""
    raw = persistent(lab, TCP, family, port=0, dport=0, vip=lab.raw_vip(family))
    try:
        address = lab.client_address(family)
        seen = set()
        for port in (lab.fresh_port(), lab.fresh_port(), lab.fresh_port()):
            raw.port = port
            client = raw.client(address)
            seen.add(client.open())
            assert client.row()["dport"] == port
        assert len(seen) == 1
        rows = [c for c in lab.conns(client=address) if c["cport"] == 0]
        assert [(r["vport"], r["vip"]) for r in rows] == [(0, raw.vip)]
        # The service is for TCP only.
        assert lab.ipvs.services()[0]["proto"] == TCP
    finally:
        raw.service.delete()


def test_persistent_tcp_follows_the_flow(nat):
    """Later packets of a flow go to the flow's server, not to the one of a newer
    template."""
    raw = persistent(nat, TCP, 4)
    client = raw.client()
    first = client.establish()
    raw.remove(first)
    other = raw.client(client.address)
    assert other.open() == 3 - first
    raw.add(first)
    client.send(ACK)
    assert client.arrive()[0] == first
    other.send(SYN)
    assert other.arrive()[0] == 3 - first
