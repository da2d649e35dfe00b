# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make bench-tool" from its results.json.

  python3 bench/measure/tool_report.py DIRECTORY     draws them again
"""

from pages import SYSTEMS, again, figure, writer

RATIO, CHANGED, DIFF, PERIOD, EVENTS = 1.2, 0.5, 1.0, 1.1, 10_000


def bars(r):
    """(what, bar, measured, whether it is met)"""
    spec, found = r["spec"], r["found"]
    few, many = f"{spec['few']:,} services", f"{spec['many']:,} services"
    ratio = found["apply few"] / found["restore few"]
    yield f"`restore` of {few}, s", None, f"{found['restore few']:.2f}", True
    yield f"`apply` of {few}, s", None, f"{found['apply few']:.2f}", True
    yield "... of `restore`", f"<= {RATIO}", f"{ratio:.2f}", ratio <= RATIO
    yield f"`apply` of {many}, s", None, f"{found['apply many']:.2f}", True
    yield "... again, nothing to do, s", None, f"{found['apply many again']:.2f}", True
    yield (f"... {spec['changed']} changed, s", f"<= {CHANGED}", f"{found['apply changed']:.2f}",
           found["apply changed"] <= CHANGED)
    yield "`diff` of these, s", f"<= {DIFF:.0f}", f"{found['diff']:.2f}", found["diff"] <= DIFF
    for name, size in (("top", "80x24"), ("large top", "200x60")):
        period = found[f"{name} period"]
        yield (f"`top` at {size} with {many}: from one screen to the next, s", f"<= {PERIOD}",
               f"{period:.2f}", period <= PERIOD)
        yield "... of a processor, s", None, f"{found[f'{name} processor']:.2f}", True
    for name, command in (("top in lines", "top -b -n 1"), ("list", "service list"),
                          ("prometheus", "-F prometheus stats")):
        yield f"`{command}` with {many}, s", None, f"{found[name]:.2f}", True
    yield ("events a second that `monitor` writes", f">= {EVENTS:,}",
           f"{found['events a second']:,.0f}", found["events a second"] >= EVENTS)
    yield "... that the kernel sent meanwhile", None, f"{found['events sent a second']:,.0f}", True
    yield "... of which lost", "0", f"{found['events lost']:.0f}", not found["events lost"]
    back = found["connections that are there again"]
    yield (f"exchange of the module with {spec['conns']:,} connections: those that are there again",
           f"{spec['conns']:,}", f"{back:,.0f}", back == spec["conns"])
    for name in ("export", "flush", "unload and load", "import", "pause"):
        yield f"... {name}, s", None, f"{found[name]:.2f}", True


def render(r):
    lines = ["# ipvsctl with large configurations", "",
             f"`{r['command']}`, {r['date']}, Linux {r['kernel']} in QEMU, two processors; services have 4 real "
             "servers. See bench/README.md.", "", "| | bar | measured | |", "|---|---|---|---|"]
    lines += [f"| {what} | {bar or '–'} | {found} | "
              f"{'' if bar is None else 'met' if good else 'missed'} |"
              for what, bar, found, good in bars(r)]
    return "\n".join([*lines, ""])


def draw(r, path):
    """Seconds of each command."""
    names = ("restore few", "apply few", "apply many", "apply many again", "apply changed", "diff",
             "list", "top in lines", "prometheus", "export", "import", "pause")
    with figure(path, 1, 1, 9, 4.5) as (drawn, ((axes,),)):
        axes.barh(names, [r["found"][name] for name in names], color=SYSTEMS["l4lb"])
        axes.invert_yaxis()
        axes.set_xlabel("seconds")
        axes.grid(axis="x", alpha=0.3)
        drawn.suptitle(f"ipvsctl: {r['spec']['few']:,} and {r['spec']['many']:,} services of 4 servers, "
                       f"Linux {r['kernel']}")


write = writer(render, draw, "seconds.png")


if __name__ == "__main__":
    again(write)
