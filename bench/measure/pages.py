# SPDX-License-Identifier: GPL-2.0
"""What the tables and plots of several benches have in common."""

import contextlib
import json
import statistics
import sys
from pathlib import Path


def spread(values, scale=1.0, digits=0):
    """Median ± half of the range."""
    median = statistics.median(values)
    text = f"{median * scale:,.{digits if median * scale < 100 else 0}f}"
    if len(values) > 1 and median:
        text += f" ± {50 * (max(values) - min(values)) / median:.0f} %"
    return text


def measured(title, r):
    """A report's first lines: what was run, where, and beside what."""
    yield f"# {title}"
    yield ""
    yield (f"`{r['command']}`, {r['date']}, Linux {r['kernel']} in QEMU, two processors, "
           f"on {r['processor']};")
    yield f"load of the host before and after: {r['load'][0]}, {r['load'][1]}."
    yield ""


@contextlib.contextmanager
def figure(path, rows, columns, width, height, **options):
    """A figure, and a list of lists of its axes; saved as PATH."""
    import matplotlib                               # slow to load
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
    """A line through the middles of VALUES, a list for each x, and what lies between least
    and most."""
    def each(what):
        return [what(v) if v else float("nan") for v in values]
    line, = axes.plot(x, each(middle), label=label, **options)
    axes.fill_between(x, each(min), each(max), color=line.get_color(), alpha=0.15, lw=0)


def again(write):
    """What a report does as a program: WRITE, from the results.json of a directory."""
    where = Path(sys.argv[1])
    write(json.loads((where / "results.json").read_text("utf-8")), where)
