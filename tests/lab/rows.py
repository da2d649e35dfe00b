# SPDX-License-Identifier: GPL-2.0
"""A pytest plugin: fewer rows of tests that have many.

A test with parameters a, b and c runs for each of their combinations (its rows).
With --rows=pairs only enough rows run for every pair of values of two parameters
to occur, with --rows=each enough for every value to occur: a covering array,
chosen greedily and always the same (the aim of IPOG; Lei and others, ECBS 2007).
A failure that depends on one value, or on two values together, is still found;
"make test-all" runs all combinations.

--rows=few runs even fewer: every value once of tests marked `emulated` or `each`, and one
row of other tests, which the test's name selects, so that not all run their first row.

A test marked `dear` takes seconds of a processor for each row: with --rows=pairs, too, every
value of it occurs once.

A parameter with many values is a list of cases. --rows=each is for kernels on
which the tests run a second time, so it takes only some values of a long list,
spread over it.
"""

import collections
import itertools
import os
import zlib

import pytest

STRENGTH = {"few": 1, "each": 1, "pairs": 2}
# Up to this number of rows, all of them run.
FEW = {"few": 1, "each": 2, "pairs": 6}
ORDER = ("few", "each", "pairs", "all")
MANY = 4        # at most so many values of one parameter with "each" and "few"


def pytest_addoption(parser):
    parser.addoption("--rows", choices=("all", *STRENGTH), default="all",
                     help="rows of tests with parameters: all, enough for all pairs of values, "
                          f"each value once ({MANY} of a long list), or few (default: all)")


@pytest.hookimpl(trylast=True)     # after -m and -k
def pytest_collection_modifyitems(config, items):
    if config.option.rows == "all":
        return
    groups = collections.defaultdict(list)
    for item in items:
        each = any(item.get_closest_marker(mark) for mark in ("emulated", "each"))
        groups[item.nodeid.partition("[")[0], each].append(item)
    kept = set()
    for (test, each), group in groups.items():
        if config.option.rows == "few" and not each:
            group = [group[zlib.crc32(test.encode()) % len(group)]]
        dear = any(item.get_closest_marker("dear") for item in group)
        kept.update(chosen(group, "each" if dear and config.option.rows == "pairs" else
                           config.option.rows))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def amount(config, **amounts):
    """How many rounds, packets or commands a test does. AMOUNTS: by --rows; for one that
    is not given, the next smaller one."""
    return next(amounts[how] for how in ORDER[:ORDER.index(config.option.rows) + 1][::-1]
                if how in amounts)


def chosen(items, how):
    """Those of one test's ITEMS that run."""
    rows = [values(item) for item in items]
    if STRENGTH[how] == 1:
        for name in sorted(set().union(*rows)):
            keep = spread(list(dict.fromkeys(row.get(name) for row in rows)))
            items, rows = zip(*[(item, row) for item, row in zip(items, rows)
                                if row.get(name) in keep])
    return covering(rows, items, how)


def large(*values):
    """A row of a size that takes minutes at native speed, and hours in an emulator."""
    native = os.environ.get("L4LB_VEHICLE") not in ("qemu", "debug")
    return pytest.param(*values, marks=[
        pytest.mark.slow, pytest.mark.timeout(1800),
        pytest.mark.skipif(not native, reason="needs a native speed; runs on stage uml")])


def values(item):
    """{parameter: its value's name}. Parameters that are given together are one. pytest's
    `indices` are no help: in 7.2 they count on through the product."""
    return dict(enumerate(item.callspec._idlist)) if hasattr(item, "callspec") else {}


def spread(every):
    """At most MANY of EVERY, spread over the list, including the first and the last."""
    if len(every) <= MANY:
        return every
    return [every[n * (len(every) - 1) // (MANY - 1)] for n in range(MANY)]


def covering(rows, items, how):
    """Those of ITEMS whose ROWS together hold all tuples of values that occur."""
    if len(items) <= FEW[how]:
        return items
    wanted = [tuples(row, STRENGTH[how]) for row in rows]
    missing = set().union(*wanted)
    got = []
    while missing:
        best = max(range(len(items)), key=lambda n: (len(wanted[n] & missing), -n))
        got.append(items[best])
        missing -= wanted[best]
    return got or items[:1]


def tuples(row, strength):
    return set(itertools.combinations(sorted(row.items()), min(strength, len(row))))
