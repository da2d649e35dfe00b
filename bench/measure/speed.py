# SPDX-License-Identifier: GPL-2.0
"""One round of "make bench". Inside a guest:

    python3 speed.py SPEC RESULT

SPEC and RESULT are JSON. The time of packets is measured in slices, each between two of a
reference, see slices.py. A row with missing or wrong packets has a fault instead of a figure.
"""

import contextlib
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import http_rate
import scale
import slices
from bed import (
    ACK,
    ALL,
    FAMILIES,
    FINACK,
    PORT,
    SYN,
    SYNACK,
    Bed,
    MeasureError,
    Traffic,
    least,
    together,
)
from lab.netns import DeadlineError, run
from systems import DROP, IP_VS, IP_VS_DEFAULT, L4LB, REDIRECT, dnat, ruleset, vehicle

REFERENCE = slices.REFERENCE
# ns of a slice; its reference is half as long. Less than another process's time slice.
SLICE = 2e6


class Sheet:
    """Rows by (group, what, system), each with its figures, one a round."""

    def __init__(self):
        self.rows = {}
        self.only = None        # (group, what) of the rows to measure; None: all

    def _row(self, group, what, system, unit):
        return self.rows.setdefault((group, what, system), {
            "group": group, "what": what, "system": system, "unit": unit, "values": []})

    def add(self, group, what, system, value, unit="ns", **more):
        row = self._row(group, what, system, unit)
        row.update(more)
        if isinstance(value, slices.Bracketed):
            row["unit"] = "redirects"
            row.setdefault("slices", []).append(value.multiples)
            row["tried"] = row.get("tried", 0) + value.tried
            print(f"  {group}: {what}: {system}: {len(value.multiples)} slices of "
                  f"{value.tried}", flush=True)
            return
        row["values"].append(value)
        print(f"  {group}: {what}: {system}: {value:.4g} {unit}", flush=True)

    def fault(self, group, what, system, text):
        self._row(group, what, system, "")["fault"] = text
        print(f"  {group}: {what}: {system}: {text}", flush=True)


    @contextlib.contextmanager
    def guard(self, group, system):
        """An error inside becomes a fault of that group; the other groups go on."""
        try:
            yield
        except (RuntimeError, OSError, subprocess.TimeoutExpired, DeadlineError,
                MeasureError) as e:
            self.fault(group, "the whole group", system, " ".join(str(e).split()))


class Session:
    """A system, loaded and set up, in a bed of its own."""

    def __init__(self, spec, sheet, bed, director, name, *, group):
        self.spec, self.sheet, self.bed = spec, sheet, bed
        self.director, self.name, self.group = director, name, group
        self.reference = False

    def figure(self, what, measure, unit="ns", **more):
        """Adds MEASURE's value as a figure, or a fault if a packet was lost or wrong."""
        if self.sheet.only is not None and (self.group, what) not in self.sheet.only:
            return
        try:
            self.sheet.add(self.group, what, self.name, measure(), unit, **more)
        except MeasureError as e:
            self.sheet.fault(self.group, what, self.name, str(e))

    def _redirect(self, size):
        """A function that gives ns for a packet of SIZE bytes, redirected before any director."""
        if not self.reference:
            self.bed.ns.ip("link add ref0 type l4lb_gen", "link set ref0 up")
            self.bed.ns.run(["nft", "-f", "-"], text_input=REDIRECT.replace(
                "netdev bench", "netdev slices").replace("gen0", "ref0"))
            self.reference = True
        words = {"src": "198.18.0.0", "dst": "203.0.113.5", "dport": PORT, "flows": 100,
                 "first": 0, "random": 1, "size": size, "dev": "ref0"}
        trial = self.bed.gen.send(**words, count=500)
        count = max(50, int(SLICE / 2 * trial.packets / max(trial.ns, 1)))

        def once():
            result = self.bed.gen.send(**words, count=count)
            if result.sinks["srv0"][0] != result.packets:
                raise MeasureError("the reference lost packets")
            return result.ns / result.packets
        return once

    def bracketed(self, once, size=64, seconds=None, most=60):
        """Slices of ONCE, which returns ns for a packet, each between two of the reference."""
        return slices.bracket(once, self._redirect(size), seconds or self.spec["seconds"],
                              most, time.monotonic)

    def paced(self, send, size=64):
        """SEND's ns for each packet, in slices of as many packets as take SLICE ns."""
        send(500)
        trial = send(500)
        count = max(100, int(SLICE * trial.packets / max(trial.ns, 1)))

        def once():
            result = send(count)
            return result.ns / result.packets
        return self.bracketed(once, size)


# -- groups of rows, measured with a system loaded


def sizes(session):
    return (64,) if session.spec["quick"] else (64, 128, 256, 512, 1024, 1280, 1518)


def reference(session):
    """The kernel's times without a director."""
    bed = session.bed

    def send(size, sink="srv0", dst="203.0.113.5", first=0, **words):
        def measure(count):
            result = bed.gen.send(src="198.18.0.0", dst=dst, dport=PORT, flows=100, random=1,
                                  first=first, count=count, size=size, **words)
            arrived = result.sinks["srv0"][0]
            if arrived != (result.packets if sink else 0) or result.unbuilt:
                raise MeasureError(f"{arrived} of {result.packets} packets arrived")
            return result
        return measure

    for size in sizes(session):
        session.figure(f"generator alone, {size} bytes",
                       lambda s=size: session.paced(send(s, None), s), size=size)
        with ruleset(bed, DROP):
            session.figure(f"drop at ingress, {size} bytes",
                           lambda s=size: session.paced(send(s, None, dev="gen0"), s), size=size)
        with ruleset(bed, REDIRECT):
            session.figure(f"redirect at ingress, {size} bytes",
                           lambda s=size: session.paced(send(s, dev="gen0"), s), size=size)
        session.figure(f"plain forwarding, {size} bytes",
                       lambda s=size: session.paced(send(s, dev="gen0"), s), size=size)
    for what, fast in (("nft DNAT", False), ("nft DNAT with flowtable", True)):
        traffic = Traffic(bed, method="nat", vip=200 + fast)
        with ruleset(bed, dnat(FAMILIES[4].vip(traffic.vip), fast)):
            for reply in (False, True, False, True):
                bed.gen.send(**traffic.words(64, reply))
            session.figure(f"{what}, 64 bytes", lambda t=traffic: session.paced(
                lambda n: t.random(64, n)), size=64)


def established(session):
    quick = session.spec["quick"]
    for family in (4,) if quick else (4, 6):
        for proto in ("udp", "tcp"):
            for method in ALL[:1] if quick and proto == "tcp" else ALL:
                traffic = Traffic(session.bed, family, proto, method)
                traffic.preload(least(family, proto, 64))
                for size in sizes(session):
                    real = least(family, proto, size)
                    session.figure(f"{proto}{family} {method}, {size} bytes",
                                   lambda t=traffic, s=real: session.paced(
                                       lambda n: t.random(s, n), s), size=size)


def replies(session):
    for family, proto in ((4, "udp"), (4, "tcp"), (6, "udp")):
        traffic = Traffic(session.bed, family, proto, "nat")
        size = least(family, proto, 64)
        traffic.preload(size)
        session.figure(f"{proto}{family} nat reply", lambda t=traffic, s=size: session.paced(
            lambda n: t.random(s, n, reply=True)))


# Flows in ip_vs' default table, by vehicle: with a million in its 4096 chains, each packet
# looks at 122 others, and only to fill it takes minutes in each round.
MOST_IN_CHAINS = {"uml": 256_000, "qemu": 20_000}


def flows(session):
    """Packets of N flows in random order."""
    for count in session.spec["flows"]:
        if session.director is IP_VS_DEFAULT and count > MOST_IN_CHAINS[vehicle()]:
            continue
        for method in ("dr", "nat")[:1 if session.spec["quick"] else 2]:
            traffic = Traffic(session.bed, method=method, flows=count)
            try:
                traffic.preload(64)
            except MeasureError as e:
                session.sheet.fault(session.group, f"{method}, {count} flows", session.name, str(e))
                continue
            def some(number, t=traffic):
                t.seed += 1         # other flows in each slice
                return t.random(64, number)
            session.figure(f"{method}, {count} flows", lambda s=some: session.paced(s), x=count)


SOME = 1000             # connections that a slice makes or ends
CHANGE = 10e6           # ns of packets between two changes of a route


def new(session):
    """Each packet begins a new flow, so that a connection is created for it."""
    count = session.spec["new"]
    rows = (("udp4 dr", 4, "udp", "dr"), ("tcp4 nat", 4, "tcp", "nat"),
            ("udp4 nat", 4, "udp", "nat"), ("udp6 dr", 6, "udp", "dr"))
    for what, family, proto, method in rows[:2] if session.spec["quick"] else rows:
        def measure(f=family, p=proto, m=method):
            # Once without measuring: a guest's first use of memory is slow.
            Traffic(session.bed, f, p, m, flows=count).each(least(f, p, 64), flags=SYN)

            def once():
                some = Traffic(session.bed, f, p, m, flows=SOME)
                result = some.each(least(f, p, 64), flags=SYN)
                return result.ns / result.packets
            return session.bracketed(once, least(f, p, 64), 60, count // SOME)
        session.figure(what, measure)


def replies_new(session):
    """The first reply of each flow, which takes the stack; the requests are not measured."""
    rows = ((4, "udp"), (4, "tcp"), (6, "udp"))
    for family, proto in rows[:2] if session.spec["quick"] else rows:
        size = least(family, proto, 64)

        def once(f=family, p=proto, s=size):
            some = Traffic(session.bed, f, p, "nat", flows=SOME)
            some.each(s, flags=SYN)
            result = some.each(s, reply=True, flags=SYNACK)
            return result.ns / result.packets
        session.figure(f"{proto}{family} nat reply", lambda o=once, s=size: session.bracketed(
            o, s, 60, session.spec["new"] // SOME))


def route_churn(session):
    """Replies of established flows. Before each slice a route changes that none of them takes,
    and a slice is ten milliseconds: a hundred changes in a second of packets."""
    for family, route in ((4, "192.0.2.0/24 via 10.0.0.2"),
                          (6, "2001:2:0:ffff::/64 via 2001:db8::2")):
        session.figure(f"udp{family} nat reply",
                       lambda f=family, r=route: churned(session, f, r))


def churned(session, family, route):
    traffic, size = Traffic(session.bed, family, "udp", "nat"), least(family, "udp", 64)
    traffic.preload(size)
    traffic.random(size, 500, reply=True)
    trial = traffic.random(size, 500, reply=True)
    count = max(500, int(CHANGE * trial.packets / max(trial.ns, 1)))
    turns = itertools.cycle(("add", "del"))

    def once():
        session.bed.ns.ip(f"route {next(turns)} {route} dev gen0", family=family)
        result = traffic.random(size, count, reply=True)
        return result.ns / result.packets
    found = session.bracketed(once, size)
    if next(turns) == "del":
        session.bed.ns.ip(f"route del {route} dev gen0", family=family)
    return found


def teardown(session):
    """FIN, FIN and ACK of open TCP connections through NAT; ns for each connection."""
    def measure():
        traffic = Traffic(session.bed, proto="tcp", method="nat", flows=SOME)
        traffic.preload(64)
        parts = (traffic.each(64, flags=FINACK), traffic.each(64, reply=True, flags=FINACK),
                 traffic.each(64, flags=ACK))
        return sum(p.ns for p in parts) / traffic.flows
    session.figure("tcp4 nat", lambda: session.bracketed(
        measure, 64, 60, session.spec["new"] // SOME))


def processors(session):
    """Packets a ms of one processor alone and of both at once."""
    def words(traffic):
        return traffic.words(64) | {"random": 1, "count": count}

    one, other = Traffic(session.bed), Traffic(session.bed)
    for t in (one, other):
        t.preload(64)
    trial = one.random(64, 2000)
    count = max(1000, int(session.spec["seconds"] * 1e9 * trial.packets / trial.ns))
    for what, jobs in (("one", (one,)), ("two, flows of their own", (one, other)),
                       ("two, the same flows", (one, one))):
        def measure(jobs=jobs):
            results, sinks = together([words(t) for t in jobs])
            sent = sum(r.packets for r in results)
            if sinks["srv0"][0] != sent:
                raise MeasureError(f"{sinks['srv0'][0]} of {sent} packets arrived")
            return sum(1e6 * r.packets / r.ns for r in results)
        session.figure(what, measure, "packets/ms")


# Groups that each round measures, and with which systems.
ROUNDS = {"established": (established, (IP_VS, L4LB)), "replies": (replies, (IP_VS, L4LB)),
          "flows": (flows, (IP_VS_DEFAULT, IP_VS, L4LB)), "new": (new, (IP_VS, L4LB)),
          "replies-new": (replies_new, (IP_VS, L4LB)),
          "route-churn": (route_churn, (IP_VS, L4LB)),
          "teardown": (teardown, (IP_VS, L4LB)), "processors": (processors, (IP_VS, L4LB))}
DIRECTORS = (IP_VS_DEFAULT, IP_VS, L4LB)


def with_director(spec, sheet, director):
    """Each group and each setting of a fast path begins with a newly loaded module."""
    for group in [g for g in spec["groups"] if g in ROUNDS and director in ROUNDS[g][1]]:
        if sheet.only is not None and group not in {g for g, _ in sheet.only}:
            continue
        for name, value in director.fast_paths:
            with sheet.guard(group, name), director.loaded():
                bed = Bed()
                with bed.stand():
                    director.standard(bed)
                    director.set_fast_path(bed, value)
                    ROUNDS[group][0](Session(spec, sheet, bed, director, name, group=group))


def http(spec, sheet, director):
    if "http" in spec["groups"] and director is not IP_VS_DEFAULT:
        http_rate.measure(spec, sheet, Session, director)


def without_director(spec, sheet):
    bed = Bed()
    with sheet.guard(REFERENCE, REFERENCE), bed.stand():
        reference(Session(spec, sheet, bed, None, REFERENCE, group=REFERENCE))


def measure(spec):
    """One round. Groups that are not of packets belong to the first."""
    sheet = Sheet()
    # The group "namespaces" holds each of hundreds by an open file.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if vehicle() == "qemu":
        # See tests/lab/guest-init: this hook keeps the static keys of ingress hooks on.
        run(["nft", "-f", "-"], text_input="table netdev pin { chain in { type filter hook "
                                           "ingress device lo priority 0; }; }\n")
    os.sched_setaffinity(0, {0})
    if spec["only"]:
        sheet.only = {tuple(key) for key in spec["only"]}
    parts = (with_director,) if sheet.only else (with_director, http)
    turns = [lambda d=d, part=part: part(spec, sheet, d) for part in parts for d in DIRECTORS]
    if REFERENCE in (dict(sheet.only) if sheet.only else spec["groups"]):
        turns.insert(0, lambda: without_director(spec, sheet))
    for turn in turns if spec["round"] % 2 == 0 else reversed(turns):
        turn()
    if spec["round"] == 0:
        print(f"scale, {time.monotonic():.0f} s", flush=True)
        scale.measure(spec, sheet, Session)
    return list(sheet.rows.values())


if __name__ == "__main__":
    wanted = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(measure(wanted)), encoding="utf-8")
