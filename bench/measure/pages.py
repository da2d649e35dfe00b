# SPDX-License-Identifier: GPL-2.0
"""Code that the tables and plots of several benches share."""

import contextlib
import io
import json
import os
import site
import sys
from pathlib import Path

DPI = 100
WIDEST, HIGHEST = 12, 8     # inches: a picture fits on a screen
GREY = "#808080"
# Each system has its colour in all pictures; grey is for what has no director.
SYSTEMS = {
    "ip_vs": "#0072B2", "ip_vs default table": "#56B4E9", "ip_vs tuned": "#332288", "l4lb": "#E69F00",
    "l4lb fast 1": "#009E73", "l4lb fast 2": "#D55E00", "l4lb xdp": "#8FBC3F",
    "l4lb xdp client side": "#44556B", "peer xdp": "#A0522D",
    "the kernel's tunnel": "#B0A000",
    **dict.fromkeys(("reference", "redirect", "no director", "single", "direct", "without"), GREY),
    "NAT and ip_vs": "#0072B2", "NAT and l4lb": "#E69F00", "two proxies": "#CC79A7",
    "NAT and relay": "#5E4FA2", "LAS, prio": "#882255", "LAS, ets": "#44AA99"}
# A weighted scheduler is paler than the one without weights.
SCHEDULERS = {
    "standalone": GREY, "rr": "#1f77b4", "wrr": "#aec7e8", "lc": "#2ca02c", "wlc": "#98df8a",
    "lblc": "#9467bd", "lblcr": "#c5b0d5", "dh": "#e377c2", "sh": "#bcbd22", "mh": "#8c564b",
    "sed": "#ff7f0e", "nq": "#ffbb78", "fo": "#d62728", "ovf": "#ff9896", "twos": "#17becf", "ewma": "#9edae5",
    "bpf": "#393b79"}
OTHERS = ("#003f5c", "#a05195", "#f95d6a", "#665191", "#2f4b7c", "#d45087")


def colours(names, known):
    """{name: colour}: KNOWN's, or one of OTHERS for a name that is not known."""
    strangers = [n for n in names if n not in known]
    return {n: known[n] if n in known else OTHERS[strangers.index(n) % len(OTHERS)]
            for n in names}


def add_venv():
    """Makes what tests/lab/deps has installed with pip known to Debian's Python. Debian's own
    matplotlib would bring 52 packages and 476 MB, a compiler for numbers among them."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    for packages in (Path(cache) / "l4lb/venv/lib").glob("python3*/site-packages"):
        site.addsitedir(str(packages))


@contextlib.contextmanager
def figure(path, rows, columns, width, height, **options):
    """Yields a figure and a list of lists of its axes; saves the figure as PATH. WIDTH and
    HEIGHT are in inches; a screen's size is the most."""
    add_venv()
    import matplotlib  # slow to load
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"font.size": 11, "axes.titlesize": 12, "figure.titlesize": 13,
                         "figure.dpi": DPI, "hatch.linewidth": 0.6})
    size = min(width, WIDEST), min(height, HIGHEST)
    drawn, axes = plt.subplots(rows, columns, figsize=size, layout="constrained",
                               squeeze=False, **options)
    try:
        yield drawn, axes
        save(drawn, path)
    finally:
        plt.close(drawn)


def save(drawn, path):
    """Few colours make a file of half the size, without a visible difference."""
    from PIL import Image  # matplotlib needs it, too
    drawn.savefig(buffer := io.BytesIO(), dpi=DPI)
    Image.open(buffer).convert("RGB").quantize(128).save(path, "png", optimize=True)


def below(drawn, *axes):
    """A legend of AXES under all of them, where it hides nothing."""
    from matplotlib.lines import Line2D
    named = {}
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels()):
            named.setdefault(label, handle)
    # Bars come before lines across them.
    labels = sorted(named, key=lambda label: isinstance(named[label], Line2D))
    width, height = drawn.get_size_inches()
    needed = [0.65 + 0.085 * len(label) for label in labels]
    columns = len(labels) if sum(needed) < width else max(1, int(width / max(needed)))
    share = (0.12 + 0.25 * -(-len(labels) // columns)) / height
    drawn.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    drawn.legend([named[label] for label in labels], labels, loc="lower center", ncols=columns,
                 frameon=False, borderaxespad=0.2, borderpad=0)


def grouped(axes, whats, series, form, marks=None):
    """Horizontal bars: a group for each of WHATS, and in it a bar for each of SERIES,
    {system: {what: (figure, least, most)}}, with the figure as FORM says behind it. MARKS,
    {system: {what: figure}}, are short lines on the bars."""
    shades, high = colours(series, SYSTEMS), 0.84 / len(series)
    tall = axes.get_window_extent().height / len(whats) * high
    for i, (system, figures) in enumerate(series.items()):
        rows = [(j + (i + 0.5) * high, w, *figures[w]) for j, w in enumerate(whats) if w in figures]
        if not rows:
            continue
        at, names, size, least, most = zip(*rows)
        errors = [[s - x for s, x in zip(size, least)], [x - s for s, x in zip(size, most)]]
        axes.barh(at, size, high * 0.92, label=system, color=shades[system],
                  xerr=errors if any(map(any, errors)) else None, error_kw={"lw": 1})
        for y, name, figure, end in zip(at, names, size, most):
            mark = marks and marks.get(system, {}).get(name)
            if mark is not None:
                axes.plot([mark, mark], [y - high * 0.46, y + high * 0.46], "k", lw=1.5)
            if tall >= 10:
                axes.annotate(form.format(figure), (max(end, mark or 0), y), (3, 0), va="center",
                              textcoords="offset points", fontsize=min(10, tall * 0.7))
    axes.set_yticks([j + 0.42 for j in range(len(whats))], whats)
    axes.set_ylim(len(whats), -0.16)
    axes.margins(x=0.12)
    ruled(axes, "x")


def ruled(axes, axis):
    """Lines at the numbers of AXIS ("x" or "y"), behind the bars."""
    axes.grid(axis=axis, alpha=0.3)
    axes.set_axisbelow(True)


def thousands(axis):
    """Separates the thousands of an axis's numbers."""
    from matplotlib.ticker import StrMethodFormatter
    axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def shaded(axes, x, values, middle, label, **options):
    """Draws a line through the middles of VALUES (a list for each x), and shades the range
    from least to most."""
    def each(what):
        return [what(v) if v else float("nan") for v in values]
    line, = axes.plot(x, each(middle), label=label, **options)
    axes.fill_between(x, each(min), each(max), color=line.get_color(), alpha=0.15, lw=0)


def writer(render, draw, picture, of=lambda results: results):
    """A report's write(results, directory): table.md with the text of RENDER, and DRAW's PICTURE,
    both of OF(results); it returns the pictures' names."""
    def write(results, directory):
        found = of(results)
        (directory / "table.md").write_text(render(found), encoding="utf-8")
        draw(found, directory / picture)
        return [picture]
    return write


def again(write):
    """A report's main program: calls WRITE with the results.json of the given directory."""
    where = Path(sys.argv[1])
    write(json.loads((where / "results.json").read_text("utf-8")), where)
