# SPDX-License-Identifier: GPL-2.0
"""Scheduler ewma with latencies that the director has measured."""

import time
from collections import Counter

import pytest
from lab import genl
from lab.flows import set_policy
from lab.genl import attr, text, u32
from lab.packet import ACK, FIN, RST, SYN, TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.shadows import each, give, read, totals
from lab.trials import attempt, chosen

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]
TURN = 64       # one choice of so many is in turn


@pytest.fixture
def raw(nat, backend):
    backend.need_scheduler("ewma")
    one = Raw(nat, TCP, numbers=(1, 2, 3, 4), sched="ewma")
    set_policy(one, latency=1)
    return one


def converse(raw, delays, count, refuses=None):
    """COUNT requests, one after the other; server N answers after DELAYS[N - 1] seconds, unless it
    REFUSES. {number: requests}"""
    got = Counter()
    for _ in range(count):
        client = raw.client()
        number = client.open()
        got[number] += 1
        if number == refuses:
            client.reply(RST | ACK).answered()
            continue
        client.reply(SYN | ACK).answered()
        client.send(ACK, b"request")
        client.arrive()
        time.sleep(delays[number - 1])
        client.reply(FIN | ACK, b"answer").answered()
        client.send(FIN | ACK)
        client.arrive()
        client.reply(ACK).answered()
    return got


def test_a_slow_server(raw):
    """It gets what is in turn, and its share again when it is as quick as the others."""
    converse(raw, (0.01, 0.002, 0.002, 0.002), 40)
    got = converse(raw, (0.01, 0.002, 0.002, 0.002), 2 * TURN)
    assert got[1] <= 2 * TURN * 0.05
    time.sleep(5)       # what it was before is worth a thirtieth
    converse(raw, (0.001, 0.002, 0.002, 0.002), 4 * TURN)
    assert converse(raw, (0.001, 0.002, 0.002, 0.002), TURN)[1] > TURN * 0.8


def test_a_server_that_refuses(raw):
    """A reset is the quickest of all answers, and none: three keep clients from what was the quickest server."""
    delays = (0.002, 0.001, 0.002, 0.002)
    converse(raw, delays, 20)
    got = converse(raw, delays, 2 * TURN, refuses=2)
    assert 3 <= got[2] <= 2 * TURN * 0.05


def test_failures_where_all_are_slow(raw):
    """They count for more than the answers of that server."""
    delays = (2, 1.5, 2, 2)
    converse(raw, delays, 12)
    assert 3 <= converse(raw, delays, TURN, refuses=2)[2] <= 5


def test_failures_of_a_stranger(raw):
    """He makes every second request fail, of those that a good server gets."""
    converse(raw, (0.001, 0.002, 0.002, 0.002), 12)
    for _ in range(TURN // 4):
        assert converse(raw, (0.001, 0.002, 0.002, 0.002), 1) == {1: 1}
        assert converse(raw, (0.001, 0.002, 0.002, 0.002), 1, refuses=1) == {1: 1}


def test_off_and_on(raw):
    """What was measured is forgotten: the slow one is as good as the others until it has answered."""
    converse(raw, (0.5, 0.002, 0.002, 0.002), 12)
    for latency in (0, 1):
        set_policy(raw, latency=latency)
    assert {raw.client().open() for _ in range(4)} == {1, 2, 3, 4}


def test_a_server_comes_back(raw):
    """As slow as it was, also when its connections were over and it is another object."""
    with setting(raw.lab, "expire_nodest_conn", 1):
        converse(raw, (0.5, 0.002, 0.002, 0.002), 12)
        raw.client().open()
        raw.remove(1)
        raw.add(1)
        assert converse(raw, (0.5, 0.002, 0.002, 0.002), TURN // 2)[1] == 0


def test_a_shadow(raw):
    """It knows the latencies of the real servers: those from before it, new ones, and that they are forgotten."""
    def same(count):
        before = totals(read(l4lb, raw.service))
        converse(raw, delays, count)
        seen, agreed, refused = (now - old for now, old in zip(totals(read(l4lb, raw.service)), before))
        assert (seen, agreed, refused) == (count, count, 0)

    delays = (0.01, 0.002, 0.01, 0.5)
    converse(raw, delays, 12)
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        give(l4lb, raw.service, "ewma")
        same(TURN // 4)
        delays = (0.01, 0.05, 0.002, 0.5)
        same(TURN // 4)
        for latency in (0, 1):
            set_policy(raw, latency=latency)
        before = each(read(l4lb, raw.service))
        assert {raw.client().open() for _ in range(4)} == {1, 2, 3, 4}
        assert [now - old for now, old in zip(each(read(l4lb, raw.service)), before)] == [1, 1, 1, 1]
        give(l4lb, raw.service, "none")


@pytest.mark.smoke      # says nothing of times, and the debug kernel sees the locks
def test_a_shadow_that_begins_with_the_end_of_measuring(raw):
    """Both are one message: its copies of the real servers, made before, forget as these do. Then
    they are told again."""
    converse(raw, (0.01, 0.002, 0.01, 0.5), 12)
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        l4lb.request(genl.SET_POLICY, attr(genl.L_SERVICE, raw.service.ident) + attr(
            genl.L_SHADOW, text("ewma")) + attr(genl.L_POLICY, [attr(genl.POLICY["latency"], u32(0))]))
        set_policy(raw, latency=1)
        assert {raw.client().open() for _ in range(4)} == {1, 2, 3, 4}
        assert each(read(l4lb, raw.service)) == [1, 1, 1, 1]
        converse(raw, (0, 0, 0, 0), 4)
        assert totals(read(l4lb, raw.service))[0] == 8
        give(l4lb, raw.service, "none")


def test_a_trial(raw):
    """It goes by the latencies that the real servers have when it begins, and changes none."""
    converse(raw, (0.5, 0.002, 0.5, 0.5), 12)
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        # All open: a connection more on the quick one is worth 250 on each other.
        found = attempt(l4lb, raw.service, "ewma", 100)
    assert sum(chosen(found)) == 100
    assert dict(zip(each(found, "addr"), chosen(found)))[raw.address(2)] >= 90


def test_a_server_without_answer(nat, backend):
    """One datagram finds that out; others that come meanwhile go elsewhere."""
    backend.need_scheduler("ewma")
    raw = Raw(nat, UDP, numbers=(1, 2), sched="ewma")
    set_policy(raw, latency=1)
    got = Counter()
    for _ in range(TURN):
        client = raw.client()
        number = client.open()
        got[number] += 1
        if number == 1:
            client.reply(b"", b"answer").answered()
    assert 1 <= got[2] <= 2
