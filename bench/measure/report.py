# SPDX-License-Identifier: GPL-2.0
"""Table and plots of "make bench" from its results.json.

  python3 bench/measure/report.py DIRECTORY     draws them again
"""

import statistics

from pages import SYSTEMS, again, below, colours, figure, grouped

BASE = "ip_vs"
DEFAULT = "ip_vs default table"
REFERENCE = "reference"
FLOOR = "redirect at ingress, {} bytes"
# Groups whose figures are of a packet's whole path, with the floor's share.
PACKETS = ("established", "replies", "flows", "new", "replies-new", "route-churn")
TITLES = {
    REFERENCE: "Without a director",
    "established": "Packets of known connections",
    "replies": "Replies through NAT",
    "flows": "Packets of many connections, in random order",
    "new": "A connection for each packet",
    "replies-new": "The first reply of each connection",
    "route-churn": "Replies while other routes change",
    "teardown": "End of TCP connections (FIN, FIN, ACK)",
    "processors": "Two processors at once",
    "http": "HTTP requests, a connection for each",
    "memory": "Memory for each connection, and filling the table",
    "listing": "Reading /proc/net/ip_vs_conn",
    "expiry": "Idle connections end",
    "configuration": "Configuration",
    "services": "Many services",
    "schedulers": "Many servers: new connections by scheduler",
    "removal": "Real servers added and removed one by one",
    "namespaces": "Namespaces that end together",
    "many-servers": "Few servers and many: new connections by schedulers that look at loads",
}
# Highest load of a calm machine; the guest itself is a load of 1.
BUSY = 2
OF_STRAIGHT = ", of straight"
MORE_IS_BETTER = ("packets/ms", "requests/s", "")       # "": a share of something
LABELS = {"redirects": "redirects for each packet (with 95 % intervals; less is better)",
          "ns": "ns for each packet (less is better)"}
PLOTS = {"flows": "flows", "services": "services", "schedulers": "servers"}


class Figure:
    """A row's median and spread over the rounds, and its best round. A machine whose
    processor is shared runs at one of two speeds for minutes at a time, so that medians
    depend on the hour. Ratios use the best rounds, which only the code can make
    shorter."""

    def __init__(self, row):
        self.row = row
        values = row["values"]
        self.median = statistics.median(values) if values else None
        self.least, self.most = (min(values), max(values)) if values else (None, None)
        # Slices were measured, but none had two references that agree.
        self.no_slice = row.get("tried", 0) > 0 and "multiple" not in row
        if "multiple" in row:
            self.median, self.least, self.most = (
                row["multiple"][k] for k in ("median", "low", "high"))
        self.best = self.most if row["unit"] in MORE_IS_BETTER else self.least

    @property
    def good(self):
        return self.median is not None and "fault" not in self.row

    @property
    def drawn(self):
        """Whether plots show it: they leave out figures that the table calls too wide."""
        return self.good and self.row.get("multiple", {"narrow": True})["narrow"]

    @property
    def spread(self):
        """How far apart least and most are, in per cent of the median."""
        return 100 * (self.most - self.least) / self.median if self.median else 0.0

    def __str__(self):
        if not self.good:
            return "FAULT"
        text = number(self.median)
        if len(self.row["values"]) > 1:
            text += f" ± {self.spread / 2:.0f} %"
        return text


def number(value):
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


class Results:
    """All figures of a run."""

    def __init__(self, results):
        self.results = results
        self.figures = {(r["group"], r["what"], r["system"]): Figure(r) for r in results["rows"]}

    def groups(self):
        present = {key[0] for key in self.figures}
        return [g for g in TITLES if g in present]

    def whats(self, group):
        return list(dict.fromkeys(w for g, w, _ in self.figures if g == group))

    def systems(self, group):
        present = list(dict.fromkeys(s for g, _, s in self.figures if g == group))
        first = [s for s in (REFERENCE, DEFAULT, BASE) if s in present]
        return first + sorted(s for s in present if s not in first)

    def get(self, group, what, system):
        figure = self.figures.get((group, what, system))
        return figure if figure and figure.good else None

    def floor(self, size=64):
        """The time of the cheapest forwarder, for frames of that size."""
        figure = self.get(REFERENCE, FLOOR.format(size), REFERENCE)
        return figure.best if figure else None

    def ratio(self, group, what, system):
        """The whole time, relative to the whole time of ip_vs."""
        ours, theirs = self.get(group, what, system), self.get(group, what, BASE)
        if not ours or not theirs or not theirs.best:
            return None
        return ours.best / theirs.best

    def director_ratio(self, group, what, system):
        """The same ratio of the time that directors add to the cheapest forwarder's; None if
        one of them adds nothing."""
        ours, theirs = self.get(group, what, system), self.get(group, what, BASE)
        if group not in PACKETS or not ours or not theirs:
            return None
        floor = self.floor(theirs.row.get("size", 64))
        if floor is None or min(ours.best, theirs.best) <= floor:
            return None
        return (ours.best - floor) / (theirs.best - floor)


# -- the table


def shown(record):
    """The text of a median with its interval, or of an interval that is too wide."""
    low, high = record["low"], record["high"]
    if not record["narrow"]:
        return f"too wide ({low:.2f} .. {high:.2f}), {record['slices']} slices"
    return f"{record['median']:.2f} [{low:.2f} .. {high:.2f}]"


def cell(results, group, what, system):
    figure = results.figures.get((group, what, system))
    if not figure:
        return ""
    if "multiple" in figure.row and "fault" not in figure.row:
        keys = ["multiple"] if system in (BASE, REFERENCE) else \
            [k for k in ("ratio", "added") if k in figure.row]
        return "; ".join(shown(figure.row[k]) for k in keys) or f"no ratio to {BASE}"
    if figure.no_slice and "fault" not in figure.row:
        return f"too wide, no good slice of {figure.row['tried']}"
    text = str(figure)
    if system not in (BASE, REFERENCE) and figure.good:
        ratios = [r for r in (results.ratio(group, what, system),
                              results.director_ratio(group, what, system)) if r is not None]
        if ratios:
            text += " (" + ", ".join(f"{r:.2f}" for r in ratios) + ")"
    return text


def table(results, group):
    systems = results.systems(group)
    yield f"## {group}: {TITLES[group]}"
    yield ""
    yield f"| | unit | {' | '.join(systems)} |"
    yield "|---|---|" + "---|" * len(systems)
    for what in results.whats(group):
        figures = [results.figures.get((group, what, s)) for s in systems]
        unit = next((f.row["unit"] for f in figures if f and f.row["unit"]), "")
        cells = [cell(results, group, what, s) for s in systems]
        yield f"| {what} | {unit} | {' | '.join(cells)} |"
    yield ""


def head(results):
    r = results.results
    yield "# Speed"
    yield ""
    yield (f"`{r['command']}`, {r['date']}, Linux {r['kernel']}, {r['vehicle']}, "
           f"on {r['processor']};")
    yield f"load of the host before and after: {r['load'][0]}, {r['load'][1]}."
    yield ""
    yield ("Unit `redirects`: multiples of `redirect at ingress`, which is measured right before "
           "and right after; for others than")
    yield ("ip_vs the ratio to ip_vs (conn_tab_bits=20), then that of what is added to one "
           "redirect, each with its 95 % interval.")
    yield ("`too wide`: the machine was not calm enough for a figure. Other units are not sliced: "
           "medians ± half of what lies between")
    yield ("the least and the greatest (without a ±: measured once); in brackets, from the best "
           "of each, the ratio to ip_vs. Less is better but")
    yield "for packets/ms and HTTP. FAULT: packets were lost"
    yield "or wrong."
    if max(r["load"]) > BUSY:
        yield f"**The machine was busy (a load of more than {BUSY}): do not quote these times.**"
    if "UML" in r["vehicle"]:
        yield ("UML has no second processor and so no lock that costs anything, which flatters "
               "ip_vs more than l4lb.")
    else:
        yield ("Without KVM these are times of an emulator: ratios mean something, nanoseconds "
               "do not.")
    yield ""


def render(results):
    lines = list(head(results))
    for group in results.groups():
        lines += table(results, group)
    return "\n".join(lines)


# -- plots


def bars(results, group, path, whats):
    """A bar for each of WHATS and each system, in columns that are not too long."""
    series = {s: {w: (f.median, f.least, f.most) for w in whats
                  if (f := results.get(group, w, s)) and f.drawn} for s in results.systems(group)}
    series = {s: figures for s, figures in series.items() if figures}
    if not series:
        return
    unit, floor = unit_of(results, group), None
    if group in PACKETS:
        floor = 1 if unit == "redirects" else results.floor()
    columns = min(3, -(-len(whats) * len(series) // 40))
    each = -(-len(whats) // columns)
    with figure(path, 1, columns, 12 if columns > 1 else 10,
                2 + 0.27 * each * len(series), sharex=True) as (drawn, (grid,)):
        for n, axes in enumerate(grid):
            part = whats[n * each:(n + 1) * each]
            grouped(axes, part + [""] * (each - len(part)), series,
                    "{:,.0f}" if unit == "ns" else "{:.2f}")
            if floor:
                axes.axvline(floor, color="black", lw=1, ls="--", label="redirect at ingress")
        for axes in grid if columns < 3 else grid[1:2]:
            axes.set_xlabel(LABELS.get(unit, unit) if group != "http" else
                            "requests through the director, of those straight to a server")
        drawn.suptitle(title(results, group))
        if floor or len(series) > 1:
            below(drawn, *grid)


def lines(results, group):
    """{kind of row: {system: [(x, median, least, most)]}}, and each kind's unit."""
    found, units = {}, {}
    for system in results.systems(group):
        for (g, what, s), f in results.figures.items():
            if (g, s) == (group, system) and "x" in f.row and f.drawn:
                kind = what.rpartition(", ")[0]
                units[kind] = f.row["unit"]
                found.setdefault(kind, {}).setdefault(system, []).append(
                    (f.row["x"], f.median, f.least, f.most))
    return found, units


def panels(results, group, path):
    """A panel for each kind of row, with a line for each system."""
    found, units = lines(results, group)
    if not found:
        return
    columns = min(len(found), 3 if len(found) < 7 else 5)
    rows = -(-len(found) // columns)
    one_unit = len({*units.values()}) == 1
    shades = colours(results.systems(group), SYSTEMS)
    # A thousand servers make some schedulers ten times as slow.
    with figure(path, rows, columns, 4 + 3 * columns, 2 + 2.7 * rows, sharex=True,
                sharey=group != "schedulers" and one_unit) as (drawn, grid):
        flat = [axes for line in grid for axes in line]
        for axes, (kind, by_system) in zip(flat, found.items()):
            for system, points in by_system.items():
                x, median, least, most = zip(*sorted(points))
                axes.plot(x, median, marker=".", color=shades[system], label=system)
                axes.fill_between(x, least, most, color=shades[system], alpha=0.15, lw=0)
            axes.set_title(kind)
            axes.set_xscale("log")
            axes.grid(alpha=0.3)
            if axes in grid[:, 0] or not one_unit:
                axes.set_ylabel(LABELS.get(units[kind], units[kind]).partition(" (")[0])
        for axes in flat:
            axes.set_ylim(bottom=0)         # at last, as it ends automatic scaling
        for axes in flat[len(found):]:
            axes.set_visible(False)
        for axes in grid[-1]:
            axes.set_xlabel(PLOTS[group])
        drawn.suptitle(title(results, group))
        below(drawn, *flat)


def unit_of(results, group):
    """The unit of all figures of a group that are drawn; "" if they have several."""
    found = {f.row["unit"] for (g, _, _), f in results.figures.items() if g == group and f.drawn}
    return found.pop() if len(found) == 1 else ""


def title(results, group):
    return (f"{group}: {TITLES[group]}\n"
            f"Linux {results.results['kernel']}, {results.results['vehicle']}")


def draw(results, directory):
    """Draws the plots; returns their names."""
    names = []
    for group in results.groups():
        path, whats = directory / f"{group}.png", results.whats(group)
        path.unlink(missing_ok=True)
        amounts = {f.row.get("x") for (g, _, _), f in results.figures.items()
                   if g == group and f.drawn}
        if group in PLOTS and len(amounts) > 1:     # a line needs two points
            panels(results, group, path)
        elif group in (REFERENCE, *PACKETS):
            bars(results, group, path, whats)
        elif group == "http":
            bars(results, group, path, [w for w in whats if w.endswith(OF_STRAIGHT)])
        if path.exists():
            names.append(path.name)
    return names


def write(results, directory):
    """table.md and plots in DIRECTORY; the plots' names."""
    results = Results(results)
    (directory / "table.md").write_text(render(results), encoding="utf-8")
    return draw(results, directory)


if __name__ == "__main__":
    again(write)
