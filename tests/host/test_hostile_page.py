# SPDX-License-Identifier: GPL-2.0
"""tests/HOSTILE.md has a row for each hostile message, and names only tests and counters that
exist."""

import re

import pytest
from test_defects import TESTS, missing, tables

PAGE = (TESTS / "HOSTILE.md").read_text(encoding="utf-8")
(ROWS,) = tables(PAGE)
COUNTERS = (TESTS.parent / "kernel/sync/counter.c").read_text(encoding="utf-8")


def test_every_item_is_there():
    items = [int(row["item"]) for row in ROWS]
    assert items == sorted(items)
    assert set(items) == set(range(1, 26))


@pytest.mark.parametrize("row", ROWS, ids=[f"{r['item']}-{r['message'][:20]}" for r in ROWS])
def test_a_row_is_whole(row):
    assert "::" in row["tests"]
    assert missing(row["tests"]) == []
    for name in re.findall(r"`(\w+)`", row["counter in /proc/net/l4lb"]):
        assert f'"{name}"' in COUNTERS, name


def test_the_text_names_tests_that_exist():
    assert missing(PAGE) == []
