# SPDX-License-Identifier: GPL-2.0
"""Packets between marks, of which a plugin of QEMU (cache.c) counts the cache misses. Inside
a guest of two processors.

    python3 misses.py SPEC FILE

SPEC is JSON: flows (of the largest table), warm and count (packets). Leaves in FILE, in the
order in which they were sent, [{name, packets}] of each job that the plugin saw: of one
without a name the counts are not wanted.
"""

import contextlib
import json
import sys
from pathlib import Path

from bed import Bed, MeasureError, Traffic, least, together
from profile import marker
from systems import IP_VS, L4LB, REDIRECT, ruleset

SIZE = least(4, "udp", 64)
SOME = 100      # flows of a processor
# The packets that fill the caches, and those that are counted.
SEEDS = (1, 2)


class Windows:
    """The jobs that the plugin sees, in order."""

    def __init__(self, spec):
        self.counts = (spec["warm"], spec["count"])
        self.jobs = []
        self.mark = marker()

    @contextlib.contextmanager
    def armed(self):
        self.mark()
        try:
            yield
        finally:
            self.mark()

    def job(self, name, jobs):
        """JOBS, each {word: value} for the generator, on a processor each."""
        results, sinks = together(jobs)
        sent = sum(job["count"] for job in jobs)
        if sinks["srv0"][0] != sent or any(r.unbuilt for r in results):
            raise MeasureError(f"{name}: {sinks['srv0'][0]} of {sent} packets arrived")
        return results

    def count(self, name, words):
        """WORDS: of each processor's packets."""
        def jobs(n):
            return [w | {"random": 1, "turns": int(len(words) > 1), "count": self.counts[n],
                         "seed": SEEDS[n] + 100 * cpu} for cpu, w in enumerate(words)]

        # What a flow's packet only does once in a while, it does now.
        for n in (0, 1):
            self.job(name, jobs(n))
        with self.armed():
            for n in (0, 1):
                for result in self.job(name, jobs(n)):
                    self.jobs.append({"name": name if n else "", "packets": result.packets})
        print(name, flush=True)


def reference(windows):
    bed = Bed()
    with bed.stand(), ruleset(bed, REDIRECT):
        words = Traffic(bed, flows=1).words(SIZE)
        windows.count("redirect: one flow", [words])
        windows.count("redirect: two processors", [words, words])


def director(windows, which, flows):
    """The fast path that makes connections sooner comes first: the others use them, too."""
    with which.loaded():
        bed = Bed()
        with bed.stand():
            which.standard(bed)
            which.set_fast_path(bed, which.fast_paths[-1][1])
            one, own, other = (Traffic(bed, method="nat", flows=n) for n in (1, SOME, SOME))
            many = Traffic(bed, method="nat", flows=flows)
            for traffic in (one, own, other):
                traffic.preload(SIZE)
            many.each(SIZE)
            rows = (("one flow", (one,)), (f"{flows:,} flows", (many,)),
                    ("two processors, own flows", (own, other)),
                    ("two processors, same flows", (own, own)))
            for name, value in reversed(which.fast_paths):
                which.set_fast_path(bed, value)
                for what, traffics in rows:
                    windows.count(f"{name}: {what}", [t.words(SIZE) for t in traffics])


def measure(spec):
    windows = Windows(spec)
    reference(windows)
    for which in (IP_VS, L4LB):
        director(windows, which, spec["flows"])
    return windows.jobs


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(json.loads(
        Path(sys.argv[1]).read_text("utf-8")))), encoding="utf-8")
