# SPDX-License-Identifier: GPL-2.0
"""Tables and plot of "make bench-scale-out" from its results.json.

  python3 bench/measure/scale_out_report.py DIRECTORY     draws them again
"""

from pages import SCHEDULERS, again, below, figure, ruled, thousands, writer

PACKETS = ("established", "new", "taken over")
SPEED = 1_000_000_000       # instructions
# Without a director, beside the ways.
FLOOR = "redirect"
COLOURS = {"mh, key": "#c49c94"} | SCHEDULERS


class Results:
    def __init__(self, results):
        self.r = results
        self.costs = {row["way"]: row for row in results["costs"]}
        self.ways = [way for way in self.costs if way != FLOOR]
        self.counts = results["spec"]["directors"]

    def row(self, way, count):
        return next(r for r in self.r["flows"] if (r["way"], r["directors"]) == (way, count))

    def busiest(self, way, count):
        """The largest share of the flows that one director has."""
        flows = self.row(way, count)["flows"]
        return max(flows) / sum(flows)

    def rate(self, way, count, what):
        """Packets a second of all, when the busiest one does SPEED instructions a second."""
        return SPEED / self.costs[way][what] / self.busiest(way, count)

    def lost(self, way, count):
        row = self.row(way, count)
        return row["broken"] / row["moved"] if row.get("moved") else None


def head(res):
    r = res.r
    yield "# Scale out"
    yield ""
    yield f"`{r['command']}`, {r['date']}, Linux {r['kernel']} in QEMU;"
    yield "one processor, which counts instructions. See bench/README.md and doc/scale-out.md."
    yield ""


def cost_table(res):
    yield "## Instructions of a director for a packet"
    yield ""
    yield ("TCP over IPv4, direct routing, four servers, `fast_path=2`; the generator and the kernel's "
           "cheapest way included")
    yield (f"({res.costs[FLOOR]['established']:,.0f} without a director). *Taken over*: the first "
           "packet that a director sees of a flow whose beginning")
    yield "another one has seen (`sloppy_tcp=1`)."
    yield ""
    yield "| | " + " | ".join(PACKETS) + " |"
    yield "|---|" + "---|" * len(PACKETS)
    for way in res.ways:
        yield f"| {way} | " + " | ".join(f"{res.costs[way][p]:,.0f}" for p in PACKETS) + " |"
    yield ""


def flow_table(res):
    yield "## Directors beside each other"
    yield ""
    yield ("Rates are packets a second of all directors together, when the busiest one does 1,000 "
           "million instructions a second:")
    yield ("they follow from one director's instructions for a packet and from its share of the flows, "
           f"of which there are {res.r['spec']['flows']:,}.")
    yield "Then one director leaves: its flows move, and some of them break."
    yield ""
    yield ("| directors | | flows of the busiest | established, /s | new, /s | moved | broken | "
           "of the moved |")
    yield "|---|---|---|---|---|---|---|---|"
    for count in res.counts:
        for way in res.ways:
            row, lost = res.row(way, count), res.lost(way, count)
            after = [f"{row['moved']:,}", f"{row['broken']:,}", f"{lost:.0%}"] \
                if lost is not None else ["–"] * 3
            yield (f"| {count} | {way} | {res.busiest(way, count):.1%} | "
                   f"{res.rate(way, count, 'established'):,.0f} | "
                   f"{res.rate(way, count, 'new'):,.0f} | " + " | ".join(after) + " |")
    yield ""


def verdict(res):
    most, one = max(res.counts), min(res.counts)
    gain = res.rate("mh", most, "established") / res.rate("mh", one, "established")
    broken = sum(res.row(way, n).get("broken", 0) for way in res.ways if way.startswith("mh")
                 for n in res.counts)
    yield (f"{most} directors do {gain:.1f} times what {one} does. "
           + ("With mh no flow broke." if not broken else f"WITH MH {broken} FLOWS BROKE."))
    yield ""


def render(res):
    return "\n".join([*head(res), *cost_table(res), *flow_table(res), *verdict(res)])


def draw(res, path):
    with figure(path, 1, 2, 11, 5) as (drawn, ((rates, lost),)):
        several = [n for n in res.counts if n > 1]
        width = 0.8 / len(res.ways)
        for i, way in enumerate(res.ways):
            for axes, counts, value in (
                    (rates, res.counts, lambda n, w=way: res.rate(w, n, "new")),
                    (lost, several, lambda n, w=way: 100 * (res.lost(w, n) or 0))):
                at = [j + i * width for j in range(len(counts))]
                bars = axes.bar(at, [value(n) for n in counts], width * 0.92, label=way,
                                color=COLOURS[way])
                axes.bar_label(bars, [f"{value(n):,.0f}" for n in counts], fontsize=8,
                               rotation=90, padding=3)
                axes.set_xticks([j + 0.4 - width / 2 for j in range(len(counts))], counts)
        rates.set_ylabel("new connections a second (more is better)")
        lost.set_ylabel("% of those that moved (less is better)")
        for axes in (rates, lost):
            axes.set_xlabel("directors")
            axes.margins(y=0.2)
            ruled(axes, "y")
        lost.set_title("broken when one director leaves")
        rates.set_title("at 1,000 million instructions a second each")
        thousands(rates.yaxis)
        drawn.suptitle(f"scale out: directors behind one router, Linux {res.r['kernel']}")
        below(drawn, rates)


write = writer(render, draw, "flows.png", Results)


if __name__ == "__main__":
    again(write)
