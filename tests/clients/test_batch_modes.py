# SPDX-License-Identifier: GPL-2.0
"""SET_SERVICES of family L4LB: services that exist already, and those that do not."""

import errno

import pytest
from lab import genl
from lab.genl import ADD, CHANGE, MERGE, REPLACE, batch_entry, batch_server

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
    assert "there is no such service" in sentence and "service 2" in sentence
    (s,) = ipvs.services()
    assert s["sched"] != "wlc"
    l4lb.set_services([batch_entry(V4, 80, [batch_server(RIPS[0], weight=5)], sched="wlc")], CHANGE)
    (s,) = ipvs.services()
    assert s["sched"] == "wlc"
    assert [d["weight"] for d in ipvs.service(V4, 80, add=False).servers()] == [5]
