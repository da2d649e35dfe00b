# SPDX-License-Identifier: GPL-2.0
"""schedule_icmp and ignore_tunneled: which packets open a connection."""

import contextlib

import pytest
from lab import packet
from lab.packet import IPIP, IPV6, TCP
from lab.raw import Raw
from lab.settings import setting

UNREACHABLE = {4: (3, 1), 6: (1, 3)}


def of_unknown_flow(raw, client, **kwargs):
    """A client's error about a reply of a connection that is unknown to the
    director."""
    reply = packet.l4_packet(raw.proto, raw.vip, raw.port, client.address, client.sport,
                             payload=b"reply")
    return packet.icmp_packet(client.address, raw.vip, *UNREACHABLE[raw.family], 0, payload=reply,
                              **kwargs)


def errors(lab, tap, client):
    """ICMP errors of CLIENT that have come to a server."""
    return [p for p in ((q.inner() if lab.shape == "tun" else q) for q in tap.take(
        lambda q: q.is_tunnel or q.src == client.address))
            if p.type == UNREACHABLE[client.raw.family][0] and p.src == client.address]


@pytest.mark.smoke
def test_schedule_icmp(lab, backend, family, proto):
    """sh chooses the same server for the error as for the flow; the new connection
    lives for three seconds. None is made by default, nor for a wrong checksum
    with NAT (except by ip_vs)."""
    raw = Raw(lab, proto, family, (1, 2, 3, 4), sched="sh")
    first = raw.client()
    number = first.open()
    client = raw.client(first.address)
    raw.client_tap.send(of_unknown_flow(raw, client))
    raw.fence()
    assert [errors(lab, tap, client) for tap in raw.taps.values()] == [[]] * 4
    with setting(lab, "schedule_icmp", 1):
        if lab.shape == "nat":
            raw.client_tap.send(of_unknown_flow(raw, client, csum=0x1234))
            raw.fence()
            assert (client.row() is None) is backend.is_l4lb
            raw.drain()
        raw.client_tap.send(of_unknown_flow(raw, client))
        raw.fence()
        got = {n: errors(lab, tap, client) for n, tap in raw.taps.items()}
        assert [n for n, found in got.items() if found] == [number]
        quoted = got[number][0].inner()
        assert (quoted.dst, quoted.dport) == (client.address, client.sport)
        assert (quoted.src, quoted.sport) == (
            (raw.address(number), raw.dport) if lab.shape == "nat" else (raw.vip, raw.port))
        row = client.row()
        assert row["state"] == ("UDP" if proto == packet.UDP else "NONE")
        assert row["expires"] <= 3
        # Errors about other ports open nothing.
        other = raw.client(first.address)
        raw.port += 1
        raw.client_tap.send(of_unknown_flow(raw, other))
        raw.fence()
        assert other.row() is None


def test_schedule_icmp_without_server(nat, family):
    """An error is not answered with an error."""
    raw = Raw(nat, TCP, family, ())
    with setting(nat, "schedule_icmp", 1):
        client = raw.client()
        raw.client_tap.send(of_unknown_flow(raw, client))
        raw.fence()
        assert raw.client_tap.take(lambda p: p.dst == client.address) == []
        assert client.row() is None


@contextlib.contextmanager
def tunnel_end(lab, device):
    lab.director.ns.run(f"ip link set {device} up")
    try:
        yield
    finally:
        lab.director.ns.run(f"ip link set {device} down")


@pytest.mark.parametrize("ignore", (0, 1))
def test_ignore_tunneled(dr, family, ignore):
    """A tunnel ends on the director, and the inner packet is balanced, with either
    value: ignore_tunneled needs a mark on the packet, which the kernel's tunnel
    devices now remove."""
    Raw(dr, TCP, 4)             # registers the hooks of the outer family
    raw = Raw(dr, TCP, family)
    client = raw.client()
    device, proto = ("tunl0", IPIP) if family == 4 else ("sit0", IPV6)
    with tunnel_end(dr, device), setting(dr, "ignore_tunneled", ignore):
        raw.client_tap.send(packet.ip4(dr.cip(), dr.dip(), proto, client.packet()))
        assert client.arrive()[0] == 1
        # Packets without a tunnel are balanced in any case.
        assert raw.client().open() == 1
