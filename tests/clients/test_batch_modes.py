# SPDX-License-Identifier: GPL-2.0
"""SET_SERVICES of family L4LB: services that exist already, and those that do not."""

import errno
import time

import pytest
from lab import genl, packet
from lab.genl import ADD, CHANGE, MERGE, REPLACE, batch_entry, batch_removal, batch_server
from lab.rows import amount

V4, V6 = "198.51.100.191", "2001:db8:1::191"
RIPS, RIPS6 = [f"192.0.2.{20 + n}" for n in range(4)], [f"2001:db8:2::{20 + n}" for n in range(4)]
pytestmark = pytest.mark.usefixtures("only_l4lb")


@pytest.fixture(autouse=True)
def nothing_left(ipvs):
    yield
    ipvs.flush()


def test_modes(ipvs, l4lb):
    l4lb.set_services([batch_entry(V4, 80, RIPS[:2]), batch_entry(V4, 81, RIPS[:2])])
    changed = batch_entry(V4, 80, [batch_server(RIPS[1], weight=9), RIPS[2]], sched="wlc")
    sentence = genl.is_refused(lambda: l4lb.set_services([changed], ADD), errno.EEXIST)
    assert "exists already" in sentence
    l4lb.set_services([changed], MERGE)
    s = ipvs.service(V4, 80, add=False)
    assert [(d["addr"], d["weight"]) for d in s.servers()] == [
        (RIPS[2], 1), (RIPS[1], 9), (RIPS[0], 1)]
    assert s.get()["sched"] == "wlc" and len(ipvs.services()) == 2
    l4lb.set_services([changed], REPLACE)
    assert [(d["addr"], d["weight"]) for d in s.servers()] == [(RIPS[2], 1), (RIPS[1], 9)]
    assert len(ipvs.services()) == 1
    l4lb.set_services([batch_entry(V6, 80, RIPS6)], ADD)
    assert len(ipvs.services()) == 2
    genl.is_refused(lambda: l4lb.set_services([], MERGE), errno.EINVAL)
    genl.is_refused(lambda: l4lb.set_services([], CHANGE), errno.EINVAL)
    genl.is_refused(lambda: l4lb.set_services([], 4), errno.ERANGE)
    l4lb.set_services([], REPLACE)
    assert ipvs.services() == []


def test_only_changes(ipvs, l4lb):
    """CHANGE adds no service: a client may not know that another one has deleted it."""
    there, gone = batch_entry(V4, 80, RIPS[:1]), batch_entry(V4, 81, RIPS[:1])
    l4lb.set_services([there])
    sentence = genl.is_refused(lambda: l4lb.set_services(
        [batch_entry(V4, 80, RIPS[1:], sched="wlc"), gone], CHANGE), errno.ESRCH)
    assert "there is no such service" in sentence
    assert ("service 2" in sentence) == genl.SAYS_WHY
    (s,) = ipvs.services()
    assert s["sched"] != "wlc"
    l4lb.set_services([batch_entry(V4, 80, [batch_server(RIPS[0], weight=5)], sched="wlc")], CHANGE)
    (s,) = ipvs.services()
    assert s["sched"] == "wlc"
    assert [d["weight"] for d in ipvs.service(V4, 80, add=False).servers()] == [5]


def names(service):
    return [(d["addr"], d["weight"]) for d in service.servers()]


def test_removals_are_part_of_the_change(ipvs, l4lb):
    """An exact entry loses the servers that it does not name, others keep theirs; a removed
    service goes with them; all or nothing."""
    l4lb.set_services([batch_entry(V4, port, RIPS[:2]) for port in (80, 81, 82)])
    change = [batch_entry(V4, 80, [batch_server(RIPS[1], weight=5), RIPS[2]], exact=True),
              batch_entry(V4, 81, [RIPS[2]]), batch_removal(V4, 82)]
    refused = [*change, batch_entry(V4, 83, [batch_server(RIPS[0], weight=1 << 31)])]
    genl.is_refused(lambda: l4lb.set_services(refused), errno.ERANGE)
    first, second, third = (ipvs.service(V4, port, add=False) for port in (80, 81, 82))
    for service in (first, second, third):
        assert sorted(names(service)) == [(rip, 1) for rip in RIPS[:2]]
    l4lb.set_services(change)
    assert sorted(names(first)) == [(RIPS[1], 5), (RIPS[2], 1)]
    assert sorted(names(second)) == [(rip, 1) for rip in RIPS[:3]]
    assert sorted(s["port"] for s in ipvs.services()) == [80, 81]
    l4lb.set_services([batch_entry(V4, 80, exact=True), batch_removal(V4, 81)])
    assert names(first) == [] and len(ipvs.services()) == 1


def test_removals_of_what_is_not_there(ipvs, l4lb):
    l4lb.set_services([batch_entry(V4, 80, RIPS[:1])])
    gone = batch_removal(V4, 81)
    l4lb.set_services([gone])
    assert "there is no such service" in genl.is_refused(
        lambda: l4lb.set_services([batch_removal(V4, 80), gone], CHANGE), errno.ESRCH)
    for mode in (ADD, REPLACE):
        genl.is_refused(lambda mode=mode: l4lb.set_services([gone], mode), errno.EINVAL)
    for more in (genl.attr(genl.L_EXACT, b""), genl.attr(genl.L_DESTS, [batch_server(RIPS[0])])):
        genl.is_refused(lambda more=more: l4lb.set_services([batch_removal(V4, 80, more)]),
                        errno.EINVAL)
    for twice in (batch_entry(V4, 80), batch_removal(V4, 80)):
        assert "named twice" in genl.is_refused(
            lambda twice=twice: l4lb.set_services([twice, batch_removal(V4, 80)]), errno.EEXIST)
    # More servers for the entry before, which has none.
    more = genl.attr(genl.L_ENTRY, [
        genl.attr(genl.L_SERVICE, genl.ident(packet.TCP, V4, 80)),
        genl.attr(genl.L_DESTS, [batch_server(RIPS[1])])])
    genl.is_refused(lambda: l4lb.set_services([batch_removal(V4, 80), more]), errno.EINVAL)
    assert len(ipvs.services()) == 1


def test_many_removals_cost_no_more_each(request, ipvs, l4lb):
    """Ten times the services in one message take up to 40 times as long, as caches are small; a
    walk takes 80 and more."""
    many = amount(request.config, few=20_000, all=50_000)

    def each(count):
        names = [(f"198.{18 + (n >> 16)}.{n >> 8 & 255}.{n & 255}", 80) for n in range(count)]
        l4lb.set_services([batch_entry(*name) for name in names])
        removals = [batch_removal(*name) for name in names]
        began = time.perf_counter()
        l4lb.set_services(removals)
        took = time.perf_counter() - began
        assert ipvs.services() == []
        return took / count
    assert min(each(many) for _ in range(3)) < 5 * max(each(many // 10) for _ in range(3))


def times(**seconds):
    return genl.attr(genl.L_TIMEOUTS | genl.NESTED, [genl.attr(genl.TIMEOUTS[name], genl.u32(n))
                                                     for name, n in seconds.items()])


@pytest.mark.smoke
def test_timeouts(ipvs, l4lb):
    """They are set with the services, or not at all."""
    usual = ipvs.timeouts(900, 120, 300)
    good = batch_entry(V4, 80, RIPS)
    for entries, code in (([times(tcp=7, udp=8), good, batch_entry(V4, 81, RIPS, sched="no")], errno.ENOENT),
                          ([good, times(tcp=7, tcp_fin=1 << 31)], errno.EINVAL),
                          ([good, times(tcp=7), batch_entry(V4, 80, RIPS)], errno.EEXIST),
                          ([good, genl.attr(genl.L_TIMEOUTS | genl.NESTED, [genl.attr(9, genl.u32(1))])],
                           errno.EINVAL)):
        sentence = genl.is_refused(lambda: l4lb.set_services(entries), code)    # noqa: B023
        assert ipvs.timeouts() == usual and ipvs.services() == [], sentence
    genl.is_refused(lambda: l4lb.set_services([times(tcp=7), good], CHANGE), errno.ESRCH)
    assert ipvs.timeouts() == usual
    sentence = genl.is_refused(lambda: l4lb.set_services([good, times(udp=1 << 31)]), errno.EINVAL)
    assert sentence == "the timeout is too long, or negative"
    l4lb.set_services([good, times(tcp=7, udp=0)])
    assert ipvs.timeouts() == (7, 120, 300) and len(ipvs.services()) == 1
    # Nothing else needs to be named; nothing else changes.
    l4lb.set_services([times(tcp_fin=9)], CHANGE)
    assert ipvs.timeouts() == (7, 9, 300) and len(ipvs.services()) == 1
    l4lb.set_services([times(udp=11)], REPLACE)
    assert ipvs.timeouts() == (7, 9, 11) and ipvs.services() == []
    ipvs.timeouts(*usual)
