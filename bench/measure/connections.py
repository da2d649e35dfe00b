# SPDX-License-Identifier: GPL-2.0
"""Table and plots of "make bench-connections" from its results.json.

  python3 bench/measure/connections.py DIRECTORY     draws them again
"""

import statistics

from pages import again, figure, measured, shaded, spread

RATES = list(range(2800, 21001, 1400))
PAPER_SETUP, PAPER_SESSIONS = 12_384, 6_065
SERVERS = 7
KINDS = {False: "connections set up", True: "sessions (set up and closed)"}
TELLING = 200_000   # connections whose memory stands out from what else comes and goes
EVEN = 1.05     # most and fewest connections of a server may differ by that


class Results:
    """Of one ladder; SCALE: what the paper's rates were multiplied with."""

    def __init__(self, results, scale):
        self.r = results
        self.scale = scale
        self.ways = results["spec"]["ways"]

    def rows(self, way, closes, step=None):
        return [r for r in self.r["rows"] if
                (r["way"], r["closes"], r["scale"]) == (way, closes, self.scale)
                and step in (None, r["step"])]

    def steps(self):
        return sorted({r["step"] for r in self.r["rows"]})

    def achieved(self, way, closes, step):
        """Of each round, a second."""
        return [r["achieved"] for r in self.rows(way, closes, step)]

    def median(self, way, closes, step):
        return statistics.median(self.achieved(way, closes, step))

    def best(self, way, closes):
        return max((self.median(way, closes, s), s) for s in self.steps())

    def takes_all(self, way, closes):
        """Is all but a fiftieth achieved at the highest rate?"""
        step = self.steps()[-1]
        asked = statistics.median(r["offered"] for r in self.rows(way, closes, step))
        return self.median(way, closes, step) >= 0.98 * asked

    def uneven(self, way, closes):
        """The worst trial's most of a server, of its fewest; 0: one got nothing."""
        worst = 1.0
        for row in self.rows(way, closes):
            if not min(row["opened"]):
                return 0
            worst = max(worst, max(row["opened"]) / min(row["opened"]))
        return worst


def head(r):
    spec = r["spec"]
    yield from measured("Connections", r)
    yield (f"{spec['requests']:,} requests a trial (paper: 112,000). Medians of "
           f"{spec['rounds']} rounds ± half of their range.")
    yield ""
    yield "Most that each way takes, found by asking for more until a fiftieth is lost:"
    yield ""
    yield "| way | connections/s | of ip_vs |"
    yield "|---|---|---|"
    for way, rate in r["capacity"].items():
        yield f"| {way} | {rate:,.0f} | {rate / r['capacity']['ip_vs']:.2f} |"
    yield ""
    limits = max(rate for way, rate in r["capacity"].items() if way != "no director")
    free = r["capacity"]["no director"]
    yield (f"Generator, servers and plain forwarding alone take {free / limits:.1f} times what "
           "the fastest director does" + (": they are not the limit." if free > 1.2 * limits
                                          else "; THEY ARE THE LIMIT."))
    yield ""


def rates(res):
    """What the ladder's rates are."""
    if res.scale == 1:
        yield "## The paper's rates"
    else:
        yield f"## The paper's rates × {res.scale:.2f}"
        yield ""
        yield (f"So in-tree ip_vs is at its limit ({res.r['capacity']['ip_vs']:,.0f}/s) where "
               f"the paper's director was ({PAPER_SETUP:,}/s).")
    yield ""


def ladder(res, closes):
    yield f"### {KINDS[closes]}"
    yield ""
    yield "| asked for, /s | " + " | ".join(res.ways) + " |"
    yield "|---|" + "---|" * len(res.ways)
    for step in res.steps():
        yield f"| {step * res.scale:,.0f} | " + " | ".join(
            spread(res.achieved(way, closes, step)) for way in res.ways) + " |"
    yield ""


def held(r):
    yield "## Connections at once"
    yield ""
    yield f"In a guest with {r['memory']} of memory, until there is none left to speak of."
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
    yield "## Beside the paper" + ("" if res.scale == 1 else f" (rates × {res.scale:.2f})")
    yield ""
    yield "| | paper | " + " | ".join(res.ways) + " |"
    yield "|---|---|" + "---|" * len(res.ways)
    for closes, theirs in ((False, PAPER_SETUP), (True, PAPER_SESSIONS)):
        yield f"| most {KINDS[closes]}, /s | {theirs:,} | " + " | ".join(
            f"{res.best(way, closes)[0]:,.0f}" for way in res.ways) + " |"
    share = [res.best(way, True)[0] / res.best(way, False)[0] for way in res.ways]
    yield f"| sessions, of connections set up | {PAPER_SESSIONS / PAPER_SETUP:.2f} | " + \
        " | ".join(f"{s:.2f}" for s in share) + " |"
    after = []
    for way in res.ways:
        top = res.best(way, False)[0]
        after.append(res.median(way, False, res.steps()[-1]) / top)
    yield "| at the highest rate, of the most | falls slowly | " + \
        " | ".join(f"{a:.2f}" for a in after) + " |"
    even = [max(res.uneven(way, c) for c in (False, True)) for way in res.ways]
    yield "| most of a server, of its fewest, worst trial | equal | " + \
        " | ".join(f"{e:.3f}" for e in even) + " |"
    yield ""
    agree, differ = [], []
    (agree if all(1 <= e < EVEN for e in even) else differ).append(
        "every server gets the same share at every rate")
    # Who takes all that is asked for at the highest rate has not shown its most.
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
    ours = res.best(res.ways[-1], False)[0] / res.best("ip_vs", False)[0]
    yield f"In this ladder the most of {res.ways[-1]} is {ours:.2f} times that of ip_vs."
    yield ""


def render(r, ladders):
    lines = list(head(r))
    for res in ladders:
        lines += rates(res)
        for closes in KINDS:
            lines += ladder(res, closes)
    lines += held(r)
    lines += verdict(ladders[-1])
    return "\n".join(lines)


def draw_rates(ladders, path):
    with figure(path, len(ladders), 2, 11, 4.5 * len(ladders), sharey="row") as (_, rows):
        for res, grid in zip(ladders, rows):
            x = [s * res.scale for s in res.steps()]
            for axes, (closes, title) in zip(grid, KINDS.items()):
                for way in res.ways:
                    shaded(axes, x, [res.achieved(way, closes, s) for s in res.steps()],
                           statistics.median, way, marker=".")
                axes.plot(x, x, color="black", lw=0.8, ls="--", label="all of them")
                axes.set_title(title, fontsize="medium")
                axes.set_xlabel("asked for, a second")
                axes.set_ylim(bottom=0)
                axes.grid(alpha=0.3)
            grid[0].set_ylabel("achieved, a second")
            grid[0].legend(fontsize="small")


def draw_servers(res, path):
    with figure(path, len(res.ways), 1, 11, 2.2 * len(res.ways), sharex=True) as (_, grid):
        for axes, way in zip(grid.flat, res.ways):
            for i, step in enumerate(res.steps()):
                rows = res.rows(way, False, step)
                counts = [statistics.median(r["opened"][n] for r in rows) for n in range(SERVERS)]
                axes.bar([i + n * 0.8 / SERVERS for n in range(SERVERS)], counts, 0.7 / SERVERS,
                         color=[f"C{n}" for n in range(SERVERS)])
            axes.set_ylabel(f"{way}\nconnections")
        grid[-1][0].set_xticks([i + 0.35 for i in range(len(res.steps()))],
                               [f"{s * res.scale:,.0f}" for s in res.steps()],
                               rotation=45, fontsize="small")
        grid[-1][0].set_xlabel("asked for, a second; a bar for each of the seven servers")


def write(results, directory):
    """table.md and plots in DIRECTORY; the plots' names."""
    ladders = [Results(results, scale) for scale in results["scales"]]
    (directory / "table.md").write_text(render(results, ladders), encoding="utf-8")
    draw_rates(ladders, directory / "rates.png")
    draw_servers(ladders[-1], directory / "servers.png")
    return ["rates.png", "servers.png"]


if __name__ == "__main__":
    again(write)
