# SPDX-License-Identifier: GPL-2.0
"""Table and plots of "make bench-priority".

  python3 bench/scheduling/priority_report.py DIRECTORY     draws them again
"""

import json
import statistics
import sys
from pathlib import Path

from report import percentile

# Documents by size; the largest hundredth has a class of its own.
CLASSES = ((16 << 10, "up to 16 KiB"), (128 << 10, "16 to 128 KiB"), (1 << 20, "128 KiB to 1 MiB"),
           (1 << 62, "above 1 MiB"))
PAPER = 50          # per cent by which its mean falls beyond the knee
LARGEST = 0.01


def class_of(size):
    return next(name for end, name in CLASSES if size <= end)


def summary(run):
    """What a run's visits amount to; ms."""
    visits = run["visits"]
    took = sorted(t for t, _ in visits)
    classes = {}
    for t, size in visits:
        classes.setdefault(class_of(size), []).append(t)
    by_size = sorted(visits, key=lambda v: v[1])
    largest = [t for t, _ in by_size[-max(1, round(LARGEST * len(visits))):]]
    return {**{k: run[k] for k in ("count", "las", "seed", "failed", "director")},
            "documents": len(visits), "mean": statistics.fmean(took),
            "median": percentile(took, 50), "p95": percentile(took, 95),
            "p99": percentile(took, 99), "longest": took[-1],
            "largest": statistics.fmean(largest),
            # ms for each KiB: of whom the wait is large beside what they get.
            "slowdown": statistics.fmean(t / max(size / 1024, 1) for t, size in visits),
            "classes": {name: statistics.fmean(times) for name, times in classes.items()},
            "shares": {name: len(times) / len(visits) for name, times in classes.items()}}


class Results:
    def __init__(self, results):
        self.r = results
        self.counts = sorted({run["count"] for run in results["runs"]})

    def values(self, count, las, what, part=None):
        """One for each seed that has it."""
        found = [run[what] for run in self.r["runs"] if (run["count"], run["las"]) == (count, las)]
        if part is not None:
            found = [f[part] for f in found if part in f]
        return found

    def cell(self, count, las, what, part=None):
        values = self.values(count, las, what, part)
        if not values:
            return ""
        mean = statistics.fmean(values)
        text = f"{mean:,.0f}"
        if len(values) > 1 and mean:
            text += f" ± {50 * (max(values) - min(values)) / mean:.0f} %"
        return text

    def change(self, count, what, part=None):
        """Per cent by which it changes with LAS; means of all seeds."""
        off, on = (self.values(count, las, what, part) for las in (False, True))
        if not off or not on or not statistics.fmean(off):
            return None
        return 100 * (statistics.fmean(on) / statistics.fmean(off) - 1)


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
        ("documents", None, "documents"), ("failed", None, "failed"))


def table(res, count):
    yield f"## {count} users"
    yield ""
    yield "| | without | LAS | change |"
    yield "|---|---|---|---|"
    for what, part, title in ROWS:
        change = percent(res.change(count, what, part)) if what != "failed" else ""
        yield (f"| {title} | {res.cell(count, False, what, part)} | "
               f"{res.cell(count, True, what, part)} | {change} |")
    bands = [run["director"]["bands"] for run in res.r["runs"]
             if run["count"] == count and run["las"]]
    if bands:
        total = [sum(b[i]["out_bytes"] for b in bands) for i in range(len(bands[0]))]
        yield ""
        yield "Bytes in the bands: " + ", ".join(
            f"{100 * n / sum(total):.0f} %" for n in total) + "."
    yield ""


def verdict(res):
    yield "## Beside the paper"
    yield ""
    even = res.r["parameters"]["users"]["even"]
    yield "| users | the paper: mean with SRPT | mean with LAS |"
    yield "|---|---|---|"
    for count in res.counts:
        theirs = "the same" if count < even else f"more than {PAPER} % less" if count > even else ""
        yield f"| {count} | {theirs} | {percent(res.change(count, 'mean'))} |"
    yield ""
    most = res.counts[-1]
    change, large = res.change(most, "mean"), res.change(most, "largest")
    if most > even:
        yield (f"With {most} users LAS changes the mean by {change:+.0f} %: "
               + (f"as the paper's, more than {PAPER} % less." if change < -PAPER
                  else f"less than the paper's {PAPER} %."))
    failed = sum(res.values(most, True, "failed"))
    yield (f"The largest hundredth of the documents takes {large:+.0f} %"
           + (f"; {failed:.0f} of all did not arrive." if failed else
              "; all of them arrive: none starves."))
    yield ""


def render(res):
    lines = list(head(res))
    for count in res.counts:
        lines += table(res, count)
    lines += verdict(res)
    return "\n".join(lines)


def draw(plt, res, path):
    panels = (("mean", None, "all"), ("classes", CLASSES[0][1], CLASSES[0][1]),
              ("classes", CLASSES[1][1], CLASSES[1][1]), ("largest", None, "largest hundredth"))
    figure, grid = plt.subplots(1, len(panels), figsize=(4 * len(panels), 4), layout="constrained")
    for axes, (what, part, title) in zip(grid, panels):
        for las, label in ((False, "without"), (True, "LAS")):
            values = [res.values(c, las, what, part) for c in res.counts]
            line, = axes.plot(res.counts, [statistics.fmean(v) if v else float("nan")
                                           for v in values], marker=".", label=label)
            axes.fill_between(res.counts, [min(v, default=float("nan")) for v in values],
                              [max(v, default=float("nan")) for v in values],
                              color=line.get_color(), alpha=0.15, lw=0)
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("users")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    grid[0].set_ylabel("mean response time, ms")
    grid[0].legend(fontsize="small")
    figure.suptitle(f"{res.r['kernel']}, a link of {res.r['rate'] / 1e6:.1f} Mbit/s",
                    fontsize="medium")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def write(results, directory):
    """results.json, without each visit, table.md and the plot; the plot's name."""
    if "visits" in results["runs"][0]:
        results = results | {"runs": [summary(run) for run in results["runs"]]}
        (directory / "results.json").write_text(json.dumps(results, indent=1) + "\n",
                                                encoding="utf-8")
    res = Results(results)
    (directory / "table.md").write_text(render(res), encoding="utf-8")
    import matplotlib                               # slow to load
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    draw(plt, res, directory / "response.png")
    return ["response.png"]


if __name__ == "__main__":
    where = Path(sys.argv[1])
    write(json.loads((where / "results.json").read_text("utf-8")), where)
