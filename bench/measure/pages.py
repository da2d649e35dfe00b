# SPDX-License-Identifier: GPL-2.0
"""Code that the tables and plots of several benches share."""

import contextlib
import json
import sys
from pathlib import Path


@contextlib.contextmanager
def figure(path, rows, columns, width, height, **options):
    """Yields a figure and a list of lists of its axes; saves the figure as PATH."""
    import matplotlib  # slow to load
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    drawn, axes = plt.subplots(rows, columns, figsize=(width, height), layout="constrained",
                               squeeze=False, **options)
    try:
        yield drawn, axes
        drawn.savefig(path, dpi=100)
    finally:
        plt.close(drawn)


def shaded(axes, x, values, middle, label, **options):
    """Draws a line through the middles of VALUES (a list for each x), and shades the range
    from least to most."""
    def each(what):
        return [what(v) if v else float("nan") for v in values]
    line, = axes.plot(x, each(middle), label=label, **options)
    axes.fill_between(x, each(min), each(max), color=line.get_color(), alpha=0.15, lw=0)


def again(write):
    """A report's main program: calls WRITE with the results.json of the given directory."""
    where = Path(sys.argv[1])
    write(json.loads((where / "results.json").read_text("utf-8")), where)
