# SPDX-License-Identifier: GPL-2.0
"""Events that packets cause: a sender does not choose how many there are."""

import time

import pytest
from lab import genl
from lab.monitor import Monitor
from lab.netns import wait_until
from lab.packet import SCTP, TCP
from lab.raw import Raw
from lab.settings import setting


@pytest.mark.waits
@pytest.mark.parametrize("kind", (TCP, SCTP))
def test_flood(nat, family, kind):
    """Half-open connections that reach their share, 75 of 300, are told once, and so is
    their end."""
    raw = Raw(nat, kind, family)
    # Those of other tests would count, until the sweep has removed them.
    wait_until(lambda: not genl.conns(nat.director.ns), 300, what="an empty table", step=1)
    time.sleep(2)
    with setting(nat, "conn_max", 300), Monitor(nat.director.ns, "table") as monitor:
        for _ in range(75):
            raw.client().send()
        raw.fence()
        monitor.quiet()
        for _ in range(20):
            raw.client().send()
        raw.fence()
        said = monitor.next()
        assert said["event"] == "flood"
        assert 60 <= said["half_open"] <= 75
        assert monitor.next()["event"] == "flood-over"
        monitor.quiet()
