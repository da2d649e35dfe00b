# SPDX-License-Identifier: GPL-2.0
"""Every transition of the TCP state tables, and how exact expiry is."""

import time

import pytest

from lab.genl import PERSISTENT
from lab.netns import wait_until
from lab.packet import UDP
from lab.raw import Raw
from test_conn import IN, IN_ONLY, OUT, Walker

TABLES = {"nat": {"in": IN, "out": OUT}, "dr": {"in": IN_ONLY}}


def way(tables, state, wanted):
    """The shortest walk from STATE to one that WANTED accepts, or None."""
    ways, queue = {state: []}, [state]
    for here in queue:
        if wanted(here):
            return ways[here]
        for direction, table in tables.items():
            for event in table:
                there = table[event].get(here, here)
                if there not in ways:
                    ways[there] = [*ways[here], (direction, event)]
                    queue.append(there)
    return None


@pytest.mark.parametrize("shape", TABLES)
def test_every_transition(shape, request):
    """One connection walks until each event was met in each state it can be in."""
    tables = TABLES[shape]
    w = Walker(request.getfixturevalue(shape), 4)
    met = set()

    def fresh(state):
        return [(d, e) for d in tables for e in tables[d] if (d, e, state) not in met]

    while (steps := way(tables, w.want, fresh)) is not None:
        for direction, event in steps or fresh(w.want)[:1]:
            met.add((direction, event, w.want))
            w.step(direction, event)
    states = {state for _, _, state in met}
    assert len(met) == len(states) * sum(map(len, tables.values()))
    assert len(states) == {"nat": 7, "dr": 5}[shape]


def test_an_expired_connection_is_not_found(nat, family):
    """A packet that comes just after the timeout starts anew, although the
    connection may not have been cleared away yet."""
    nat.ipvs.timeouts(udp=1)
    raw = Raw(nat, UDP, family)
    flows, due = 20, []
    for _ in range(flows):
        client = raw.client()
        client.open()
        due.append((time.monotonic() + 1.02, client))
        while due and time.monotonic() >= due[0][0]:
            due.pop(0)[1].send()
    for when, client in due:
        time.sleep(max(0, when - time.monotonic()))
        client.send()
    raw.fence()
    wait_until(lambda: raw.service.stats["conns"] == 2 * flows, 6, step=0.2,
               what="a new connection for each")


def test_a_template_lives_with_its_connections(nat, family):
    """It is not gone after its timeout while a connection made by it exists:
    the client comes back to the same server."""
    raw = Raw(nat, UDP, family, (1, 2), flags=PERSISTENT, timeout=1)
    client = raw.client()
    first = client.open()

    def prolonged():
        rows = nat.conns(client=client.address, cport=0)
        return rows and rows[0]["expires"] > 10

    wait_until(prolonged, 10, step=0.1)
    assert raw.dest(first)["persistent"] == 1
    assert [raw.client(client.address).open() for _ in range(3)] == [first] * 3
