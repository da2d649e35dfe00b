# SPDX-License-Identifier: GPL-2.0
"""Latency of real servers: what is a sample, what is a failure, and what is neither."""

import contextlib
import errno
import socket
import time

import pytest
from lab import genl, latencies
from lab.farm import http_get
from lab.flows import NEW, counted, set_policy
from lab.latencies import bucket
from lab.packet import ACK, COOKIE_ACK, COOKIE_ECHO, DATA, FIN, INIT_ACK, RST, SCTP, SYN, TCP, UDP, icmp_error
from lab.raw import Raw
from lab.settings import setting

pytestmark = pytest.mark.usefixtures("only_l4lb")
STREAMS = pytest.mark.parametrize("proto", (TCP, SCTP), ids=("tcp", "sctp"))
FAMILIES = pytest.mark.parametrize("family", (4, 6), ids=("v4", "v6"))
TWO = (1, 2)
NONE, ONE = (0, 0, 0), (1, 0, 0)


def measuring(lab, proto=TCP, family=4, numbers=(1,), **policy):
    raw = Raw(lab, proto, family, numbers)
    set_policy(raw, latency=1, **policy)
    return raw


def read(raw, number=1):
    """(handshakes, answers) of a real server; None: it was not measured."""
    with genl.L4lb(raw.lab.director.ns) as l4lb:
        return latencies.read(l4lb, raw.service).get(raw.address(number))


def both(raw, number=1):
    """[(answers, refused, unanswered)] of handshakes and of requests."""
    got = read(raw, number)
    return got and [kind.all for kind in got]


def say(client, payload=b"x", flags=ACK):
    """The client's packet arrives."""
    client.send(flags, payload)
    client.arrive()


def answer(client, payload=b"y", flags=ACK):
    client.reply(flags, payload).answered()


def served(raw):
    """The client of a flow of one datagram and its answer."""
    client = raw.client()
    client.open()
    answer(client)
    return client


def shake(client, pause=0.0):
    """The handshake; the real server takes PAUSE seconds."""
    client.open()
    time.sleep(pause)
    if client.raw.proto == SCTP:
        answer(client, b"", (INIT_ACK,))
        client.send((COOKIE_ECHO,), b"cookie")
        client.arrive()
        answer(client, b"", (COOKIE_ACK,))
    else:
        answer(client, b"", SYN | ACK)
        say(client, b"")


def is_about(kind, seconds):
    """KIND has one answer, which has taken SECONDS, or a little longer."""
    return kind.count == kind.buckets[bucket(kind.sum / 1e6)] == 1 and seconds <= kind.sum / 1e6 < 2 * seconds


@pytest.mark.smoke
@pytest.mark.waits
@STREAMS
@FAMILIES
def test_samples(nat, proto, family):
    """A handshake of 20 ms, an answer after 80 ms; the pause between them is nobody's. The next
    request of the connection is not measured. The control: a service that does not measure."""
    raw, control = measuring(nat, proto, family), Raw(nat, proto, family)
    for each in (raw, control):
        client = each.client()
        shake(client, 0.02)
        time.sleep(0.5)
        say(client)
        time.sleep(0.08)
        answer(client)
        say(client)
        time.sleep(0.3)
        answer(client)
    handshake, answered = read(raw)
    assert is_about(handshake, 0.02) and is_about(answered, 0.08), (handshake, answered)
    assert both(raw) == [ONE, ONE] and both(control) is None


def test_bundled_chunks(nat):
    """DATA behind a COOKIE ECHO is a request, DATA behind a COOKIE ACK an answer."""
    raw = measuring(nat, SCTP)
    client = raw.client()
    client.open()
    answer(client, b"", (INIT_ACK,))
    client.send((COOKIE_ECHO, DATA), b"cookie!!")
    client.arrive()
    answer(client, b"answer!!", (COOKIE_ACK, DATA))
    assert both(raw) == [ONE, ONE]


@pytest.mark.smoke
@pytest.mark.waits
@FAMILIES
def test_datagrams(nat, family):
    """From the first one to the first that comes back: others before that do not begin anew."""
    raw = measuring(nat, UDP, family)
    client = raw.client()
    client.open()
    time.sleep(0.05)
    say(client)
    time.sleep(0.05)
    answer(client)
    answer(client)
    assert both(raw) == [NONE, ONE] and is_about(read(raw)[1], 0.1)


@pytest.mark.waits
def test_what_is_sent_again_counts_from_the_first(nat):
    with setting(nat, "fast_path", 0):
        raw = measuring(nat)
        client = raw.client()
        client.open()
        time.sleep(0.3)
        say(client, b"", SYN)
        answer(client, b"", SYN | ACK)
        answer(client, b"", SYN | ACK)
        for _ in range(3):
            say(client)
            time.sleep(0.1)
        answer(client)
    assert both(raw) == [ONE, ONE]
    assert is_about(read(raw)[0], 0.3) and is_about(read(raw)[1], 0.3)


def test_greeting(nat):
    """What comes unasked is no answer; a real server that goes on talking is not waited for."""
    raw = measuring(nat)
    greeted, flooded = raw.client(), raw.client()
    for client, greetings in ((greeted, 7), (flooded, 8)):
        shake(client)
        for _ in range(greetings):
            answer(client)
            say(client, b"")
        say(client)
        answer(client)
    assert both(raw) == [(2, 0, 0), ONE]


def test_acknowledgements_are_no_answer(nat):
    raw = measuring(nat)
    client = raw.client()
    shake(client)
    say(client)
    answer(client, b"")
    assert both(raw) == [ONE, NONE]
    answer(client, b"bye", FIN | ACK)
    assert both(raw) == [ONE, ONE]


@STREAMS
def test_refused(nat, proto):
    """A reset is no quick answer. Between handshake and request it says nothing."""
    raw = measuring(nat, proto)
    raw.client().open()
    closed = raw.client()
    closed.open()
    answer(closed, b"", RST | ACK)
    assert both(raw) == [(0, 1, 0), NONE]
    crashed, idle = raw.client(), raw.client()
    shake(crashed)
    say(crashed)
    answer(crashed, b"", RST)
    shake(idle)
    answer(idle, b"", RST)
    assert both(raw) == [(2, 1, 0), (0, 1, 0)]
    assert read(raw)[1].sum == 0


ERRORS = {"port": {4: (3, 3), 6: (1, 4)}, "size": {4: (3, 4), 6: (2, 0)}}


@FAMILIES
@pytest.mark.parametrize("error", ERRORS)
def test_icmp_errors(nat, family, error):
    """No answer comes from a closed port; who wants smaller packets has not refused."""
    raw = measuring(nat, UDP, family)
    client = raw.client()
    client.send()
    _, p = client.arrive()
    raw.taps[1].send(icmp_error(raw.address(1), p.raw, ERRORS[error][family], 1300 * (error == "size")))
    client.icmp()
    assert both(raw) == [NONE, (0, 1, 0) if error == "port" else NONE]
    answer(client)
    assert both(raw)[1] == ((0, 1, 0) if error == "port" else ONE)


@pytest.mark.waits
def test_unanswered(nat):
    """What expires, or whose client tries again with the same port, has waited in vain; what
    is ended by an administrator has not."""
    raw = measuring(nat, UDP, udp=1)
    for _ in range(3):
        raw.client().open()
    time.sleep(4)
    assert both(raw) == [NONE, (0, 0, 3)]
    with genl.L4lb(nat.director.ns) as l4lb:
        raw.client().open()
        l4lb.kill()
    assert both(raw) == [NONE, (0, 0, 3)]


@pytest.mark.waits
@pytest.mark.timeout(120)
def test_a_handshake_in_vain(nat):
    """A SYN lives for a minute."""
    raw = measuring(nat)
    raw.client().open()
    answered = raw.client()
    shake(answered)
    time.sleep(66)
    assert both(raw) == [(1, 0, 1), NONE]


@pytest.mark.waits
def test_a_port_is_used_again(nat):
    raw = measuring(nat)
    client = raw.client()
    shake(client)
    say(client)
    say(client, b"", FIN | ACK)
    answer(client, b"", FIN | ACK)
    client.open()
    assert both(raw) == [ONE, (0, 0, 1)]
    answer(client, b"", SYN | ACK)
    assert both(raw) == [(2, 0, 0), (0, 0, 1)]


DELAYS = {1: 0.005, 2: 0.05}        # seconds


@pytest.fixture
def delayed(nat):
    """What the real servers send leaves so much later."""
    with contextlib.ExitStack() as stack:
        for number, seconds in DELAYS.items():
            ns = nat.servers[number - 1].ns
            device = ns.run(["ip", "-o", "route", "get", nat.cip(4)]).stdout.split(" dev ")[1].split()[0]
            ns.run(["tc", "qdisc", "add", "dev", device, "root", "netem", "delay", f"{seconds}s"])
            stack.callback(ns.run, ["tc", "qdisc", "del", "dev", device, "root"])
        yield nat


@pytest.mark.waits
@FAMILIES
def test_real_traffic(delayed, family):
    """Handshakes and answers of real servers that are 5 and 50 ms away."""
    port = delayed.http_port()
    service = delayed.ipvs.service(delayed.vip(family), port, sched="rr")
    for number in DELAYS:
        service.server(delayed.rip(number, family), port)
    with genl.L4lb(delayed.director.ns) as l4lb:
        for number in range(8):
            if number == 2:     # they know their neighbours
                l4lb.set_policy(service, latency=1)
            http_get(delayed.client, delayed.vip(family), port)
        found = latencies.read(l4lb, service)
    for number, seconds in DELAYS.items():
        for kind in found[delayed.rip(number, family)]:
            assert kind.all == (3, 0, 0) and seconds <= kind.sum / 3e6 < 1.5 * seconds, (number, kind)
            assert sum(kind.buckets[bucket(seconds):bucket(seconds) + 2]) == 3, (number, kind)


@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
@pytest.mark.parametrize("path", (1, 2), ids=("watched", "fast"))
def test_fast_path(nat, proto, path):
    """A connection takes it once it was measured, its client's packets once it has asked."""
    with setting(nat, "fast_path", path):
        raw = measuring(nat, proto, fast_path=NEW)
        client = raw.client()
        if proto == TCP:
            shake(client)
        with counted(raw, slow_unknown=proto == UDP, slow_admit=proto == TCP):
            say(client)
        with counted(raw, fast=1):
            say(client)
        with counted(raw, slow_admit=1):
            answer(client, b"" if proto == TCP else b"y")
        if proto == TCP:
            with counted(raw, slow_admit=1):
                answer(client)
        with counted(raw, fast=1):
            answer(client)
    assert both(raw)[1] == ONE


@pytest.mark.waits
def test_only_by_nat(lab):
    """A service whose replies pass elsewhere is refused, and nothing changes; of one with servers of both
    kinds those with NAT are measured."""
    raw = Raw(lab, UDP, numbers=TWO)
    set_policy(raw, udp=1)
    with genl.L4lb(lab.director.ns) as l4lb:
        if lab.shape != "nat":
            assert "replies of others do not pass here" in genl.is_refused(
                lambda: l4lb.set_policy(raw.service, latency=1, ramp=7), errno.EOPNOTSUPP)
            assert l4lb.policy(raw.service)["latency"] == l4lb.policy(raw.service)["ramp"] == 0
            # On a service without servers it is on, and stays so.
            for number in TWO:
                raw.remove(number)
            l4lb.set_policy(raw.service, latency=1)
            for number in TWO:
                raw.add(number)
        else:
            l4lb.set_policy(raw.service, latency=1)
            raw.edit(1, method=genl.ROUTE)
        l4lb.set_policy(raw.service, on_loss=1)
    for _ in range(4):
        raw.client().send()
    time.sleep(4)
    assert (both(raw, 1) or [NONE])[-1] == NONE
    assert both(raw, 2) == ([NONE, (0, 0, 2)] if lab.shape == "nat" else None)


def test_in_a_batch(nat):
    """SET_SERVICES in mode CHANGE refuses the same, but for what is on; other modes restore what was saved."""
    vip, on = nat.raw_vip(4), {"policy": {"latency": 1}}
    dr, by_nat = (genl.batch_server(nat.phantom(n, 4), method=m) for n, m in ((1, genl.ROUTE), (2, genl.MASQ)))
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_services([genl.batch_entry(vip, 81, [dr]), genl.batch_entry(vip, 82, [dr], **on)])
        genl.is_refused(lambda: l4lb.set_services([genl.batch_entry(vip, 81, [dr], **on)], genl.CHANGE),
                        errno.EOPNOTSUPP)
        l4lb.set_services([genl.batch_entry(vip, 82, [dr], **on)], genl.CHANGE)
        l4lb.set_services([genl.batch_entry(vip, 81, [by_nat], **on)], genl.CHANGE)


@pytest.mark.waits
def test_the_client_gives_up(nat):
    """A client's reset says nothing about its real server."""
    raw = measuring(nat)
    client = raw.client()
    shake(client)
    say(client)
    say(client, b"", RST)
    time.sleep(14)
    assert client.row() is None and both(raw) == [ONE, NONE]


def test_a_connection_in_an_entry_of_another(nat):
    """The request before is over; the answer to the next one is not measured from it."""
    with setting(nat, "conn_reuse_mode", 0):
        raw = measuring(nat)
        client = raw.client()
        shake(client)
        say(client)
        say(client, b"", SYN)
        answer(client, b"", SYN | ACK)
        say(client)
        answer(client)
    assert both(raw) == [ONE, (0, 0, 1)]


@pytest.mark.waits
@pytest.mark.timeout(150)
@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_what_no_client_began(nat, proto):
    """An ICMP error that is scheduled waits for nothing; nor does what another director began."""
    with setting(nat, "schedule_icmp", 1), genl.L4lb(nat.director.ns) as l4lb:
        raw = measuring(nat, proto, tcp=1, udp=1)
        client = raw.client()
        reply = client.reply_packet(ACK, b"y")
        about = reply[:12] + socket.inet_aton(raw.vip) + reply[16:]
        raw.client_tap.send(icmp_error(client.address, about, (3, 3)))
        raw.fence()
        told = raw.client()
        shake(told) if proto == TCP else told.open()
        messages = l4lb.export()
        l4lb.kill()
        l4lb.set_policy(raw.service, latency=0)
        l4lb.set_policy(raw.service, latency=1)
        raw.service.zero()
        for message in messages:
            l4lb.import_(message["message"])
        say(told)
        time.sleep(70 if proto == TCP else 4)
    assert both(raw) == [NONE, NONE]


@pytest.mark.parametrize("nodest", (0, 1))
def test_a_server_comes_back(nat, nodest):
    """Its counters go on, also when its connections were over and it is another object."""
    with setting(nat, "expire_nodest_conn", nodest):
        raw = measuring(nat, UDP)
        served(raw)
        raw.client().open()
        raw.remove(1)
        assert both(raw) is None
        raw.add(1)
        assert both(raw) == [NONE, ONE]
        served(raw)
        assert both(raw) == [NONE, (2, 0, 0)]


def test_life_of_the_counters(nat):
    """They begin anew with ZERO and with their service, and stay when it measures no more."""
    raw = measuring(nat, UDP, numbers=TWO)
    for _ in range(4):
        served(raw)
    assert both(raw, 1)[1] == both(raw, 2)[1] == (2, 0, 0)
    raw.service.zero()
    assert both(raw, 1) == both(raw, 2) == [NONE, NONE]
    client = served(raw)
    assert both(raw, client.number)[1] == ONE
    raw.service.delete()
    again = Raw(nat, UDP, numbers=TWO, port=raw.port)
    set_policy(again, latency=1)
    assert both(again, 1) == both(again, 2) == [NONE, NONE]
    served(again)
    raw = again
    set_policy(raw, latency=0)
    for _ in range(2):
        served(raw)
    assert sum(both(raw, n)[1][0] for n in TWO) == 1


def test_lists(nat):
    """Of one service, or of all; what is not there, or not understood, is refused."""
    first, second, third = (measuring(nat, UDP) for _ in range(3))
    for raw in (first, second):
        served(raw)
    with genl.L4lb(nat.director.ns) as l4lb:
        assert len(l4lb.dump(genl.GET_LATENCY)) == 3
        assert [len(latencies.read(l4lb, raw.service)) for raw in (first, second, third)] == [1, 1, 1]
        third.service.delete()
        said = genl.is_refused(lambda: latencies.read(l4lb, third.service), errno.ESRCH)
        assert not genl.SAYS_WHY or "no such service" in said
        genl.is_refused(lambda: l4lb.dump(genl.GET_LATENCY, genl.attr(genl.L_LATENCY, b"")), errno.EINVAL)
        genl.is_refused(lambda: l4lb.set_policy(first.service, latency=2), errno.ERANGE)


@pytest.mark.waits
def test_more_servers_than_a_message(nat):
    """Each is listed once, in several messages."""
    raw = measuring(nat, UDP, udp=1)
    others = [f"10.9.{n // 250}.{n % 250 + 1}" for n in range(300)]
    for address in others:
        raw.service.server(address, raw.dport)
    raw.send_all([raw.client().packet() for _ in range(301)])
    time.sleep(4)
    with genl.L4lb(nat.director.ns) as l4lb:
        found = latencies.read(l4lb, raw.service)
    assert set(found) == {raw.address(1), *others}
    assert {answers.all for _, answers in found.values()} == {(0, 0, 1)}
