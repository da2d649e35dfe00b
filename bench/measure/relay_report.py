# SPDX-License-Identifier: GPL-2.0
"""Table and plots of "make bench-relay" from its results.json.

  python3 bench/measure/relay_report.py DIRECTORY     draws them again
"""

from counted import measured
from pages import again, figure

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
        yield (f"As in the paper: two proxies are slowest ({latency[PROXIES]:.1f} times a direct "
               f"connection's latency), a relay at one end is better ({latency.get(RELAY, 0):.1f});"
               f" without user space, by l4lb, it is {latency.get('NAT and l4lb', 0):.2f}.")
    else:
        yield ("Not as in the paper: by latency the order, slowest first, is "
               f"{', '.join(sorted(latency, key=latency.get, reverse=True))}.")
    yield ""


def render(res):
    return "\n".join([*head(res), *table(res, 2, "Latency: microseconds one way", 1e6),
                      *table(res, 1, "Bandwidth: Mbit/s", 1), *verdict(res)])


def draw(res, path):
    with figure(path, 1, 2, 12, 4.5) as (_, (grid,)):
        for axes, column, scale, label in ((grid[0], 2, 1e6, "microseconds one way"),
                                           (grid[1], 1, 1, "Mbit/s")):
            for way in res.ways:
                axes.plot(res.sizes(), [scale * res.value(way, s, column) for s in res.sizes()],
                          label=way)
            axes.set_xscale("log", base=2)
            axes.set_xlabel("bytes of a message")
            axes.set_ylabel(label)
            axes.grid(alpha=0.3)
        grid[0].set_yscale("log")
        grid[1].set_ylim(bottom=0)
        grid[0].legend(fontsize="small")


def write(results, directory):
    """table.md and the plot in DIRECTORY; the plot's name."""
    res = Results(results)
    (directory / "table.md").write_text(render(res), encoding="utf-8")
    draw(res, directory / "messages.png")
    return ["messages.png"]


if __name__ == "__main__":
    again(write)
