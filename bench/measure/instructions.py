# SPDX-License-Identifier: GPL-2.0
"""Instructions for each packet, inside a guest whose clock counts them.

    python3 instructions.py SPEC FILE

Writes {name: instructions for a packet} to FILE (JSON). SPEC is JSON: object files, as
host.objects() makes them. Each figure includes the generator and the kernel around the director;
"redirect" is the least that these take, "xdp redirect" without an skb.
"""

import json
import socket
import sys
import time
from pathlib import Path

import peer
import pktgen
from bed import (
    ACK,
    FAMILIES,
    FINACK,
    PORT,
    SYN,
    SYNACK,
    Bed,
    MeasureError,
    Traffic,
    least,
)
from lab import bpf, ranges, shadows
from lab.genl import ROUTE, Ipvs, L4lb, batch_server
from lab.packet import UDP
from systems import (
    DROP,
    IP_VS,
    L4LB,
    REDIRECT,
    XDP_DROP,
    announcing,
    l4lb_xdp,
    ruleset,
    service_lines,
    xdp,
    xdp_redirect,
)

# A figure is that of the cheapest batch: work that the kernel does now and then,
# such as growing a table, falls into others.
FLOWS, COUNT, BATCHES, PREFILL = 100, 4000, 7, 20_000
# But a large table grows for as long as all batches take: seconds in which it can finish.
REST = 1
TCP4, UDP4, UDP6 = ("tcp", 4), ("udp", 4), ("udp", 6)
# What is measured of a director: name, protocol and family, method.
ESTABLISHED = (("udp4 nat", UDP4, "nat"), ("udp4 dr", UDP4, "dr"), ("udp4 tun", UDP4, "tun"),
               ("tcp4 nat", TCP4, "nat"), ("tcp4 dr", TCP4, "dr"),
               ("udp6 nat", UDP6, "nat"), ("udp6 dr", UDP6, "dr"), ("udp6 tun", UDP6, "tun"))
REPLIES = ("udp4 nat", "tcp4 nat", "udp6 nat")
NEW_FLOWS = (("udp4 dr", UDP4, "dr"), ("udp4 nat", UDP4, "nat"), ("tcp4 nat", TCP4, "nat"),
             ("udp6 dr", UDP6, "dr"), ("udp4 tun", UDP4, "tun"))
# What bench/peer can do.
OF_PEER = ESTABLISHED[2:3]
# A connection's packets, each with whether it is a reply; both ends close it.
LIFE = ((SYN, False), (SYNACK, True), (ACK, False), (FINACK, False), (FINACK, True), (ACK, False))
# What a service with four servers has, by VIP.
SETTINGS = ("four", 11), ("limited", 12), ("ramping", 13), ("shadowed", 17)
# The same for TCP through NAT, with mh: conn-state.
STATES = ("eager", 14), ("lazy", 15)
PROGRAMMED = 16
# As "eager", and real servers see an address of the director: its address on their side.
SNAT, OWN = 22, "10.1.255.254"
# What a life costs with it, and without in the same table.
OF_A_LIFE = ("plain", {}), ("measured", {"latency": 1}), ("logged", {"log": 1})
# A choice among four by each of them, by VIP.
SCHEDULED = ("wlc", 18), ("mh", 19)
# An empty chain of a firewall: what it could see takes the stack.
WATCHED = """table inet bench {
	chain in { type filter hook input priority 0; }
}
"""
# A service with a range, and so many others beside it: as "four" otherwise.
RANGES = ("range", 20, 0), ("1,000 ranges", 21, 1000)
# What is measured again while the director announces its connections to others.
ANNOUNCED = ESTABLISHED[0], ESTABLISHED[3]


class Counts:
    """The figures so far; each is printed at once."""

    def __init__(self):
        self.figures = {}

    def add(self, name, send, batches=BATCHES):
        """SEND sends COUNT packets; the first time is to warm up."""
        each = [r.cycles / r.packets for r in (send() for _ in range(batches + 1))]
        self.figures[name] = round(min(each[1:]), 1)
        print(f"{name}: {self.figures[name]}", flush=True)


def send(bed, sink="srv0", **words):
    result = bed.gen.send(src="198.18.0.0", dst="203.0.113.5", dport=80, flows=FLOWS,
                          random=1, count=COUNT, **words)
    packets = result.sinks[sink][0] if sink else 0
    if packets != (COUNT if sink else 0) or result.unbuilt:
        raise MeasureError(f"{packets} of {COUNT} packets arrived")
    return result


def reference(bed, counts):
    counts.add("generator", lambda: send(bed, sink=None))
    with ruleset(bed, DROP):
        counts.add("drop", lambda: send(bed, sink=None, dev="gen0"))
    with ruleset(bed, REDIRECT):
        counts.add("redirect", lambda: send(bed, dev="gen0"))
    counts.add("forward", lambda: send(bed, dev="gen0"))
    pktgen.floor(bed, counts.add, COUNT)
    with xdp(XDP_DROP):
        counts.add("xdp drop", lambda: send(bed, sink=None, dev="gen0"))
    with xdp(xdp_redirect(socket.if_nametoindex("srv0"))):
        counts.add("xdp redirect", lambda: send(bed, dev="gen0"))


def established(bed, counts, name, kinds=ESTABLISHED):
    for what, (proto, family), method in kinds:
        size = least(family, proto, 64)
        traffic = Traffic(bed, family, proto, method, flows=FLOWS)
        traffic.preload(size)
        for reply in (False, True)[:1 + (what in REPLIES)]:
            counts.add(f"{name}: {what}" + " reply" * reply,
                       lambda t=traffic, s=size, r=reply: t.random(s, COUNT, reply=r))


def fresh(bed, counts, name, kinds=None, more=""):
    """A connection for each packet."""
    for what, (proto, family), method in kinds or NEW_FLOWS:
        size = least(family, proto, 64)
        Traffic(bed, family, proto, method, flows=PREFILL).each(size, flags=SYN)
        time.sleep(REST)
        counts.add(f"{name}: {what}{more} new",
                   lambda f=family, p=proto, m=method, s=size:
                   Traffic(bed, f, p, m, flows=COUNT).each(s, flags=SYN), 2 * BATCHES)


class Life:
    """All packets of COUNT connections; the figure is that of a connection."""

    def __init__(self, bed):
        traffic, size = Traffic(bed, 4, "tcp", "nat", flows=COUNT), least(4, "tcp", 64)
        self.cycles = sum(traffic.each(size, reply=reply, flags=flags).cycles
                          for flags, reply in LIFE)
        self.packets = COUNT


def lives(bed, counts, name, more=""):
    counts.add(f"{name}: tcp4 nat{more} life", lambda: Life(bed))


def scheduled(bed, director, counts, name):
    """A connection for each packet, and four real servers."""
    for scheduler, vip in SCHEDULED:
        director.configure(bed, service_lines(4, "udp", vip, "dr", 4, scheduler=scheduler))
        counts.add(f"{name}: udp4 dr {scheduler} new", lambda v=vip: Traffic(
            bed, 4, "udp", "dr", v, flows=COUNT, scheduled=True).each(64, flags=SYN), BATCHES)


def announced(bed, counts, name):
    with announcing(bed):
        established(bed, counts, f"{name} sync", ANNOUNCED)
        lives(bed, counts, f"{name} sync")


PARTS = established, fresh, lives, announced


def settings(bed, director, counts):
    """What settings of a service cost a new connection. Limits are far away; one of the four
    real servers starts slowly."""
    director.set_fast_path(bed, 0)
    director.configure(bed, [line for _, vip in SETTINGS
                             for line in service_lines(4, "udp", vip, "dr", 4, scheduler="wlc")])
    with L4lb(bed.ns) as l4lb, Ipvs(bed.ns) as ipvs:
        limited, ramping, shadowed = (ipvs.service(FAMILIES[4].vip(vip), PORT, proto=UDP, add=False)
                                      for _, vip in SETTINGS[1:])
        shadows.give(l4lb, shadowed, "mh")
        l4lb.set_policy(limited, limit_rate=10**7, limit_burst=10**7, limit_conns=2**31 - 1)
        l4lb.set_policy(ramping, ramp=1)
        time.sleep(1.1)     # servers of a service that is new do not start slowly
        last = FAMILIES[4].server(4), PORT
        ramping.delete_server(*last)
        ramping.server(*last, method=ROUTE, weight=1)
        l4lb.set_policy(ramping, ramp=3600)
    for what, vip in SETTINGS:
        counts.add(f"{director.name}: udp4 dr {what} new", lambda v=vip: Traffic(
            bed, 4, "udp", "dr", v, flows=COUNT, scheduled=True).each(64, flags=SYN), BATCHES)


def states(bed, director, counts):
    """A client's SYN where it makes an entry, and where it does not."""
    director.set_fast_path(bed, 0)
    for state, (what, vip) in enumerate(STATES):
        # A lazy service knows its replies by the real servers' address and port.
        director.configure(bed, service_lines(4, "tcp", vip, "nat", 4, scheduler="mh", port=9000 + vip))
        with L4lb(bed.ns) as l4lb, Ipvs(bed.ns) as ipvs:
            l4lb.set_policy(ipvs.service(FAMILIES[4].vip(vip), PORT, add=False), conn_state=state)
        counts.add(f"{director.name}: tcp4 nat {what} new", lambda v=vip: Traffic(
            bed, 4, "tcp", "nat", v, flows=COUNT, scheduled=True).each(64, flags=SYN), BATCHES)


def translated(bed, director, counts):
    """A client's SYN that gets an address and port of the director."""
    director.set_fast_path(bed, 0)
    director.configure(bed, service_lines(4, "tcp", SNAT, "nat", 4, scheduler="mh"))
    with L4lb(bed.ns) as l4lb, Ipvs(bed.ns) as ipvs:
        l4lb.set_policy(ipvs.service(FAMILIES[4].vip(SNAT), PORT, add=False), snat=(OWN, OWN))
    counts.add(f"{director.name}: tcp4 nat snat new", lambda: Traffic(
        bed, 4, "tcp", "nat", SNAT, flows=COUNT, scheduled=True).each(64, flags=SYN), BATCHES)


def observed(bed, director, counts):
    """Whole connections whose answers are timed, and whose ends are logged, to nobody."""
    director.set_fast_path(bed, 0)
    with L4lb(bed.ns) as l4lb, Ipvs(bed.ns) as ipvs:
        service = ipvs.service(FAMILIES[4].vip(1), PORT, add=False)
        for what, policy in OF_A_LIFE:
            if policy:
                l4lb.set_policy(service, **policy)
            lives(bed, counts, director.name, more=f" {what}")
            if policy:
                l4lb.set_policy(service, **dict.fromkeys(policy, 0))


def ranged(bed, director, counts):
    """What a service with a range of ports costs a new connection."""
    director.set_fast_path(bed, 0)
    for what, n, others in RANGES:
        vip = f"{FAMILIES[4].vip(n)}/32"
        with L4lb(bed.ns) as l4lb:
            l4lb.set_services([ranges.entry(vip, PORT, PORT + 9, UDP, sched="wlc", servers=[
                batch_server(FAMILIES[4].server(s), 0, method=ROUTE) for s in range(1, 5)])] + [
                ranges.entry(vip, 20000 + 2 * i, 20001 + 2 * i, UDP) for i in range(others)])
        counts.add(f"{director.name}: udp4 dr {what} new", lambda v=n: Traffic(
            bed, 4, "udp", "dr", v, flows=COUNT, scheduled=True).each(64, flags=SYN), BATCHES)


def programmed(bed, director, counts, objects):
    """A program in BPF chooses one of four."""
    director.set_fast_path(bed, 0)
    director.configure(bed, service_lines(4, "udp", PROGRAMMED, "dr", 4, scheduler="bpf"))
    with L4lb(bed.ns) as l4lb, Ipvs(bed.ns) as ipvs, bpf.program_of(objects["program"]) as value:
        service = ipvs.service(FAMILIES[4].vip(PROGRAMMED), PORT, proto=UDP, add=False)
        l4lb.set(service, program=value)
        counts.add(f"{director.name}: udp4 dr bpf new", lambda: Traffic(
            bed, 4, "udp", "dr", PROGRAMMED, flows=COUNT, scheduled=True).each(64, flags=SYN), BATCHES)
        if l4lb.values(service)["otherwise"]:
            raise MeasureError("not all choices were the program's")


def by_skb(bed, director, counts, _):
    for part in PARTS:
        for name, value in director.fast_paths:
            director.set_fast_path(bed, value)
            part(bed, counts, name)


def by_pktgen(bed, director, counts, _):
    """The kernel's own generator, whose floor is another one."""
    for name, value in director.fast_paths[:2]:
        director.set_fast_path(bed, value)
        pktgen.established(bed, counts.add, name, COUNT)


def watched(bed, director, counts, _):
    """New connections as installed, where a firewall could look at them: through the stack."""
    name, value = director.fast_paths[min(1, len(director.fast_paths) - 1)]
    director.set_fast_path(bed, value)
    with ruleset(bed, WATCHED):
        fresh(bed, counts, name, more=" watched")
        lives(bed, counts, name, more=" watched")
    scheduled(bed, director, counts, name)


def of_services(bed, director, counts, objects):
    """What a service's settings cost."""
    settings(bed, director, counts)
    states(bed, director, counts)
    ranged(bed, director, counts)
    programmed(bed, director, counts, objects)
    observed(bed, director, counts)
    translated(bed, director, counts)


def by_xdp(bed, director, counts, _):
    """Packets that never become an skb."""
    director.set_fast_path(bed, 2)
    with l4lb_xdp(bed):
        for part in (established, fresh, lives):
            part(bed, counts, "l4lb xdp")
        scheduled(bed, director, counts, "l4lb xdp")


def of_peer(bed, counts, objects):
    """A balancer of the same kind without a table of connections, see bench/peer."""
    with peer.balancing(bed, objects["peer"]):
        for part in established, fresh:
            part(bed, counts, peer.NAME, OF_PEER)


# Each begins with a module without connections. Those of a bed take long to end, half-open ones
# have a quota, and the larger the table, the longer it grows.
RUNS = (*((one, by_skb) for one in (IP_VS, *L4LB.modes())),
        *((one, way) for one in (IP_VS, L4LB) for way in (by_pktgen, watched)),
        (L4LB, of_services), (L4LB, by_xdp))


def measure(spec):
    counts = Counts()
    bed = Bed()
    with bed.stand():
        reference(bed, counts)
    for director, way in RUNS:
        with director.loaded():
            bed = Bed(servers=4)
            with bed.stand():
                director.standard(bed)
                way(bed, director, counts, spec)
    bed = Bed(servers=peer.SERVERS)
    with bed.stand():
        of_peer(bed, counts, spec)
    return counts.figures


if __name__ == "__main__":
    found = measure(json.loads(Path(sys.argv[1]).read_text("utf-8")))
    Path(sys.argv[2]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
