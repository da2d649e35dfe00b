# SPDX-License-Identifier: GPL-2.0
"""Every transition of the TCP state tables, and the precision of expiry."""

import time

import pytest
from lab.genl import PERSISTENT
from lab.netns import wait_until
from lab.packet import UDP
from lab.raw import Raw
from lab.tcp import Walker


@pytest.mark.parametrize(("shape", "states"), (("nat", 7), ("dr", 5)))
def test_every_transition(shape, states, request):
    """One connection walks until each event has occurred in each state it can reach."""
    assert len(Walker(request.getfixturevalue(shape), 4).everywhere()) == states


@pytest.mark.timer
def test_an_expired_connection_is_not_found(nat, family):
    """A packet just after the timeout opens a new connection, even if the old one
    has not been removed yet."""
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


@pytest.mark.timer
def test_a_template_lives_with_its_connections(nat, family, backend):
    """It outlives its timeout while a connection made by it exists: the client
    still gets the same server."""
    raw = Raw(nat, UDP, family, (1, 2), flags=PERSISTENT, timeout=1)
    client = raw.client()
    first = client.open()

    def prolonged():
        """The template has outlived its timeout: l4lb shows 0, ip_vs gives it a minute."""
        rows = nat.conns(client=client.address, cport=0)
        expires = rows[0]["expires"]
        return time.monotonic() > start + 2.5 and (
            expires == 0 if backend.is_l4lb else expires > 10)

    start = time.monotonic()
    wait_until(prolonged, 10, step=0.1)
    assert raw.dest(first)["persistent"] == 1
    assert [raw.client(client.address).open() for _ in range(3)] == [first] * 3
