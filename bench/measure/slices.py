# SPDX-License-Identifier: GPL-2.0
"""Figures that a machine with two speeds cannot fool.

A slice is a few milliseconds of a system, between two of the reference (redirect
at ingress, frames of the same size). It counts as a multiple of its references'
mean, and not at all when they differ by more than APART: the machine changed its
speed in between. Multiples of one system compare with those of another although
both modules cannot be loaded at once.
"""

import math
import statistics

APART = 0.03
WIDEST = 0.10           # an interval, of its middle: beyond that, there is no figure
SURE = 0.95
# Student's t for SURE, by degrees of freedom; the last one serves for more, too.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
FEWEST_SLICES, FEWEST_LOADS = 6, 3


def normalised(before, ns, after):
    """A slice as a multiple of its references; None where they do not agree."""
    if min(before, after) <= 0 or abs(before - after) > APART * min(before, after):
        return None
    return 2 * ns / (before + after)


def interval(values):
    """Of the median, by the binomial distribution of how many values are below it. With
    less than six values no interval is that sure: it is all of them."""
    ordered, n = sorted(values), len(values)
    tail, k = 0.0, 0
    while k < n // 2:
        tail += math.comb(n, k) / 2 ** n
        if 2 * tail > 1 - SURE:
            break
        k += 1
    k = max(k - 1, 0)
    return ordered[k], ordered[n - 1 - k]


def between(loads):
    """The interval of the mean of the loads' medians, as if they were normally distributed."""
    middles = [statistics.median(load) for load in loads]
    mean, free = statistics.fmean(middles), len(middles) - 1
    half = STUDENT[min(free, len(STUDENT)) - 1] * statistics.stdev(middles) / math.sqrt(free + 1)
    return mean - half, mean + half


class Ratio:
    """The median of paired values' ratios and its interval. LOADS: pairs by the load of
    the modules that they are of. Pairs of one load share its memory and its hash keys, so
    the interval is never narrower than that between loads."""

    def __init__(self, loads):
        loads = [load for load in loads if load]
        pooled = [value for load in loads for value in load]
        self.count, self.loads = len(pooled), len(loads)
        self.median = statistics.median(pooled)
        spans = [interval(pooled)]
        if len(loads) > 1:
            spans.append(between(loads))
        self.low, self.high = min(s[0] for s in spans), max(s[1] for s in spans)

    @property
    def narrow(self):
        return self.count >= FEWEST_SLICES and self.loads >= FEWEST_LOADS and \
            self.high - self.low <= WIDEST * abs(self.median)

    def __str__(self):
        if self.narrow:
            return f"{self.median:.2f} [{self.low:.2f} .. {self.high:.2f}]"
        return f"too wide ({self.low:.2f} .. {self.high:.2f}), {self.count} slices"

    def record(self):
        return {"median": round(self.median, 4), "low": round(self.low, 4),
                "high": round(self.high, 4), "slices": self.count, "narrow": self.narrow}


def paired(ours, theirs, less=0.0):
    """Ratio of two systems' values by load; LESS is taken off both first (1: what is
    added to the reference). None without a pair, or where nothing is left of one."""
    loads = [[(a - less, b - less) for a, b in zip(x, y)] for x, y in zip(ours, theirs)]
    pairs = [p for load in loads for p in load]
    if not pairs or min(statistics.median(side) for side in zip(*pairs)) <= 0:
        return None
    return Ratio([[a / b for a, b in load if b > 0] for load in loads])


class Bracketed:
    """The slices of one system in one load, as multiples of the reference."""

    def __init__(self, multiples, tried):
        self.multiples, self.tried = multiples, tried


def bracket(once, reference, seconds, most, clock):
    """Slices until SECONDS are over or MOST are good; each reference serves two slices."""
    end, multiples, tried = clock() + seconds, [], 0
    before = reference()
    while tried < 8 or (len(multiples) < most and clock() < end):
        ns = once()
        after = reference()
        value = normalised(before, ns, after)
        if value is not None:
            multiples.append(value)
        before, tried = after, tried + 1
    return Bracketed(multiples, tried)


def judge(rows, base):
    """Each row's interval, and those of its ratios to BASE's row: of the whole, and of what
    is added to the reference. Kept are the intervals, not the slices."""
    bases = {(r["group"], r["what"]): r for r in rows if r["system"] == base}
    for row in rows:
        theirs = bases.get((row["group"], row["what"]))
        for name in ("multiple", "ratio", "added"):
            row.pop(name, None)
        if any(row.get("slices", ())):
            row["multiple"] = Ratio(row["slices"]).record()
        if not theirs or theirs is row or "fault" in row or "fault" in theirs:
            continue
        sliced = "slices" in row and "slices" in theirs
        sides = [r["slices"] if sliced else [[v] for v in r["values"]] for r in (row, theirs)]
        for name, less in (("ratio", 0), ("added", 1))[:1 + sliced]:
            found = paired(*sides, less)
            if found:
                row[name] = found.record()
    return rows


APART_WORD, WIDE_WORD = "APART", "too wide"
LONE_WORD, NONE_WORD = "IN ONE RUN ONLY", "NO FIGURE"


def overlap(one, other):
    """(line, word) for each row of packets that is to be compared with in-tree ip_vs: do
    the intervals of its two ratios overlap, are they apart, is one too wide to say, has one
    run no ratio, or neither?"""
    found = [{key(r): r.get("ratio") if "multiple" in r else None for r in rows
              if ("tried" in r or "fault" in r) and r["system"] not in NOT_COMPARED}
             for rows in (one, other)]
    for name in {**found[0], **found[1]}:
        both = [rows[name] for rows in found if rows.get(name)]
        if not both:
            yield f"{': '.join(name)}: {NONE_WORD}", NONE_WORD
            continue
        a, b = both[0], both[-1]
        if len(both) < 2:
            word = LONE_WORD
        elif not (a["narrow"] and b["narrow"]):
            word = WIDE_WORD
        else:
            word = "overlap" if a["low"] <= b["high"] and b["low"] <= a["high"] else APART_WORD
        spans = ", ".join(f"{r['low']:.3f} .. {r['high']:.3f}" for r in both)
        yield f"{': '.join(name)}: {spans}: {word}", word


# In-tree ip_vs itself, and what there is without a director.
REFERENCE = "reference"
NOT_COMPARED = ("ip_vs", REFERENCE)


def key(row):
    return row["group"], row["what"], row["system"]


def wide(rows, base):
    """(group, what) of packet rows that have no ratio narrow enough yet, or not one slice.
    What is there without a director has its multiple."""
    judge(rows, base)
    lost = {(r["group"], r["what"]) for r in rows if r["system"] == base and "fault" in r}

    def narrow(row):
        figure = row.get("multiple" if row["system"] == REFERENCE else "ratio")
        return bool(figure and figure["narrow"])

    return {(r["group"], r["what"]) for r in rows if "slices" in r and "fault" not in r
            and r["system"] != base and not narrow(r)} - lost
