# SPDX-License-Identifier: GPL-2.0
"""Limits of a service while two processors begin connections: neither is exceeded by one."""

import os
import threading
import time

import pytest
from lab.flows import set_policy
from lab.netns import join_all, wait_until
from lab.packet import UDP
from lab.pktgen import Generator
from lab.raw import Raw

CPUS = 2
both = pytest.mark.skipif(len(os.sched_getaffinity(0)) < CPUS, reason="needs two processors; runs on 6.12 and 6.1")
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


def numbered(raw):
    """Its connections."""
    return sum(dest["inactive"] + dest["active"] for dest in map(raw.dest, raw.numbers))


@pytest.mark.smoke
def test_connections(dr):
    raw = Raw(dr, UDP, numbers=(1, 2, 3, 4))
    set_policy(raw, limit_conns=300)
    for _ in range(2):
        flood(raw, 1600)
        assert numbered(raw) == 300


@pytest.mark.smoke
def test_rate(dr):
    raw = Raw(dr, UDP, numbers=(1, 2))
    set_policy(raw, limit_rate=500, limit_burst=200)
    begin = time.monotonic()
    for _ in range(2):
        flood(raw, 1600)
    most = 200 + 500 * (time.monotonic() - begin)
    assert 200 <= raw.service.stats["conns"] <= most


@both
def test_connections_at_full_speed(dr):
    """Both processors do nothing else. Many connections may begin, then a few more, many times: when
    they are counted, some are about to begin."""
    raw, many = Raw(dr, UDP, numbers=(1, 2)), 20000
    set_policy(raw, limit_conns=many)
    with Generator(raw, range(CPUS)):
        for most in range(many, many + 400, 10):
            set_policy(raw, limit_conns=most)
            wait_until(lambda most=most: numbered(raw) >= most, 60, what="as many as the limit")
            time.sleep(0.005)
            assert numbered(raw) == most


@both
def test_rate_at_full_speed(dr):
    """A burst of many connections, and hardly any afterwards."""
    raw, burst = Raw(dr, UDP, numbers=(1, 2)), 20000
    begin = time.monotonic()
    set_policy(raw, limit_rate=1, limit_burst=burst)
    with Generator(raw, range(CPUS)):
        wait_until(lambda: raw.service.stats["conns"] >= burst, 60, what="the burst")
        time.sleep(0.5)
    assert burst <= raw.service.stats["conns"] <= burst + time.monotonic() - begin
