# SPDX-License-Identifier: GPL-2.0
"""The scheduler printed in schedulers/README.md, compiled as a module and used.
Only its name differs, so that a reader's own copy does not collide with it."""

from collections import Counter

import pytest
from lab import genl
from lab.flows import asked
from lab.packet import TCP
from lab.raw import Raw
from lab.testmodule import TestModule

FOUR = (1, 2, 3, 4)


@pytest.fixture
def example(backend, dr):
    if not backend.is_l4lb:
        pytest.skip("a module of l4lb's, which ip_vs cannot load; runs with --backend l4lb")
    module = TestModule(backend, "l4lb_example")
    done = module.insmod()
    assert done.returncode == 0, done.stderr
    yield module
    dr.flush()
    assert module.rmmod().returncode == 0


@pytest.mark.smoke
def test_example(dr, example):
    """It draws as many servers as the option says and takes the least loaded. A
    server with 60 connections more than the others gets a quarter of the new
    ones with one draw, a sixteenth with two, none with 16. None is refused
    while any server is usable."""
    with genl.L4lb(dr.director.ns) as l4lb:
        option = l4lb.scheduler("example")["options"]["choices"]
        assert (option["min"], option["max"], option["default"]) == (1, 16, 2)
        for choices, low, high in ((1, 15, 45), (2, 0, 19), (16, 0, 0)):
            raw = Raw(dr, TCP, 4, (1,), sched="example")
            l4lb.set(raw.service, choices=choices)
            assert asked(raw, 60) == [1] * 60
            for number in FOUR[1:]:
                raw.add(number)
            got = Counter(asked(raw, 120))
            assert set(got) <= set(FOUR) and low <= got[1] <= high, (choices, got)
    raw.edit(2, weight=0)
    raw.edit(3, upper=1)
    raw.remove(4)
    assert set(asked(raw, 20)) == {1}
    raw.edit(1, weight=0)
    assert asked(raw, 2) == [None] * 2
