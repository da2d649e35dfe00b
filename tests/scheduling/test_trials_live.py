# SPDX-License-Identifier: GPL-2.0
"""Trials of schedulers with the clients of a service's connections."""

import pytest
from lab.fwmark import Marked, fresh_mark, here, marking
from lab.genl import PERSISTENT
from lab.packet import TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.trials import attempt, chosen

pytestmark = pytest.mark.usefixtures("only_l4lb")
FLOWS = 8000
MOST = 65_536           # clients of a sample
NEAR = 0.03             # 6 sigma of a share of 0.75 among 8,000


def share(found):
    """Of the server that gets most."""
    assert found["refused"] == 0 and sum(chosen(found)) == found["flows"] == FLOWS
    return max(chosen(found)) / FLOWS


def attempt_live(l4lb, service, sched, flows=FLOWS, **more):
    return attempt(l4lb, service, sched, flows, live=True, **more)


def another(lab, l4lb, raw, count):
    """Opens COUNT connections of one more client after the other, until sh has another server for the
    last one than for those before; the addresses."""
    found = []
    while share(attempt_live(l4lb, raw.service, "sh")) == 1:
        found.append(lab.client_address(raw.family))
        assert len(found) < 20
        for _ in range(count):
            raw.client(found[-1]).open()
    return found


@pytest.mark.smoke
@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_as_often_as_they_have_connections(nat, l4lb, family, proto):
    """All flows of one client go to its server; those of two, in proportion to their connections,
    to two. Another service's clients play no part."""
    raw, other = Raw(nat, proto, family, (1, 2)), Raw(nat, proto, family, (1, 2))
    first = nat.client_address(family)
    for _ in range(30):
        raw.client(first).open()
    for _ in range(5):
        other.client().open()
    found = attempt_live(l4lb, raw.service, "sh")
    assert found["clients"] == 30 and share(found) == 1
    assert share(attempt_live(l4lb, raw.service, "sh", seed=3)) == 1
    every = 30 + 10 * len(another(nat, l4lb, raw, 10))
    found = attempt_live(l4lb, raw.service, "sh")
    assert found["clients"] == every
    assert abs(share(found) - (every - 10) / every) < NEAR


def test_without_a_server(nat, l4lb):
    """The same flows once more without the server of the only client."""
    raw = Raw(nat, numbers=(1, 2))
    raw.client().open()
    found = attempt_live(l4lb, raw.service, "mh")
    first = 1 + chosen(found).index(FLOWS)
    for number in (1, 2):
        found = attempt_live(l4lb, raw.service, "mh", without=(raw.address(number), raw.dport))
        assert (found["lost"], found["moved"]) == (FLOWS if number == first else 0, 0)


def test_the_address_that_they_asked_for(nat, l4lb):
    """Of a service by firewall mark: dh chooses by it."""
    mark, vips = fresh_mark(), [nat.raw_vip(4, n) for n in (0, 1)]
    with here(nat, mark), marking(nat, mark, f"ip daddr {{ {', '.join(vips)} }}"):
        raw = Marked(nat, mark, numbers=(1, 2, 3, 4))
        for vip, count in zip(vips, (30, 10)):
            raw.vip = vip
            for _ in range(count):
                raw.client().open()
            found = attempt_live(l4lb, raw.service, "dh")
            assert found["clients"] == (30 if vip == vips[0] else 40)
            assert abs(share(found) - (1 if vip == vips[0] else 0.75)) < NEAR


def test_nobody_is_connected(nat, l4lb):
    """No flow begins; a client that is only remembered has no connection."""
    raw = Raw(nat, UDP, numbers=(1, 2), flags=PERSISTENT, timeout=300)
    found = attempt_live(l4lb, raw.service, "mh")
    assert (found["flows"], found["clients"], found["refused"]) == (0, 0, 0)
    assert chosen(found) == [0, 0]
    raw.client().open()
    assert len(nat.conns(vport=raw.port)) == 2
    assert attempt_live(l4lb, raw.service, "mh")["clients"] == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_more_than_a_sample(nat, l4lb):
    """A sample of 100,000 connections has the clients' shares."""
    raw, first = Raw(nat, UDP, numbers=(1, 2)), nat.client_address(4)
    with setting(nat, "conn_max", 1 << 20):
        raw.client(first).open()
        other = another(nat, l4lb, raw, 1)[-1]
        for address, count in ((first, 60_000), (other, 40_000)):
            raw.send_all(raw.client(address, sport).packet() for sport in range(1000, 1000 + count))
        found = attempt_live(l4lb, raw.service, "sh")
        assert found["clients"] == MOST
        assert abs(share(found) - 0.6) < NEAR
