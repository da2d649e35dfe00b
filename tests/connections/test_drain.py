# SPDX-License-Identifier: GPL-2.0
"""Drains that end: a deadline in the kernel, and what follows."""

import time

import pytest
from lab import genl
from lab.genl import is_refused
from lab.monitor import Monitor
from lab.netns import wait_until
from lab.packet import ACK, FIN, RST, SCTP, TCP, UDP
from lab.raw import Raw


@pytest.fixture
def l4lb(only_l4lb, nat):
    with genl.L4lb(nat.director.ns) as sock:
        yield sock


def order(raw, l4lb, number=1, **values):
    l4lb.drain(raw.service, raw.address(number), raw.dport, **values)


def is_gone(raw, number=1):
    return raw.address(number) not in [s["addr"] for s in raw.service.servers()]


def wait_gone(raw, seconds, number=1):
    wait_until(lambda: is_gone(raw, number), seconds, what="the end of the server", step=0.2)


@pytest.mark.waits
@pytest.mark.parametrize("then", ("stay", "delete", "reset", "move"))
def test_idle(nat, family, then, l4lb):
    """A server without connections is drained at once."""
    raw = Raw(nat, TCP, family, numbers=(1, 2))
    with Monitor(nat.director.ns, "drain", "server") as monitor:
        order(raw, l4lb, then=then)
        assert monitor.events(2) == ["weight", "drained"]
        if then == "stay":
            monitor.quiet()
            assert raw.dest(1)["weight"] == 0
        else:
            assert monitor.events(1) == ["server-deleted"]
            assert is_gone(raw) and not is_gone(raw, 2)


@pytest.mark.waits
def test_the_last_connection(nat, l4lb):
    """It goes on though its server is drained; when it is over, the server is removed. New
    ones, also from its port, go to others."""
    raw = Raw(nat, TCP, numbers=(1, 2))
    nat.ipvs.timeouts(fin=2)
    client = raw.client()
    while not client.number == 1:
        client = raw.client()
        client.establish()
    with Monitor(nat.director.ns, "drain") as monitor:
        order(raw, l4lb, seconds=300, then="delete")
        (listed,) = l4lb.drains()
        assert (listed["last_weight"], listed["then"]) == (1, "delete")
        assert 290000 < listed["left"] <= 300000
        assert {raw.client().open() for _ in range(4)} == {2}
        time.sleep(20)
        client.send(ACK)
        assert client.arrive()[0] == 1
        monitor.quiet()
        client.send(FIN)
        client.arrive()
        client.reply(FIN).answered()
        said = monitor.next(150)
        assert (said["event"], said["active"], said["inactive"]) == ("drained", 0, 0)
        wait_gone(raw, 5)
        monitor.quiet()


@pytest.mark.waits
@pytest.mark.parametrize("kind", (TCP, SCTP))
def test_reset_at_the_deadline(nat, family, kind, l4lb):
    """Both ends of a connection that is left are told, when its client sends."""
    raw = Raw(nat, kind, family)
    client = raw.client()
    client.establish()
    with Monitor(nat.director.ns, "drain") as monitor:
        order(raw, l4lb, seconds=5, then="reset")
        time.sleep(3)
        client.send(ACK)
        client.arrive()
        assert not is_gone(raw)
        said = monitor.next(10)
        assert said["event"] == "drained"
        assert said["active"] + said["inactive"] == 1
    wait_gone(raw, 5)
    client.send(ACK)
    client.answered()
    assert client.row() is None


@pytest.mark.waits
def test_whatever_the_service_says_later(nat, l4lb):
    """Neither a policy nor an identical batch takes the end of a drain back."""
    raw = Raw(nat, TCP)
    client = raw.client()
    client.establish()
    order(raw, l4lb, seconds=1, then="reset")
    wait_gone(raw, 10)
    l4lb.set_policy(raw.service, on_loss=1)
    l4lb.set_services(l4lb.get_services())
    client.send(ACK)
    assert client.answered().flags & RST
    # A server that is added again is as any other.
    raw.add(1)
    client = raw.client()
    client.establish()
    raw.remove(1)
    client.send(ACK)
    client.nothing_arrives()
    assert client.row()


@pytest.mark.waits
def test_move_at_the_deadline(nat, family, l4lb):
    """A UDP flow that never ends moves to another server then, not before."""
    raw = Raw(nat, UDP, family, numbers=(1, 2))
    client = raw.client()
    while client.open() != 1:
        client = raw.client()
    order(raw, l4lb, seconds=4, then="move")
    for _ in range(3):
        time.sleep(1)
        client.send()
        assert client.arrive()[0] == 1
    wait_gone(raw, 10)
    client.send()
    assert client.arrive()[0] == 2


@pytest.mark.waits
def test_a_template_is_waited_for(nat, l4lb):
    raw = Raw(nat, UDP, timeout=20, flags=genl.PERSISTENT)
    nat.ipvs.timeouts(udp=1)
    raw.client().open()
    with Monitor(nat.director.ns, "drain") as monitor:
        order(raw, l4lb)
        monitor.quiet(4)
        assert monitor.next(30)["event"] == "drained"


@pytest.mark.waits
def test_one_packet(nat, l4lb):
    """Datagrams without connections do not delay it."""
    raw = Raw(nat, UDP, flags=genl.ONEPACKET)
    raw.client().open()
    order(raw, l4lb, seconds=300, then="delete")
    wait_gone(raw, 5)


@pytest.mark.waits
def test_a_weight_ends_it(nat, l4lb):
    """Whoever sets it; then neither the deadline nor an empty server has a consequence."""
    raw = Raw(nat, TCP)
    client = raw.client()
    client.establish()
    monitor = Monitor(nat.director.ns, "drain")
    for again in (lambda: raw.edit(1, weight=7),
                  lambda: l4lb.set_services([genl.batch_entry(
                      raw.vip, raw.port, [genl.batch_server(raw.address(1), raw.dport, weight=7,
                                                            method=raw.method)], sched="rr")])):
        order(raw, l4lb, seconds=2, then="delete")
        assert raw.dest(1)["weight"] == 0
        again()
        assert l4lb.drains() == []
        time.sleep(4)
        assert raw.dest(1)["weight"] == 7
    with monitor:
        monitor.quiet()
    order(raw, l4lb, seconds=1, then="delete")
    order(raw, l4lb)
    assert l4lb.drains() == [{"server": raw.address(1), "port": raw.dport, "last_weight": 7}]
    time.sleep(3)
    assert raw.dest(1)["weight"] == 0


@pytest.mark.smoke
def test_refused(nat, l4lb):
    raw = Raw(nat, TCP)
    other = nat.ipvs.service(nat.raw_vip(4), 9, add=False)
    before = raw.dest(1)
    assert "there is no such service" in is_refused(
        lambda: l4lb.drain(other, raw.address(1), 80), 3)
    assert "no such real server" in is_refused(lambda: order(raw, l4lb, 2), 2)
    assert "31 days" in is_refused(lambda: order(raw, l4lb, seconds=2678401), 22)
    assert "weight 0 can have" in is_refused(lambda: order(raw, l4lb, last_weight=3), 22)
    is_refused(lambda: order(raw, l4lb, seconds=1, last_weight=3), 22)
    is_refused(lambda: order(raw, l4lb, seconds=0), 34)
    is_refused(lambda: l4lb.request(genl.SET_DRAIN, genl.attr(genl.L_SERVICE, raw.service.ident)),
               22)
    assert raw.dest(1) == before
    assert l4lb.drains() == []
    order(raw, l4lb, seconds=2678400)
    assert l4lb.drains()[0]["left"] > 2678300 * 1000


@pytest.mark.waits
def test_many_deadlines(nat, l4lb):
    """Each server has its own, in whatever order they were set."""
    raw = Raw(nat, UDP, numbers=(1, 2, 3))
    for _ in range(3):
        raw.client().open()
    start = time.monotonic()
    for number, seconds in ((3, 9), (1, 3), (2, 6)):
        order(raw, l4lb, number, seconds=seconds, then="delete")
    for number, seconds in ((1, 3), (2, 6), (3, 9)):
        wait_gone(raw, 10, number)
        assert seconds - 0.1 <= time.monotonic() - start < seconds + 2
