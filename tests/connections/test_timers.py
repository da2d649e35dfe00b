# SPDX-License-Identifier: GPL-2.0
"""The default timeouts of everything that expires, to a fraction of a second.

They take hours, so only in virtual time, where waiting costs nothing. In-tree
ip_vs has the same timeouts, unless a test says otherwise.
"""


import os
import time

import pytest
from lab import fast, genl, sctp, tcp, walk
from lab.ctl import IPVSCTL
from lab.flows import RESET, TERM, admitted, ready, reply_is, request_is, set_policy
from lab.netns import Namespace
from lab.oracle import Addresses
from lab.packet import ACK, DATA, RST, SCTP, SYN, TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.tcp import SECURE

pytestmark = [pytest.mark.timer, pytest.mark.skipif(
    os.environ.get("L4LB_VEHICLE") != "virtual-time",
    reason="waits for hours; runs in virtual time (suite stage virtual-time)")]

# Seconds: so long before its end something must exist, and so long after it be gone.
NEAR = 0.3
# Seconds by which a server's counts may lag behind the end of its connections.
COUNTED = 1.0
DAY = 86400


def sleep_until(when):
    time.sleep(max(0, when - time.monotonic()))


def ends_when_due(flows):
    """FLOWS: [(client, time when it expires, name)]. Each exists until then; after that it is
    neither listed nor counted for its server."""
    looks = sorted((due + after, name, after, client) for client, due, name in flows
                   for after in (-NEAR, NEAR, COUNTED))
    for when, name, after, client in looks:
        sleep_until(when)
        if after < COUNTED:
            assert bool(client.rows()) == (after < 0), (name, after, client.rows())
        else:
            dest = client.raw.dest(1)
            assert (dest["active"], dest["inactive"]) == (0, 0), (name, dest)


def in_every_state(walker):
    """[(client, due, state)]: a flow in each state that can be reached, made by WALKER()."""
    flows = []
    for state in walker().TIMEOUT:
        one = walker()
        steps = walk.way(one.tables, one.want, lambda here, wanted=state: here == wanted)
        if steps is None:
            continue
        began = time.monotonic()
        for direction, event in steps:
            one.step(direction, event)
            began = time.monotonic()
        flows.append((one.client, began + one.TIMEOUT[state], state))
    return flows


def test_a_new_namespace(backend):
    """A new namespace has the defaults, whatever another one has."""
    ns = Namespace("fresh")
    try:
        with genl.Ipvs(ns) as ipvs:
            assert ipvs.timeouts() == (900, 120, 300)
    finally:
        ns.destroy()


@pytest.mark.parametrize("shape", ("nat", "dr"))
def test_each_state_of_tcp(shape, family, request):
    lab = request.getfixturevalue(shape)
    flows = in_every_state(lambda: tcp.Walker(lab, family))
    assert len(flows) == {"nat": 7, "dr": 5}[shape]
    ends_when_due(flows)


@pytest.mark.parametrize("shape", SECURE)
def test_each_state_with_secure_tcp(shape, request):
    lab = request.getfixturevalue(shape)
    first = {"nat": tcp.SR, "dr": tcp.SA}[shape]
    with setting(lab, "secure_tcp", 3):
        flows = in_every_state(
            lambda: tcp.Walker(lab, 4, SECURE[shape], first))
        assert tcp.SA in [state for _, _, state in flows]
        ends_when_due(flows)


@pytest.mark.parametrize("shape", sctp.TABLES)
def test_each_state_of_sctp(shape, request):
    lab = request.getfixturevalue(shape)
    flows = in_every_state(lambda: sctp.Walker(lab, 4))
    assert len(flows) == {"nat": 13, "dr": 6}[shape]
    ends_when_due(flows)


@pytest.mark.parametrize("proto, seconds", ((TCP, 900), (UDP, 300), (SCTP, 900)),
                         ids=("tcp", "udp", "sctp"))
def test_every_packet_begins_it_anew(lab, family, proto, seconds):
    """Every packet renews the timeout, even a moment before the end; a moment after it, the
    packet opens a new flow, with another server."""
    raw = Raw(lab, proto, family, (1,))
    late, quick = raw.client(), raw.client()
    for client in (late, quick):
        client.establish() if proto != UDP else client.open()
    due = time.monotonic() + seconds
    raw.add(2)
    raw.edit(1, weight=0)
    sleep_until(due - NEAR)
    assert quick.send(DATA if proto == SCTP else ACK).arrive()[0] == 1
    again = time.monotonic() + seconds
    sleep_until(due + NEAR)
    assert late.send(SYN if proto == TCP else None).arrive()[0] == 2
    late.raw.service.delete()
    late.raw.service.add()
    raw.add(1)
    ends_when_due([(quick, again, "renewed")])


def test_on_the_fast_path(nat, family, only_l4lb):
    """Fast packets of either direction keep a flow alive; each renews the timeout, not only
    the one per term that goes through the stack."""
    raw = ready(nat, UDP, family)
    asked, told = admitted(raw), admitted(raw)
    last = 0
    for minute in range(5):
        time.sleep(240 - TERM / 2)      # longer than a term: through the stack
        request_is(asked, slow_admit=1)
        reply_is(told, slow_admit=1)
        time.sleep(TERM / 2)            # shorter: fast
        request_is(asked, fast=1)
        reply_is(told, fast=1)
        last = time.monotonic()
        assert minute or asked.row()["expires"] >= 299
    ends_when_due([(asked, last + 300, "requests")])
    assert told.row() is None


def test_a_busy_flow_stays_fast(nat, family, only_l4lb):
    """A packet per second for an hour: every eight seconds one goes through the stack."""
    raw = ready(nat, UDP, family)
    client = admitted(raw)
    before = fast.read(nat.director.ns)
    for _ in range(3600):
        time.sleep(1)
        client.send(ACK, b"on").arrive()
    grown = fast.grown(nat.director.ns, before)
    assert grown["fast"] + grown["slow_admit"] == 3600
    assert grown["slow_admit"] == 3600 // TERM, grown


# -- persistence

def templates(client):
    return client.raw.lab.conns(client=client.address, cport=0)


@pytest.mark.parametrize("seconds", (300, 360, 10800))
def test_a_client_is_remembered(nat, family, seconds):
    """For SECONDS after its last connection began, if that is closed meanwhile: the defaults
    of ipvsctl and ipvsadm, and Kubernetes' three hours."""
    raw = Raw(nat, TCP, family, (1, 2), flags=genl.PERSISTENT, timeout=seconds)
    client = raw.client()
    first = client.establish()
    client.send(RST)
    client.arrive()
    due = time.monotonic() + seconds
    sleep_until(due - NEAR)
    assert templates(client)
    assert raw.dest(first)["persistent"] == 1
    sleep_until(due + NEAR)
    assert not templates(client)
    sleep_until(due + COUNTED)
    assert raw.dest(first)["persistent"] == 0
    assert raw.client(client.address).open() == 3 - first


@pytest.mark.parametrize("tool, seconds", (("ipvsadm", 360), ("ipvsctl", 300)))
def test_the_defaults_of_the_tools(nat, tool, seconds):
    """The default timeouts of -p and "persistent", also when renewed just before the end."""
    raw = Raw(nat, TCP, 4, ())
    raw.service.delete()
    ns, name = nat.director.ns, f"{raw.vip}:{raw.port}"
    ns.run({"ipvsadm": f"ipvsadm -A -t {name} -s rr -p",
            "ipvsctl": f"{IPVSCTL} service add tcp {name} scheduler rr persistent"}[tool])
    for n in (1, 2):
        raw.add(n)
    client = raw.client()
    first = client.establish()
    client.send(RST)
    client.arrive()
    sleep_until(time.monotonic() + seconds - NEAR)
    again = raw.client(client.address)
    assert again.establish() == first
    due = time.monotonic() + seconds
    again.send(RST)
    again.arrive()
    sleep_until(due - NEAR)
    assert templates(client)
    sleep_until(due + NEAR)
    assert not templates(client)
    # New clients get both servers in turn.
    assert {raw.client(raw.lab.client_address()).open() for _ in range(2)} == {1, 2}


def test_a_template_as_long_as_its_connections(nat, family, backend):
    """A connection with a packet every ten minutes keeps its template for hours; both expire
    together. ip_vs checks only once a minute whether the connection is gone."""
    raw = Raw(nat, TCP, family, (1, 2), flags=genl.PERSISTENT, timeout=300)
    client = raw.client()
    first = client.establish()
    for _ in range(12):
        time.sleep(600)
        client.send(ACK)
        client.arrive()
    due = time.monotonic() + 900
    assert raw.client(client.address).open() == first       # renews the template for 300 s only
    sleep_until(due - NEAR)
    assert len(templates(client)) == 1
    sleep_until(due + (COUNTED if backend.is_l4lb else 61))
    assert templates(client) == []
    sleep_until(due + (2 * COUNTED if backend.is_l4lb else 61))    # the count lags
    assert raw.dest(first)["persistent"] == 0


# -- other timeouts

def test_both_ends_hear_of_it(lab, family, only_l4lb):
    """A service with on-idle reset: after 900 seconds, not before."""
    raw = Raw(lab, TCP, family)
    set_policy(raw, on_idle=RESET)
    client = raw.client()
    client.establish()
    client.send(ACK, b"hello", seq=5_000, ack=7_000)
    client.arrive()
    due = time.monotonic() + 900
    sleep_until(due - NEAR)
    client.nothing_arrives()
    assert not raw.client_tap.take(lambda p: p.dst == client.address)
    sleep_until(due + COUNTED)
    p = raw.client_tap.take(lambda p: p.dst == client.address)
    assert [(q.flags, q.seq, q.ack) for q in p] == [(RST | ACK, 7_000, 5_005)]
    assert len(client.arrivals()) == 1


@pytest.mark.parametrize("sched", ("lblc", "lblcr"))
def test_an_address_is_forgotten(oracle, sched, only_l4lb):  # noqa: F811
    """An address is forgotten after a day without a flow; until then it keeps its server,
    although the other one has less load."""
    a = Addresses(oracle, sched)
    assert a.ask(1, 1) == [2, 2]
    time.sleep(DAY - 2)
    a.ask(9)                    # the connections of the day before have expired
    assert a.ask(1) == [2]
    time.sleep(DAY + 62)
    busy = a.ask(7)
    assert a.ask(1) != busy


def test_drain_gives_up_after_a_minute(nat, only_l4lb):
    raw = Raw(nat, UDP)
    raw.client().open()
    began = time.monotonic()
    said = nat.director.ns.run([IPVSCTL, "rs", "drain", f"udp:{raw.vip}:{raw.port}",
                                f"{raw.address(1)}:{raw.dport}", "--wait"],
                               check=False, timeout=400)
    assert said.returncode == 9, said
    assert "after 60 s still 0 active, 1 inactive" in said.stderr
    assert 60 <= time.monotonic() - began < 62
