# SPDX-License-Identifier: GPL-2.0
"""What a stranger's packet costs does not depend on how much is configured: the same packets
are timed with few services or servers and with thousands."""

import itertools
import time

import pytest
from lab import packet
from lab.cost import bounded
from lab.genl import ONEPACKET, TUNNEL, L4lb, batch_entry, batch_server
from lab.packet import IPIP, SYN, TCP
from lab.raw import Raw
from lab.settings import setting
from lab.sip import Sip, message

MANY = 10_000
DROP = 2            # of a guard
PACKETS = 300
ROUNDS = 7
TRIES = 4
# A walk of all services would be several times as much.
AT_MOST = 1.3
FEW_SERVERS, MANY_SERVERS = 10, 1000
FLOWS = 400
CALLS = 100_000

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


def new_flows(raw, first):
    """FLOWS connections that begin, with source ports from FIRST on."""
    return [packet.tcp_packet(raw.lab.client_address(4), first + i, raw.vip, raw.port, SYN)
            for i in range(FLOWS)]


def quickest(raws, turn):
    """For each of RAWS, the seconds of its quickest round; they alternate. Each TURN has source
    ports of its own, as long as there are any."""
    best = [float("inf")] * len(raws)
    for n in range(ROUNDS):
        for i, raw in enumerate(raws):
            packets = new_flows(raw, 1024 + FLOWS * (n + ROUNDS * turn) % 64000)
            raw.drain()
            began = time.perf_counter()
            for p in packets:
                raw.client_tap.send(p)
            raw.fence()
            best[i] = min(best[i], time.perf_counter() - began)
            raw.drain()
    return best


def test_new_flow_among_many_servers(nat):
    """By schedulers that choose by load. A scan of 1,000 servers takes longer than all the rest
    of a new connection."""
    raws = [Raw(nat, TCP, 4), Raw(nat, TCP, 4)]
    for raw, servers in zip(raws, (FEW_SERVERS, MANY_SERVERS)):
        for i in range(1, servers):
            raw.service.server(raw.address(1), 20000 + i, method=raw.method, weight=1 + i % 3)
    turns = itertools.count()
    times = {}
    for sched in ("lc", "wlc", "sed", "nq", "fo", "ovf", "lblc", "lblcr"):
        for raw in raws:
            raw.service.edit(sched=sched)
        for _ in range(TRIES):
            few, many = quickest(raws, next(turns))
            times[sched] = min(many / few, times.get(sched, float("inf")))
            if times[sched] <= AT_MOST:
                break
    print(", ".join(f"{sched} {ratio:.2f}" for sched, ratio in times.items()))
    assert not {sched: ratio for sched, ratio in times.items() if ratio > AT_MOST}


def calls(raw, client, first, count):
    return [client.packet(payload=message(f"call-{first + n}")) for n in range(count)]


@pytest.mark.dear
@pytest.mark.parametrize("known", (False, True), ids=("new", "known"))
def test_calls_of_one_client(nat, family, known):
    """A message of a client that has 100,000 calls, with persistence engine sip, costs what one
    of a client with few calls does; so does the first message of a further call."""
    few, many = (Sip(nat, family, flags=ONEPACKET) for _ in range(2))
    stranger, caller = few.client(), many.client()
    with setting(nat, "conn_max", 0):
        many.send_all(calls(many, caller, 0, CALLS))
        listed = many.dest(1)["persistent"] + many.dest(2)["persistent"]
        assert listed == CALLS
        turn = itertools.count(CALLS, PACKETS)

        def one(raw, client):
            first = 0 if known else next(turn)
            packets = calls(raw, client, first, PACKETS)
            began = time.perf_counter()
            raw.send_all(packets)
            return time.perf_counter() - began
        one(few, stranger)
        bounded(AT_MOST, lambda: min(one(many, caller) for _ in range(ROUNDS)),
                lambda: min(one(few, stranger) for _ in range(ROUNDS)))
