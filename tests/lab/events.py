# SPDX-License-Identifier: GPL-2.0
"""A pytest plugin: tells the suite, line by line, what a guest is doing.

With --events=FILE each line of FILE is one JSON object:

  {"file": F, "tests": N}                       a file begins
  {"test": NODE}                                a test begins; with "limit": S, if it may
                                                take other than the usual time
  {"test": NODE, "when": W, "outcome": O, "seconds": S, "text": T}
                                                a phase of it ended: setup, call or teardown
  {"file": F, "ends": true}                     a file ended

The suite (tests/lab/suite) reads them while the tests run, so it knows in which
test a guest died. The text of a failure includes the messages of the guest's
kernel since shortly before the test.
"""

import collections
import itertools
import json
import os

import pytest

LINES_BEFORE = 20       # of the kernel log, from before a test that failed
LINES_MOST = 200


def pytest_addoption(parser):
    parser.addoption("--events", metavar="FILE", help="log of events, a JSON object per line")


def pytest_configure(config):
    if config.option.events:
        config.pluginmanager.register(Events(config.option.events), "l4lb-events")


class KernelLog:
    """The guest's kernel log, the last lines before a test and those since."""

    def __init__(self):
        self.before, self.since = collections.deque(maxlen=LINES_BEFORE), []
        try:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            self.fd = -1        # a host test, which runs without a guest

    def _read(self):
        while self.fd >= 0:
            try:
                record = os.read(self.fd, 16384).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue        # messages were overwritten: go on with those that are left
            head, _, text = record.partition(";")
            seconds = int(head.split(",")[2]) / 1e6
            yield f"[{seconds:12.6f}] {text.splitlines()[0] if text else ''}"

    def begin(self):
        self.before.extend(itertools.chain(self.since, self._read()))
        self.since = []

    def text(self):
        self.since.extend(self._read())
        return "\n".join([*self.before, "-- the test begins --", *self.since[-LINES_MOST:]])


class Events:
    def __init__(self, path):
        self.out = open(path, "a", encoding="utf-8", buffering=1)
        self.log = KernelLog() if os.environ.get("L4LB_VEHICLE") else None
        self.file = None

    def say(self, **what):
        self.out.write(json.dumps(what) + "\n")

    @pytest.hookimpl(tryfirst=True, hookwrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        name = item.nodeid.partition("::")[0]
        if self.file != name:
            self.file = name
            same = sum(other.nodeid.startswith(name + "::") for other in item.session.items)
            self.say(file=name, tests=same)
        if self.log:
            self.log.begin()
        self.say(test=item.nodeid, **limit_of(item))
        yield
        if nextitem is None or not nextitem.nodeid.startswith(name + "::"):
            self.say(file=name, ends=True)
            self.file = None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item):
        outcome = yield
        report = outcome.get_result()
        if report.failed and self.log:
            # With this name pytest puts it into the JUnit report, too.
            report.sections.append(("Captured stderr: kernel log", self.log.text()))

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        self.say(test=report.nodeid, when=report.when, outcome=report.outcome,
                 seconds=round(report.duration, 3), text=text_of(report))


def limit_of(item):
    """{"limit": seconds} of a test that is marked with a time limit of its own."""
    mark = item.get_closest_marker("timeout")
    return {"limit": mark.args[0]} if mark and mark.args else {}


def text_of(report):
    """The text that describes a failure or a skipped test."""
    if report.passed:
        return ""
    if report.skipped:
        return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    parts = [str(report.longrepr)]
    parts += [f"-- {name} --\n{text}" for name, text in report.sections if text]
    return "\n".join(parts)
