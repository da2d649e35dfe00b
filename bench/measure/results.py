# SPDX-License-Identifier: GPL-2.0
"""bench/RESULTS.md from bench/instructions.json, bench/misses.json and
bench/results/speed/*/table.md; it points at the other benches' tables.

  python3 bench/measure/results.py      writes it again
"""

import json
from pathlib import Path

HEAD = """\
# Results

What the benchmarks of this directory gave; `README.md` says how to run and read them. This file is written by
`bench/measure/results.py`. Others: %s.

## Instructions for a packet

`make bench-instructions` and `make bench-instructions KERNEL=6.1`. In brackets, as a ratio to ip_vs: what the director
adds to the cheapest forwarder (`redirect`). It is not a time: see `README.md`.
"""
MISSES = """\
## Cache misses for a packet

`make bench-misses` and `make bench-misses KERNEL=6.1`: packets of established UDP flows over IPv4 through NAT,
generator included, in modelled caches: a first level of 32 KiB for each processor, a last level of 1 MiB. See
`README.md`.
"""
NO_SPEED = """\
## Speed

No run of `make bench` is recorded yet that was measured in slices: see `README.md`.
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


def speed(table):
    """One run's table, with its plots."""
    kernel = {"uml": "UML"}.get(table.parent.name, f"Linux {table.parent.name} in QEMU")
    text = table.read_text("utf-8").replace("\n#", "\n##")
    text = text.replace("# Speed", f"## Speed: {kernel}", 1)
    plots = sorted(p.name for p in table.parent.glob("*.png"))
    where = f"results/speed/{table.parent.name}"
    return text + "".join(f"![{p[:-4]}]({where}/{p})\n" for p in plots)


def write(bench):
    """RESULTS.md in the directory BENCH, from what is there."""
    record = json.loads((bench / "instructions.json").read_text("utf-8"))
    others = sorted(p.parent.name for p in (bench / "results").glob("*/table.md"))
    lines = [HEAD % ", ".join(f"`results/{name}/table.md`" for name in others)]
    for name in sorted(record, reverse=True):
        lines += instructions(record[name]["kernel"], record[name]["instructions"])
    if (bench / "misses.json").exists():
        record = json.loads((bench / "misses.json").read_text("utf-8"))
        lines.append(MISSES)
        for name in sorted(record, reverse=True):
            lines += misses(record[name]["kernel"], record[name]["misses"])
    tables = sorted((bench / "results/speed").glob("*/table.md"))
    lines += [speed(table) for table in tables] or [NO_SPEED]
    (bench / "RESULTS.md").write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).resolve().parents[1])
