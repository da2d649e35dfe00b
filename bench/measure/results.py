# SPDX-License-Identifier: GPL-2.0
"""bench/results/counted from bench/instructions.json and bench/misses.json: the table, and a plot
of each file.

  python3 bench/measure/results.py      writes it again
"""

import json
from pathlib import Path

import bars
from pages import SYSTEMS, below, figure, grouped, ruled, thousands

HEAD = """\
# Counted for a packet

`bench/measure/results.py` writes this file; `bench/README.md` says how to read it.

## Instructions for a packet

`make bench-instructions` and `make bench-instructions KERNEL=6.1`. In brackets, as a ratio to ip_vs: the instructions
that the director adds to the cheapest forwarder of its kind (`redirect`, for XDP `xdp redirect`; six times that for a
connection's life, which has six packets). They are not a time.
"""
MISSES = """\
## Cache misses for a packet

`make bench-misses` and `make bench-misses KERNEL=6.1`: packets of established UDP flows over IPv4 through NAT,
generator included, in modelled caches: a first level of 32 KiB for each processor, a last level of 1 MiB.
"""


def misses(kernel, figures):
    yield f"### Linux {kernel}: misses"
    yield ""
    yield "| packet | misses of the last level | lines of the other processor |"
    yield "|---|---|---|"
    rows = {}
    for name, value in figures.items():
        rows.setdefault(name.rpartition(": ")[0], []).append(f"{value:.2f}")
    yield from (f"| {what} | {' | '.join(row)} |" for what, row in rows.items())
    yield ""


def rank(what):
    """New connections last, replies before them."""
    return what.endswith("new"), what.endswith("reply")


def instructions(kernel, figures):
    yield f"### Linux {kernel}"
    yield ""
    yield "| without a director | instructions |"
    yield "|---|---|"
    yield from (f"| {n} | {v:,.0f} |" for n, v in figures.items() if ": " not in n)
    rows, directors = {}, []
    for name, value in figures.items():
        director, _, what = name.rpartition(": ")
        if director:
            rows.setdefault(what, {})[director] = value
            directors.append(director)
    directors = sorted(set(directors), key=lambda d: (d != "ip_vs", d))
    yield ""
    yield f"| packet | {' | '.join(directors)} |"
    yield "|---|" + "---|" * len(directors)
    for what in sorted(rows, key=rank):
        cells = [cell(what, rows[what], d, figures) for d in directors]
        yield f"| {what} | {' | '.join(cells)} |"
    yield ""


def cell(what, row, director, figures):
    if director not in row:
        return ""
    text = f"{row[director]:,.0f}"
    if director == "ip_vs" or "ip_vs" not in row:
        return text
    return f"{text} ({bars.added(figures, director, what):.2f})"


def by_director(figures):
    """{director: {packet: figure}} of the names "DIRECTOR: PACKET", ip_vs first."""
    found = {}
    for name, value in figures.items():
        director, _, what = name.partition(": ")
        if what:
            found.setdefault(director, {})[what] = value
    return {d: found[d] for d in sorted(found, key=lambda d: (d != "ip_vs", d))}


def plain(each):
    """The series of a plot of figures without intervals."""
    return {d: {w: (v, v, v) for w, v in values.items()} for d, values in each.items()}


def draw_instructions(record, path):
    """Bars for the newest kernel, and a mark on each for the oldest."""
    newest, oldest = record[max(record)], record[min(record)]
    figures, each = newest["instructions"], by_director(newest["instructions"])
    marks = by_director(oldest["instructions"]) if oldest is not newest else None
    # A whole connection would press the others together, and pktgen has another floor.
    whats = sorted({w: None for packets in each.values() for w in packets
                    if not w.endswith(" life") and not w.startswith("pktgen ")}, key=rank)
    known = [w for w in whats if not w.endswith(("reply", "new"))]
    parts = [part for part in (known, whats[len(known):]) if part]
    if not parts:
        return
    with figure(path, 1, len(parts), 12, 8, sharex=True) as (drawn, (grid,)):
        for axes, part in zip(grid, parts):
            grouped(axes, part, plain(each), "{:,.0f}", marks)
            if marks:
                axes.plot([], [], "k|", markersize=11, mew=1.5, label=f"Linux {oldest['kernel']}")
            if "redirect" in figures:
                axes.axvline(figures["redirect"], color="black", lw=1, ls="--",
                             label="redirect, the cheapest forwarder")
            axes.set_xlabel("instructions for each packet (less is better)")
            thousands(axes.xaxis)
        drawn.suptitle(f"Instructions for each packet, counted on Linux {newest['kernel']}")
        below(drawn, *grid)


# The first page's bars: what each director is to a reader who has not read anything yet.
BARS = {"ip_vs": "ip_vs", "l4lb": "l4lb without its fast path", "l4lb fast 1": "l4lb as it is installed",
        "l4lb xdp": "l4lb with XDP", "peer xdp": "a bare balancer in XDP"}
PACKETS = {"udp4 tun": "A packet of a known flow", "udp4 tun new": "The first packet of a flow"}


def rows_of_bars(figures):
    """The same as lines of a table: RESULTS.md has them."""
    for director, name in BARS.items():
        yield f"| {name} | " + " | ".join(f"{figures[f'{director}: {what}']:,.0f}" for what in PACKETS) + " |"


def draw_bars(record, path):
    """What a packet costs with each director; the part that has to be without any is grey."""
    newest = record[max(record)]
    figures, each = newest["instructions"], by_director(newest["instructions"])
    whats = [w for w in PACKETS if all(w in each.get(d, {}) for d in BARS)]
    if not whats:
        return
    names, at = list(BARS), range(len(BARS))
    with figure(path, 1, len(whats), 12, 4.2, sharey=True) as (drawn, (grid,)):
        for axes, what in zip(grid, whats):
            least = [bars.floor(figures, d, what) for d in names]
            sizes = [each[d][what] for d in names]
            axes.barh(at, least, 0.66, color="#c8c8c8", label="forwarding alone, in the cheapest way")
            axes.barh(at, [s - x for s, x in zip(sizes, least)], 0.66, left=least,
                      color=[SYSTEMS[d] for d in names])
            for y, size in enumerate(sizes):
                share = f" ({size / sizes[0]:.2f})" if y else ""
                axes.annotate(f"{size:,.0f}{share}", (size, y), (4, 0), va="center", textcoords="offset points")
            axes.set_yticks(at, [BARS[d] for d in names])
            axes.set_title(PACKETS[what])
            axes.set_xlabel("instructions, in brackets as a ratio to ip_vs's (less is better)")
            axes.set_xlim(0, max(sizes) * 1.25)
            thousands(axes.xaxis)
            ruled(axes, "x")
        grid[0].invert_yaxis()
        drawn.suptitle(f"What a packet costs: UDP over IPv4 by IP tunnel, Linux {newest['kernel']}")
        below(drawn, grid[0])


KINDS = {"last level": "lines from memory", "transfers": "lines from the other processor's caches"}


def draw_misses(record, path):
    """A panel for each kind of line, on the newest kernel. `redirect` has none."""
    newest = record[max(record)]
    with figure(path, 1, len(KINDS), 12, 5.5, sharey=True) as (drawn, (grid,)):
        for axes, (kind, title) in zip(grid, KINDS.items()):
            each = by_director({name.removesuffix(f": {kind}"): value
                                for name, value in newest["misses"].items()
                                if name.endswith(f": {kind}") and not name.startswith("redirect")})
            whats = list({w: None for packets in each.values() for w in packets})
            if whats:
                grouped(axes, whats, plain(each), "{:.2f}")
            axes.set_yticks(axes.get_yticks(), [w.replace(", ", ",\n") if w.startswith("two") else w
                                                for w in whats])
            axes.set_title(title)
            axes.set_xlabel("cache lines for each packet (less is better)")
        drawn.suptitle("Cache lines that a packet waits for, in modelled caches, "
                       f"Linux {newest['kernel']}")
        below(drawn, *grid)


def write(bench):
    """Writes table and plots in results/counted in the directory BENCH, from the records there."""
    directory = bench / "results/counted"
    directory.mkdir(parents=True, exist_ok=True)
    record = json.loads((bench / "instructions.json").read_text("utf-8"))
    lines = [HEAD]
    for name in sorted(record, reverse=True):
        lines += instructions(record[name]["kernel"], record[name]["instructions"])
    if record:
        draw_instructions(record, directory / "instructions.png")
        draw_bars(record, directory / "bars.png")
        lines += bars.lines(record)
    if (bench / "misses.json").exists():
        record = json.loads((bench / "misses.json").read_text("utf-8"))
        lines.append(MISSES)
        for name in sorted(record, reverse=True):
            lines += misses(record[name]["kernel"], record[name]["misses"])
        if record:
            draw_misses(record, directory / "misses.png")
    (directory / "table.md").write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).resolve().parents[1])
