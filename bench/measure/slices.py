# SPDX-License-Identifier: GPL-2.0
"""Figures that do not depend on the speed of a machine that changes between two.

A slice is a few milliseconds of a system, between two of the reference (redirect
at ingress, frames of the same size). Its value is a multiple of its references'
mean. If these differ by more than APART, the machine changed its speed in between
and the slice is dropped. The multiples of two systems can be compared although
their modules cannot be loaded at once.
"""

import math
import statistics

APART = 0.03
WIDEST = 0.10           # interval's width by its median; a wider one is no figure
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
    """The median's interval, by the binomial distribution of the number of values below it.
    With fewer than six values none is as sure as SURE: then it is their whole range."""
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
    """The median of multiples or ratios, and its interval. LOADS: a list of values for each
    time that the modules were loaded. Values of one load share its memory and hash keys, so
    the interval is never narrower than the one between loads."""

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
    """The Ratio of two systems' values by load. LESS is subtracted from both first (1: only
    the time added to the reference counts). None without pairs, or if nothing is left."""
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
    """Adds to each row its interval, and those of its ratios to BASE's row: of the whole
    time, and of the time added to the reference."""
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
    """(line, word) for each row of packets that has a ratio to in-tree ip_vs. The word says
    whether the intervals of the two runs overlap, are apart, or one is too wide, or whether
    one or both runs have no ratio."""
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


# Systems without a ratio: in-tree ip_vs itself, and those without a director.
REFERENCE = "reference"
NOT_COMPARED = ("ip_vs", REFERENCE)


def key(row):
    return row["group"], row["what"], row["system"]


def wide(rows, base):
    """(group, what) of packet rows whose ratio is not narrow enough yet, or missing. Rows
    without a director have a multiple instead."""
    judge(rows, base)
    lost = {(r["group"], r["what"]) for r in rows if r["system"] == base and "fault" in r}

    def narrow(row):
        figure = row.get("multiple" if row["system"] == REFERENCE else "ratio")
        return bool(figure and figure["narrow"])

    return {(r["group"], r["what"]) for r in rows if "slices" in r and "fault" not in r
            and r["system"] != base and not narrow(r)} - lost
