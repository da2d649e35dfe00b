# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make bench-connections" from its results.json.

  python3 bench/measure/connections.py DIRECTORY     draws them again
"""

import statistics

from counted import measured
from pages import SYSTEMS, again, below, colours, figure, shaded, thousands, writer

RATES = list(range(2800, 21001, 1400))
BEYOND = [23_800]    # above the paper's rates, all of which a director may manage
REFERENCE = "no director"
PAPER_SETUP, PAPER_SESSIONS = 12_384, 6_065
SERVERS = 7
KINDS = {False: "connections set up", True: "sessions (set up and closed)"}
TELLING = 200_000   # connections whose memory stands out from other allocations
EVEN = 1.05     # ratio of most to fewest connections of a server that counts as equal


class Results:
    """The ladder's results."""

    def __init__(self, results):
        self.r = results
        self.ways = results["spec"]["ways"]
        self.rates = {False: results["spec"]["rates"], True: results["spec"]["sessions"]}

    def rows(self, way, closes):
        """The rows of a way, by rate."""
        return {r["rate"]: r for r in self.r["rows"] if (r["way"], r["closes"]) == (way, closes)}

    def achieved(self, way, closes):
        """Connections a second at each rate."""
        rows = self.rows(way, closes)
        return [rows[rate]["achieved"] for rate in self.rates[closes]]

    def best(self, way, closes):
        return max(self.achieved(way, closes))

    def takes_all(self, way, closes):
        """Does the way achieve at least 98 % of the highest rate?"""
        last = self.rows(way, closes)[self.rates[closes][-1]]
        return last["achieved"] >= 0.98 * last["offered"]

    def uneven(self, way, closes):
        """The worst trial's ratio of most to fewest connections of a server; 0: one had none."""
        worst = 1.0
        for row in self.rows(way, closes).values():
            if not min(row["opened"]):
                return 0
            worst = max(worst, max(row["opened"]) / min(row["opened"]))
        return worst


def figures(r):
    """The figures by which two runs with the same seed are compared."""
    found = {}
    for row in r["rows"]:
        kind = "sessions" if row["closes"] else "set up"
        found[f"{row['way']}, {kind} at {row['rate']}"] = row["achieved"]
    return found | {f"at once, {way}": row["open"] for way, row in r["held"].items()}


def head(r):
    yield from measured("Connections", r)
    yield f"{r['spec']['requests']:,} requests a trial (paper: 112,000)."
    yield ""
    yield ("No director: interrupts, both ends and plain forwarding alone, which every way has "
           "in its figures, too.")
    yield ""


def ladder(res, closes):
    yield f"### {KINDS[closes]}"
    yield ""
    ways = [*res.ways] if closes else [REFERENCE, *res.ways]
    yield "| asked for, /s | " + " | ".join(ways) + " |"
    yield "|---|" + "---|" * len(ways)
    columns = [res.achieved(way, closes) for way in ways]
    for rate, *cells in zip(res.rates[closes], *columns):
        yield f"| {rate:,} | " + " | ".join(f"{cell:,.0f}" for cell in cells) + " |"
    yield ""


def held(r):
    yield "## Connections at once"
    yield ""
    yield f"| way | open | bytes of memory for each | slowest {r['spec']['held']['step']:,} |"
    yield "|---|---|---|---|"
    for way, row in r["held"].items():
        more = " (all that were asked for)" if row["asked"] >= r["spec"]["held"]["most"] else ""
        each = f"{row['bytes']:,.0f}" if row["open"] >= TELLING else "too few to tell"
        yield f"| {way} | {row['open']:,}{more} | {each} | {row['slowest']:.2f} s |"
    yield ""


def verdict(res):
    """The paper's figures beside ours, in sentences that follow from the numbers."""
    yield "## Beside the paper"
    yield ""
    yield "| | paper | " + " | ".join(res.ways) + " |"
    yield "|---|---|" + "---|" * len(res.ways)
    for closes, theirs in ((False, PAPER_SETUP), (True, PAPER_SESSIONS)):
        yield f"| most {KINDS[closes]}, /s | {theirs:,} | " + " | ".join(
            f"{res.best(way, closes):,.0f}" for way in res.ways) + " |"
    share = [res.best(way, True) / res.best(way, False) for way in res.ways]
    yield f"| sessions, of connections set up | {PAPER_SESSIONS / PAPER_SETUP:.2f} | " + \
        " | ".join(f"{s:.2f}" for s in share) + " |"
    after = [res.achieved(way, False)[-1] / res.best(way, False) for way in res.ways]
    yield "| at the highest rate, of the most | falls slowly | " + \
        " | ".join(f"{a:.2f}" for a in after) + " |"
    even = [max(res.uneven(way, c) for c in (False, True)) for way in res.ways]
    yield "| most of a server, of its fewest, worst trial | equal | " + \
        " | ".join(f"{e:.3f}" for e in even) + " |"
    yield ""
    agree, differ = [], []
    (agree if all(1 <= e < EVEN for e in even) else differ).append(
        "every server gets the same share at every rate")
    # The maximum of a way that manages the highest rate is unknown.
    open_ended = [way for way in res.ways for closes in KINDS if res.takes_all(way, closes)]
    if not open_ended:
        (agree if all(s < 0.8 for s in share) else differ).append(
            "sessions cost clearly more than setting up")
        (agree if all(0.3 < a < 0.99 for a in after) else differ).append(
            "beyond the most, more requests mean fewer connections")
    if agree:
        yield f"As in the paper: {'; '.join(agree)}."
    if differ:
        yield f"In the paper, but not here: {'; '.join(differ)}."
    if open_ended:
        yield (f"{' and '.join(dict.fromkeys(open_ended))} take all that is asked for at the "
               "highest rate: their most, and what comes after it, is beyond this ladder.")
    ours = res.best(res.ways[-1], False) / res.best("ip_vs", False)
    yield f"In this ladder the most of {res.ways[-1]} is {ours:.2f} times that of ip_vs."
    yield ""


def render(res):
    lines = [*head(res.r), "## The paper's rates, and more", ""]
    for closes in KINDS:
        lines += ladder(res, closes)
    return "\n".join([*lines, *held(res.r), *verdict(res)])


def draw(res, path):
    """Achieved rates beside those asked for, and the share of each server."""
    known = {REFERENCE, *(r["way"] for r in res.r["rows"])}
    ways = [w for w in (REFERENCE, *res.ways) if w in known]
    shades = colours(ways, SYSTEMS)
    with figure(path, 1, 3, 12, 5.5) as (drawn, (grid,)):
        for axes, (closes, title) in zip(grid, KINDS.items()):
            axes.plot(res.rates[closes], res.rates[closes], color="black", lw=1, ls="--",
                      label="all that are asked for")
            for way in ways:
                rows = res.rows(way, closes)
                axes.plot([r for r in res.rates[closes] if r in rows],
                          [rows[r]["achieved"] for r in res.rates[closes] if r in rows],
                          label=way, marker=".", color=shades[way])
            axes.set_title(title.replace(" (", "\n("))
            axes.set_ylabel("achieved, connections a second")
        for way in res.ways:
            rows = res.rows(way, False)
            shaded(grid[2], res.rates[False], [rows[r]["opened"] for r in res.rates[False]],
                   statistics.fmean, way, marker=".", color=shades[way])
        grid[2].set_title(f"set up on each of {SERVERS} servers\n(shaded: fewest to most)")
        grid[2].set_ylabel("connections of a server, in a trial")
        for axes in grid:
            axes.set_xlabel("asked for, connections a second")
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
            axes.locator_params("x", nbins=5)
            thousands(axes.xaxis)
            thousands(axes.yaxis)
        drawn.suptitle(f"connections: {res.r['spec']['requests']:,} requests a trial, "
                       f"Linux {res.r['kernel']}")
        below(drawn, *grid)


write = writer(render, draw, "rates.png", Results)


if __name__ == "__main__":
    again(write)
