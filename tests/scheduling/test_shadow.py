# SPDX-License-Identifier: GPL-2.0
"""Shadows: a second scheduler sees each choice, has no effect, and counts what it would have done."""

import json
import math
import time
from collections import Counter
from pathlib import Path

import pytest
from lab import genl, xdp
from lab.flows import set_policy
from lab.ingress import at_ingress
from lab.ingress import ready as ready_at_ingress
from lab.netns import wait_until
from lab.oracle import MARK, Addresses, Oracle
from lab.packet import ACK, FIN, RST, SCTP, TCP, UDP
from lab.raw import Raw
from lab.sequences import SCHEDULERS, by_chance
from lab.settings import setting
from lab.shadows import each, give, in_all, loads, name_of, read, totals
from lab.trials import flow

pytestmark = pytest.mark.usefixtures("only_l4lb")
WEIGHTS = (1, 7, 2, 0, 30, 1, 3)
SEED = 7
CASES = [json.loads(line) for line in
         (Path(__file__).parents[1] / "unit/golden_picks.jsonl").read_text(encoding="ascii").splitlines()]


def fill(oracle, service, weights=WEIGHTS, **options):
    for n, weight in enumerate(weights):
        service.server(f"2001:db8:8::{n + 1:x}", method=oracle.lab.method, weight=weight, **options)


def send(oracle, count, first=0):
    for i in range(first, first + count):
        client, sport, to = flow(SEED, i)
        oracle.send("tcp", client, sport, to, 80)


def over(oracle, service):
    """Its connections end with it."""
    with setting(oracle.lab, "expire_nodest_conn", 1):
        service.delete()
    oracle.forget()


def shadowed(oracle, acting, shadow, count, weights=WEIGHTS):
    """({server: connections}, what the shadow says) after COUNT flows."""
    with genl.L4lb(oracle.ns) as l4lb:
        service = oracle.service(acting, 6)
        fill(oracle, service, weights)
        give(l4lb, service, shadow)
        send(oracle, count)
        got = Counter(oracle.chosen().values())
        found = read(l4lb, service)
        over(oracle, service)
    return got, found


# -- the same choices

@pytest.mark.parametrize("sched, many", [
    pytest.param(s, many, marks=pytest.mark.slow if many else ()) for s in SCHEDULERS for many in (False, True)
    if not by_chance(s, many)])
def test_agrees_with_itself(dr_with_rules, sched, many):
    """The control: the same scheduler chooses the same each time, with as many connections."""
    with Oracle(dr_with_rules) as oracle:
        got, found = shadowed(oracle, sched, sched, 200, WEIGHTS * 6 if many else WEIGHTS)
    assert totals(found) == (sum(got.values()), sum(got.values()), 0) and sum(got.values()) >= 50
    assert each(found) == each(found, "real_conns") == [got[s["addr"]] for s in found["servers"]]
    assert loads(found) == loads(found, real=True)
    assert each(found, "weight") == list(WEIGHTS * 6 if many else WEIGHTS)


@pytest.mark.parametrize("sched", [s for s in SCHEDULERS if not by_chance(s, False)])
def test_predicts(dr_with_rules, sched):
    """In the shade of round robin it chooses as it does alone."""
    with Oracle(dr_with_rules) as oracle:
        _, found = shadowed(oracle, "rr", sched, 200)
        service = oracle.service(sched, 6)
        fill(oracle, service)
        send(oracle, 200)
        got = Counter(oracle.chosen().values())
        over(oracle, service)
    assert each(found) == [got[s["addr"]] for s in found["servers"]]
    assert found["refused"] == 200 - sum(got.values()) and found["seen"] == 200


def test_two_hashes_agree_by_chance(dr_with_rules):
    """One time in n."""
    n, count = 10, 3000
    with Oracle(dr_with_rules) as oracle:
        _, found = shadowed(oracle, "sh", "mh", count, (1,) * n)
    sigma = math.sqrt(count * (1 / n) * (1 - 1 / n))
    assert abs(found["agreed"] - count / n) < 3 * sigma and found["seen"] == count


class Haunted(Oracle):
    """Each service has a shadow."""

    shadow = None

    def service(self, *args, **kwargs):
        service = super().service(*args, **kwargs)
        with genl.L4lb(self.ns) as l4lb:
            give(l4lb, service, self.shadow)
        return service


@pytest.mark.dear
@pytest.mark.parametrize("sched", sorted({c["sched"] for c in CASES} - {"rr", "wrr"}))
def test_same_choices_as_ip_vs(dr_with_rules, sched):
    """Recorded choices (see test_golden.py) are the same with a shadow."""
    with Haunted(dr_with_rules) as oracle:
        for number, case in enumerate([c for c in CASES if c["sched"] == sched][::6]):
            oracle.shadow = ("wlc", "lblcr", "rr", "mh")[number % 4]
            got = oracle.replay(case)
            oracle.forget()
            assert got == [s[-1] for s in case["steps"] if s[0] == "pkt"], (case["case"], oracle.shadow)


# -- counts

def stats(raw):
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        return read(l4lb, raw.service)


def shade(raw, name):
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        give(l4lb, raw.service, name)
        assert name_of(l4lb, raw.service) == (None if name == "none" else name)
    return raw


def follows(raw):
    """The shadow has as many active and inactive connections as the scheduler: [ghosts' loads]"""
    found = stats(raw)
    assert in_all(loads(found)) == in_all(loads(found, real=True)), found
    return loads(found)


@pytest.mark.smoke
@pytest.mark.parametrize("proto", (TCP, UDP, SCTP), ids=("tcp", "udp", "sctp"))
def test_follows_states(lab, family, proto):
    """Ghosts count what is active and what is not, from a connection's first packet to its end;
    all on the heaviest, where the shadow wants them."""
    raw = shade(Raw(lab, proto, family, (1, 2), weights=(9, 1)), "fo")
    clients = [raw.client() for _ in range(4)]
    for client in clients:
        client.open()
        follows(raw)
    assert [sum(pair) for pair in follows(raw)] == [4, 0] and each(stats(raw), "real_conns") == [2, 2]
    if proto == TCP:
        for client, flags in zip(clients, (ACK, FIN | ACK, RST)):
            client.send(flags).arrive()
            follows(raw)
        assert follows(raw)[0] == (3, 1)
    with genl.L4lb(lab.director.ns) as l4lb:
        l4lb.kill(vip=raw.vip, vport=raw.port)
    wait_until(lambda: follows(raw) == [(0, 0), (0, 0)], 10, what="ghosts without connections")
    assert totals(stats(raw)) == (4, 2, 0) and each(stats(raw)) == [4, 0]


def test_expiry(nat):
    """They end by themselves, too."""
    raw = shade(Raw(nat, UDP, numbers=(1, 2)), "wlc")
    set_policy(raw, udp=1)
    for _ in range(3):
        raw.client().open()
    assert in_all(follows(raw)) == (0, 3)
    wait_until(lambda: in_all(follows(raw)) == (0, 0), 30, what="the end of connections")
    assert sum(each(stats(raw))) == 3


@pytest.mark.smoke
def test_loads_are_its_own(nat):
    """The scheduler gives the first server everything; a shadow that looks at loads spreads them.
    With the real servers' loads it would give the second one all."""
    raw = shade(Raw(nat, TCP, numbers=(1, 2), weights=(2, 1), sched="fo"), "lc")
    for _ in range(20):
        assert raw.client().open() == 1
    found = stats(raw)
    assert each(found, "real_conns") == [20, 0] and each(found) == [10, 10]
    assert totals(found) == (20, 10, 0)
    assert loads(found) == [(10, 0), (10, 0)] and loads(found, real=True) == [(20, 0), (0, 0)]


def test_thresholds_are_its_own(nat):
    raw = shade(Raw(nat, TCP, numbers=(1, 2, 3), weights=(9, 5, 1), server={"upper": 4}), "fo")
    for filled in ([4, 2, 0], [4, 4, 4]):
        for _ in range(6):
            raw.client().open()
        assert each(stats(raw)) == filled
    for n in (1, 2, 3):
        raw.edit(n, weight=1, upper=0)
    raw.client().open()
    assert stats(raw)["refused"] == 0 and in_all(loads(stats(raw))) == (13, 0)


def test_refused(nat):
    """sh knows one server for a client; when that is full the shadow finds none, the service does."""
    raw = shade(Raw(nat, TCP, numbers=(1, 2, 3), server={"upper": 4}), "sh")
    who = nat.client_address(4)
    for _ in range(12):
        raw.client(who).open()
    found = stats(raw)
    assert sorted(each(found)) == [0, 0, 4] and each(found, "real_conns") == [4, 4, 4]
    assert found["seen"] == 12 and found["refused"] == 8
    # The scheduler refuses: no connection begins, and the shadow is not asked.
    raw.client().send()
    raw.fence()
    assert totals(stats(raw)) == totals(found)


@pytest.mark.smoke
def test_persistence(nat, family):
    """A template is one choice; its connections count where the shadow put the client."""
    raw = shade(Raw(nat, TCP, family, (1, 2), weights=(1, 9), flags=genl.PERSISTENT, timeout=300), "fo")
    who = nat.client_address(family)
    clients = [raw.client(who) for _ in range(5)]
    assert {client.open() for client in clients} == {1}
    found = stats(raw)
    assert totals(found) == (1, 0, 0)
    assert each(found) == [0, 5] and each(found, "real_conns") == [5, 0]
    assert loads(found) == [(0, 0), (5, 0)]
    clients[0].send(FIN | ACK).arrive()
    assert loads(stats(raw))[1] == (4, 1)
    # A template from before the shadow, or of another one, asks nobody.
    shade(raw, "none")
    shade(raw, "lc")
    raw.client(who).open()
    assert totals(stats(raw)) == (0, 0, 0) and each(stats(raw)) == each(stats(raw), "real_conns") == [0, 0]
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.kill(vip=raw.vip, vport=raw.port)
    wait_until(lambda: raw.dest(1)["active"] + raw.dest(1)["persistent"] == 0, 10)
    raw.client(who).open()
    assert totals(stats(raw))[0] == 1 and in_all(loads(stats(raw))) == (1, 0)


def test_persistent_client_of_a_removed_server(nat, family):
    """The shadow chooses again for its connections, as a scheduler does for a client whose
    server is gone."""
    raw = shade(Raw(nat, TCP, family, (1, 2), weights=(1, 9), flags=genl.PERSISTENT, timeout=300), "fo")
    who = nat.client_address(family)
    assert raw.client(who).open() == 1
    assert totals(stats(raw)) == (1, 0, 0)
    raw.remove(2)
    assert raw.client(who).open() == raw.client(who).open() == 1
    found = stats(raw)
    assert totals(found) == (3, 2, 0)
    assert each(found) == [2] and each(found, "real_conns") == [3]


@pytest.mark.smoke
def test_one_packet(nat, family):
    """Each packet is a choice, and none stays."""
    raw = shade(Raw(nat, UDP, family, (1, 2), weights=(9, 1), flags=genl.ONEPACKET), "fo")
    client = raw.client()
    for _ in range(6):
        client.open()
    found = stats(raw)
    assert totals(found) == (6, 3, 0) and each(found) == [6, 0] and each(found, "real_conns") == [3, 3]
    assert loads(found) == [(0, 0), (0, 0)]


@pytest.mark.parametrize("way", ("ingress", pytest.param("xdp", marks=pytest.mark.emulated)))
@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_first_packets_on_the_fast_path(nat, family, proto, way):
    raw = shade(ready_at_ingress(nat, proto, family, numbers=(1, 2), weights=(9, 1)), "fo")
    before = totals(stats(raw))
    if way == "xdp":
        if not xdp.is_possible():
            pytest.skip(xdp.ABSENT)
        xdp.attach(nat)
    with at_ingress(nat):
        clients = [raw.client() for _ in range(4)]
        for client in clients:
            client.open()
    if way == "xdp":
        xdp.detach(nat)
        xdp.hide_all()      # other files send as without it
    found = stats(raw)
    assert found["seen"] - before[0] == 4 and each(found)[1] == 0
    follows(raw)


def test_connections_from_before(nat):
    """They have no ghost: neither their states nor their end are noticed."""
    raw = Raw(nat, TCP, numbers=(1, 2))
    old = [raw.client() for _ in range(2)]
    for client in old:
        client.open()
    shade(raw, "wlc")
    old[0].send(RST).arrive()
    raw.client().open()
    assert totals(stats(raw))[0] == 1 and in_all(loads(stats(raw))) == (1, 0)
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.kill(vip=raw.vip, vport=raw.port)
    wait_until(lambda: in_all(loads(stats(raw), real=True)) == (0, 0), 10)
    assert in_all(loads(stats(raw))) == (0, 0)


def test_zero(nat):
    raw = shade(Raw(nat, TCP, numbers=(1, 2)), "rr")
    for _ in range(3):
        raw.client().open()
    time.sleep(0.2)
    assert stats(raw)["age"] >= 200
    raw.service.zero()
    found = stats(raw)
    assert totals(found) == (0, 0, 0) and each(found) == each(found, "real_conns") == [0, 0]
    assert in_all(loads(found)) == (3, 0) and found["age"] < 200
    raw.client().open()
    assert totals(stats(raw)) == (1, 1, 0) and sum(each(stats(raw))) == 1


# -- changes

def test_weights_and_servers(nat):
    """The shadow's servers are the service's; one that comes back has its loads again."""
    raw = shade(Raw(nat, TCP, numbers=(1, 2), weights=(5, 1)), "fo")

    def next_is(number):
        before = each(stats(raw))
        raw.client().open()
        after = each(stats(raw))
        return [b - a for a, b in zip(before, after)] == [int(n == number) for n in order]
    order = [1, 2]
    assert next_is(1)
    raw.edit(2, weight=9)
    assert next_is(2)
    raw.edit(2, weight=0)
    assert next_is(1)
    order.append(3)
    raw.add(3, weight=20)
    raw.numbers = (1, 2, 3)
    assert next_is(3) and next_is(3)
    was = loads(stats(raw))
    raw.remove(3)
    order.pop()
    assert next_is(1) and len(stats(raw)["servers"]) == 2
    raw.add(3, weight=20)
    order.append(3)
    assert loads(stats(raw))[2] == was[2] == (2, 0)
    assert next_is(3) and loads(stats(raw))[2] == (3, 0)
    # Another shadow does not know what the one before would have done.
    raw.remove(3)
    shade(raw, "none")
    shade(raw, "fo")
    raw.add(3, weight=20)
    assert loads(stats(raw)) == [(0, 0)] * 3
    raw.remove(3)
    shade(raw, "lc")
    shade(raw, "fo")
    raw.add(3, weight=20)
    assert next_is(3) and loads(stats(raw))[2] == (1, 0)
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_services([genl.batch_entry(raw.vip, raw.port, [genl.batch_server(
            raw.address(n), raw.dport, weight=w) for n, w in ((1, 30), (2, 1))], shadow="fo", exact=True)],
            genl.MERGE)
    order.pop()
    assert next_is(1) and len(stats(raw)["servers"]) == 2


def test_scheduler_and_settings(nat):
    """The service's scheduler, flags and timeout change; the shadow goes on."""
    raw = shade(Raw(nat, TCP, numbers=(1, 2)), "wlc")
    raw.client().open()
    for settings in ({"sched": "mh"}, {"sched": "wlc"}, {"sched": "rr", "flags": genl.PERSISTENT, "timeout": 60},
                     {"sched": "rr", "flags": 0}):
        raw.service.edit(**settings)
        assert stats(raw)["scheduler"] == "wlc" and stats(raw)["seen"] == 1
    raw.client().open()
    assert totals(stats(raw))[0] == 2 and in_all(loads(stats(raw))) == (2, 0)
    shade(raw, "wlc")       # again: it stays, with its counters
    assert stats(raw)["seen"] == 2


def test_options_are_those_of_the_same_scheduler(dr_with_rules):
    """A key of mh moves both; another scheduler's shadow keeps what it has."""
    with Oracle(dr_with_rules) as oracle, genl.L4lb(oracle.ns) as l4lb:
        service = oracle.service("mh", 6)
        fill(oracle, service, (1,) * 7)
        l4lb.set(service, ("key", bytes(16 * [7])))
        give(l4lb, service, "mh")
        sent = 0
        for change in (lambda: None, lambda: l4lb.set(service, ("key", bytes(16 * [9]))),
                       lambda: l4lb.set(service, ("order", 1))):
            change()
            send(oracle, 50, sent)
            sent += 50
            oracle.fence()
            assert totals(read(l4lb, service)) == (sent, sent, 0)
        service.edit(sched="rr")
        service.edit(sched="mh")    # with its defaults
        send(oracle, 50, sent)
        oracle.fence()
        assert totals(read(l4lb, service)) == (sent + 50, sent + 50, 0)
        over(oracle, service)


@pytest.mark.parametrize("sched", ("lblc", "lblcr"))
def test_options_of_a_batch(oracle, sched):
    """They come with the shadow, in one message. The only entry is taken by another address."""
    asked = Addresses(oracle, sched)
    with genl.L4lb(oracle.ns) as l4lb:
        l4lb.set_services([genl.batch_entry(fwmark=MARK, port=0, sched=sched, shadow=sched,
                                            options=(("entries", 1),))], genl.MERGE)
        assert asked.ask(1, 1, 1) == [2, 2, 2]
        assert asked.ask(9, 1, 1) == [1, 1, 1]
        assert totals(read(l4lb, asked.service)) == (6, 6, 0)


def test_slow_start(nat):
    """A shadow knows none: a newcomer that gets nothing from its service has its share there."""
    raw = shade(Raw(nat, TCP, numbers=(1, 2)), "rr")
    set_policy(raw, ramp=1)
    time.sleep(1.2)
    set_policy(raw, ramp=600)
    time.sleep(0.1)
    raw.add(3)
    raw.numbers = (1, 2, 3)
    for _ in range(6):
        raw.client().open()
    assert each(stats(raw)) == [2, 2, 2]


def test_limits(nat):
    """What a limit refuses begins no connection: nobody is asked."""
    raw = shade(Raw(nat, TCP, numbers=(1, 2)), "wlc")
    set_policy(raw, limit_conns=3)
    for _ in range(6):
        raw.client().send()
    raw.fence()
    assert totals(stats(raw))[0] == 3 and in_all(loads(stats(raw))) == (3, 0)

