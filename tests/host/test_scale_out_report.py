# SPDX-License-Identifier: GPL-2.0
"""The report of bench/scale-out about made-up figures, and its options."""

import subprocess

import pytest
from test_speed import MEASURE, TOP, load

report = load(MEASURE / "scale_out_report.py", "bench_scale_out_report")
WAYS = ("mh", "mh, key", "rr", "wlc")


def results(broken=0):
    """One director in four has a quarter of the flows; mh loses BROKEN of them."""
    costs = [{"way": "redirect", "established": 2000.0}] + [
        {"way": way, "established": 2500.0, "new": 4000.0, "taken over": 4100.0} for way in WAYS]
    flows = [{"directors": n, "way": way, "flows": [400 // n] * n} |
             ({"moved": 400 // n, "broken": broken if way.startswith("mh") else 300 // n}
              if n > 1 else {}) for n in (1, 2, 4) for way in WAYS]
    return {"command": "bench/x", "date": "2026-01-01 00:00", "kernel": "6.12",
            "spec": {"directors": [1, 2, 4], "flows": 400}, "costs": costs, "flows": flows}


def test_report(tmp_path):
    assert report.write(results(), tmp_path) == ["flows.png"]
    assert (tmp_path / "flows.png").stat().st_size > 1000
    text = (tmp_path / "table.md").read_text("utf-8")
    assert "| mh | 2,500 | 4,000 | 4,100 |" in text
    assert "| 1 | rr | 100.0% | 400,000 | 250,000 | – | – | – |" in text
    assert "| 4 | rr | 25.0% | 1,600,000 | 1,000,000 | 100 | 75 | 75% |" in text
    assert "4 directors do 4.0 times what 1 does. With mh no flow broke." in text


def test_broken_flows_are_not_hidden(tmp_path):
    report.write(results(broken=3), tmp_path)
    assert "WITH MH 12 FLOWS BROKE" in (tmp_path / "table.md").read_text("utf-8")


@pytest.mark.parametrize("words, what", [
    (["--kernel", "uml"], "invalid choice: 'uml'"), (["--rounds", "3"], "unrecognized arguments")])
def test_bad_options(words, what):
    done = subprocess.run([TOP / "bench/scale-out", *words], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 2 and what in done.stderr and done.stderr.count("\n") == 1
