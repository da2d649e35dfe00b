# SPDX-License-Identifier: GPL-2.0
"""The speed bench's statistics, on simulated machines that change their speed."""

import random
import statistics
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/measure"))
import slices  # noqa: E402

REDIRECT, THEIRS, OURS = 200, 400, 380


class Machine:
    """Runs at one of two speeds, a factor of 1.8 apart."""

    def __init__(self, seed, change=0.2):
        self.random, self.slow, self.change = random.Random(seed), 1.0, change

    def turn(self, chance):
        if self.random.random() < chance:
            self.slow = 2.8 - self.slow

    def takes(self, ns):
        return ns * self.slow * self.random.gauss(1, 0.008)

    def load(self, ns, count=40, apart=0.003):
        """APART: the deviation between module loads, from their memory and hash keys."""
        ns *= self.random.gauss(1, apart)

        def once(what):
            self.turn(self.change)
            return self.takes(what)
        ticks = iter(range(10 ** 6))
        return slices.bracket(lambda: once(ns), lambda: once(REDIRECT), 10 ** 5, count,
                              lambda: next(ticks))


def test_two_speeds_do_not_fool_it():
    hits, fooled = 0, 0
    for seed in range(100):
        machine = Machine(seed)
        ours = [machine.load(OURS).multiples for _ in range(3)]
        theirs = [machine.load(THEIRS).multiples for _ in range(3)]
        ratio = slices.paired(ours, theirs)
        hits += ratio.narrow and ratio.low <= OURS / THEIRS <= ratio.high
        # The control: medians of systems in turn, the speed changing between turns.
        medians = []
        for ns in (OURS, THEIRS):
            values = []
            for _ in range(3):
                machine.turn(0.5)
                values.append(statistics.median(machine.takes(ns) for _ in range(9)))
            medians.append(statistics.median(values))
        fooled += abs(medians[0] / medians[1] / (OURS / THEIRS) - 1) > 0.3
    assert hits >= 95
    assert fooled >= 20


def test_loads_differ_and_are_few():
    """Slices of one load agree with each other, but not with the true ratio."""
    hits, within = 0, 0
    for seed in range(200):
        machine = Machine(seed)
        sides = [[machine.load(ns, apart=0.01).multiples for _ in range(3)] for ns in (OURS, THEIRS)]
        ratio = slices.paired(*sides)
        hits += ratio.low <= OURS / THEIRS <= ratio.high
        # The control: the slices' own interval.
        low, high = slices.interval([a / b for x, y in zip(*sides) for a, b in zip(x, y)])
        within += low <= OURS / THEIRS <= high
    assert hits >= 185 and within < 150
    # Three loads are needed, however well two agree.
    assert not slices.Ratio([[1.0] * 50] * 2).narrow and slices.Ratio([[1.0] * 50] * 3).narrow


def test_slices_between_two_speeds_are_thrown_away():
    assert slices.normalised(200, 400, 360) is None
    assert slices.normalised(200, 400, 206.1) is None
    assert slices.normalised(200, 404, 204) == pytest.approx(2)
    taken = Machine(1, change=0.3).load(THEIRS)
    assert len(taken.multiples) == 40 < taken.tried


def test_the_interval_is_the_binomial_one():
    assert slices.interval([1]) == (1, 1)
    assert slices.interval(range(6)) == (0, 5)
    assert slices.interval(range(9)) == (1, 7)
    assert slices.interval(range(100)) == (39, 60)


def test_what_is_too_wide_is_refused():
    ratio = slices.Ratio([[0.8, 1.0, 1.2]])
    assert not ratio.narrow and str(ratio) == "too wide (0.80 .. 1.20), 3 slices"
    # Fewer than six values give no interval of that confidence, however well they agree.
    assert not slices.Ratio([[1.0], [1.0] * 2, [1.0] * 2]).narrow
    assert slices.Ratio([[1.0] * 2] * 3).narrow
    # Slices agree within each load, but the loads do not.
    assert not slices.Ratio([[1.0] * 50, [1.02] * 50, [1.05] * 50]).narrow
    assert slices.Ratio([[1.0] * 50, [1.01] * 50, [1.02] * 50]).narrow


def test_rows_that_need_more():
    def row(what, system, values):
        return {"group": "new", "what": what, "system": system, "values": [], "slices": [values] * 3}
    rows = [row("a", "ip_vs", [2.0] * 9), row("a", "l4lb", [1.5] * 9),
            row("b", "ip_vs", [2.0] * 9), row("b", "l4lb", [1.5, 2.5, 1.9, 1.1] * 3)]
    assert slices.wide(rows, "ip_vs") == {("new", "b")}
    assert rows[1]["ratio"]["median"] == 0.75 and rows[1]["added"]["median"] == 0.5


def test_a_row_without_a_good_slice_needs_more():
    def row(system, *loads, **more):
        return {"group": "new", "what": "a", "system": system, "values": [],
                "slices": list(loads)} | more
    theirs = row("ip_vs", [2.0] * 9)
    assert slices.wide([theirs, row("l4lb", [])], "ip_vs") == {("new", "a")}
    # Where packets were lost, more slices are no help.
    assert not slices.wide([theirs, row("l4lb", [], fault="lost")], "ip_vs")
    assert not slices.wide([row("ip_vs", [], fault="lost"), row("l4lb", [2.0] * 9)], "ip_vs")


def test_what_there_is_without_a_director_needs_its_multiple():
    def row(values):
        return {"group": "reference", "what": "a", "system": "reference", "values": [],
                "slices": [values] * 3}
    assert not slices.wide([row([2.0] * 9)], "ip_vs")
    assert slices.wide([row([1.5, 2.5, 1.9, 1.1] * 3)], "ip_vs") == {("reference", "a")}
