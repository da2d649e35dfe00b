# SPDX-License-Identifier: GPL-2.0
"""What "make bench-resync" says: a bar that is missed must not look like one that is met."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/measure"))

import resync_report  # noqa: E402

ROW = {"count": 100_000, "seconds": 7.5, "records": 100_500, "copies": 100_500, "agreed": 9.0,
       "difference": 0, "compared": 100_500, "alone": 100_000, "meanwhile": 90_000,
       "after": 100_000, "grown": 9_000_000, "there": 100_500,
       "curve": [(-1.0, 100_000), (1.0, 90_000), (8.0, 100_000)]}
# (what is wrong, bars that are missed, is the peer complete)
CASES = (({}, 0, True), ({"seconds": 8.1}, 1, True), ({"meanwhile": 79_000}, 1, True),
         ({"copies": 100_499}, 1, False), ({"after": 120_000}, 0, True), ({"alone": 120_000}, 0, True),
         ({"difference": 3}, 0, False), ({"compared": 100_499}, 0, False))


@pytest.mark.parametrize("wrong, missed, complete", CASES)
def test_bars(wrong, missed, complete, tmp_path):
    row = ROW | wrong
    found = {"command": "bench/resync", "date": "today", "kernel": "6.12", "rows": [row]}
    assert resync_report.write(found, tmp_path) == ["forwarding.png"]
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert text.count("| missed |") == missed
    assert ("| never |" in text) == bool(row["difference"])
    assert resync_report.complete(row) == complete
    assert (tmp_path / "forwarding.png").stat().st_size > 10_000
