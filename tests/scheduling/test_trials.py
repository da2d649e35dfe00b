# SPDX-License-Identifier: GPL-2.0
"""Trials of schedulers: they choose as the scheduler does for packets, and nobody notices."""

import errno
import time
from collections import Counter

import pytest
from lab import faults, genl
from lab.faults import FaultyL4lb
from lab.genl import is_refused
from lab.netns import run, wait_until
from lab.oracle import Oracle
from lab.packet import TCP, UDP
from lab.raw import Raw
from lab.sequences import SCHEDULERS as EACH
from lab.sequences import by_chance
from lab.trials import attempt, chosen, flow, request

pytestmark = pytest.mark.usefixtures("only_l4lb")
VIP = "192.0.2.1"
WEIGHTS = (1, 7, 2, 0, 30, 1, 3)
SEED = 7
SCHEDULERS = [sched for sched in EACH if sched != "bpf"]     # without a program: test_bpf.py


@pytest.fixture
def ns(nat):
    return nat.director.ns


def refused(call, code, word):
    said = is_refused(call, code)
    assert word in said or not genl.SAYS_WHY, said


def service_of(nat, weights, port=None, **options):
    """A service whose real servers get nothing: nobody sends to it."""
    service = nat.ipvs.service(VIP, port or nat.fresh_port(), **options)
    for n, weight in enumerate(weights):
        service.server(f"198.51.100.{n + 1}", 80, weight=weight)
    return service


# -- the same choices

@pytest.mark.dear
@pytest.mark.parametrize("sched, proto, many", [
    pytest.param(sched, proto, many, marks=pytest.mark.slow if many else ()) for sched in SCHEDULERS
    for proto, many in (("tcp", False), ("udp", False), ("tcp", True)) if not by_chance(sched, many)])
def test_as_for_packets(dr_with_rules, sched, proto, many):
    """A live service of the same scheduler gives the same flows to the same servers; with so many
    real servers that it holds tournaments, too. UDP connections are not active."""
    dr = dr_with_rules
    weights = WEIGHTS * 6 if many else WEIGHTS
    count, port = 400, 80 if proto == "tcp" else dr.fresh_port()
    with Oracle(dr) as oracle, genl.L4lb(oracle.ns) as l4lb:
        service = oracle.service(sched, 6) if proto == "tcp" else \
            dr.ipvs.service(dr.raw_vip(6), port, UDP, sched=sched)
        for n, weight in enumerate(weights):
            service.server(f"2001:db8:8::{n + 1:x}", method=dr.method, weight=weight)
        found = attempt(l4lb, service, sched, count, seed=SEED)
        for i in range(count):
            client, sport, to = flow(SEED, i)
            oracle.send(proto, client, sport, to if proto == "tcp" else dr.raw_vip(6), port)
        got = Counter(oracle.chosen().values())
        assert [got[s["addr"]] for s in found["servers"]] == chosen(found)
        assert sum(got.values()) + found["refused"] == count
        oracle.ns.sysctl("net.ipv4.vs.expire_nodest_conn", 1)
        service.delete()
        oracle.ns.sysctl("net.ipv4.vs.expire_nodest_conn", 0)


@pytest.mark.smoke
def test_connections_end_in_turn(nat, l4lb):
    """Least connections, with a model: as many are open as HOLD says."""
    service = service_of(nat, (1, 1, 1), sched="rr")
    for hold in (0, 1, 2, 7, 100, 10_000):
        loads, told, ring = [0, 0, 0], [0, 0, 0], []
        for i in range(300):
            if hold and i >= hold:
                loads[ring[i - hold]] -= 1
            best = max(n for n in range(3) if loads[n] == min(loads))
            loads[best] += 1
            told[best] += 1
            ring.append(best)
        assert chosen(attempt(l4lb, service, "lc", 300, hold=hold)) == told, hold


def test_seed_and_clients(nat, l4lb):
    service = service_of(nat, (1,) * 10)
    first = chosen(attempt(l4lb, service, "mh", 1000, seed=1))
    assert chosen(attempt(l4lb, service, "mh", 1000, seed=1)) == first
    assert chosen(attempt(l4lb, service, "mh", 1000, seed=2)) != first
    few = chosen(attempt(l4lb, service, "mh", 1000, clients=3))
    assert sum(few) == 1000 and 1 <= sum(n > 0 for n in few) <= 3
    assert chosen(attempt(l4lb, service, "mh", 1000, clients=1)).count(1000) == 1


def test_its_own_scheduler_has_its_options(nat, l4lb):
    """A key, and order by address, of a service with mh; another service's trial has neither."""
    services = [service_of(nat, (), sched="mh") for _ in range(2)]
    for n in (9, 3, 7, 1, 8, 2):
        for service in services:
            service.server(f"198.51.100.{n}", 80)

    def told():
        return [chosen(attempt(l4lb, s, "mh", 2000)) for s in services]
    plain = told()
    assert plain[0] == plain[1]
    for option in ("key", bytes(range(16))), ("key", bytes(16 * [7])), ("order", 1):
        l4lb.set(services[0], option)
        now = told()
        assert now[0] != plain[0] and now[1] == plain[1], option
        plain[0] = now[0]


@pytest.mark.smoke
def test_thresholds(nat, l4lb):
    """A full copy of a real server gets no more, and what no one takes is counted."""
    service = service_of(nat, ())
    for n in range(1, 4):
        service.server(f"198.51.100.{n}", 80, weight=1, upper=5)
    found = attempt(l4lb, service, "rr", 100)
    assert chosen(found) == [5, 5, 5] and found["refused"] == 85
    assert attempt(l4lb, service, "rr", 100, hold=10)["refused"] == 0
    time.sleep(0.5)     # on debug kernels: listeners' work would look at copies that are gone


# -- without one

@pytest.mark.parametrize("servers, lost, moved", ((10, 0.1, 0.012), (100, 0.01, 0.031)))
def test_disruption_of_a_hash(nat, l4lb, servers, lost, moved):
    """mh moves what has to and little more (figures of a simulation)."""
    service = service_of(nat, (1,) * servers)
    found = attempt(l4lb, service, "mh", 50_000, without=("198.51.100.3", 80))
    assert found["lost"] == found["servers"][2]["chosen"] == pytest.approx(50_000 * lost, rel=0.2)
    assert found["moved"] == pytest.approx(50_000 * moved, rel=0.3)


def test_disruption_is_that_of_two_trials(nat, l4lb):
    """What moves is what two trials say, one of them without the real server."""
    service, control = service_of(nat, (1,) * 4), service_of(nat, (1,) * 4)
    control.delete_server("198.51.100.2", 80)
    lost = 0
    for seed in range(60):
        one = attempt(l4lb, service, "mh", 1, seed=seed, without=("198.51.100.2", 80))
        was = next(s["addr"] for s in one["servers"] if s["chosen"])
        now = next(s["addr"] for s in attempt(l4lb, control, "mh", 1, seed=seed)["servers"]
                   if s["chosen"])
        assert (one["lost"], one["moved"]) == (was == "198.51.100.2",
                                               was not in ("198.51.100.2", now))
        lost += one["lost"]
    assert lost > 5


def test_disruption_has_no_meaning(nat, l4lb):
    """Where load, turns or chance decide, all flows move, and that tells nothing."""
    service = service_of(nat, (1, 1, 1))
    for sched in SCHEDULERS:
        found = attempt(l4lb, service, sched, 10, without=("198.51.100.1", 80))
        assert ("moved" in found) == (sched in ("mh", "sh", "dh")), sched
        assert found["lost"] == found["servers"][0]["chosen"]
    assert not {"moved", "lost"} & attempt(l4lb, service, "mh", 10).keys()


# -- nobody notices

@pytest.mark.smoke
@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_nobody_notices(nat, l4lb, backend, family, proto):
    """Services, counters, the turn of round robin, and connections are as before."""
    raw = Raw(nat, proto, family, (1, 2, 3))
    clients = [raw.client() for _ in range(4)]
    assert [c.open() for c in clients] == [1, 2, 3, 1]

    def seen():
        rows = [{k: v for k, v in c.row().items() if k != "expires"} for c in clients]
        return l4lb.get_services(), rows, [raw.service.stats[k] for k in ("conns", "inpkts")]
    before = seen()
    for sched in SCHEDULERS:
        backend.need_scheduler(sched)
        attempt(l4lb, raw.service, sched, 3001, hold=100, without=(raw.address(2), raw.dport))
    assert seen() == before
    assert raw.client().open() == 2


@pytest.mark.smoke
def test_one_at_a_time(nat, ns, l4lb, backend):
    """The second is refused until the first one's answers were read, or nobody wants them; and
    the first holds its scheduler's module."""
    port = nat.fresh_port()
    service = service_of(nat, (), port)
    for first in range(0, 4000, 400):
        l4lb.set_services([genl.batch_entry(VIP, port, servers=[
            genl.batch_server(f"198.51.{n >> 8}.{n & 255}") for n in range(first, first + 400)])],
            genl.MERGE)
    backend.need_scheduler("sed")

    def over():
        try:
            return attempt(l4lb, service, "rr", 1)
        except OSError as error:
            assert error.errno == errno.EBUSY
            return None
    with genl.L4lb(ns) as first:
        first.sock.send(first.message(genl.TRY_SCHEDULER, request(service, "sed", 100), genl.F_DUMP))
        refused(lambda: attempt(l4lb, service, "rr", 1), errno.EBUSY, "under way")
        assert run(["rmmod", f"{backend.prefix}sed"], check=False).returncode
        assert len(first.answers(dump=True)) == 4002
        attempt(l4lb, service, "rr", 1)
        first.sock.send(first.message(genl.TRY_SCHEDULER, request(service, "sed", 100), genl.F_DUMP))
    wait_until(over, 5)
    assert not run(["rmmod", f"{backend.prefix}sed"], check=False).returncode
    # Its service may go meanwhile.
    with genl.L4lb(ns) as first:
        first.sock.send(first.message(genl.TRY_SCHEDULER, request(service, "rr", 100), genl.F_DUMP))
        service.delete()
        assert len(first.answers(dump=True)) == 4002


# -- bad input

def test_bad_values(nat, l4lb):
    service = service_of(nat, (1, 1))
    most = 4194304
    for values, code, word in (
            ({"scheduler": None}, errno.EINVAL, "SCHEDULER is missing"),
            ({"scheduler": "nosuch"}, errno.ENOENT, "no such scheduler"),
            ({"flows": None}, errno.EINVAL, "FLOWS must be 1 to"),
            ({"flows": 0}, errno.EINVAL, "FLOWS must be 1 to"),
            ({"flows": most + 1}, errno.EINVAL, "FLOWS must be 1 to"),
            ({"clients": most + 1}, errno.EINVAL, "CLIENTS and HOLD"),
            ({"hold": most + 1}, errno.EINVAL, "CLIENTS and HOLD"),
            ({"live": True, "clients": 1}, errno.EINVAL, "leave CLIENTS out"),
            ({"without": ("198.51.100.9", 80)}, errno.EADDRNOTAVAIL, "WITHOUT is no real server"),
            ({"without": ("198.51.100.1", 81)}, errno.EADDRNOTAVAIL, "WITHOUT is no real server"),
            ({"without": ("2001:db8::1", 80)}, errno.EADDRNOTAVAIL, "WITHOUT is no real server")):
        refused(lambda v=values: l4lb.dump(genl.TRY_SCHEDULER, request(service, **v)), code, word)
    empty = service_of(nat, ())
    refused(lambda: attempt(l4lb, empty, "rr", 1), errno.EINVAL, "no real servers")
    empty.delete()
    refused(lambda: attempt(l4lb, empty, "rr", 1), errno.ESRCH, "no such service")
    name, trial = request(service)
    refused(lambda: l4lb.dump(genl.TRY_SCHEDULER, name), errno.EINVAL, "TRIAL is missing")
    refused(lambda: l4lb.dump(genl.TRY_SCHEDULER, trial), errno.EINVAL, "SERVICE is missing")
    only = service_of(nat, (1,))
    found = attempt(l4lb, only, "mh", 10, without=("198.51.100.1", 80), hold=most, clients=most)
    assert (found["lost"], found["moved"], found["refused"]) == (10, 0, 0)


@pytest.mark.skipif(not faults.available(), reason=faults.ABSENT)
@pytest.mark.smoke
@pytest.mark.parametrize("sched, live", (("lblcr", False), ("mh", True), ("wlc", False)))
def test_no_memory(nat, ns, backend, sched, live):
    """Each allocation in turn fails: an error, and the next trial is made."""
    backend.need_scheduler(sched)
    service = service_of(nat, (1,) * 20)
    with faults.injection(), FaultyL4lb(ns) as faulty:
        for nth in range(1, 400):
            faulty.nth = nth
            try:
                attempt(faulty, service, sched, 50, hold=5, live=live,
                        without=("198.51.100.1", 80))
            except OSError as error:
                assert error.errno in (errno.ENOMEM, errno.EFAULT, errno.ENOBUFS), error
            hit, faulty.nth = faulty.hit, 0
            attempt(faulty, service, sched, 1)
            if not hit:
                return
    raise AssertionError("it allocates more often than expected")
