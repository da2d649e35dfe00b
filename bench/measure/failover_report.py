# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make bench-failover" from its results.json.

  python3 bench/measure/failover_report.py DIRECTORY     draws them again
"""

from pages import SYSTEMS, again, below, colours, figure

METHODS = {"nat": "NAT", "dr": "direct routing", "tun": "tunnel"}
EVENTS = ("fail-over", "fail-back")
BIN, BEFORE = 0.5, 5        # of the curves, seconds
MARGIN = 1                  # seconds, beside twice the time that VRRP needs
TITLE = {"fail-over": "The master dies", "fail-back": "It comes back and takes over"}


def systems(r):
    return list(dict.fromkeys(row["system"] for row in r["rows"]))


def pick(r, **want):
    return [row for row in r["rows"] if all(row.get(k) == v for k, v in want.items())]


def bar(row):
    """The most seconds without data that are allowed: twice what VRRP may need, and a second.
    A dead master is silent for three intervals and a skew below one; a lower one gives way."""
    return 2 * 3.6 * row["advert"] + MARGIN


def met(row):
    """Whether a row of the drill is within the bars."""
    return not row["lost"] and row["slowest"] <= bar(row)


def head(r):
    spec = r["spec"]
    yield "# Fail-over and fail-back"
    yield ""
    yield (f"`{r['command']}`, {r['date']}, Linux {r['kernel']} in user space with a virtual "
           "clock. See bench/README.md.")
    yield ""
    yield (f"{spec['downloads']:,} open TCP downloads for each method, 512 bytes every 2 s, through "
           "a pair of directors with both")
    yield ("daemons and keepalived (VRRP 3). The master loses its links and its memory; it comes "
           f"back, waits {spec['wait']} s (where `ipvsctl")
    yield ("sync wait` exists: until that says that it is in step, and 5 s), and takes over again. "
           "*ip_vs*: as shipped (sync_threshold 3 50);")
    yield "*ip_vs tuned* and *l4lb*: sync_threshold 0 0, sync_refresh_period 10."
    yield ""


def cell(row):
    return f"{row['lost']:,} | {row['young']:,} | {row['slowest']:.1f} s"


def drill(r):
    names = systems(r)
    yield "## Open downloads"
    yield ""
    yield ("Lost: connections that were at least 0.3 s old; young: younger ones that were lost. "
           "Slowest: the longest that a message of a")
    yield ("surviving download was under way. With direct routing and tunnels data go round the "
           "director, so that only acknowledgements are lost.")
    yield ""
    yield "| | method | bar | " + " | | | ".join(names) + " | | |"
    yield "|---|---|---|" + "---|---|---|" * len(names)
    yield "| | | lost, slowest | " + " | ".join(["lost | young | slowest"] * len(names)) + " |"
    for advert in r["spec"]["adverts"]:
        for event in EVENTS:
            for method, title in METHODS.items():
                rows = [row for n in names for row in pick(
                    r, system=n, advert=advert, event=event, method=method) if "idle" not in row]
                yield (f"| {event}, VRRP {advert:g} s | {title} | 0, {bar(rows[0]):.1f} s | "
                       + " | ".join(map(cell, rows)) + " |")
    yield ""
    yield ("Seconds until the other director was the master; TCP resets that reached clients and "
           "servers; seconds until the director that")
    yield "came back knew the connections, or was taken to know them."
    yield ""
    yield "| | " + " | ".join(f"{n}: VRRP, resets, learned" for n in names) + " |"
    yield "|---|" + "---|" * len(names)
    for advert in r["spec"]["adverts"]:
        for event in EVENTS:
            rows = [pick(r, system=n, advert=advert, event=event)[0] for n in names]
            yield f"| {event}, VRRP {advert:g} s | " + " | ".join(
                f"{row['outage']:.2f} s, {row['resets']:,}"
                + (f", {row['learned']:.1f} s" if "learned" in row else "") for row in rows) + " |"
    yield ""


def idle(r):
    names, spec = systems(r), r["spec"]
    yield f"## Sessions without a packet for {spec['idle'] / 60:g} minutes"
    yield ""
    yield (f"{spec['sessions']:,} for each method, TCP timeout 2 h, idle before either event; then "
           "each client sends a request. Lost; the bar is 0.")
    yield ""
    yield "| | method | " + " | ".join(names) + " |"
    yield "|---|---|" + "---|" * len(names)
    for event in EVENTS:
        for method, title in METHODS.items():
            rows = [pick(r, system=n, event=event, method=method, idle=True)[0] for n in names]
            yield f"| {event} | {title} | " + " | ".join(f"{x['lost']:,}" for x in rows) + " |"
    yield ""


def verdict(r):
    rows = [row for row in r["rows"] if row["system"] == "l4lb"]
    missed = [row for row in rows if (row["lost"] if "idle" in row else not met(row))]
    if not missed:
        yield "l4lb meets every bar."
        return
    yield f"l4lb misses {len(missed)} of {len(rows)} bars: " + "; ".join(dict.fromkeys(
        f"{row['event']}{' of idle sessions' if 'idle' in row else ''}, "
        f"{METHODS[row['method']]}" for row in missed)) + "."


def draw(r, path):
    """Data received around each event, as a share of what is due."""
    names, adverts = systems(r), r["spec"]["adverts"]
    shades = colours(names, SYSTEMS)
    with figure(path, len(EVENTS), len(adverts), 11, 7.5, sharex=True, sharey=True) as (
            drawn, grid):
        for line, event in zip(grid, EVENTS, strict=True):
            for axes, advert in zip(line, adverts, strict=True):
                for name in names:
                    share = next(c["share"] for c in r["curves"] if (
                        c["system"], c["advert"], c["event"]) == (name, advert, event))
                    axes.step([n * BIN - BEFORE for n in range(len(share))],
                              [100 * s for s in share], where="post", label=name,
                              color=shades[name])
                axes.axvline(0, color="black", lw=1)
                axes.set_title(f"{TITLE[event]}, VRRP {advert:g} s")
                axes.grid(alpha=0.3)
                axes.set_ylim(0, 250)
            line[0].set_ylabel("data received, % of what is due")
        for axes in grid[-1]:
            axes.set_xlabel("seconds")
        drawn.suptitle(f"{3 * r['spec']['downloads']:,} downloads through a pair of directors, "
                       f"Linux {r['kernel']}")
        below(drawn, *(axes for line in grid for axes in line))


def write(results, directory):
    """table.md and the plot in DIRECTORY; the plot's name."""
    lines = [*head(results), *drill(results), *idle(results), *verdict(results)]
    (directory / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw(results, directory / "data.png")
    return ["data.png"]


if __name__ == "__main__":
    again(write)
