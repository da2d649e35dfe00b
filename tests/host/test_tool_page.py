# SPDX-License-Identifier: GPL-2.0
"""tests/TOOL.md has every row of what the tool promises, and names only tests that exist."""

import re

import pytest
from test_defects import TESTS, missing, tables

PAGE = (TESTS / "TOOL.md").read_text(encoding="utf-8")
FEATURES, MESSAGES, CHECKS, MORE, DECLINED = tables(PAGE)
ROWS = [*FEATURES, *MESSAGES, *CHECKS, *MORE]


def first(row):
    return next(iter(row.values()))[:40]


def test_every_row_is_there():
    assert (len(FEATURES), len(MESSAGES), len(CHECKS)) == (26, 18, 12)
    names = [first(row) for row in (*ROWS, *DECLINED)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", ROWS, ids=first)
def test_its_tests_exist(row):
    assert all(row.values()) and missing(row["tests"]) == []
    named = re.findall(r"`([^`]+)`", row["tests"])
    assert named and ", ".join(f"`{name}`" for name in named) == row["tests"]
    assert all("::" in name or name.startswith("make ") for name in named)


@pytest.mark.parametrize("row", DECLINED, ids=first)
def test_what_is_declined_has_a_reason(row):
    what, instead = row.values()
    assert what and len(instead) > 30


def test_it_is_linked():
    assert "(../tests/TOOL.md)" in (TESTS.parent / "doc/testing.md").read_text("utf-8")
