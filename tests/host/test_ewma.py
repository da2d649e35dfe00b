# SPDX-License-Identifier: GPL-2.0
"""Scheduler ewma: the server that is expected to answer first."""

from collections import Counter

import pytest
from simulator import add, picks

TURN = 64       # one choice of so many is in turn


def chosen(sim, script):
    return picks(sim("ewma", script))


def code(us):
    """As the core writes it: 11 bits, and how far they are shifted."""
    shift = max(us.bit_length() - 11, 0)
    return shift << 11 | us >> shift


def measured(*latencies, weights=None):
    """Servers 1, 2, ... with these latencies in microseconds."""
    return add(*(weights or [1] * len(latencies))) + "".join(
        f"latency {n} {code(us)};" for n, us in enumerate(latencies, 1))


@pytest.mark.parametrize(("latencies", "loads", "weights", "best"), [
    ((1000, 2000, 3000), (0, 0, 0), (1, 1, 1), 1),
    ((1000, 2000, 3000), (1, 0, 0), (1, 1, 1), 2),      # 2000, 2000: the one added last
    ((1000, 2000, 3000), (5, 2, 0), (1, 1, 1), 3),
    ((1000, 1000, 1000), (3, 3, 3), (1, 2, 3), 3),
    ((3000, 1000, 1000), (0, 1, 1), (4, 1, 1), 1),
    ((1, 1, 2), (0, 0, 0), (1, 1, 1), 2),
    ((2**32, 2**31, 2**32), (2**10, 2**10, 2**10), (1, 1, 1), 2),
    ((2**32, 2**32, 2**32), (2**20, 2**20, 2**20), (1, 2**31 - 1, 1), 2),
    ((900000, 800000, 700000), (0, 0, 0), (1, 1, 1), 3)])
def test_the_shortest_wait(sim, latencies, loads, weights, best):
    """Latency times (active connections + 1), for the weight."""
    script = measured(*latencies, weights=weights)
    script += "".join(f"load {n} {active} {active};" for n, active in enumerate(loads, 1))
    assert chosen(sim, script + "flow tcp 10.0.0.1 1000 10.0.0.2 80;") == [best]


def test_the_unmeasured(sim):
    """One without a connection is tried at once; then its answer is waited for."""
    script = measured(1000, 0, 2000) + "pick tcp 4"
    assert chosen(sim, script) == [2, 1, 3, 1]
    # UDP flows are never active; without an answer it gets nothing more.
    assert chosen(sim, measured(1000, 0) + "pick udp 20") == [2] + [1] * 19


def test_nothing_is_measured(sim):
    """As sed, once all have a connection."""
    script = add(1, 3, 2) + "pick tcp 60"
    got, want = chosen(sim, script), picks(sim("sed", script))
    assert Counter(got) == Counter(want)


def test_in_turn(sim):
    """One choice in 64, of each server in turn, however slow, but of none that may not take it."""
    servers = measured(1000, 900000, 900000, 900000)
    got = Counter(chosen(sim, servers + f"pick udp {8 * TURN}"))
    assert got == {1: 8 * TURN - 6, 2: 2, 3: 2, 4: 2}
    got = Counter(chosen(sim, servers + f"over 3 1; edit 4 0; pick udp {8 * TURN}"))
    assert got == {1: 8 * TURN - 2, 2: 2}


def test_among_many(sim):
    """Sixteen are drawn: of a hundred of which one is quick it is among them now and then; of a
    thousand no more than that are looked at, and one that is usable is found."""
    got = Counter(chosen(sim, measured(*[5000] * 99, 1000) + "pick udp 2000"))
    assert 0.08 * 2000 < got[100] < 0.25 * 2000     # 16 of 100, but for those in turn
    one = "".join(f"over {n} 1;" for n in range(1, 1001) if n != 500)
    assert chosen(sim, add(*[1] * 1000) + one + "pick udp 50") == [500] * 50
    assert chosen(sim, add(*[0] * 20) + "pick udp 3") == [None] * 3
