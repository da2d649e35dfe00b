# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make bench-resync" from its results.json.

  python3 bench/measure/resync_report.py DIRECTORY     draws them again
"""

from pages import SYSTEMS, again, below, figure, thousands, writer

# Of doc/high-availability.md: {connections: seconds}; the least share of packets forwarded
# meanwhile.
SECONDS = {100_000: 8, 1_000_000: 100}
SHARE = 0.8


def complete(row):
    """Whether the peer has all, and the two agree."""
    return not row["difference"] and min(row["copies"], row["compared"]) >= row["there"]


def bars(row):
    """(what, bar, measured, whether it is met)"""
    most, share = SECONDS.get(row["count"]), row["meanwhile"] / min(row["alone"], row["after"])
    yield ("seconds until the peer is in step", most and f"<= {most}", f"{row['seconds']:.1f}",
           most is None or row["seconds"] <= most)
    yield ("connections of the peer", f">= {row['there']:,}", f"{row['copies']:,}",
           row["copies"] >= row["there"])
    yield ("records that were sent at once", None, f"{row['records']:,}", True)
    yield ("seconds until a comparison finds no difference", None,
           "never" if row["difference"] else f"{row['agreed']:.1f}", True)
    yield "packets a second before", None, f"{row['alone']:,.0f}", True
    yield ("... meanwhile", None, f"{row['meanwhile']:,.0f}", True)
    yield ("... afterwards", None, f"{row['after']:,.0f}", True)
    yield ("... meanwhile, of the lower one of these", f">= {SHARE}", f"{share:.2f}", share >= SHARE)
    yield ("memory of both, more for each connection, bytes", None,
           f"{row['grown'] / row['count']:.0f}", True)


def render(r):
    lines = ["# All connections to a peer that has none", "",
             f"`{r['command']}`, {r['date']}, Linux {r['kernel']} in QEMU, two processors. See "
             "bench/README.md.", ""]
    for row in r["rows"]:
        lines += [f"## {row['count']:,} connections", "", "| | bar | measured | |",
                  "|---|---|---|---|"]
        lines += [f"| {what} | {bar or '–'} | {found} | "
                  f"{'' if bar is None else 'met' if good else 'missed'} |"
                  for what, bar, found, good in bars(row)]
        lines.append("")
    return "\n".join(lines)


def draw(r, path):
    """Packets a second around each transfer, which is shaded."""
    with figure(path, 1, len(r["rows"]), 11, 4.5) as (drawn, (grid,)):
        for axes, row in zip(grid, r["rows"], strict=True):
            axes.axvspan(0, row["seconds"], color="black", alpha=0.08, label="being sent")
            axes.plot(*zip(*row["curve"]), color=SYSTEMS["l4lb"], lw=1, label="l4lb forwards")
            axes.axhline(SHARE * min(row["alone"], row["after"]), color="black", lw=1, ls="--",
                         label=f"{SHARE:.0%} of before or after")
            axes.set_title(f"{row['count']:,} connections")
            axes.set_xlabel("seconds")
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
            thousands(axes.yaxis)
        grid[0].set_ylabel("packets a second")
        drawn.suptitle(f"All connections to a peer that has none, Linux {r['kernel']}")
        below(drawn, *grid)


write = writer(render, draw, "forwarding.png")


if __name__ == "__main__":
    again(write)
