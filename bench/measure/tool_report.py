# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make bench-tool" from its results.json.

  python3 bench/measure/tool_report.py DIRECTORY     draws them again
"""

from pages import SYSTEMS, again, figure, writer

RATIO, CHANGED, DIFF, PERIOD, EVENTS = 1.2, 0.5, 1.0, 1.1, 10_000
SHOW, MEMORY = 5.0, 20.0        # of "conn show"


def row(what, value, form=".2f", most=None, least=None):
    """(what, bar, measured, whether it is met). VALUE: None if there was no such figure yet when
    the results were recorded: this is said, and no bar is met or missed."""
    bar = f"<= {most:g}" if most is not None else f">= {least:,}" if least is not None else None
    if value is None:
        return what, bar, "not measured", None
    return what, bar, format(value, form), not (most is not None and value > most or
                                                least is not None and value < least)


def of_files(spec, found):
    few, many = f"{spec['few']:,} services", f"{spec['many']:,} services"
    yield row(f"`restore` of {few}, s", found("restore few"))
    yield row(f"`apply` of {few}, s", found("apply few"))
    ratio = found("apply few") and found("restore few") and found("apply few") / found("restore few")
    yield row("... of `restore`", ratio, most=RATIO)
    yield row(f"`apply` of {many}, s", found("apply many"))
    yield row("... of which to read the file (`check`), s", found("check"))
    yield row("... again, nothing to do, s", found("apply many again"))
    yield row(f"... {spec['changed']} changed, s", found("apply changed"), most=CHANGED)
    yield row("`diff` of these, s", found("diff"), most=DIFF)


def of_watching(spec, found):
    many = f"{spec['many']:,} services"
    for name, size in (("top", "80x24"), ("large top", "200x60")):
        yield row(f"`top` at {size} with {many}: from one screen to the next, s", found(f"{name} period"),
                  most=PERIOD)
        yield row("... of a processor, s", found(f"{name} processor"))
    for name, command in (("top in lines", "top -b -n 1"), ("list", "service list"),
                          ("prometheus", "-F prometheus stats")):
        yield row(f"`{command}` with {many}, s", found(name))
    yield row("events a second that `monitor` writes", found("events a second"), ",.0f", least=EVENTS)
    yield row("... that the kernel sent meanwhile", found("events sent a second"), ",.0f")
    yield row("... of which lost", found("events lost"), ".0f", most=0)


def of_connections(spec, found):
    conns = f"{spec['conns']:,} connections"
    yield row(f"`conn show` of {conns}, s", found("conn show"), most=SHOW)
    yield row("... memory, MiB", found("conn show memory"), ".1f", most=MEMORY)
    yield row(f"exchange of the module with {conns}: those that are there again",
              found("connections that are there again"), ",.0f", least=spec["conns"])
    for name in ("export", "flush", "unload and load", "import", "pause"):
        yield row(f"... {name}, s", found(name))


def bars(r):
    """The rows of the table."""
    for part in (of_files, of_watching, of_connections):
        yield from part(r["spec"], r["found"].get)


def render(r):
    lines = ["# ipvsctl with large configurations", "",
             f"`{r['command']}`, {r['date']}, Linux {r['kernel']} in QEMU, two processors; services have 4 real "
             "servers. See bench/README.md.", "", "| | bar | measured | |", "|---|---|---|---|"]
    lines += [f"| {what} | {bar or '–'} | {found} | "
              f"{'' if bar is None or good is None else 'met' if good else 'missed'} |"
              for what, bar, found, good in bars(r)]
    return "\n".join([*lines, ""])


def draw(r, path):
    """Seconds of each command."""
    names = [name for name in ("restore few", "apply few", "apply many", "apply many again", "apply changed",
                               "diff", "list", "top in lines", "prometheus", "conn show", "export", "import",
                               "pause") if name in r["found"]]
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
