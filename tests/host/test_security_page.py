# SPDX-License-Identifier: GPL-2.0
"""doc/security.md names only tests that exist, and figures of a run that was recorded."""

import json
import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "doc/security.md").read_text(encoding="utf-8")


def test_every_test_exists():
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE)
    assert len(named) > 50
    for file, test in named:
        found = list((TOP / "tests").rglob(file))
        assert found, file
        assert any(re.search(rf"^\s*def {test}\(", path.read_text(), re.M) for path in found), \
            f"{file}::{test}"


def test_every_row_is_whole():
    """Each promise has its figure or says that there is none, and how to check it."""
    table = PAGE.partition("| promise | measured | with |")[2].split("\n\n")[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert len(rows) > 30
    for promise, measured, check in rows:
        assert promise and measured, promise
        assert (check == "–") == (measured.startswith("not covered") or "lines" in promise), promise


def test_the_soak_is_the_recorded_one():
    record = json.loads((TOP / "bench/results/soak/results.json").read_text())
    assert f"{record['packets']:,} packets, {record['changes']:,} changes" in PAGE
    assert f"{record['left'] / 1e6:.1f} MB more" in PAGE
