# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make bench-schedulers COMPARE=...".

  python3 bench/scheduling/trials_report.py DIRECTORY     draws them again
"""

import sys
from pathlib import Path

# Last, because this directory has a report.py, too.
sys.path.append(str(Path(__file__).resolve().parents[1] / "measure"))

from pages import SCHEDULERS, again, colours, figure, ruled, writer  # noqa: E402

SHOWN = 3           # fair shares; what has more is a number at the edge


def share(part, whole):
    return part / whole if whole else 0


def loads(trial):
    """The share of each real server over the fair one; 1 is what its weight asks for."""
    return [share(server["share"], server["fair"]) for server in trial["servers"]]


def number(value, form):
    return "-" if value is None else format(value, form)


def percent(part, trial):
    return "-" if part is None else f"{100 * share(part, trial['flows']):.2f} %"


def weights(pool):
    """In words: "4, 2, 1, 1" or "100 of 1 to 5"."""
    each = pool["weights"]
    if len(each) <= 4:
        return "weights " + ", ".join(map(str, each))
    least, most = min(each), max(each)
    return f"{len(each)} servers of weight " + (f"{least}" if least == most else f"{least} to {most}")


def section(name, pool, found):
    yield f"## {name}: {weights(pool)}"
    yield ""
    yield f"A connection ends when {pool['hold']:,} others have begun. Without: {found['without']}."
    yield ""
    yield "| scheduler | least share | most | CV | Jain | refused | lost | moved |"
    yield "|---|---|---|---|---|---|---|---|"
    for trial in found["trials"]:
        each = loads(trial)
        yield (f"| {trial['scheduler']} | {min(each):.3f} | {max(each):.3f} | "
               f"{number(trial['cv'], '.4f')} | {number(trial['jain'], '.4f')} | {trial['refused']:,} | "
               f"{percent(trial['lost'], trial)} | {percent(trial['moved'], trial)} |")
    yield ""


def render(results):
    lines = [
        "# Schedulers without traffic", "",
        f"`{results['command']}`, {results['date']}, Linux {results['kernel']}, UML in virtual time.", "",
        f"{results['flows']:,} flows of seed {results['seed']}, each of a client of its own. Shares are "
        "multiples of the fair one, by weight. *Lost*: flows of a real server that goes; *moved*: flows of "
        "the others that would be elsewhere without it, for schedulers whose choice depends only on "
        "flow and pool.", ""]
    for name, pool in results["pools"].items():
        lines += section(name, pool, results["found"][name])
    return "\n".join(lines)


def draw_loads(axes, trials, shades):
    """A mark for each real server."""
    most = min(SHOWN, 1.1 * max(max(loads(trial)) for trial in trials))
    for row, trial in enumerate(trials):
        each = loads(trial)
        axes.plot([min(each), max(each)], [row, row], color=shades[trial["scheduler"]], lw=6, alpha=0.35,
                  solid_capstyle="butt")
        axes.plot(each, [row] * len(each), "|", color=shades[trial["scheduler"]], ms=14)
        if max(each) > 1.01 * most:
            axes.annotate(f"to {max(each):.0f} \N{RIGHTWARDS ARROW}", (most, row), (-3, 8), ha="right",
                          textcoords="offset points", fontsize=9)
    axes.axvline(1, color="k", lw=0.8)
    axes.set_xlim(0, most)
    axes.set_xlabel("share of the flows, fair = 1")
    names(axes, trials)


def draw_moved(axes, trials, shades):
    """Of the schedulers for which that can be said."""
    trials = [trial for trial in trials if trial["moved"] is not None]
    for row, trial in enumerate(trials):
        lost, moved = (100 * share(trial[what], trial["flows"]) for what in ("lost", "moved"))
        axes.barh(row, moved, 0.7, color=shades[trial["scheduler"]])
        inside = moved > 50
        axes.annotate(f"{moved:.2f} %, lost {lost:.1f} %", (moved, row), (-4 if inside else 4, 0),
                      va="center", ha="right" if inside else "left", textcoords="offset points")
    axes.set_xlabel("moved, % of the flows" if trials else
                    "moved: none of them chooses by flow and pool alone")
    axes.set_xlim(0, 100)
    names(axes, trials)


def names(axes, trials):
    axes.set_yticks(range(len(trials)), [trial["scheduler"] for trial in trials])
    axes.set_ylim(max(len(trials), 1) - 0.5, -0.5)
    ruled(axes, "x")


def draw(results, path):
    shades = colours(results["names"], SCHEDULERS)
    pools = results["pools"]
    height = 3.8 + 0.3 * len(results["names"])
    with figure(path, 2, len(pools), 12, max(5, height), height_ratios=(2, 1)) as (drawn, (above, under)):
        for name, evenness, disruption in zip(pools, above, under):
            trials = results["found"][name]["trials"]
            draw_loads(evenness, trials, shades)
            draw_moved(disruption, trials, shades)
            evenness.set_title(f"{name}: {weights(pools[name])}", fontsize=11)
        drawn.suptitle(f"What schedulers choose for {results['flows']:,} flows; what one server's "
                       "absence moves")


write = writer(render, draw, "compare.png")


if __name__ == "__main__":
    again(write)
