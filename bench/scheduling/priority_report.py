# SPDX-License-Identifier: GPL-2.0
"""Table and plots of "make bench-priority".

  python3 bench/scheduling/priority_report.py DIRECTORY     draws them again
"""

import statistics
import sys
from pathlib import Path

from report import percentile

# Last, because this directory has a report.py, too.
sys.path.append(str(Path(__file__).resolve().parents[1] / "measure"))

from pages import SYSTEMS, again, below, figure, shaded, thousands, writer  # noqa: E402

WAYS = ("without", "LAS, prio", "LAS, ets")
# Documents by size; the largest hundredth has a class of its own.
CLASSES = ((16 << 10, "up to 16 KiB"), (128 << 10, "16 to 128 KiB"), (1 << 20, "128 KiB to 1 MiB"),
           (1 << 62, "above 1 MiB"))
PAPER = 50          # per cent by which the paper's mean falls beyond the knee
LARGEST = 0.01


def class_of(size):
    return next(name for end, name in CLASSES if size <= end)


def summary(run):
    """The figures of a run's visits, times in ms."""
    visits = run["visits"]
    took = sorted(t for t, _ in visits)
    classes = {}
    for t, size in visits:
        classes.setdefault(class_of(size), []).append(t)
    by_size = sorted(visits, key=lambda v: v[1])
    largest = [t for t, _ in by_size[-max(1, round(LARGEST * len(visits))):]]
    return {**{k: run[k] for k in ("count", "way", "seed", "failed", "director")},
            "documents": len(visits), "mean": statistics.fmean(took),
            "median": percentile(took, 50), "p95": percentile(took, 95),
            "p99": percentile(took, 99), "longest": took[-1],
            "largest": statistics.fmean(largest),
            # ms for each KiB: large if users wait long for small documents.
            "slowdown": statistics.fmean(t / max(size / 1024, 1) for t, size in visits),
            "classes": {name: statistics.fmean(times) for name, times in classes.items()},
            "shares": {name: len(times) / len(visits) for name, times in classes.items()}}


class Results:
    def __init__(self, results):
        self.r = results
        self.counts = sorted({run["count"] for run in results["runs"]})

    def values(self, count, way, what, part=None):
        """A value for each seed that has one."""
        found = [run[what] for run in self.r["runs"] if (run["count"], run["way"]) == (count, way)]
        if part is not None:
            found = [f[part] for f in found if part in f]
        return found

    def cell(self, count, way, what, part=None):
        values = self.values(count, way, what, part)
        if not values:
            return ""
        if what == "failed":
            return f"{sum(values)}"
        mean = statistics.fmean(values)
        text = f"{mean:,.0f}"
        if len(values) > 1 and mean:
            text += f" ± {50 * (max(values) - min(values)) / mean:.0f} %"
        return text

    def change(self, count, way, what, part=None):
        """Per cent by which it changes with LAS; means of all seeds."""
        off, on = (self.values(count, w, what, part) for w in (WAYS[0], way))
        if not off or not on or not statistics.fmean(off):
            return None
        return 100 * (statistics.fmean(on) / statistics.fmean(off) - 1)

    def least(self, count):
        """The least possible mean in ms (headers neglected): the link carries so many
        documents a second, and each of COUNT users waits for one or is idle."""
        return 1000 * (count * self.r["mean"] * 8 / self.r["rate"] - self.r["idle"])


def percent(value):
    return "" if value is None else f"{value:+.0f} %"


def head(res):
    r, users = res.r, res.r["parameters"]["users"]
    yield "# Priority: least attained service first"
    yield ""
    yield f"`{r['command']}`, {r['date']}, Linux {r['kernel']}, UML in virtual time."
    yield ""
    yield (f"Users ask for documents of {r['mean'] / 1024:.0f} KiB on average, with "
           f"{r['idle']:.1f} s between them, over a link of {r['rate'] / 1e6:.1f} Mbit/s, which "
           f"{users['even']} fill.")
    yield (f"{users['seconds']} s after {users['warmup']} s, {users['seeds']} seeds; ± half of the "
           "range. Bands of LAS end at "
           f"{', '.join(f'{e:,}' for e in r['parameters']['director']['ends'])} bytes.")
    yield ""


ROWS = (("mean", None, "mean response time, ms"), ("median", None, "median, ms"),
        ("p95", None, "95 % are below, ms"), ("p99", None, "99 % are below, ms"),
        *(("classes", name, f"{name}: mean, ms") for _, name in CLASSES),
        ("largest", None, "the largest hundredth: mean, ms"),
        ("longest", None, "longest of all, ms"),
        ("slowdown", None, "slowdown, ms for each KiB"),
        ("documents", None, "documents"), ("failed", None, "failed, of all seeds"))


def table(res, count):
    yield f"## {count} users"
    yield ""
    yield f"| | {WAYS[0]} | " + " | ".join(f"{w} | change" for w in WAYS[1:]) + " |"
    yield "|---|---" + "|---|---" * len(WAYS[1:]) + "|"
    for what, part, title in ROWS:
        cells = [res.cell(count, WAYS[0], what, part)]
        for way in WAYS[1:]:
            cells += [res.cell(count, way, what, part),
                      percent(res.change(count, way, what, part)) if what != "failed" else ""]
        yield f"| {title} | {' | '.join(cells)} |"
    yield ""
    for way in WAYS[1:]:
        bands = [run["director"]["bands"] for run in res.r["runs"]
                 if (run["count"], run["way"]) == (count, way)]
        total = [sum(b[i]["out_bytes"] for b in bands) for i in range(len(bands[0]))]
        yield f"Bytes in the bands, {way}: " + ", ".join(
            f"{100 * n / sum(total):.0f} %" for n in total) + "."
    yield ""


def verdict(res):
    yield "## Beside the paper"
    yield ""
    even, most = res.r["parameters"]["users"]["even"], res.counts[-1]
    yield "| users | the paper: mean with SRPT | " + " | ".join(
        f"mean, {w}" for w in WAYS[1:]) + " |"
    yield "|---|---" + "|---" * len(WAYS[1:]) + "|"
    for count in res.counts:
        theirs = "the same" if count < even else f"more than {PAPER} % less" if count > even else ""
        yield f"| {count} | {theirs} | " + " | ".join(
            percent(res.change(count, w, "mean")) for w in WAYS[1:]) + " |"
    yield ""
    for way in WAYS[1:]:
        yield from sentences(res, way, most, most > even)
    if most > even:
        yield (f"Who waits does not ask: if all arrive, the mean of {most} users over such a link is "
               f"{res.least(most):,.0f} ms at least, in whatever order (Little's law); a mean below "
               "that has large documents still waiting when the minute is over.")
    yield ""


def sentences(res, way, most, overload):
    change, large = res.change(most, way, "mean"), res.change(most, way, "largest")
    if overload:
        yield (f"{way}: with {most} users the mean changes by {change:+.0f} %: "
               + (f"as in the paper, more than {PAPER} % less." if change < -PAPER
                  else f"less than the paper's {PAPER} %."))
    failed = {w: sum(sum(res.values(c, w, "failed")) for c in res.counts) for w in WAYS}
    longest = max(max(res.values(c, way, "longest")) for c in res.counts) / 1000
    yield (f"{way}: the largest hundredth of the documents takes {large:+.0f} %; "
           + (f"{failed[way]:.0f} of all loads' documents did not arrive in time (without it "
              f"{failed[WAYS[0]]:.0f}): THEY STARVE." if failed[way] > failed[WAYS[0]] else
              f"as many arrive as without it, the last after {longest:.0f} s: none starves."))


def render(res):
    lines = list(head(res))
    for count in res.counts:
        lines += table(res, count)
    lines += verdict(res)
    return "\n".join(lines)


def draw(res, path):
    panels = (("mean", None, "all documents"), ("classes", CLASSES[0][1], CLASSES[0][1]),
              ("classes", CLASSES[1][1], CLASSES[1][1]), ("largest", None, "the largest hundredth"))
    with figure(path, 2, 2, 12, 8) as (drawn, grid):
        for axes, (what, part, title) in zip(grid.flat, panels):
            for way in WAYS:
                shaded(axes, res.counts, [res.values(c, way, what, part) for c in res.counts],
                       statistics.fmean, way, marker=".", color=SYSTEMS[way])
            axes.set_title(title)
            axes.set_xlabel("users")
            axes.set_ylabel("mean response time, ms")
            axes.set_xticks(res.counts)
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
            thousands(axes.yaxis)
        drawn.suptitle("priority: response times with and without least attained service first\n"
                       f"a link of {res.r['rate'] / 1e6:.1f} Mbit/s, which "
                       f"{res.r['parameters']['users']['even']} users fill, "
                       f"Linux {res.r['kernel']}; shaded: least to most of the seeds")
        below(drawn, *grid.flat)


write = writer(render, draw, "response.png", Results)


if __name__ == "__main__":
    again(write)
