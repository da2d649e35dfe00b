# SPDX-License-Identifier: GPL-2.0
"""Limits of a service while two processors begin connections: neither is exceeded by one."""

import threading
import time

import pytest
from lab.flows import set_policy
from lab.netns import join_all
from lab.packet import UDP
from lab.raw import Raw

CPUS = 2
pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.emulated]


def flood(raw, count):
    """COUNT first packets, from two threads at once."""
    packets = [[raw.client().packet() for _ in range(count // 2)] for _ in range(2)]
    failure = []

    def send(mine):
        try:
            for each in mine:
                raw.client_tap.send(each)
        except OSError as error:
            failure.append(error)

    threads = [threading.Thread(target=send, args=(mine,)) for mine in packets]
    for thread in threads:
        thread.start()
    join_all(*threads, seconds=60)
    raw.fence()
    raw.drain()
    assert not failure


@pytest.mark.smoke
def test_connections(dr):
    raw = Raw(dr, UDP, numbers=(1, 2, 3, 4))
    set_policy(raw, limit_conns=300)
    for _ in range(2):
        flood(raw, 1600)
        assert sum(raw.dest(n)["inactive"] + raw.dest(n)["active"] for n in raw.numbers) == 300


@pytest.mark.smoke
def test_rate(dr):
    raw = Raw(dr, UDP, numbers=(1, 2))
    set_policy(raw, limit_rate=500, limit_burst=200)
    begin = time.monotonic()
    for _ in range(2):
        flood(raw, 1600)
    most = 200 + 500 * (time.monotonic() - begin)
    assert 200 <= raw.service.stats["conns"] <= most
