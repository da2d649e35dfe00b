# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make bench-bulk" from its results.json.

  python3 bench/measure/bulk_report.py DIRECTORY     draws them again
"""

import statistics

from pages import again, below, figure, grouped, writer

FORWARD, TUNNEL = "plain forwarding", "the kernel's tunnel"
MOST = 1.4          # of the plot's ratios
TOLERANCE = 0.01    # "not slower": a whole percent is
# The bar is for these; the other rows show what there is to choose from.
JUDGED = ("l4lb fast 1",)


def gathered(rows):
    """{what: {system: (median, least, most)}}; a system without a figure is left out."""
    found = {}
    for row in rows:
        if "fault" not in row:
            found.setdefault(row["what"], {}).setdefault(row["system"], []).append(row["value"])
    return {what: {system: (statistics.median(values), min(values), max(values))
                   for system, values in each.items()} for what, each in found.items()}


def compare(mine, other):
    """Is MINE as cheap as OTHER, both (median, least, most)?"""
    if mine[0] <= other[0] * (1 + TOLERANCE):
        return "met"
    return "met: they overlap" if mine[1] <= other[2] else f"missed by {100 * (mine[0] / other[0] - 1):.0f} %"


def verdict(each, system):
    """SYSTEM beside the kernel's own forwarding; "" if one of the two is not there. A tunnel's header is
    work that plain forwarding does not have, so it is beside the kernel's tunnel, too."""
    if system not in each or FORWARD not in each:
        return ""
    text = compare(each[system], each[FORWARD])
    return f"{text}; of the tunnel: {compare(each[system], each[TUNNEL])}" if TUNNEL in each else text


def systems_of(found):
    names = {system: None for each in found.values() for system in each}
    return sorted(names, key=lambda name: (name != FORWARD, name != TUNNEL))


def cell(each, system):
    if system not in each:
        return ""
    text = f"{each[system][0]:,.0f}"
    if system == FORWARD or FORWARD not in each:
        return text
    return f"{text} ({each[system][0] / each[FORWARD][0]:.2f})"


def unit(r):
    return "nanoseconds" if r["spec"]["time"] else "instructions"


def render(r):
    found = gathered(r["rows"])
    systems = systems_of(found)
    rounds = r["spec"]["rounds"]
    lines = ["# Bulk transfers", "",
             f"`{r['command']}`, {r['date']}, Linux {r['kernel']} in QEMU. See bench/README.md.", "",
             f"{unit(r).capitalize()} for a kilobyte, of client, director and server together"
             f"{f', medians of {rounds} rounds' if rounds > 1 else ''}; in brackets as a ratio to plain "
             "forwarding.", "",
             f"| transfer | {' | '.join(systems)} | {', '.join(JUDGED)} not above plain forwarding |",
             "|---|" + "---|" * (len(systems) + 1)]
    for what, each in found.items():
        cells = [cell(each, system) for system in systems]
        lines.append(f"| {what} | {' | '.join(cells)} | {verdict(each, JUDGED[0])} |")
    faults = [row for row in r["rows"] if "fault" in row]
    lines += [""] * bool(faults) + [f"FAULT: {row['what']}: {row['system']}: {row['fault']}" for row in faults]
    lines += ["", *spread(found), ""] if rounds > 1 else [""]
    return "\n".join(lines)


def spread(found):
    """How far rounds are apart."""
    worst = max(((most - least) / middle, what, system) for what, each in found.items()
                for system, (middle, least, most) in each.items()) if found else (0, "", "")
    yield f"The rounds of a row are at most {100 * worst[0]:.1f} % apart ({worst[1]}, {worst[2]})."


def cut(axes):
    """Bars that would press the others together end at the edge, with their figure."""
    axes.set_xlim(0, MOST)
    for bar in axes.patches:
        if bar.get_width() > MOST:
            axes.annotate(f"{bar.get_width():.0f} times \u2192", (MOST, bar.get_y() + bar.get_height() / 2), (-4, 0),
                          textcoords="offset points", ha="right", va="center", fontsize=7, color="white")


def draw(r, path):
    """A panel for each direction: ratios to plain forwarding."""
    found = gathered(r["rows"])
    systems = [system for system in systems_of(found) if system != FORWARD]
    ways = ("download", "upload")
    with figure(path, 1, len(ways), 12, 8, sharex=True) as (drawn, (grid,)):
        for axes, way in zip(grid, ways):
            whats = [what for what, each in found.items() if f" {way}," in what and FORWARD in each]
            series = {system: {what: tuple(v / found[what][FORWARD][0] for v in found[what][system])
                               for what in whats if system in found[what]} for system in systems}
            if whats:
                grouped(axes, whats, series, "{:.2f}")
            axes.set_yticks(axes.get_yticks(), [w.replace(f" {way}, ", "\n").replace(", ", "\n") for w in whats])
            axes.axvline(1, color="black", lw=1, ls="--", label=FORWARD)
            axes.set_title(f"{way}s")
            axes.set_xlabel(f"{unit(r)} for a byte, relative to plain forwarding")
            cut(axes)
        drawn.suptitle(f"Bulk transfers, client and server included, Linux {r['kernel']}")
        below(drawn, *grid)


write = writer(render, draw, "bytes.png")


if __name__ == "__main__":
    again(write)
