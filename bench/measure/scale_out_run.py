# SPDX-License-Identifier: GPL-2.0
"""Several directors behind one router, inside a guest whose clock counts instructions.

    python3 scale_out_run.py SPEC FILE

Writes {"costs": [...], "flows": [...]} to FILE (JSON); SPEC has the numbers of directors and
of flows. Costs are instructions for a packet of one director, which are the same however many
others there are; each includes the generator and the kernel around the director.
"""

import json
import sys
from pathlib import Path

from bed import ACK, ALL, PORT, SYN, Bed, Traffic, least
from lab import ecmp, genl
from systems import L4LB, REDIRECT, ruleset, service_lines

SERVERS = 4
FLOWS, COUNT, BATCHES, PREFILL = 100, 4000, 7, 20_000
BY_ADDRESS, KEY = ("order", 1), ("key", bytes(range(16)))
# What is compared: name, scheduler, its options.
WAYS = (("mh", "mh", (BY_ADDRESS,)), ("mh, key", "mh", (BY_ADDRESS, KEY)),
        ("rr", "rr", ()), ("wlc", "wlc", ()))


def cheapest(send, batches):
    """Work that the kernel does now and then falls into other batches than the cheapest."""
    each = [r.cycles / r.packets for r in (send() for _ in range(batches + 1))]
    return round(min(each[1:]), 1)


class Director:
    """One director with SERVERS servers, TCP by direct routing."""

    def __init__(self, bed, sched, options):
        self.bed, self.size = bed, least(4, "tcp", 64)
        self.number = 1 + ALL.index("dr")
        L4LB.configure(bed, list(service_lines(4, "tcp", self.number, "dr", SERVERS,
                                               scheduler=sched)))
        L4LB.set_fast_path(bed, 2)
        bed.ns.sysctl("net/ipv4/vs/sloppy_tcp", 1)
        if options:
            vip = self.traffic(1).family.vip(self.number)
            with genl.Ipvs(bed.ns) as ipvs, genl.L4lb(bed.ns) as l4lb:
                l4lb.set(ipvs.service(vip, PORT, add=False), *options)

    def traffic(self, flows):
        return Traffic(self.bed, 4, "tcp", "dr", self.number, flows=flows, scheduled=True)

    def established(self):
        traffic = self.traffic(FLOWS)
        traffic.preload(self.size)
        return cheapest(lambda: traffic.random(self.size, COUNT), BATCHES)

    def first(self, flags):
        """The first packet that this director has of each flow."""
        self.traffic(PREFILL).each(self.size, flags=flags)
        return cheapest(lambda: self.traffic(COUNT).each(self.size, flags=flags), 2 * BATCHES)


def redirect():
    """The kernel's cheapest way from one device to another, without a director."""
    bed = Bed()
    with bed.stand(), ruleset(bed, REDIRECT):
        return cheapest(lambda: bed.gen.send(dev="gen0", src="198.18.0.0", dst="203.0.113.5",
                                             dport=80, flows=FLOWS, random=1, count=COUNT), BATCHES)


def costs():
    yield {"way": "redirect", "established": redirect()}
    for way, sched, options in WAYS:
        bed = Bed(SERVERS)
        with bed.stand():
            director = Director(bed, sched, options)
            row = {"way": way, "established": director.established(),
                   "new": director.first(SYN), "taken over": director.first(ACK)}
        print(row, flush=True)
        yield row


def share(site, names, members):
    """The flows of each director."""
    return [len(site.held(n) & names) for n in members]


def one(site, what, count, flows):
    """COUNT directors have FLOWS; then one of them leaves."""
    way, sched, options = what
    members = list(range(1, count + 1))
    for n in set(site.members[4]) - set(members):
        site.leave(n)
    for n in set(members) - set(site.members[4]):
        site.join(n)
    site.configure(sched, **dict(options))
    opened = site.open(flows)
    names = {flow.name for flow in opened}
    row = {"directors": count, "way": way, "flows": share(site, names, members)}
    if count > 1:
        row["moved"] = row["flows"][-1]
        site.leave(count)
        row["broken"] = len(site.broken(opened))
    ecmp.close(opened)
    print(row, flush=True)
    return row


def flows(spec):
    ecmp.modules()
    with ecmp.Site(max(spec["directors"]), SERVERS) as site:
        for count in spec["directors"]:
            for what in WAYS:
                yield one(site, what, count, spec["flows"])


def measure(spec):
    with L4LB.loaded():
        found = {"costs": list(costs())}
        return found | {"flows": list(flows(spec))}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measure(json.loads(
        Path(sys.argv[1]).read_text("utf-8"))), indent=1) + "\n", encoding="utf-8")
