# SPDX-License-Identifier: GPL-2.0
"""In-tree ip_vs and l4lb, one after the other in one boot: the same questions
must get the same answers."""

import ipaddress
import random

import pytest
from lab.backend import Backend
from lab.oracle import Oracle

TAKES = 90
NO_MODULE = True        # `ask` loads one module after the other


def ask(topologies, question):
    """{name: QUESTION(oracle)} with each module loaded in turn."""
    answers = {}
    lab = topologies.with_rules("dr")
    for name in ("ip_vs", "l4lb"):
        backend = Backend(name)
        backend.load()
        try:
            lab.flush()
            with Oracle(lab) as oracle:
                answers[name] = question(oracle)
        finally:
            lab.flush()
            backend.unload()
    return answers


def same(answers):
    """Fail with the first difference, if there is one; return l4lb's answers."""
    theirs, ours = answers["ip_vs"], answers["l4lb"]
    assert len(theirs) == len(ours)
    wrong = [i for i, (a, b) in enumerate(zip(theirs, ours)) if a != b]
    assert not wrong, f"{len(wrong)} differ, first {wrong[0]}: " \
        f"ip_vs chose {theirs[wrong[0]]}, l4lb {ours[wrong[0]]}"
    return ours


# ---- placement by hash ----


def random_address(chance, family):
    """A global unicast address outside the topology."""
    if family == 6:
        return str(ipaddress.IPv6Address(1 << 125 | chance.getrandbits(124)))
    while True:
        address = chance.randrange(11 << 24, 127 << 24)
        if address >> 24 != 100:
            return str(ipaddress.IPv4Address(address))


def random_flows(chance, family, n):
    return [("udp", random_address(chance, family), chance.randrange(1024, 65536),
             random_address(chance, family), 80) for _ in range(n)]


POOL = (1, 7, 2, 9, 30, 1, 3)       # weights; the fourth becomes 0
PLAIN = (("dh", 0), ("sh", 0), ("mh", 0))
WITH_FLAGS = (("sh", 8), ("mh", 8), ("sh", 24), ("mh", 24))     # fallback, port


def place(oracle, family, sched, flags, flows):
    service = oracle.service(sched, family, flags)
    servers = [f"10.8.0.{11 + i}" if family == 4 else f"2001:db8:8::{11 + i}"
               for i in range(len(POOL))]
    for server, weight in zip(servers, POOL):
        oracle.server(service, "add", server, weight)
    oracle.server(service, "edit", servers[3], 0)
    for flow in flows:
        oracle.send(*flow)
    got = oracle.chosen()
    service.delete()
    return [got.get(flow) for flow in flows]


@pytest.mark.parametrize("addresses", (1000, pytest.param(10000, marks=pytest.mark.slow)))
def test_placement(topologies, family, addresses):
    """dh, sh and mh put addresses where ip_vs puts them."""
    chance = random.Random(family)
    runs = [(*run, random_flows(chance, family, addresses)) for run in PLAIN] + \
        [(*run, random_flows(chance, family, addresses // 4)) for run in WITH_FLAGS]
    got = same(ask(topologies, lambda oracle: [
        choice for run in runs for choice in place(oracle, family, *run)]))
    for sched, flags, flows in runs:
        part, got = set(got[:len(flows)]), got[len(flows):]
        # Every usable server gets some; the fourth's are refused or, with fallback, move.
        assert len(part - {None}) == len(POOL) - 1, (sched, flags)
        assert (None in part) == (not flags & 8), (sched, flags)


# ---- choices by load ----

BY_LOAD = ("lc", "wlc", "sed", "nq", "fo", "ovf", "lblc", "lblcr")
MANY = 270          # three levels of a tournament


def random_case(sched, length, size=3):
    """Random steps of a service with SIZE servers at first: flows begin and end; servers come,
    go, and change weight and (except for lblc) thresholds."""
    chance = random.Random(f"{sched} 1")
    servers, flows, steps = [], [], []
    fresh = iter(f"10.8.{3 + n // 256}.{n % 256}" for n in range(2, 1000))
    thresholds = sched != "lblc"

    def options():
        upper = chance.choice((0, 0, 0, 3, 8)) if thresholds else 0
        return [chance.choice((0, 1, 1, 2, 3, 5, 50)), upper, chance.randrange(upper + 1)]

    for _ in range(size):
        servers.append(next(fresh))
        steps.append(["add", servers[-1], *options()])
    while len(steps) < length:
        what = chance.random()
        if what < 0.02 and len(servers) < size + 6:
            servers.append(next(fresh))
            steps.append(["add", servers[-1], *options()])
        elif what < 0.03 and len(servers) > 2:
            gone = servers.pop(chance.randrange(len(servers)))
            steps.append(["del", gone])
        elif what < 0.09:
            steps.append(["edit", chance.choice(servers), *options()])
        elif what < 0.2 and flows:
            flow = flows.pop(chance.randrange(len(flows)))
            steps += [["ack", *flow], ["rst", *flow]]
        else:
            flow = [chance.choice(("tcp", "tcp", "udp")), f"10.9.0.{chance.randrange(1, 9)}",
                    len(steps) + 2000, f"10.50.0.{chance.randrange(1, 6)}", 80]
            if flow[0] == "tcp":
                flows.append(flow)
            steps.append(["pkt", *flow])
    return {"sched": sched, "flags": 0, "steps": steps}


@pytest.mark.waits
@pytest.mark.parametrize("steps", (400, pytest.param(1000, marks=pytest.mark.slow)))
@pytest.mark.parametrize("sched", BY_LOAD)
def test_choices(topologies, sched, steps):
    """Random steps lead to the same choices."""
    case = random_case(sched, steps)
    got = same(ask(topologies, lambda oracle: oracle.replay(case)))
    assert len(set(got) - {None}) > 2


@pytest.mark.parametrize("sched", [
    pytest.param(name, marks=[pytest.mark.slow] if name in ("sed", "nq", "fo", "lblc") else [])
    for name in BY_LOAD])
def test_choices_among_many(topologies, sched):
    """So many servers that not each is looked at, see kernel/service/tournament.c."""
    case = random_case(sched, MANY + 200, MANY)
    got = same(ask(topologies, lambda oracle: oracle.replay(case)))
    assert set(got) - {None}


@pytest.mark.smoke
def test_lblc_overload_is_the_difference(topologies):
    """The address's server is overloaded: ip_vs keeps it, l4lb takes another one."""
    case = {"sched": "lblc", "flags": 0, "steps": [
        ["add", "10.8.3.2", 9, 0, 0], ["add", "10.8.3.3", 9, 2, 0],
        *(["pkt", "tcp", "10.9.0.1", 2000 + i, "10.50.0.1", 80] for i in range(4))]}
    answers = ask(topologies, lambda oracle: oracle.replay(case))
    assert answers["ip_vs"] == ["10.8.3.3"] * 4
    assert answers["l4lb"] == ["10.8.3.3"] * 2 + ["10.8.3.2"] * 2
