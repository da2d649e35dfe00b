# SPDX-License-Identifier: GPL-2.0
"""Guests that run a stage's tests, watched by the events that they write.

If a guest dies, or one of its tests takes far longer than allowed, the rest of
that file is lost: the running test has failed, and another guest takes the
files that no guest has begun.
"""

import dataclasses
import json
import os
import re
import signal
import subprocess
import time

from .stages import LIMITS, NO_TESTS, RESULTS, SILENCE, TESTS_FAILED, TOP, run

# Guests that may be lost in a stage before it is given up.
LOSSES = 3
# Seconds in which tests/lab/run asks a guest that hangs where it is, and boots another.
ANSWER = 120
TIMEOUT = re.compile(r"Failed: Timeout >")


@dataclasses.dataclass
class Failure:
    """A failed phase of a test, or a failed guest (test: the running one, or None)."""
    test: str | None
    when: str               # setup, call, teardown; guest
    text: str
    guest: int

    def may_be_chance(self):
        """A leak, a kernel report, a failed setup or teardown, or a hang never is chance."""
        return self.when == "call" and not TIMEOUT.search(self.text)


class Outcomes:
    """The results of a stage's tests."""

    def __init__(self):
        self.passed, self.skipped, self.failures = {}, {}, []
        self.files = {}         # {guest: [file]}, in the order in which they were taken
        self.seconds = {}       # {file: seconds}
        self.unsteady = {}      # {test: Failure}: failed, then passed when repeated

    def failed(self):
        """{test: [Failure]}; failures of guests without a running test are under None."""
        found = {}
        for failure in self.failures:
            found.setdefault(failure.test, []).append(failure)
        return found

    def failed_in(self, guest):
        """Names of the tests that failed in the guest of that number."""
        return {failure.test for failure in self.failures if failure.guest == guest}

    def known(self):
        return {*self.passed, *self.skipped, *self.failed(), *self.unsteady}


class Guest:
    """One guest of a stage while it runs."""

    def __init__(self, stage, number, argv, cpus, seconds):
        self.stage, self.number = stage, number
        self.log_path = stage.file(f"-{number}.log")
        events = stage.file(f"-{number}.jsonl")
        events.write_text("", encoding="utf-8")
        self.events = open(events, encoding="utf-8")
        self.rest = ""
        self.file = self.test = None
        self.since = self.file_since = time.monotonic()
        self.booted = False
        self.why = self.hangs = None    # the reason, if it was stopped; if it was to be
        # In virtual time a test's own limit is days: here that of the same kernel holds.
        self.usual = LIMITS[stage.name.replace("virtual-time", "uml")]
        self.limit = self.usual + SILENCE
        with open(self.log_path, "wb") as out:
            self.proc = subprocess.Popen(
                stage.command([*argv, f"--events={os.path.relpath(events, TOP)}"], cpus, seconds),
                cwd=TOP, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                env=os.environ | (stage.environment() if stage.name == "host" else {}))

    def read(self):
        """The events since the last call."""
        self.rest += self.events.read()
        *lines, self.rest = self.rest.split("\n")
        for line in lines:
            self.booted = True
            yield json.loads(line)

    def watch(self):
        """Stops the guest when a test takes too long by the host's clock."""
        if not self.test or self.why or time.monotonic() - self.since <= self.limit:
            return
        if self.hangs or self.stage.name == "host" or self.stage.native:
            self.why = self.hangs or f"no end after {self.limit} s"
            self.proc.terminate()
        else:
            # tests/lab/run asks the kernel where it is. It starts another guest if that tells of
            # the emulator's defect.
            self.hangs = f"no end after {self.limit} s, the guest was stopped"
            self.limit += ANSWER
            self.proc.send_signal(signal.SIGUSR1)

    def last_words(self):
        return "\n".join(self.log_path.read_text("utf-8", "replace").splitlines()[-160:])


class Watcher:
    """Adds a guest's events to the outcomes of its stage."""

    def __init__(self, outcomes, say_file):
        self.outcomes, self.say_file = outcomes, say_file

    def take(self, guest):
        for event in guest.read():
            guest.since, guest.hangs = time.monotonic(), None
            if "when" in event:
                self._result(guest, event)
            elif "test" in event:
                guest.test = event["test"]
                guest.limit = max(guest.usual, event.get("limit", 0)) + SILENCE
            elif event.get("ends"):
                self._file_ended(guest)
            else:
                guest.file, guest.file_since = event["file"], time.monotonic()
                self.outcomes.files.setdefault(guest.number, []).append(event["file"])
        guest.watch()

    def _result(self, guest, event):
        test, outcome = event["test"], event["outcome"]
        if outcome == "failed":
            self.outcomes.failures.append(Failure(test, event["when"], event["text"],
                                                  guest.number))
            self.outcomes.passed.pop(test, None)
        elif outcome == "skipped":
            self.outcomes.skipped[test] = event["text"]
        else:
            self.outcomes.passed[test] = event["seconds"]

    def _file_ended(self, guest):
        took = time.monotonic() - guest.file_since
        self.outcomes.seconds[guest.file] = took
        self.say_file(guest, guest.file, took)
        guest.file = guest.test = None

    def ended(self, guest):
        """Adds the way in which a guest ended to the outcomes; true if it was lost."""
        status = guest.proc.returncode
        # A failed run without a reported failure is a failure of the guest.
        told = status != TESTS_FAILED or self.outcomes.failed_in(guest.number)
        if guest.why is None and status in (0, NO_TESTS, TESTS_FAILED) and told:
            return False
        text = f"{guest.why or guest.hangs or status_text(status)}\n{guest.last_words()}"
        self.outcomes.failures.append(Failure(guest.test, "guest", text, guest.number))
        if guest.file:
            self.say_file(guest, guest.file, time.monotonic() - guest.file_since)
        return True


def status_text(status):
    known = {run.SPLATTED: "the kernel log has errors or leaks",
             run.OUT_OF_TIME: "out of time", run.LAB_FAILED: "the guest died or did not start"}
    return f"exit status {status}: {known.get(status, 'pytest itself failed')}"


def prepare(stage):
    """Removes the results of older runs."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    label = re.escape(stage.label)
    for old in RESULTS.iterdir():
        if re.fullmatch(label + r"(\.json|\.xml|\.order|-\d+\.(jsonl|log))", old.name):
            old.unlink()
    taken = stage.file("-taken")
    if taken.exists():
        for path in sorted(taken.rglob("*"), reverse=True):
            path.rmdir()
        taken.rmdir()
    taken.mkdir()
