# SPDX-License-Identifier: GPL-2.0
"""Sends packets between marks, whose cache misses a plugin of QEMU (cache.c) counts. Inside
a guest with two processors.

    python3 misses.py SPEC FILE

SPEC is JSON: director (its name), flows (of the largest table), count (packets of a job).
Writes to FILE what each of the plugin's reports is about, [{name, packets}] in their order;
reports with an empty name are to be ignored.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from profile import marker

from bed import Bed, Generator, MeasureError, Traffic, least
from systems import IP_VS, L4LB, REDIRECT, ruleset

SIZE = least(4, "udp", 64)
SOME = 100          # flows for each processor
AHEAD = 30_000_000  # ns from now until both processors begin
SEED = 1
ARM, REPORT = b"\xb8\x4c\x34\x4c\x42", b"\xb8\x4f\x34\x4c\x42"     # see cache.c


class Processor(threading.Thread):
    """A job on its own processor, which begins at START (ns)."""

    def __init__(self, number, start, job):
        super().__init__()
        self.number, self.start_at, self.job = number, start, job
        self.generator = Generator()
        self.fault = None

    def run(self):
        try:
            os.sched_setaffinity(0, {self.number})
            if time.monotonic_ns() > self.start_at:
                raise MeasureError(f"processor {self.number} is late")
            self.generator.start(start=self.start_at, turns=1, **self.job)
        except (OSError, MeasureError) as e:
            self.fault = e


def in_turns(bed, jobs):
    """Runs JOBS on two processors, which send a packet each in turn; the sinks' counts."""
    bed.gen.zero()
    start = time.monotonic_ns() + AHEAD
    processors = [Processor(n, start, job) for n, job in enumerate(jobs)]
    for p in processors:
        p.start()
    for p in processors:
        p.join()
    for p in processors:
        if p.fault:
            raise MeasureError(str(p.fault))
    sinks = processors[0].generator.result().sinks
    for p in processors:
        p.generator.close()
    return sinks


class Windows:
    """Has the plugin count and report, and keeps the names of the reports."""

    def __init__(self, count):
        self.each = count
        self.reports = []
        self.arm, self.report = marker(ARM), marker(REPORT)

    def send(self, bed, name, words):
        """WORDS: the packets of each processor."""
        jobs = [w | {"random": 1, "count": self.each, "seed": SEED + cpu}
                for cpu, w in enumerate(words)]
        sinks = bed.gen.send(**jobs[0]).sinks if len(jobs) == 1 else in_turns(bed, jobs)
        if sinks["srv0"][0] != self.each * len(jobs):
            raise MeasureError(f"{sinks['srv0'][0]} of {self.each * len(jobs)} packets arrived")
        self.report()
        self.reports.append({"name": name, "packets": self.each * len(jobs)})

    def count(self, bed, name, words):
        """The first send fills the caches, and includes work that a flow only causes now and
        then. The second sends the same packets; a million flows miss again, as the caches hold
        far fewer."""
        self.arm()
        self.send(bed, "", words)
        self.send(bed, name, words)
        print(name, flush=True)


def reference(windows, bed):
    """Packets that are redirected before the director sees them."""
    words = Traffic(bed, flows=1).words(SIZE)
    with ruleset(bed, REDIRECT):
        windows.count(bed, "redirect: one flow", [words])
        windows.count(bed, "redirect: two processors", [words, words])


def rows(windows, bed, director, flows):
    """Connections are made once, at the fast path's last setting, which makes them fastest;
    all settings use them. Counting begins when all of them exist."""
    director.set_fast_path(bed, director.fast_paths[-1][1])
    one, mine, other = (Traffic(bed, method="nat", flows=n) for n in (1, SOME, SOME))
    many = Traffic(bed, method="nat", flows=flows)
    for traffic in (one, mine, other):
        traffic.preload(SIZE)
    many.each(SIZE)
    print(f"{director.name}: {flows:,} connections", flush=True)
    for name, value in reversed(director.fast_paths):
        director.set_fast_path(bed, value)
        for what, traffics in (("one flow", (one,)), (f"{flows:,} flows", (many,)),
                               ("two processors, own flows", (mine, other)),
                               ("two processors, same flows", (mine, mine))):
            windows.count(bed, f"{name}: {what}", [t.words(SIZE) for t in traffics])


def measure(spec):
    windows = Windows(spec["count"])
    director = {d.name: d for d in (IP_VS, L4LB)}[spec["director"]]
    with director.loaded():
        bed = Bed()
        with bed.stand():
            director.standard(bed)
            rows(windows, bed, director, spec["flows"])
            if director is IP_VS:   # once is enough
                reference(windows, bed)
    return windows.reports


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(json.loads(
        Path(sys.argv[1]).read_text("utf-8")))), encoding="utf-8")
