# SPDX-License-Identifier: GPL-2.0
"""The table of features: its list names existing tests, its cells show their results."""

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests"))

from lab import stages  # noqa: E402

loader = importlib.machinery.SourceFileLoader("lab_features", str(TOP / "tests/lab/features"))
features = importlib.util.module_from_spec(
    importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(features)


def nodes_of(series, tier):
    return [node for name in features.SERIES[series]
            for node in stages.Stage(name, stages.Selection(tier, 1)).tests()]


def test_every_test_of_the_list_exists():
    assert features.check(nodes_of("6.12", "everyday") + nodes_of("6.1", "smoke")) == []


@pytest.mark.parametrize(("series", "tier"), [("6.12", "everyday"), ("6.1", "smoke")])
def test_each_series_runs_each_feature(series, tier):
    """In ".ci/run": 6.12 in the tests of "make test", 6.1 in the smoke tests."""
    nodes = nodes_of(series, tier)
    assert [feature for _, feature, tests in features.listed()
            if not any(features.pattern(t).match(n) for t in tests for n in nodes)] == []


def test_the_table_has_every_feature():
    """And no failed test. tests/lab/features writes the table after ".ci/run"."""
    text = (TOP / "tests/FEATURES.md").read_text(encoding="utf-8")
    for _, feature, _ in features.listed():
        assert f"\n| {feature} | " in text, "made before this feature was listed"
    assert "failed**" not in text


NODES = ["tests/test_a.py::test_x", "tests/test_a.py::test_x[v4-nat]", "tests/test_a.py::test_xy",
         "tests/test_a.py::TestC::test_x[nat]", "tests/test_ab.py::test_x[v4-nat-80]"]


@pytest.mark.parametrize(("name", "hits"), [
    ("test_a", 4), ("test_a::test_x", 3), ("test_a::test_x[nat]", 2), ("test_a::test_x[v4]", 1),
    ("test_a::test_x[at]", 0), ("test_ab::test_x[nat]", 1), ("test_b", 0)])
def test_names(name, hits):
    assert sum(bool(features.pattern(name).match(node)) for node in NODES) == hits


@pytest.mark.parametrize(("found", "text"), [
    ({}, "–"), ({"tests/test_b.py::test_x": "passed"}, "–"),
    ({"tests/test_a.py::test_x": "passed", "tests/test_a.py::test_y": "skipped"}, "1"),
    ({"tests/test_a.py::test_x": "skipped"}, "skipped"),
    ({"tests/test_a.py::test_x": "passed", "tests/test_a.py::test_y": "failed"}, "1, **1 failed**"),
])
def test_cells(found, text):
    assert features.cell(found, [features.pattern("test_a")]) == text


def test_what_ip_vs_does_not_have():
    """doc/features.md names tests that exist."""
    named = re.findall(r"`(\w+/test_\w+\.py)(?:::(\w+))?", (TOP / "doc/features.md").read_text("utf-8"))
    assert len(named) > 10
    for file, name in named:
        assert (TOP / "tests" / file).is_file(), file
        assert not name or f"\ndef {name}(" in (TOP / "tests" / file).read_text("utf-8"), name
