# SPDX-License-Identifier: GPL-2.0
"""The table of what counted figures were to reach: a bar that is missed must not look met."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/measure"))

import bars  # noqa: E402

NEW = bars.Bar("new", 0.5, (": a new", ": b new"))
MORE = bars.Bar("more", 100, (": c",), ": d")


def record(a=1500, c=1100, kernel="6.12"):
    return {kernel: {"kernel": f"{kernel}.1", "instructions": {
        "redirect": 1000, "xdp redirect": 100, "ip_vs: a new": 2000, "ip_vs: b new": 3000, "l4lb: a new": a,
        "l4lb: b new": 1800, "l4lb: c": c, "l4lb: d": 1000}}}


@pytest.mark.parametrize("value, met", ((1500, True), (1501, False), (900, True)))
def test_the_largest_counts(value, met, monkeypatch):
    monkeypatch.setattr(bars, "BARS", (NEW,))
    *_, row, _ = bars.lines(record(a=value))
    assert row.startswith("| new | 0.50 | ") and row.endswith("| met |" if met else "| missed |")


def test_each_kernel_has_to(monkeypatch):
    monkeypatch.setattr(bars, "BARS", (NEW, MORE))
    both = record() | record(c=1101, kernel="6.1")
    *_, new, more, _ = bars.lines(both)
    assert new == "| new | 0.50 | 0.50, 0.40 | 0.50, 0.40 | met |"
    assert more == "| more | +100 | +100 | +101 | missed |"


def test_without_figures(monkeypatch):
    """A row that a kernel lacks says nothing."""
    monkeypatch.setattr(bars, "BARS", (NEW, MORE))
    lacking = record(kernel="6.1")
    del lacking["6.1"]["instructions"]["l4lb: d"]
    text = "\n".join(bars.lines(record() | lacking))
    assert "| new |" in text and "| more |" not in text


def test_a_life_has_six_packets():
    figures = {"redirect": 1000, "xdp redirect": 100, "ip_vs: x life": 16_000, "l4lb: x life": 11_000,
               "l4lb xdp: x life": 5_600}
    assert bars.added(figures, "l4lb", "x life") == 0.5
    assert bars.added(figures, "l4lb xdp", "x life") == 0.5


def test_pktgen_has_a_floor_of_its_own():
    figures = {"pktgen redirect": 500, "ip_vs: pktgen x": 1500, "l4lb: pktgen x": 600}
    assert bars.added(figures, "l4lb", "pktgen x") == 0.1
