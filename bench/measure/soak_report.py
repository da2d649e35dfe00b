# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make soak" from its results.json.

  python3 bench/measure/soak_report.py DIRECTORY     draws them again
"""

from pages import GREY, SYSTEMS, again, below, figure, writer


def render(r):
    extra = [n / 1e6 for _, n in r["memory"]]
    rows = (("minutes", f"{r['memory'][-1][0]:.0f}"), ("packets, none lost", f"{r['packets']:,}"),
            ("changes, none failed", f"{r['changes']:,}"),
            ("memory meanwhile, MB more than before", f"{min(extra):.1f} to {max(extra):.1f}"),
            ("after the last connection, MB more than before", f"{r['left'] / 1e6:.1f}"))
    return "\n".join(["# Soak", "", f"`{r['command']}`, {r['date']}, Linux {r['kernel']}.", "",
                      "| | |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows), ""])


def draw(r, path):
    minutes, extra = zip(*r["memory"])
    with figure(path, 1, 1, 10, 5) as (drawn, ((axes,),)):
        axes.plot(minutes, [n / 1e6 for n in extra], marker=".", color=SYSTEMS["l4lb"],
                  label="while packets are sent and the configuration changes")
        axes.plot([minutes[-1]], [r["left"] / 1e6], "o", color=GREY,
                  label="after the last connection has expired")
        axes.set(xlabel="time, minutes", ylabel="kernel memory, MB more than before")
        axes.set_ylim(bottom=min(0, *axes.get_ylim()))
        axes.grid(alpha=0.3)
        drawn.suptitle(f"soak: {r['packets']:,} packets, {r['changes']:,} changes, "
                       f"Linux {r['kernel']}")
        below(drawn, axes)


write = writer(render, draw, "memory.png")


if __name__ == "__main__":
    again(write)
