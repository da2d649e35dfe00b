# SPDX-License-Identifier: GPL-2.0
"""Table and plots of "make bench-relay" from its results.json.

  python3 bench/measure/relay_report.py DIRECTORY     draws them again
"""

from counted import measured
from pages import SYSTEMS, again, below, colours, figure, thousands, writer

STRAIGHT, PROXIES, RELAY = "direct", "two proxies", "NAT and relay"
# Message sizes in the table: the powers of two, which NetPIPE always measures.
SHOWN = [1 << n for n in range(10, 21)]
PAPER = {PROXIES: 2.1, RELAY: 1.5}      # latency relative to a direct connection


class Results:
    def __init__(self, results):
        self.r = results
        self.ways = list(dict.fromkeys(r["way"] for r in results["rows"] if "lines" in r))

    def sizes(self):
        """The message sizes that every way has."""
        each = [{line[0] for line in r["lines"]} for r in self.r["rows"] if "lines" in r]
        return sorted(set.intersection(*each)) if each else []

    def value(self, way, size, column):
        """Column 1: Mbit/s, 2: seconds."""
        return next(line[column] for r in self.r["rows"] if r["way"] == way and "lines" in r
                    for line in r["lines"] if line[0] == size)


def figures(r):
    """The figures by which two runs with the same seed are compared."""
    return {f"{row['way']}, {line[0]:.0f} bytes": line[2]
            for row in r["rows"] for line in row.get("lines", [])}


def name(size):
    return f"{size / 1024:,.0f} KiB" if size < 1 << 20 else f"{size / (1 << 20):,.0f} MiB"


def head(res):
    r, spec = res.r, res.r["spec"]
    yield from measured("Relay", r)
    yield (f"NetPIPE between compute nodes of two clusters, cables of {spec['rate']} Mbit/s; "
           f"each message {spec['times']} times.")
    yield ""


def table(res, column, title, scale):
    shown = [s for s in SHOWN if s in res.sizes()]
    yield f"## {title}"
    yield ""
    yield "| message | " + " | ".join(res.ways) + " |"
    yield "|---|" + "---|" * len(res.ways)
    for size in shown:
        yield f"| {name(size)} | " + " | ".join(
            f"{res.value(w, size, column) * scale:,.1f}" for w in res.ways) + " |"
    yield ""


def verdict(res):
    yield "## Beside the paper"
    yield ""
    shown = [s for s in SHOWN if s in res.sizes()]
    if not shown or STRAIGHT not in res.ways or PROXIES not in res.ways:
        yield "A way is missing: nothing to compare."
        return
    small = shown[0]
    latency = {w: res.value(w, small, 2) / res.value(STRAIGHT, small, 2) for w in res.ways}
    low = [s for s in shown if s <= 32 << 10]
    high = [s for s in shown if s >= 128 << 10]

    def gain(way, sizes):
        gains = [100 * (res.value(way, s, 1) / res.value(PROXIES, s, 1) - 1) for s in sizes]
        return f"{min(gains):+.0f} to {max(gains):+.0f} %" if gains else ""
    yield ("| | " + " | ".join(res.ways) + " |")
    yield "|---|" + "---|" * len(res.ways)
    yield f"| latency ({name(small)}), of direct: paper | " + " | ".join(
        f"{PAPER[w]:g}" if w in PAPER else "" for w in res.ways) + " |"
    yield "| the same, here | " + " | ".join(f"{latency[w]:.2f}" for w in res.ways) + " |"
    yield "| bandwidth, of two proxies, to 32 KiB: paper | " + " | ".join(
        "+18 to +27 %" if w == RELAY else "" for w in res.ways) + " |"
    yield "| the same, here | " + " | ".join(gain(w, low) for w in res.ways) + " |"
    yield "| bandwidth, of two proxies, from 128 KiB: paper | " + " | ".join(
        "+6 to +16 %" if w == RELAY else "" for w in res.ways) + " |"
    yield "| the same, here | " + " | ".join(gain(w, high) for w in res.ways) + " |"
    yield ""
    order = [w for w in (PROXIES, RELAY, "NAT and l4lb", STRAIGHT) if w in latency]
    if all(latency[a] > latency[b] for a, b in zip(order, order[1:])):
        yield (f"In the paper's order: two proxies are slowest ({latency[PROXIES]:.1f} times a direct "
               f"connection's latency, paper {PAPER[PROXIES]:g}), a relay at one end is better "
               f"({latency.get(RELAY, 0):.1f}, paper {PAPER[RELAY]:g}); without user space, by l4lb, "
               f"it is {latency.get('NAT and l4lb', 0):.2f}.")
    else:
        yield ("Not as in the paper: by latency the order, slowest first, is "
               f"{', '.join(sorted(latency, key=latency.get, reverse=True))}.")
    yield ""


def render(res):
    return "\n".join([*head(res), *table(res, 2, "Latency: microseconds one way", 1e6),
                      *table(res, 1, "Bandwidth: Mbit/s", 1), *verdict(res)])


def draw(res, path):
    """Latency as a multiple of the direct one, whose own is in the table, and bandwidth."""
    shades, sizes = colours(res.ways, SYSTEMS), res.sizes()
    base = STRAIGHT if STRAIGHT in res.ways else None
    with figure(path, 1, 2, 12, 5.5) as (drawn, (grid,)):
        for way in res.ways:
            grid[0].plot(sizes, [res.value(way, s, 2) / (res.value(base, s, 2) if base else 1e-6)
                                 for s in sizes], label=way, color=shades[way], marker=".")
            grid[1].plot(sizes, [res.value(way, s, 1) for s in sizes],
                         label=way, color=shades[way], marker=".")
        grid[0].set_title("latency (less is better)")
        grid[0].set_ylabel("as a multiple of direct" if base else "microseconds one way")
        grid[1].set_title("bandwidth (more is better)")
        grid[1].set_ylabel("Mbit/s")
        for axes in grid:
            axes.set_xscale("log", base=2)
            axes.set_xticks(shown := [s for s in SHOWN[::2] if s in sizes],
                            [name(s) for s in shown])
            axes.set_xlabel("size of a message")
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
            thousands(axes.yaxis)
        drawn.suptitle(f"relay: NetPIPE between two clusters, cables of {res.r['spec']['rate']} "
                       f"Mbit/s, Linux {res.r['kernel']}")
        below(drawn, *grid)


write = writer(render, draw, "messages.png", Results)


if __name__ == "__main__":
    again(write)
