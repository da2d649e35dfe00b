# SPDX-License-Identifier: GPL-2.0
"""Virtual services named by a firewall mark."""

import socket

import pytest
from lab import packet
from lab.fwmark import Marked, fresh_mark, here, marking
from lab.genl import PERSISTENT
from lab.packet import UDP
from lab.raw import Raw


@pytest.mark.smoke
def test_two_ports_one_service(lab, family, backend):
    """Two ports share a mark, so they share turns; a server with port 0 gets
    the port that the client asked for."""
    mark = fresh_mark()
    raw = Marked(lab, mark, family)
    ports = (raw.port, lab.fresh_port())
    with marking(lab, mark, f"tcp dport {{ {ports[0]}, {ports[1]} }}"):
        got = []
        for i in range(4):
            raw.port = ports[i % 2]
            client = raw.client()
            client.send()
            number, p = client.arrive()
            got.append(number)
            inner = p.inner() if lab.shape == "tun" else p
            assert inner.dport == raw.port
            assert client.row()["dport"] == raw.port
        assert got == ([1, 2, 1, 2] if backend.is_l4lb else [2, 1, 2, 1])


def test_nat_with_a_server_port(nat, family):
    """A server port other than 0 collects all ports on it; replies go back
    from the port each client asked."""
    mark = fresh_mark()
    raw = Marked(nat, mark, family, numbers=(1,), dport=40007)
    ports = (raw.port, nat.fresh_port())
    with marking(nat, mark, f"tcp dport {{ {ports[0]}, {ports[1]} }}"):
        clients = []
        for port in ports:
            raw.port = port
            client = raw.client()
            client.send()
            assert client.arrive()[1].dport == 40007
            clients.append((port, client))
        for port, client in clients:
            client.reply()
            p = client.answered()
            assert (p.src, p.sport) == (raw.vip, port)


def test_mark_comes_first(nat):
    """A marked packet belongs to the mark's service even where an address
    service matches."""
    mark = fresh_mark()
    plain = Raw(nat, UDP, 4, (1,))
    raw = Marked(nat, mark, 4, (2,), proto=UDP)
    raw.port = plain.port
    with marking(nat, mark, f"udp dport {plain.port}"):
        client = plain.client()
        plain.taps[2] = raw.taps[2]
        client.send()
        assert client.arrive()[0] == 2
    assert plain.client().open() == 1


def test_families_are_apart(nat):
    """One mark, two services: IPv4 and IPv6."""
    mark = fresh_mark()
    four, six = Marked(nat, mark, 4, (1,)), Marked(nat, mark, 6, (2,))
    six.port = four.port
    with marking(nat, mark, f"tcp dport {four.port}"):
        assert four.client().open() == 1
        assert six.client().open() == 2
    assert len(nat.ipvs.services()) == 2


def test_persistence_spans_ports(nat, family):
    """HTTP and HTTPS of one client stay together."""
    mark = fresh_mark()
    raw = Marked(nat, mark, family, flags=PERSISTENT, timeout=300)
    ports = (raw.port, nat.fresh_port())
    with marking(nat, mark, f"tcp dport {{ {ports[0]}, {ports[1]} }}"):
        address = nat.client_address(family)
        got = set()
        for port in ports * 2:
            raw.port = port
            got.add(raw.client(address).open())
        assert len(got) == 1
        raw.port = ports[1]
        assert raw.client().open() not in got
    rows = [c for c in nat.conns(client=address) if c["cport"] == 0]
    assert len(rows) == 1
    assert (rows[0]["proto"], rows[0]["vport"], rows[0]["dport"]) == ("IP", 0, 0)
    vip = socket.inet_pton(socket.AF_INET6 if family == 6 else socket.AF_INET, rows[0]["vip"])
    assert int.from_bytes(vip[:4], "big") == mark


def test_address_that_is_not_ours(lab, family):
    """A mark plus a local route balances addresses that no interface has."""
    mark = fresh_mark()
    raw = Marked(lab, mark, family, numbers=(1,))
    raw.vip = "203.0.113.200" if family == 4 else "2001:db8:beef::1"
    with here(lab, mark, family), marking(lab, mark, f"tcp dport {raw.port}"):
        client = raw.client()
        client.send()
        number, p = client.arrive()
        if lab.shape == "nat":
            assert (number, p.dst) == (1, raw.address(1))
            client.reply()
            assert client.answered().src == raw.vip
        else:
            inner = p.inner() if lab.shape == "tun" else p
            assert inner.dst == raw.vip


def test_empty_mark_service(nat, family):
    """No server: port unreachable, as with a service by address."""
    mark = fresh_mark()
    raw = Marked(nat, mark, family, numbers=())
    with marking(nat, mark, f"tcp dport {raw.port}"):
        client = raw.client()
        client.send()
        p = client.icmp()
        assert (p.type, p.code) == ((3, 3) if family == 4 else (1, 4))


def test_udp_and_tcp_share_a_mark(dr):
    """The mark says nothing about the protocol."""
    mark = fresh_mark()
    raw = Marked(dr, mark, 4, numbers=(1,))
    with marking(dr, mark, f"meta l4proto {{ tcp, udp }} th dport {raw.port}"):
        assert raw.client().open() == 1
        raw.proto = packet.UDP
        assert raw.client().open() == 1
    assert {c["proto"] for c in dr.conns(vport=raw.port)} == {"TCP", "UDP"}
