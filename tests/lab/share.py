# SPDX-License-Identifier: GPL-2.0
"""A pytest plugin: guests that share the tests of one run, file by file.

Files are whole because a file's tests mostly use the same topology and one
loaded module. Whoever is free takes the next, so nobody has to know how long
each takes; what is long should begin early, though, for all to end at the same
time. The order is by the seconds that a file took in the last run (--order),
else by the number of its tests, or its TAKES, which is what a file with few,
long tests would have as an ordinary one. A file with CPUS = 2 is about what
two processors do at once: in QEMU a guest with one leaves it to others.
"""

import collections
import itertools
import json
import os
from pathlib import Path

import pytest

SECONDS_A_TEST = 0.1        # a guess, where nobody has measured


def pytest_addoption(parser):
    parser.addoption("--share", metavar="DIRECTORY:GUEST",
                     help="share the tests with all who are given this directory and another "
                          "GUEST")
    parser.addoption("--order", metavar="FILE",
                     help="JSON, {file: seconds}: what took longest begins first")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.option.share:
        expected = seconds(config.option.order, items)
        items.sort(key=lambda item: (-expected[file_of(item)], item.path))


def file_of(item):
    return item.nodeid.partition("::")[0]


def seconds(order, items):
    """{file: how long it will take}"""
    measured = json.loads(Path(order).read_text("utf-8")) if order else {}
    counts = collections.Counter(file_of(item) for item in items)
    return {file_of(item): measured.get(file_of(item), SECONDS_A_TEST * getattr(
        item.module, "TAKES", counts[file_of(item)])) for item in items}


class Share:
    """The files that one guest takes."""

    def __init__(self, directory, guest):
        self.directory, self.guest = Path(directory), guest

    def take(self, name):
        """Is it ours? What we had taken before we were started anew still is."""
        taken = self.directory / name
        try:
            taken.mkdir()           # by one guest only, whatever the file system
        except FileExistsError:
            return (taken / self.guest).exists()
        (taken / self.guest).mkdir()
        return True

    def items(self, items):
        enough = os.cpu_count() if os.environ.get("L4LB_VEHICLE") == "qemu" else 2
        for path, group in itertools.groupby(items, lambda item: item.path):
            group = list(group)
            if getattr(group[0].module, "CPUS", 1) <= enough and self.take(path.name):
                yield from group


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """pytest's own loop, over a list that is not known yet."""
    option = session.config.option
    if not option.share or option.collectonly or session.testsfailed:
        return None
    items = Share(*option.share.rsplit(":", 1)).items(session.items)
    item = next(items, None)
    while item:
        following = next(items, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True
