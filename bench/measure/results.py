# SPDX-License-Identifier: GPL-2.0
"""bench/results/counted/table.md from bench/instructions.json and bench/misses.json.

  python3 bench/measure/results.py      writes it again
"""

import json
from pathlib import Path

HEAD = """\
# Counted for a packet

`bench/measure/results.py` writes this file; `bench/README.md` says how to read it.

## Instructions for a packet

`make bench-instructions` and `make bench-instructions KERNEL=6.1`. In brackets, as a ratio to ip_vs: the instructions
that the director adds to the cheapest forwarder (`redirect`). They are not a time.
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
    for name, figure in figures.items():
        rows.setdefault(name.rpartition(": ")[0], []).append(f"{figure:.2f}")
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
    for name, figure in figures.items():
        director, _, what = name.rpartition(": ")
        if director:
            rows.setdefault(what, {})[director] = figure
            directors.append(director)
    directors = sorted(set(directors), key=lambda d: (d != "ip_vs", d))
    yield ""
    yield f"| packet | {' | '.join(directors)} |"
    yield "|---|" + "---|" * len(directors)
    for what in sorted(rows, key=rank):
        cells = [cell(rows[what], d, figures["redirect"]) for d in directors]
        yield f"| {what} | {' | '.join(cells)} |"
    yield ""


def cell(row, director, floor):
    if director not in row:
        return ""
    text = f"{row[director]:,.0f}"
    if director == "ip_vs" or "ip_vs" not in row:
        return text
    return f"{text} ({(row[director] - floor) / (row['ip_vs'] - floor):.2f})"


def write(bench):
    """Writes results/counted/table.md in the directory BENCH, from the records there."""
    record = json.loads((bench / "instructions.json").read_text("utf-8"))
    lines = [HEAD]
    for name in sorted(record, reverse=True):
        lines += instructions(record[name]["kernel"], record[name]["instructions"])
    if (bench / "misses.json").exists():
        record = json.loads((bench / "misses.json").read_text("utf-8"))
        lines.append(MISSES)
        for name in sorted(record, reverse=True):
            lines += misses(record[name]["kernel"], record[name]["misses"])
    path = bench / "results/counted/table.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).resolve().parents[1])
