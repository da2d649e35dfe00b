# SPDX-License-Identifier: GPL-2.0
"""Limits of a service: the rate of new connections, and how many there may be."""

import time

import pytest
from lab import genl
from lab.counters import counts
from lab.fast import ready
from lab.flows import NEW, set_policy
from lab.packet import ABORT, ACK, RST, SCTP, TCP, UDP
from lab.raw import Raw
from lab.settings import setting

pytestmark = pytest.mark.usefixtures("only_l4lb")
PROTOCOLS = pytest.mark.parametrize("proto", (TCP, UDP, SCTP), ids=("tcp", "udp", "sctp"))
FAMILIES = pytest.mark.parametrize("family", (4, 6), ids=("v4", "v6"))
RESET = 1
TAG = bytes(16)     # what an INIT has at least


def connections(raw):
    """In the table now, of all real servers of RAW."""
    return sum(raw.dest(n)[kind] for n in raw.numbers for kind in ("active", "inactive"))


def begun(raw):
    """Since the service was added."""
    return raw.service.stats["conns"]


def limited(raw):
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        return l4lb.limited(raw.service)


def count_again():
    """Connections that ended make room in the next jiffy, 10 ms at most."""
    time.sleep(0.05)


def offer(raw, count, **kwargs):
    """First packets of COUNT flows."""
    raw.send_all([raw.client(**kwargs).packet() for _ in range(count)])


@pytest.mark.smoke
@PROTOCOLS
@FAMILIES
def test_connections(lab, proto, family):
    """Never more than the limit, each refusal is counted, and a connection that ends makes
    room. The control has none of it."""
    raw, control = Raw(lab, proto, family, (1, 2)), Raw(lab, proto, family, (1, 2))
    set_policy(raw, limit_conns=5)
    before = counts(lab)["limit"]
    for each in (raw, control):
        offer(each, 20)
    assert (connections(raw), connections(control)) == (5, 20)
    assert limited(raw) == counts(lab)["limit"] - before == 15
    assert limited(control) is None
    raw.remove(2)       # with its connections, which another server's clients may replace
    count_again()
    offer(raw, 20)
    assert connections_at(raw, 1) == 5
    raw.service.zero()
    assert limited(raw) == 0


def connections_at(raw, number):
    return sum(raw.dest(number)[kind] for kind in ("active", "inactive"))


@pytest.mark.smoke
def test_a_connection_that_ends_makes_room(nat):
    raw = Raw(nat, UDP)
    set_policy(raw, limit_conns=3)
    clients = [raw.client() for _ in range(3)]
    for client in clients:
        client.open()
    raw.client().send().nothing_arrives()
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.kill(client=clients[0].address)
    count_again()
    raw.client().open()
    raw.client().send().nothing_arrives()
    # Those that are there go on.
    clients[1].send(payload=b"goes on")
    assert clients[1].arrive()[1].payload == b"goes on"


@pytest.mark.smoke
def test_a_limit_below_what_is_there(dr):
    """None is ended; the next one waits until there are fewer. Without the limit all may."""
    raw = Raw(dr, UDP)
    clients = [raw.client() for _ in range(10)]
    for client in clients:
        client.open()
    set_policy(raw, limit_conns=4)
    for client in clients:
        client.send()
        client.arrive()
    offer(raw, 5)
    assert connections(raw) == 10
    set_policy(raw, limit_conns=12)
    offer(raw, 5)
    assert connections(raw) == 12
    # What a higher limit had left is not used up.
    set_policy(raw, limit_conns=100)
    offer(raw, 1)
    set_policy(raw, limit_conns=14)
    offer(raw, 5)
    assert connections(raw) == 14
    set_policy(raw, limit_conns=0)
    offer(raw, 5)
    assert connections(raw) == 19


@pytest.mark.smoke
@PROTOCOLS
@FAMILIES
@pytest.mark.parametrize("way", ("rate", "conns"))
def test_reply(nat, proto, family, way):
    """The client of one too many hears nothing, or that it is refused."""
    raw = Raw(nat, proto, family)
    set_policy(raw, limit_conns=1, **({"limit_rate": 1} if way == "rate" else {}))
    raw.client().open()
    silent = raw.client().send()
    silent.nothing_arrives()
    assert raw.client_tap.take(lambda p: p.dst == silent.address) == []
    set_policy(raw, limit_reply=RESET)
    loud = raw.client().send(None, TAG if proto == SCTP else b"")
    if proto == UDP:
        error = loud.icmp()
        assert (error.type, error.code) == ((3, 3) if family == 4 else (1, 4))
        return
    answer = loud.answered()
    if proto == TCP:
        assert answer.flags & RST and answer.ack == 1001     # SYN with number 1000
    else:
        assert answer.chunks == [ABORT]
    assert connections(raw) == 1


@pytest.mark.timer
@pytest.mark.smoke
@pytest.mark.parametrize(("rate", "burst"), ((100, 1), (100, 10), (50, 0), (3, 2)))
def test_rate(dr, rate, burst):
    """A quiet service takes a burst at once, then the rate to a connection; the clock stands
    while packets are sent."""
    raw = Raw(dr, UDP)
    at_once = burst or rate // 10
    set_policy(raw, limit_rate=rate, limit_burst=burst)
    offer(raw, 200)
    assert begun(raw) == at_once
    time.sleep(at_once / rate + 1)
    offer(raw, 200)
    assert begun(raw) == 2 * at_once
    first = begun(raw)
    steps, pause = 300, 1 / (4 * rate)
    for _ in range(steps):
        time.sleep(pause)
        offer(raw, 2)
    assert begun(raw) - first == pytest.approx(steps * pause * rate, abs=1)
    set_policy(raw, limit_rate=0)
    now = begun(raw)
    offer(raw, 100)
    assert begun(raw) == now + 100


@pytest.mark.timer
def test_other_rates_begin_anew(dr):
    """What the old rate owed does not stop the new one, and what it allowed is not kept."""
    raw = Raw(dr, UDP)
    set_policy(raw, limit_rate=1, limit_burst=1000)
    offer(raw, 1000)
    for rate, burst in ((10, 5), (1000, 5), (2, 1), (10_000_000, 10_000_000)):
        set_policy(raw, limit_rate=rate, limit_burst=burst)
        now = begun(raw)
        offer(raw, 50)
        assert begun(raw) - now == min(burst, 50)


def test_refused_clients_leave_nothing(nat):
    """No template, no connection; one-packet services have only a rate."""
    raw = Raw(nat, UDP, flags=genl.PERSISTENT, timeout=60)
    set_policy(raw, limit_conns=2)
    offer(raw, 10)
    assert len(nat.conns(vip=raw.vip, vport=raw.port, cport=0)) == 2
    once = Raw(nat, UDP, flags=genl.ONEPACKET)
    set_policy(once, limit_conns=1)
    offer(once, 10)
    assert begun(once) == 10
    set_policy(once, limit_rate=1, limit_burst=3)
    now, begin = begun(once), time.monotonic()
    offer(once, 10)
    assert 3 <= begun(once) - now <= 4 + time.monotonic() - begin


@pytest.mark.parametrize("way", ("drain", "removal"))
def test_a_flow_that_moves_is_not_new(dr, way):
    """Datagrams whose server goes find another one, at the limit and without a token."""
    raw = Raw(dr, UDP, numbers=(1, 2), sched="wlc")
    set_policy(raw, limit_conns=20, on_drain=2, on_loss=2)
    clients = [raw.client() for _ in range(20)]
    for client in clients:
        client.open()
    set_policy(raw, limit_rate=1, limit_burst=1)
    raw.client().send().nothing_arrives()
    raw.edit(1, weight=0) if way == "drain" else raw.remove(1)
    for client in clients:
        client.send(payload=b"goes on")
        assert client.arrive()[1].payload == b"goes on"
        assert client.number == 2


@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_first_packets_at_ingress(lab, proto):
    raw = ready(Raw(lab, proto))
    set_policy(raw, fast_path=NEW, limit_conns=7)
    offer(raw, 50)
    assert connections(raw) == 7 and limited(raw) == 43


# -- floods

def half_open(raw, count):
    clients = [raw.client() for _ in range(count)]
    for client in clients:
        client.open()
    return clients


@pytest.mark.parametrize("limit", (200, 0), ids=("limit", "control"))
def test_a_flood_on_another_service(dr, limit):
    """Handshakes of one service survive 10,000 SYNs to another that would fill the table."""
    honest, flooded = Raw(dr, TCP), Raw(dr, TCP)
    set_policy(flooded, limit_conns=limit)
    with setting(dr, "conn_max", 2000):
        clients = half_open(honest, 30)
        offer(flooded, 10_000)
        left = sum(client.row() is not None for client in clients)
        assert left == 30 if limit else left < 10, left
        for client in clients if limit else ():
            client.send(ACK, b"GET")
            assert client.arrive()[1].payload == b"GET"


def seconds_of(raw, packets):
    begin = time.monotonic()
    raw.send_all(packets)
    return time.monotonic() - begin


def test_many_servers_are_seldom_counted(dr):
    """A flood on a full service with 8,000 real servers costs about what it costs with one:
    they are not counted for each packet."""
    one, many = Raw(dr, UDP), Raw(dr, UDP)
    with genl.L4lb(dr.director.ns) as l4lb:
        for first in range(0, 8000, 400):
            l4lb.set_services([genl.batch_entry(many.vip, many.port, proto=UDP, servers=[
                genl.batch_server(f"10.9.{n >> 8}.{n & 255}", many.dport, method=dr.method)
                for n in range(first, first + 400)])], genl.MERGE)
    packets = {}
    for raw in (one, many):
        set_policy(raw, limit_conns=1)
        offer(raw, 1)
        packets[raw] = [raw.client().packet() for _ in range(4000)]
    took = [[seconds_of(raw, packets[raw]) for raw in (one, many)] for _ in range(4)]
    assert min(m for _, m in took) < 2 * min(o for o, _ in took), took


def test_bad_values(nat):
    """One beyond each range is refused (test_policy.py); a burst alone has no effect."""
    raw = Raw(nat, UDP)
    set_policy(raw, limit_burst=1)
    offer(raw, 50)
    assert begun(raw) == 50 and limited(raw) is None
