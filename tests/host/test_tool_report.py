# SPDX-License-Identifier: GPL-2.0
"""What "make bench-tool" says: a bar that is missed must not look like one that is met."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/measure"))

import tool_report  # noqa: E402

SPEC = {"few": 2000, "many": 10_000, "changed": 10, "conns": 100_000}
FOUND = {"restore few": 1.0, "apply few": 1.2, "apply many": 5.0, "apply many again": 1.0, "diff": 1.0,
         "apply changed": 0.5, "top period": 1.1, "top processor": 0.4,
         "large top period": 1.1, "large top processor": 0.5, "top in lines": 2.0, "list": 3.0,
         "prometheus": 1.0, "events sent a second": 20_000, "events a second": 10_000,
         "events lost": 0, "connections that are there again": 100_000,
         "conn show": 5.0, "conn show memory": 20.0,
         "export": 1.0, "flush": 1.0, "unload and load": 1.0, "import": 1.0, "pause": 4.0}


@pytest.mark.parametrize("wrong, missed", [
    ({}, 0), ({"apply few": 1.21}, 1), ({"apply changed": 0.51}, 1), ({"diff": 1.01}, 1),
    ({"top period": 1.11}, 1),
    ({"large top period": 1.11}, 1), ({"events a second": 9999}, 1), ({"events lost": 1}, 1),
    ({"connections that are there again": 99_999}, 1), ({"prometheus": 100.0}, 0),
    ({"conn show": 5.01}, 1), ({"conn show memory": 20.1}, 1)])
def test_bars(wrong, missed, tmp_path):
    found = {"command": "bench/tool", "date": "today", "kernel": "6.12", "spec": SPEC, "found": FOUND | wrong}
    assert tool_report.write(found, tmp_path) == ["seconds.png"]
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert text.count("| missed |") == missed and text.count("| met |") == 10 - missed
    assert (tmp_path / "seconds.png").stat().st_size > 5_000


@pytest.mark.parametrize("name", FOUND)
def test_results_from_before_a_figure(name, tmp_path):
    """They are drawn without it, and no bar of it is met."""
    found = {"command": "bench/tool", "date": "today", "kernel": "6.12", "spec": SPEC,
             "found": {key: value for key, value in FOUND.items() if key != name}}
    assert tool_report.write(found, tmp_path) == ["seconds.png"]
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    unknown = [line for line in text.splitlines() if "not measured" in line]
    assert unknown and all(line.endswith("| |") or line.endswith("|  |") for line in unknown)
    assert "missed" not in text


def test_recorded_results_can_be_drawn(tmp_path):
    recorded = Path(__file__).resolve().parents[2] / "bench/results/tool/results.json"
    assert tool_report.write(json.loads(recorded.read_text("utf-8")), tmp_path) == ["seconds.png"]
