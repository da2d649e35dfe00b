# SPDX-License-Identifier: GPL-2.0
"""Ranges of ports: the search, compiled unchanged as a user-space program (tests/unit/ranges.c),
against a search through all."""

import re
import subprocess

import pytest
from simulator import ROOT, UNIT, compiled, linked, stubs

HEADER = ROOT / "kernel/service/range_search.h"


@pytest.fixture(scope="module")
def ranges(tmp_path_factory):
    build = tmp_path_factory.mktemp("ranges")
    linked(build / "ranges", compiled(build, [UNIT / "ranges.c"],
                                      ["-I", stubs("ranges", [HEADER.read_text()])]))
    return build / "ranges"


@pytest.mark.parametrize("seed", range(1, 5))
def test_at_random(ranges, seed):
    """The smallest range with a port is found, or none; sets that are out of order are refused."""
    done = subprocess.run([ranges, str(seed), "20000"], text=True, timeout=200,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found, missed, crosses, deep = map(int, re.findall(r"\d+", done.stdout))
    assert min(found, missed) > 100_000
    assert crosses > 100 and deep


def test_cost(ranges):
    """As many ranges as there can be cost a lookup little more than a few: control, a search
    through all of them costs a thousand times as much."""
    def cost(number):
        done = subprocess.run([ranges, str(number)], text=True, timeout=200, capture_output=True,
                              check=True)
        return int(done.stdout)

    few, most = (min(cost(number) for _ in range(3)) for number in (31, 32767))
    assert most < 20 * few
