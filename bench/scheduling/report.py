# SPDX-License-Identifier: GPL-2.0
"""Tables and plots of "make bench-schedulers" from its results.json, and the
paper's figures beside ours.

  python3 bench/scheduling/report.py DIRECTORY     draws them again
"""

import statistics
import sys
from pathlib import Path

# Last, because that directory has a report.py, too.
sys.path.append(str(Path(__file__).resolve().parents[1] / "measure"))

from pages import SCHEDULERS, again, below, colours, figure, ruled, thousands  # noqa: E402

# Two-sided 95 % quantiles of Student's t by degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
           2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093)
STANDALONE = "standalone"
# "Scheduling techniques in a Linux cluster web server", text to its figure 3.
PAPER = ("rr", "wrr", "lc", "wlc", "lblc", "lblcr")     # it left out dh and sh
PAPER_BETTER = {2: (4.7, 14.6), 4: (46.4, 77.1)}        # %, than standalone
PAPER_MORE = (("lblc", 63.0), ("wlc", 37.6))            # %, from 2 to 4: most, least
PAPER_ORDER = "lblc, (wrr, lblcr, lc, rr), wlc, standalone"


def percentile(ordered, percent):
    """A percentile of a sorted list, by nearest rank."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


class Estimate:
    """A mean over the seeds, and the half width of its 95 % interval."""

    def __init__(self, values):
        self.mean = statistics.fmean(values)
        self.half = None
        if len(values) > 1:
            degrees = len(values) - 1
            t = STUDENT[degrees - 1] if degrees <= len(STUDENT) else 1.96
            self.half = t * statistics.stdev(values) / len(values) ** 0.5

    def __format__(self, spec):
        if self.half is None:
            return format(self.mean, spec)
        return f"{self.mean:{spec}} ± {self.half:{spec}}"

    def meets(self, other):
        """Do the intervals overlap?"""
        return abs(self.mean - other.mean) <= (self.half or 0) + (other.half or 0)


class Cell:
    """One scheduler at one cluster size in one experiment, over all seeds."""

    def __init__(self, runs, weights):
        self.runs = {r["seed"]: r for r in runs}
        self.scheduler, self.servers = runs[0]["scheduler"], runs[0]["servers"]
        self.mean, self.p95, self.p99 = (Estimate([r[k] for r in runs])
                                         for k in ("mean", "p95", "p99"))
        self.each = [statistics.fmean(column) for column in zip(*(r["each"] for r in runs))]
        self.hits = [statistics.fmean(column) for column in zip(*(r["hits"] for r in runs))]
        self.failed = sum(r["failed"] for r in runs)
        fair = [sum(self.each) * w / sum(weights) for w in weights]
        self.imbalance = max(got / due for got, due in zip(self.each, fair))

    @property
    def hit_share(self):
        return 100 * sum(self.hits) / sum(self.each)

    def better_than(self, other):
        """% of time saved, seed by seed: both had the same requests."""
        return Estimate([100 * (1 - r["mean"] / other.runs[seed]["mean"])
                         for seed, r in self.runs.items() if seed in other.runs])


class Experiment:
    """All cells of one experiment."""

    def __init__(self, name, results):
        self.name = name
        self.parameters = results["parameters"]["experiment"][name]
        self.title = self.parameters["title"]
        groups = {}
        for run in results["runs"]:
            if run["experiment"] == name:
                groups.setdefault((run["servers"], run["scheduler"]), []).append(run)
        self.cells = {key: Cell(runs, self.parameters.get("weights", [1] * max(key[0], 1)))
                      for key, runs in groups.items()}
        self.sizes = sorted({size for size, _ in self.cells})
        order = [STANDALONE, *results["schedulers"]]
        self.schedulers = [s for s in order if any(k[1] == s for k in self.cells)]
        self.standalone = self.cells.get((0, STANDALONE))

    def at(self, size):
        return [self.cells[size, s] for s in self.schedulers if (size, s) in self.cells]


# -- the table


def table(experiment):
    yield f"## {experiment.name}: {experiment.title}"
    yield ""
    yield ("| servers | scheduler | mean ms | p95 ms | p99 ms | better than standalone | "
           "imbalance | cache hits | failed | requests by server |")
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for size in experiment.sizes:
        for c in experiment.at(size):
            better = f"{c.better_than(experiment.standalone):.1f} %" \
                if size and experiment.standalone else ""
            yield (f"| {size or ''} | {c.scheduler} | {c.mean:.3f} | {c.p95:.2f} | {c.p99:.2f} | "
                   f"{better} | {c.imbalance:.2f} | {c.hit_share:.1f} % | {c.failed or ''} | "
                   f"{' '.join(f'{n:.0f}' for n in c.each)} |")
    yield ""


def low_high(estimates):
    means = [e.mean for e in estimates]
    return min(means), max(means)


def span(low, high):
    return f"{low:.1f} to {high:.1f} %"


def claim_better(experiment, size):
    low, high = low_high([c.better_than(experiment.standalone)
                          for c in experiment.at(size) if c.scheduler in PAPER])
    theirs = PAPER_BETTER[size]
    if low <= theirs[1] and high >= theirs[0]:
        verdict = "Agrees" if theirs[0] <= low and high <= theirs[1] else "Agrees in part"
    else:
        verdict = "Does not agree: " + ("we gain more" if low > theirs[1] else "we gain less")
    return f"{size} servers against standalone", span(*theirs), span(low, high), verdict


def claim_more(experiment):
    gain = {c.scheduler: c.better_than(experiment.cells[2, c.scheduler])
            for c in experiment.at(4) if c.scheduler in PAPER}
    order = sorted(gain, key=lambda s: -gain[s].mean)
    (most, a), (least, b) = PAPER_MORE
    verdict = "Agrees" if (order[0], order[-1]) == (most, least) else "Does not agree"
    if gain[order[0]].meets(gain[order[-1]]):
        verdict += ", but the intervals overlap"
    return ("from 2 to 4 servers, most and least", f"{most} {a} %, {least} {b} %",
            ", ".join(f"{s} {gain[s].mean:.1f} %" for s in (order[0], order[-1])), verdict)


def claim_order(experiment):
    cells = sorted((c for c in experiment.at(4) if c.scheduler in PAPER), key=lambda c: c.mean.mean)
    first, last = cells[0].mean, cells[-1].mean
    apart = 100 * (last.mean / first.mean - 1)
    verdict = "Standalone is last in both; " + (
        f"the six are within {apart:.1f} %, their intervals overlap" if first.meets(last) else
        f"first and last are {apart:.1f} % apart")
    return ("order at 4 servers, best first", PAPER_ORDER,
            ", ".join(c.scheduler for c in cells) + f", {STANDALONE}", verdict)


def claim_dynamic(experiment):
    def mean(size, names):
        return statistics.fmean(experiment.cells[size, s].mean.mean for s in names)
    ahead = 100 * (1 - mean(2, ("lc", "wlc", "lblc", "lblcr")) / mean(2, ("rr", "wrr")))
    return ("2 servers: lc and its kin against rr and wrr", "slightly better", f"{ahead:+.1f} %",
            "Agrees" if 0 < ahead < 10 else "Does not agree")


def claim_number(experiment):
    cells = [c for c in experiment.at(4) if c.scheduler in PAPER]
    low, high = low_high([c.mean for c in cells])
    two = statistics.fmean(experiment.cells[2, c.scheduler].mean.mean for c in cells)
    number = 100 * (1 - statistics.fmean(c.mean.mean for c in cells) / two)
    choice = 100 * (1 - low / high)
    return ("what matters more", "the number of servers",
            f"2 to 4 servers {number:.1f} %, worst to best of the six {choice:.1f} %",
            "Agrees" if number > choice else "Does not agree")


# The reasons for our figures, with the default parameters.
WHY = {
    "paper": """\
Why: the client's 10 Mb/s card adds the same waiting to every answer whatever the cluster does, so only the part of
the time that is spent in servers can shrink. At 700-1000 requests/s one of our machines is busy but keeps up, and the
second one takes away most of its queue, so that nothing is left for the third and fourth. The paper's second server
brought little and its fourth much, which is what happens when two machines are overloaded still: experiment
`overload`. The paper does not give document sizes, cache or the length of its runs, so its machines' load cannot be
rebuilt. Equal servers with equal weights make wrr the same as rr and wlc as lc. lblc and lblcr know an address, not a
document: with a single VIP there is no locality to gain. lblcr then behaves as wlc; lblc stays with one server until
it has more connections than its weight and another one has none, and balances the worse for it.""",
    "overload": """\
Why: with a machine that answers some 185 requests/s the paper's ranges appear, so its cluster was most likely
overloaded. One and two machines fall ever further behind 700-1000 requests/s: whoever is answered has waited for
seconds, and two thirds of all fail with one machine, a third with two (the paper does not say how many of its
requests did; means are of those answered). Four are just about at their limit. Servers whose queues never empty leave
the schedulers nothing to see: all that spread evenly have the same mean. lblc does not: it moves its one address only
when some server is idle, by when the others are far behind, so that more requests fail, and its mean with two servers
is of the few that did not. What made lblc the paper's best is not in the paper.""",
    "gigabit": """\
Why: without the card's queue the servers' own times are all there is, so the second server gains much more. One VIP,
equal servers and a load at which a server has only a few connections at a time leave the schedulers little to decide,
but it can be seen: those that look at connections (lc, wlc, lblcr) are ahead of rr and wrr. lblc, which stays with one
server as long as it can, starts last with two servers and so gains most from two more, as in the paper.""",
}


def comparison(experiment):
    if not experiment.standalone or not {2, 4} <= set(experiment.sizes) or \
            not all((n, s) in experiment.cells for n in (2, 4) for s in PAPER):
        return
    yield f"### The paper's figures beside ours ({experiment.name})"
    yield ""
    yield "| | paper | ours | |"
    yield "|---|---|---|---|"
    for row in (claim_better(experiment, 2), claim_better(experiment, 4), claim_more(experiment),
                claim_order(experiment), claim_dynamic(experiment), claim_number(experiment)):
        yield "| " + " | ".join(row) + " |"
    yield ""
    if experiment.name in WHY:
        yield WHY[experiment.name]
        yield ""


def text(results, experiments):
    arrivals = results["parameters"]["arrivals"]
    seeds = sorted({r["seed"] for r in results["runs"]})
    yield "# Schedulers on the paper's test bed, in virtual time"
    yield ""
    yield f"`{results['command']}`, {results['date']}, Linux {results['kernel']}. " \
        f"Open-loop arrivals at {arrivals['rate'][0]}-{arrivals['rate'][1]} requests/s for " \
        f"{arrivals['seconds']} s after {arrivals['warmup']} s of warming up; seeds " \
        f"{', '.join(map(str, seeds))}. " + \
        ("±: 95 % confidence interval over the seeds. " if len(seeds) > 1 else "") + \
        "Imbalance: the busiest server's requests over its due share. Everything else: workload.toml."
    yield ""
    for experiment in experiments:
        yield from table(experiment)
        yield from comparison(experiment)


# -- plots


def by_size(experiment):
    """[(x, cell)], a group for each cluster size, and the groups' (middle, name)."""
    at, cells, ticks = 0, [], []
    for size in experiment.sizes:
        group = experiment.at(size)
        cells += [(at + i, cell) for i, cell in enumerate(group)]
        ticks.append((at + (len(group) - 1) / 2,
                      f"{size} server{'s' * (size > 1)}" if size else "alone"))
        at += len(group) + 1
    return cells, ticks


def draw_times(axes, experiment, colour, what):
    """A percentile or the mean of the request time, by cluster size and scheduler."""
    cells, ticks = by_size(experiment)
    for x, cell in cells:
        e = getattr(cell, what)
        axes.bar(x, e.mean, yerr=e.half, capsize=2, color=colour[cell.scheduler],
                 label=cell.scheduler)
    values = [getattr(cell, what).mean for _, cell in cells]
    if max(values) > 8 * min(values) > 0:
        axes.set_yscale("log")
    axes.set_xticks(*zip(*ticks))
    axes.set_ylabel("request time, ms")
    axes.set_title({"mean": "mean", "p99": "99th percentile"}[what] + " (less is better)")


def draw_servers(axes, experiment, colour):
    """Requests of each server in the largest cluster, hits and misses apart."""
    size = experiment.sizes[-1]
    cells = experiment.at(size)
    for i, cell in enumerate(cells):
        for n, (each, hits) in enumerate(zip(cell.each, cell.hits)):
            x = i * (len(cell.each) + 1) + n
            axes.bar(x, hits, color=colour[cell.scheduler])
            axes.bar(x, each - hits, bottom=hits, color="white", hatch="/////",
                     edgecolor="0.35", lw=0.5)
    axes.set_xticks([i * (size + 1) + (size - 1) / 2 for i in range(len(cells))],
                    [c.scheduler for c in cells], rotation=30 if len(cells) > 10 else 0)
    axes.set_ylabel("requests in a run")
    axes.set_title(f"each of {size} servers (hatched: document not in the cache)"
                   if size > 1 else "hatched: document not in the cache")


def draw_disk(axes, experiment, colour):
    """The share of requests that the caches did not answer, in the largest cluster."""
    cells = experiment.at(experiment.sizes[-1])
    axes.bar([c.scheduler for c in cells], [100 - c.hit_share for c in cells],
             color=[colour[c.scheduler] for c in cells])
    axes.tick_params(axis="x", rotation=30 if len(cells) > 10 else 0)
    axes.set_ylabel("% of requests")
    axes.set_title("document not in the cache, all servers (less is better)")


def draw_paper(axes, experiment, colour):
    """Improvement over standalone, ours as bars, the paper's range behind."""
    at, ticks = 0, []
    for size in (2, 4):
        cells = [c for c in experiment.at(size) if c.scheduler in PAPER]
        low, high = PAPER_BETTER[size]
        axes.fill_between([at - 0.9, at + len(cells) - 0.1], low, high, color="0.8", zorder=0,
                          label="range of the paper")
        for i, cell in enumerate(cells):
            e = cell.better_than(experiment.standalone)
            axes.bar(at + i, e.mean, yerr=e.half, capsize=2, color=colour[cell.scheduler])
        ticks.append((at + (len(cells) - 1) / 2, f"{size} servers"))
        at += len(cells) + 1
    axes.set_xticks(*zip(*ticks))
    axes.set_ylabel("% of the mean request time")
    axes.set_title("saved against one machine alone (more is better)")


def draw(experiment, results, path):
    """Times above; below each server's requests, and the paper's gain or the disks' share."""
    colour = colours(experiment.schedulers, SCHEDULERS)
    seeds = {r["seed"] for r in results["runs"] if r["experiment"] == experiment.name}
    with figure(path, 2, 2, 12, 8) as (drawn, ((mean, p99), (servers, last))):
        draw_times(mean, experiment, colour, "mean")
        draw_times(p99, experiment, colour, "p99")
        draw_servers(servers, experiment, colour)
        (draw_paper if any(comparison(experiment)) else draw_disk)(last, experiment, colour)
        for axes in (mean, p99, servers, last):
            ruled(axes, "y")
            if axes.get_yscale() == "linear":
                thousands(axes.yaxis)
        intervals = f"; lines: 95 % interval of {len(seeds)} seeds" if len(seeds) > 1 else ""
        drawn.suptitle(f"{experiment.name}: {experiment.title}{intervals}")
        below(drawn, mean, last)


def plot(results, experiments, out):
    """Draws a plot for each experiment; returns the files' names."""
    names = [f"{e.name}.png" for e in experiments]
    for e, name in zip(experiments, names):
        draw(e, results, out / name)
    return names


def write(results, out):
    """table.md and the plots into OUT; the plots' names."""
    names = list(dict.fromkeys(r["experiment"] for r in results["runs"]))
    experiments = [Experiment(name, results) for name in names]
    (out / "table.md").write_text("\n".join(text(results, experiments)), encoding="utf-8")
    return plot(results, experiments, out)


if __name__ == "__main__":
    again(write)
