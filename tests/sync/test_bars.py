# SPDX-License-Identifier: GPL-2.0
"""How late connections are announced, and how many records that takes: the bars of
doc/high-availability.md. In virtual time, so that the machine's speed has no part in it."""

import statistics
import time

import pytest
from lab import sync_wire
from lab.genl import PERSISTENT
from lab.packet import UDP
from lab.raw import Raw
from lab.rows import amount
from lab.settings import setting

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]

RATE = 500              # new connections a second
HALF, NEARLY_ALL = 0.05, 0.3        # seconds until a record has come, p50 and p99
PER_SECOND = 0.017      # records of a connection with a packet a second
LONG = 300              # seconds


def records(receiver, port):
    """Those that have arrived, of the service on PORT."""
    return [r for data in receiver.drain() for r in sync_wire.read(data).records
            if r.vport == port]


def test_latency(nat, side):
    """From a connection's first packet to its record at another director."""
    raw = Raw(nat, UDP)
    with setting(nat, "sync_threshold", "1 2"), side.receiver() as receiver, side.master():
        began, took = {}, []
        for n in range(2 * RATE + RATE // 2):
            if n < 2 * RATE:
                client = raw.client()
                began[client.address] = time.monotonic()
                client.send()
            time.sleep(1 / RATE)
            now = time.monotonic()
            took += [now - began.pop(r.client) for r in records(receiver, raw.port)
                     if r.client in began]
        raw.drain()
    assert not began, f"{len(began)} have no record"
    cuts = statistics.quantiles(took, n=100)
    print(f"p50 {cuts[49] * 1000:.0f} ms, p99 {cuts[98] * 1000:.0f} ms")
    assert cuts[49] <= HALF and cuts[98] <= NEARLY_ALL


@pytest.mark.parametrize("persistent", (False, True), ids=("plain", "persistent"))
def test_steady(request, nat, side, persistent):
    """Established connections with a packet a second; a persistent client's template counts,
    too."""
    count = amount(request.config, all=2000, few=100)
    raw = Raw(nat, UDP, **({"flags": PERSISTENT, "timeout": 300} if persistent else {}))
    clients = [raw.client() for _ in range(count)]
    with side.receiver() as receiver, side.master():
        for second in range(60 + LONG):
            if second == 60:        # all have been announced for the first time
                records(receiver, raw.port)
                got = 0
            for client in clients:
                client.send()
            raw.drain()
            time.sleep(1)
            if second >= 60:
                got += len(records(receiver, raw.port))
    each = got / LONG / count
    print(f"{each * 10000:.0f} records a second of 10,000 connections")
    assert 0 < each <= PER_SECOND * (2 if persistent else 1)
