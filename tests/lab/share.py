# SPDX-License-Identifier: GPL-2.0
"""A pytest plugin: guests share the tests of one run, file by file.

A file is not split, because its tests mostly use the same topology and one loaded
module. A free guest takes the next file. Long files begin first, so that all
guests end at about the same time: the order is by the seconds that a file took in
the last run (--order), otherwise by the number of its tests, or by its TAKES, if
it has few but long tests: the number of ordinary tests that take as long. A file
with CPUS = 2 needs two processors: a QEMU guest with one leaves it to others.
"""

import collections
import itertools
import json
import os
from pathlib import Path

import pytest

SECONDS_A_TEST = 0.1        # a guess, for files without a measured time
FINISHED = "finished"       # no guest has this name


def pytest_addoption(parser):
    parser.addoption("--share", metavar="DIRECTORY:GUEST",
                     help="share the tests with the other runs that get this DIRECTORY and "
                          "another GUEST")
    parser.addoption("--order", metavar="FILE",
                     help="JSON, {file: seconds}: the longest file begins first")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.option.share:
        expected = seconds(config.option.order, items)
        items.sort(key=lambda item: (-expected[file_of(item)], item.path))


def file_of(item):
    return item.nodeid.partition("::")[0]


def seconds(order, items):
    """{file: expected seconds}"""
    measured = json.loads(Path(order).read_text("utf-8")) if order else {}
    counts = collections.Counter(file_of(item) for item in items)
    return {file_of(item): measured.get(file_of(item), SECONDS_A_TEST * getattr(
        item.module, "TAKES", counts[file_of(item)])) for item in items}


class Share:
    """The files that one guest takes."""

    def __init__(self, directory, guest):
        self.directory, self.guest = Path(directory), guest

    def take(self, name):
        """Is it ours? After a restart, those that we took and did not finish still are."""
        taken = self.directory / name
        try:
            taken.mkdir()           # succeeds for one guest only, on any file system
        except FileExistsError:
            return (taken / self.guest).exists() and not (taken / FINISHED).exists()
        (taken / self.guest).mkdir()
        return True

    def finish(self, name):
        (self.directory / name / FINISHED).mkdir()

    def items(self, items):
        enough = os.cpu_count() if os.environ.get("L4LB_VEHICLE") == "qemu" else 2
        for path, group in itertools.groupby(items, lambda item: item.path):
            group = list(group)
            if getattr(group[0].module, "CPUS", 1) <= enough and self.take(path.name):
                yield from group


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """pytest's own loop, but over items that are chosen one by one."""
    option = session.config.option
    if not option.share or option.collectonly or session.testsfailed:
        return None
    share = Share(*option.share.rsplit(":", 1))
    items = share.items(session.items)
    item = next(items, None)
    while item:
        following = next(items, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if following is None or following.path != item.path:
            share.finish(item.path.name)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True
