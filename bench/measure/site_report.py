# SPDX-License-Identifier: GPL-2.0
"""Table and plot of "make bench-site" from its results.json.

  python3 bench/measure/site_report.py DIRECTORY     draws them again
"""

import statistics

from counted import measured
from pages import SYSTEMS, again, below, figure, ruled, thousands, writer

TOOLS = {"ab": "ab", "wr": "wrk", "hp": "httperf, 10 requests a connection"}
NETWORKS = {"lan": "plain", "fwl": "through the firewall"}
WAYS = ("single", "ip_vs", "l4lb")
PAPER = {"single": 2500, "cluster": 8000, "firewall": 0.9, "cluster of single": 3.0}
POLLS = "hp"
BUSY = 0.9      # of a processor: from here on the client is the limit
IDLE = 10       # percent: with less idle time the machine is the limit


class Results:
    def __init__(self, results):
        self.r = results

    def rows(self, tool, way, network):
        return [r for r in self.r["rows"] if "rate" in r and
                (r["tool"], r["way"], r["network"]) == (tool, way, network)]

    def rate(self, tool, way, network):
        """The best of all runs: httperf has one for each rate."""
        return max((r["rate"] for r in self.rows(tool, way, network)), default=None)

    def mean(self, tool, way, network, *path):
        values = []
        for row in self.rows(tool, way, network):
            for key in path:
                row = row.get(key) if row else None
            if row is not None:
                values.append(row)
        return statistics.fmean(values) if values else float("nan")


def cell(res, *which):
    """The text for a tool, a way and a network."""
    if not any((r["tool"], r["way"], r["network"]) == which for r in res.r["rows"]):
        return "not run"
    return f"{res.rate(*which):,.0f}" if res.rate(*which) else "FAULT"


def figures(r):
    """The figures by which two runs with the same seed are compared."""
    return {f"{row['tool']}, {row['way']}, {row['network']}, "
            f"{row.get('asked', 'all it can')}": row["rate"] for row in r["rows"] if "rate" in row}


def head(res):
    r, spec = res.r, res.r["spec"]
    yield from measured("Site", r)
    yield (f"Four nginx, a page of 2,504 bytes, no logs; each has {spec['share']:g} of a processor, "
           "so that client and director have")
    yield (f"the rest. Runs of {spec['seconds']} s, {spec['together']} connections at a time "
           "(ab, wrk).")
    yield "wrk stands for http_load, which Debian has no package of."
    yield ""


def table(res):
    yield "## Requests a second"
    yield ""
    yield "| | " + " | ".join(f"{w}, {NETWORKS[n]}" for n in NETWORKS for w in WAYS) + " |"
    yield "|---|" + "---|" * (len(WAYS) * len(NETWORKS))
    for tool, title in TOOLS.items():
        yield f"| {title} | " + " | ".join(
            cell(res, tool, w, n) for n in NETWORKS for w in WAYS) + " |"
    yield ""
    yield "## The machine meanwhile"
    yield ""
    yield ("Interrupts and switches a second, idle % (vmstat); share of a processor that the client "
           "and a server used; requests that failed.")
    yield ""
    yield "| | in | cs | id | client | rs1 | rs2-rs4 | response, ms | failed |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for tool in TOOLS:
        for network in NETWORKS:
            for way in WAYS:
                if not res.rows(tool, way, network):
                    continue

                def m(*path):
                    return res.mean(tool, way, network, *path)      # noqa: B023
                others = statistics.fmean(m("busy", f"rs{n}") for n in (2, 3, 4))
                yield (f"| {tool}-{'sg' if way == 'single' else 'cl'}-{network} {way} | "
                       f"{m('vmstat', 'in'):,.0f} | {m('vmstat', 'cs'):,.0f} | "
                       f"{m('vmstat', 'id'):.0f} | {m('busy', 'client'):.2f} | "
                       f"{m('busy', 'rs1'):.2f} | {others:.2f} | {m('ms'):.1f} | "
                       f"{m('failed'):.0f} |")
    yield ""


def ratio(res, tool, one, other):
    a, b = res.rate(tool, *one), res.rate(tool, *other)
    return f"{a / b:.2f}" if a and b else ""


def cost(res, way, servers):
    """ms of the servers' processor time for each request."""
    return 1000 * sum(res.mean("ab", way, "lan", "busy", f"rs{n}")
                      for n in range(1, servers + 1)) / (res.rate("ab", way, "lan") or float("nan"))


def verdict(res):
    yield "## Beside the paper"
    yield ""
    yield "| | paper | " + " | ".join(TOOLS.values()) + " |"
    yield "|---|---|" + "---|" * len(TOOLS)
    rows = [("single, requests/s", "> 2,500", None),
            ("cluster (l4lb), of single", "about 3", (("l4lb", "lan"), ("single", "lan"))),
            ("cluster (ip_vs), of single", "about 3", (("ip_vs", "lan"), ("single", "lan"))),
            ("cluster, l4lb of ip_vs", "", (("l4lb", "lan"), ("ip_vs", "lan"))),
            ("single through the firewall, of plain", "about 0.9",
             (("single", "fwl"), ("single", "lan"))),
            ("cluster (l4lb) through the firewall, of plain", "never run",
             (("l4lb", "fwl"), ("l4lb", "lan")))]
    for title, theirs, what in rows:
        cells = [ratio(res, tool, *what) if what else
                 f"{res.rate(tool, 'single', 'lan') or 0:,.0f}" for tool in TOOLS]
        yield f"| {title} | {theirs} | {' | '.join(cells)} |"
    yield ""
    gains = [res.rate(t, "l4lb", "lan") / res.rate(t, "single", "lan") for t in TOOLS
             if res.rate(t, "l4lb", "lan") and res.rate(t, "single", "lan")]
    if gains:
        yield (f"A cluster of four does {min(gains):.1f} to {max(gains):.1f} times what one server "
               "does" + (": as in the paper, where it is 3 times." if min(gains) > 2.5
                         and max(gains) < 4.5 else "; in the paper it is 3 times."))
        alone, four = (cost(res, way, servers) for way, servers in (("single", 1), ("l4lb", 4)))
        yield (f"A request of ab takes {alone:.1f} ms of a single server's processor, {four:.1f} ms "
               "of a cluster's" + (": alone it is overloaded, and wastes time, so that four can do "
                                   "more than four times as much." if alone > 1.2 * four else "."))
    # Not httperf, which polls and so is always busy.
    busy = max((res.mean(t, w, n, "busy", "client") for t in TOOLS if t != POLLS for w in WAYS
                for n in NETWORKS if res.rows(t, w, n)), default=0)
    idle = min((res.mean(t, w, n, "vmstat", "id") for t in TOOLS if t != POLLS for w in WAYS
                for n in NETWORKS if res.rows(t, w, n)), default=0)
    yield (f"ab and wrk used {busy:.2f} of a processor at most, and the machine, which client, "
           f"director, network and servers share, was idle for {idle:.0f} % at least: "
           + ("neither client nor network is the limit." if busy < BUSY and idle > IDLE else
              "THEY ARE THE LIMIT where they used that."))
    yield ""


def render(res):
    return "\n".join([*head(res), *table(res), *verdict(res)])


def draw(res, path):
    with figure(path, 1, 1, 11, 5.5) as (drawn, ((axes,),)):
        ticks = []
        for i, tool in enumerate(TOOLS):
            for j, (network, title) in enumerate(NETWORKS.items()):
                at = 2.1 * i + j
                ticks.append((at + 0.27, f"{TOOLS[tool].partition(',')[0]}, "
                              f"{title.removeprefix('through the ')}"))
                for k, way in enumerate(WAYS):
                    rate = res.rate(tool, way, network)
                    axes.bar(at + 0.27 * k, rate or 0, 0.25, color=SYSTEMS[way], label=way)
                    axes.annotate(cell(res, tool, way, network), (at + 0.27 * k, rate or 0),
                                  (0, 3), textcoords="offset points", ha="center",
                                  rotation=0 if rate else 90, color="black" if rate else "0.4")
        axes.set_xticks(*zip(*ticks))
        axes.set_ylabel("requests a second (more is better)")
        axes.set_xlabel("client, and network between client and director")
        thousands(axes.yaxis)
        ruled(axes, "y")
        drawn.suptitle(f"site: one nginx, or four behind a director, Linux {res.r['kernel']}")
        below(drawn, axes)


write = writer(render, draw, "requests.png", Results)


if __name__ == "__main__":
    again(write)
