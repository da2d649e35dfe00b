# SPDX-License-Identifier: GPL-2.0
"""What a stranger's packet costs does not depend on how much is configured: the same packets
are timed with few services and with thousands."""

import time

import pytest
from lab import packet
from lab.genl import TUNNEL, L4lb, batch_entry, batch_server
from lab.packet import IPIP, SYN, TCP
from lab.raw import Raw

MANY = 10_000
DROP = 2            # of a guard
PACKETS = 300
ROUNDS = 7
TRIES = 4
# A walk of all services would be several times as much.
AT_MOST = 1.3

pytestmark = pytest.mark.usefixtures("only_l4lb")


def seconds(raw, packets):
    """Of the quickest of some rounds: PACKETS are sent, and dealt with."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for p in packets:
            raw.client_tap.send(p)
        raw.fence()
        best = min(best, time.perf_counter() - began)
        raw.drain()
    return best


def costs_the_same(raw, packets, entries):
    """A walk is several times as much each time; a slow moment of the machine passes."""
    found = []
    for _ in range(TRIES):
        took = []
        for configured in (entries[:1], entries):
            with L4lb(raw.lab.director.ns) as l4lb:
                l4lb.set_services(configured)
            took.append(seconds(raw, packets))
            raw.lab.ipvs.flush()
        found.append(took[1] / took[0])
        if found[-1] <= AT_MOST:
            return
    pytest.fail(f"{', '.join(f'{ratio:.2f}' for ratio in found)} times")


def test_error_about_no_tunnel(tun):
    """ICMP errors to the director that quote a tunnel packet's outer header, to an address
    that is no real server's."""
    raw = Raw(tun, TCP)
    stranger = tun.client_address(4)
    dip = tun.raw_vip(4, 1)
    quote = packet.ip4(dip, "203.0.113.250", IPIP, bytes(8))
    errors = [packet.icmp_packet(stranger, dip, 3, 4, 1400, payload=quote)] * PACKETS
    servers = [batch_server(tun.phantom(n), 80, method=TUNNEL) for n in (1, 2, 3, 4)]
    costs_the_same(raw, errors, [batch_entry(tun.raw_vip(4, 1), 1000 + i, servers)
                                 for i in range(MANY)])


def test_scan_of_a_guarded_address(nat, family):
    """First packets to ports of a guarded address that no service has."""
    raw = Raw(nat, TCP, family)
    entries = [batch_entry(raw.vip, 1000 + i, policy={"guard": DROP}) for i in range(MANY)]
    stranger = nat.client_address(family)
    scan = [packet.tcp_packet(stranger, 4000, raw.vip, 40000 + i, SYN)
            for i in range(PACKETS)]
    costs_the_same(raw, scan, entries)


def test_addresses_by_a_plan(nat):
    """Services on IPv6 addresses with the same number in two places: each is added, though
    no more than 16 may share a chain of the table."""
    with L4lb(nat.director.ns) as l4lb:
        l4lb.set_services([batch_entry(f"2001:db8:0:{n:x}::{n:x}", 80)
                           for n in range(1, 2001)])
    assert len(nat.ipvs.services()) >= 2000
    nat.ipvs.flush()
