# SPDX-License-Identifier: GPL-2.0
"""What "make bench-bulk" says: a bar that is missed must not look like one that is met."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/measure"))

import bulk_report  # noqa: E402

WHAT = "nat download, 1 MB, one stream"
HEAD = {"command": "bench/bulk", "date": "today", "kernel": "6.12", "spec": {"rounds": 2, "time": False}}


def result(plain, mine, *, what=WHAT, tunnel=(), more=()):
    series = {"plain forwarding": plain, "l4lb fast 1": mine, "the kernel's tunnel": tunnel}
    return HEAD | {"rows": [{"what": what, "system": system, "value": value, "packets": {}}
                            for system, values in series.items() for value in values] + list(more)}


def row(found):
    """The last cell of the table's first row."""
    line = next(line for line in bulk_report.render(found).splitlines() if line.startswith("| nat"))
    return line.split("|")[-2].strip()


@pytest.mark.parametrize("mine, said", [
    ((100, 100), "met"), ((90, 92), "met"), ((101, 101), "met"), ((103, 104), "missed by 3 %"),
    ((101, 120), "met: they overlap"), ((102, 120), "missed by 10 %")])
def test_the_bar(mine, said):
    assert row(result((100, 101), mine)) == said


def test_a_tunnel_is_beside_the_kernels_own():
    said = row(result((100,), (110,), tunnel=(120,)))
    assert said == "missed by 10 %; of the tunnel: met"
    assert row(result((100,), (110,), tunnel=(100,))).endswith("of the tunnel: missed by 10 %")


@pytest.mark.parametrize("plain, mine", [((), (100,)), ((100,), ())])
def test_no_verdict_without_figures(plain, mine):
    assert row(result(plain, mine)) == ""


def test_faults_are_told(tmp_path):
    fault = {"what": "dr, all", "system": "ip_vs", "fault": "a transfer stands still"}
    found = result((100,), (90,), more=[fault])
    assert bulk_report.write(found, tmp_path) == ["bytes.png"]
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "FAULT: dr, all: ip_vs: a transfer stands still" in text and "| 90 (0.90) |" in text
    assert (tmp_path / "bytes.png").stat().st_size > 5000


def test_rounds_that_are_apart_are_told():
    assert "at most 20.0 % apart (nat download, 1 MB, one stream, l4lb fast 1)" in \
        bulk_report.render(result((100, 101), (90, 110)))


def test_nothing_at_all(tmp_path):
    """All failed: a table with the faults, and no picture that shows nothing."""
    found = HEAD | {"rows": [{"what": "nat, all", "system": "ip_vs", "fault": "no route"}]}
    bulk_report.write(found, tmp_path)
    assert "FAULT: nat, all" in (tmp_path / "table.md").read_text("utf-8")


def test_one_round_has_no_spread():
    text = bulk_report.render(result((100,), (90,)) | {"spec": {"rounds": 1, "time": True}})
    assert "apart" not in text and "rounds" not in text and "Nanoseconds for a kilobyte" in text
