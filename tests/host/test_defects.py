# SPDX-License-Identifier: GPL-2.0
"""tests/DEFECTS.md has a row for every defect of the review, and names only tests, controls and
mutants that exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
MAKEFILE = (TESTS.parent / "Makefile").read_text(encoding="utf-8")
PAGE = (TESTS / "DEFECTS.md").read_text(encoding="utf-8")
LAST = {"A": 8, "B": 16, "C": 14, "E": 3}
IDS = [f"{group}{n}" for group, last in LAST.items() for n in range(1, last + 1)]


def tables(page):
    """[{heading: cell}] for each table of PAGE."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", page, re.M):
        lines = [[cell.strip() for cell in line.strip("|").split("|")]
                 for line in block.splitlines()]
        assert all(len(line) == len(lines[0]) for line in lines), lines[0]
        found.append([dict(zip(lines[0], line, strict=True)) for line in lines[2:]])
    return found


REVIEW, MORE = tables(PAGE)
ROWS = [pytest.param(row, id=row.get("id") or row["what"][:30]) for row in (*REVIEW, *MORE)]


def missing(cell):
    """The tests and make's targets that CELL names and that do not exist."""
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", cell)
    gone = [f"{file}::{test}" for file, test in named if not any(
        re.search(rf"^\s*def {test}\(", path.read_text(encoding="utf-8"), re.M)
        for path in TESTS.rglob(file))]
    return gone + [f"make {target}" for target in re.findall(r"`make ([\w-]+)", cell)
                   if not re.search(rf"^(?:[\w-]+ )*{target}[ :]", MAKEFILE, re.M)]


def test_every_defect_is_there():
    assert [row["id"] for row in REVIEW] == IDS


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_whole(row):
    assert all(row.values()), row
    reason = row["tests"].startswith("none: ")
    assert reason or "::" in row["tests"], "it names no test"
    assert not reason or len(row["tests"]) > 40, "it gives no reason"
    for cell in ("tests", "control"):
        assert missing(row[cell]) == []
    assert reason or row["control"] in ("in the test", "ip_vs", "the mutants") or "`" in row["control"]


@pytest.mark.parametrize("row", ROWS)
def test_its_mutants_exist(row):
    named = re.findall(r"`([\w-]+)`", row["mutants"])
    assert [name for name in named if not (TESTS / f"mutants/kernel/{name}.patch").exists()] == []
    if not row["tests"].startswith("none: "):
        assert named or row["mutants"].startswith("none: "), "it names no mutant"


@pytest.mark.parametrize("row", ROWS)
def test_each_mutant_is_for_a_test_of_the_row(row):
    """A mutant that none of the row's tests catches says nothing about the row."""
    for name in re.findall(r"`([\w-]+)`", row["mutants"]):
        patch = (TESTS / f"mutants/kernel/{name}.patch").read_text(encoding="utf-8")
        runs = re.search(r"^Tests: (.*)", patch, re.M)[1].split()
        assert any(word.partition("::")[0].rpartition("/")[2] in row["tests"] and
                   word.partition("::")[2] in row["tests"] for word in runs), name


def test_what_is_missing_is_seen():
    assert missing("`test_floods.py::test_nothing_of_the_kind`, `test_nowhere.py::test_that`") == [
        "test_floods.py::test_nothing_of_the_kind", "test_nowhere.py::test_that"]
    assert missing("`make no-such-target`") == ["make no-such-target"]
    assert missing("`test_floods.py::test_same_replies`, `make bench GROUPS=new`") == []
