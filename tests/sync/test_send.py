# SPDX-License-Identifier: GPL-2.0
"""When a director announces a connection, and what it says."""

import contextlib
import time

import pytest
from lab import counters, fast, fwmark, packet, sync_wire
from lab.flows import set_policy
from lab.genl import PERSISTENT
from lab.netns import wait_until
from lab.packet import ACK, FIN, RST, SCTP, TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.sync_group import GROUP, stuck
from lab.sync_wire import DIRECT, INACTIVE, NAT, NO_OUTPUT, SYNCED, TEMPLATE, TUNNEL, Record

pytestmark = pytest.mark.usefixtures("only_l4lb")

METHOD = {"nat": NAT, "dr": DIRECT | NO_OUTPUT, "tun": TUNNEL | NO_OUTPUT}
ESTABLISHED = {TCP: 1, UDP: 0, SCTP: 8}
FIN_WAIT, TIME_WAIT, CLOSE, CLOSE_WAIT = 4, 5, 6, 7
TIMEOUT = {TCP: 900, UDP: 300, SCTP: 900}
ONE_PACKET = 4          # flag of a service

AT_ONCE = 0.3           # seconds until a packet's record has arrived
SWEPT = 1.6             # the same, if the sweep finds it


class Heard:
    """What a receiver hears of connections."""

    def __init__(self, receiver):
        self.receiver, self.got = receiver, []

    def listen(self):
        now = time.monotonic()
        for data in self.receiver.drain():
            self.got += [(now, record) for record in sync_wire.strict(data)]

    def of(self, client, template=False):
        """[(when, record)] of CLIENT's connection or template."""
        self.listen()
        return [(when, r) for when, r in self.got
                if r.client == client.address and r.is_template == template
                and (template or r.cport == client.sport)]

    def wait(self, client, count=1, deadline=AT_ONCE, *, template=False):
        """The COUNT-th record of CLIENT, which comes within DEADLINE; it is the last."""
        records = wait_until(lambda: self.of(client, template)[count - 1:], deadline,
                             what=f"record {count} of {client.address}:{client.sport}",
                             step=0.01)
        assert len(records) == 1, records
        return records[0][1]

    def silent(self, client, count=0, seconds=SWEPT, *, template=False):
        """CLIENT has had COUNT records, and there is none for SECONDS."""
        time.sleep(seconds)
        assert len(self.of(client, template)) == count, self.of(client, template)


@contextlib.contextmanager
def heard(lab, side_of, group=GROUP[4], **options):
    side = side_of(lab)
    with side.receiver(group) as receiver, side.master(group=group, **options):
        yield Heard(receiver)


@pytest.fixture
def wire(side):
    with side.receiver() as receiver, side.master():
        yield Heard(receiver)


def record_of(client, number=1, **more):
    raw = client.raw
    active = raw.proto != UDP
    given = {"proto": raw.proto, "state": ESTABLISHED[raw.proto], "timeout": TIMEOUT[raw.proto],
             "flags": METHOD[raw.lab.shape] | (0 if active else INACTIVE)}
    return Record(client.address, client.sport, raw.vip, raw.port, raw.address(number),
                  raw.dport or raw.port, **{**given, **more})


def service(lab, path, *what):
    """A service whose packets take the fast path, if PATH says so."""
    raw = Raw(lab, *what)
    return fast.ready(raw) if path else raw


def go_on(client, count=1):
    """COUNT more packets of an open connection, one after the other."""
    for _ in range(count):
        client.send(ACK, b"more")
        client.arrive()


def thrice(client):
    """A connection with three packets of its client: the third is the threshold's."""
    if client.raw.proto == UDP:
        client.open()
        go_on(client, 2)
    else:
        client.establish()
        go_on(client)
    return client


# ---- by packets

@pytest.mark.smoke
def test_record(lab, side_of, family, proto):
    """The third packet announces it: everything about it, in both families of the group."""
    raw = Raw(lab, proto, family, (1, 2))
    with heard(lab, side_of, GROUP[family], sync_id=3) as wire:
        for number in (1, 2):
            client = thrice(raw.client())
            assert wire.wait(client) == record_of(client, client.number)
            assert client.number == number


def test_version_0(nat, side_of):
    """It has no IPv6, no timeout, no mark."""
    with setting(nat, "sync_version", 0), heard(nat, side_of) as wire:
        left_out, client = (thrice(Raw(nat, TCP, family).client()) for family in (6, 4))
        assert wire.wait(client) == record_of(client, timeout=0)
        assert wire.of(left_out) == []


FEW = {"3 50": [3], "1 50": [1], "1 2": [1, 3, 5, 7], "0 2": [2, 4, 6, 8], "2 8": [2],
       "0 1": [1, 2, 3, 4, 5, 6, 7, 8], "20 50": [8], "8 0": [8]}


@pytest.mark.waits
@pytest.mark.parametrize("path", (0, 1, 2))
@pytest.mark.parametrize("threshold", FEW)
def test_thresholds(nat, side, family, threshold, path):
    """Which of the first packets announce it, by either path."""
    with setting(nat, "sync_threshold", threshold), setting(nat, "fast_path", path):
        raw = service(nat, path, UDP, family)
        client, at = raw.client(), []
        with side.receiver() as receiver, side.master():
            wire = Heard(receiver)
            for number in range(1, 13):
                client.send()
                client.arrive()
                time.sleep(0.05)
                at += [number] * (len(wire.of(client)) - len(at))
    # With threshold 0 the sweep may announce it behind its first packet.
    if threshold == "0 2" and len(at) > len(FEW[threshold]):
        assert at.pop(0) in (1, 2)
    assert at == FEW[threshold]


@pytest.mark.smoke
@pytest.mark.waits
@pytest.mark.parametrize("path", (0, 1, 2))
def test_either_path(lab, side_of, path):
    """Handshake, data and FIN are announced the same by the slow and the fast path."""
    with setting(lab, "fast_path", path), heard(lab, side_of) as wire:
        client = thrice(service(lab, path).client())
        wire.wait(client)
        client.send(FIN | ACK)
        client.arrive()
        state = CLOSE_WAIT if lab.shape == "nat" else FIN_WAIT
        assert wire.wait(client, 2) == record_of(
            client, state=state, flags=METHOD[lab.shape] | INACTIVE,
            timeout=60 if state == CLOSE_WAIT else 120)
        wire.silent(client, 2)


@pytest.mark.waits
def test_lone_record_is_quick(nat, side, wire):
    """A message leaves after 20 ms, however few records it has."""
    raw = Raw(nat, UDP)
    for _ in range(5):
        client = thrice(raw.client())
        wire.wait(client, deadline=0.1)
        time.sleep(1)


# ---- by the state

@pytest.mark.smoke
@pytest.mark.waits
def test_states(nat, side, wire, family):
    """Each change to a state of the end is announced at once, also by a reply."""
    raw = Raw(nat, TCP, family)
    client = thrice(raw.client())
    wire.wait(client)
    client.reply(FIN | ACK).answered()
    assert wire.wait(client, 2) == record_of(client, state=FIN_WAIT, timeout=120,
                                             flags=NAT | INACTIVE)
    client.send(FIN | ACK)
    client.arrive()
    assert wire.wait(client, 3) == record_of(client, state=TIME_WAIT, timeout=120,
                                             flags=NAT | INACTIVE)
    other = thrice(raw.client())
    wire.wait(other)
    other.reply(RST).answered()
    assert wire.wait(other, 2) == record_of(other, state=CLOSE, timeout=10, flags=NAT | INACTIVE)
    wire.silent(client, 3)
    wire.silent(other, 2)


@pytest.mark.waits
def test_sctp_states(nat, side, wire):
    raw = Raw(nat, SCTP)
    client = thrice(raw.client())
    wire.wait(client)
    client.send((packet.SHUTDOWN,))
    client.arrive()
    assert wire.wait(client, 2) == record_of(client, state=10, timeout=61, flags=NAT | INACTIVE)


@pytest.mark.waits
def test_closed_early(nat, side, wire):
    """A connection that ends with its third packet is announced once, as it is then."""
    client = Raw(nat).client()
    client.establish()
    client.send(FIN | ACK)
    client.arrive()
    assert wire.wait(client).state == CLOSE_WAIT
    wire.silent(client, 1)


@pytest.mark.waits
def test_never(nat, side, wire):
    """Not half-open ones, however many packets; nor those refused; nor single datagrams."""
    raw = Raw(nat)
    half_open, refused = raw.client(), raw.client()
    for _ in range(5):
        half_open.send()
        half_open.arrive()
    refused.open()
    refused.reply(RST | ACK).answered()
    once = Raw(nat, UDP, flags=ONE_PACKET).client()
    two = Raw(nat, UDP).client()
    for client in (once, once, once, once, two, two):
        client.send()
        client.arrive()
    wire.silent(two, seconds=2.5)
    assert wire.got == []


# ---- by the sweep

@pytest.mark.smoke
@pytest.mark.waits
def test_idle_from_the_start(nat, side, wire, family):
    """Established with two packets, and silent since: announced all the same."""
    client = Raw(nat, TCP, family).client()
    client.establish()
    assert wire.wait(client, deadline=SWEPT) == record_of(client)
    wire.silent(client, 1, 5)


@pytest.mark.waits
def test_port_used_again(nat, side, wire):
    """A new connection from the same port is announced anew."""
    raw = Raw(nat)
    client = thrice(raw.client())
    wire.wait(client)
    client.send(RST)
    client.arrive()
    wire.wait(client, 2)
    client.establish()
    assert wire.wait(client, 3, SWEPT).state == ESTABLISHED[TCP]


def times(wire, client):
    return [when for when, _ in wire.of(client)]


def talk(wire, client, seconds, every):
    """A packet EVERY so many seconds; the times between its records."""
    for _ in range(int(seconds / every)):
        time.sleep(every)
        go_on(client)
        wire.listen()
    at = times(wire, client)
    return [later - sooner for sooner, later in zip(at, at[1:])]


@pytest.mark.timer
@pytest.mark.parametrize(("refresh", "least", "most"), [(0, 60, 82), (20, 20, 52),
                                                        (1000, 150, 172)])
def test_renewed(nat, side, wire, refresh, least, most):
    """At most once in the refresh period, or 60 s, and not much later: times have units of
    15 s, and the packet after that comes within 5 s."""
    with setting(nat, "sync_refresh_period", refresh):
        client = thrice(Raw(nat).client())
        wire.wait(client)
        between = talk(wire, client, 500, 5)
    assert between and all(least <= t <= most for t in between), between


@pytest.mark.timer
@pytest.mark.parametrize("seconds", (12, 40, 100))
def test_short_timeouts(nat, side, wire, seconds):
    """Nothing that is alive expires on a backup: a renewal comes in time."""
    nat.ipvs.timeouts(udp=seconds)
    client = thrice(Raw(nat, UDP).client())
    assert wire.wait(client).timeout == seconds
    between = talk(wire, client, 3 * seconds + 60, 4)
    assert between and max(between) < seconds, between


@pytest.mark.timer
def test_idle_is_not_renewed(nat, side, wire):
    """But the first packet after a long time announces it, whenever that comes."""
    raw = Raw(nat)
    clients = [thrice(raw.client()) for _ in range(3)]
    for client in clients:
        wire.wait(client)
    time.sleep(200)
    known = {client: len(wire.of(client)) for client in clients}
    assert set(known.values()) <= {1, 2}
    for client, pause in zip(clients, (225, 100, 260)):
        wire.silent(client, known[client], pause)
        go_on(client)
        wire.wait(client, known[client] + 1, SWEPT)


@pytest.mark.timer
def test_half_closed_is_renewed(nat, side, wire):
    """A download whose client has closed its end."""
    client = thrice(Raw(nat).client())
    wire.wait(client)
    client.reply(FIN | ACK).answered()
    wire.wait(client, 2)
    between = talk(wire, client, 300, 5)
    assert len(between) > 3 and max(between) < 60, between


@pytest.mark.waits
def test_started_later(nat, side):
    """A daemon announces the connections that exist, and so does the next one."""
    raw = Raw(nat)
    clients = [thrice(raw.client()) for _ in range(20)]
    for _ in range(2):
        with side.receiver() as receiver, side.master():
            wire = Heard(receiver)
            for client in clients:
                wire.wait(client, deadline=SWEPT)


# ---- templates

def persistent(lab, proto=TCP, family=4, **options):
    return Raw(lab, proto, family, (1, 2), flags=PERSISTENT, timeout=360, **options)


def template_of(client, assured, **more):
    raw = client.raw
    given = {"state": int(assured), "timeout": 360,
             "flags": METHOD[raw.lab.shape] | TEMPLATE | INACTIVE}
    return record_of(client, client.number, **{**given, **more}).but(cport=0)


@pytest.mark.waits
def test_template(lab, side_of, family):
    """With its first connection, when it is assured, and when its last one has ended."""
    raw = persistent(lab, TCP, family)
    with heard(lab, side_of) as wire:
        client = raw.client()
        client.open()
        assert wire.wait(client, template=True) == template_of(client, False)
        wire.silent(client, 1, template=True)
        if lab.shape == "nat":
            client.reply().answered()
        go_on(client)
        assert wire.wait(client, 2, SWEPT, template=True) == template_of(client, True)
        go_on(client, 20)
        wire.silent(client, 2, 5, template=True)
        client.send(RST)
        client.arrive()
        wire.wait(client, 3, SWEPT, template=True)
        again = raw.client(client.address)
        assert again.open() == client.number
        wire.wait(client, 4, template=True)
        wire.silent(client, 4, template=True)


@pytest.mark.smoke
@pytest.mark.waits
def test_template_of_a_mark(nat, side, wire, family):
    """Protocol 0, and the mark in place of the VIP."""
    mark = fwmark.fresh_mark()
    raw = fwmark.Marked(nat, mark, family, flags=PERSISTENT, timeout=360)
    kind = "ip" if family == 4 else "ip6"
    with fwmark.marking(nat, mark, f"{kind} daddr {raw.vip} tcp dport {raw.port}"):
        client = raw.client()
        client.establish()
        got = wire.wait(client, template=True, deadline=SWEPT)
    assert (got.proto, got.vip, got.vport, got.mark, got.dport, got.server) == (
        0, sync_wire.mark_address(mark, family), 0, mark, 0, raw.address(client.number))
    go_on(client)
    # The third packet announces it; in a slow guest the sweep has done so before.
    records = wait_until(lambda: wire.of(client), SWEPT)
    assert {(record.mark, record.vip) for _, record in records} == {(mark, raw.vip)}


@pytest.mark.waits
def test_template_gets_another_server(nat, side, wire):
    raw = persistent(nat)
    client = raw.client()
    first = client.open()
    wire.wait(client, template=True)
    with setting(nat, "expire_quiescent_template", 1):
        raw.edit(first, weight=0)
        other = raw.client(client.address)
        assert other.open() == 3 - first
    records = wait_until(lambda: [r for _, r in wire.of(client, template=True)
                                  if r.server == raw.address(3 - first)], AT_ONCE)
    assert len(records) == 1


@pytest.mark.timer
def test_template_is_renewed(nat, side, wire):
    """While a connection holds it, though that is silent."""
    client = persistent(nat).client()
    client.establish()
    for _ in range(1000):
        time.sleep(1)
        wire.listen()
    at = [when for when, _ in wire.of(client, template=True)]
    between = [later - sooner for sooner, later in zip(at, at[1:])][2:]
    assert len(between) > 8 and all(60 <= t <= 77 for t in between), between


@pytest.mark.waits
def test_persist_mode(nat, side, wire):
    """Templates only; connections of other services as ever."""
    with setting(nat, "sync_persist_mode", 1):
        client, free = thrice(persistent(nat).client()), thrice(Raw(nat).client())
        wire.wait(free)
        client.send(FIN | ACK)
        client.arrive()
        wire.silent(client)
        assert wire.of(client, template=True)


# ---- when a message cannot leave

@pytest.mark.smoke
@pytest.mark.waits
def test_overflow(nat, side):
    """The queue is full: nothing is lost for good, and no packet waits."""
    raw = Raw(nat, UDP)
    with setting(nat, "sync_qlen_max", 1), setting(nat, "sync_sock_size", 1), \
            side.receiver() as receiver, side.master(maxlen=100):
        wire = Heard(receiver)
        with stuck(nat.director.ns) as let_go:
            clients = [thrice(raw.client()) for _ in range(100)]
            assert not all(wire.of(c) for c in clients)
            assert counters.counts(nat)["sync_overflow"]
            let_go()
            # A visit of the sweep fills two messages of two records; renewals come later.
            wait_until(lambda: all(wire.of(c) for c in clients), 40)


# ---- whose it is

@pytest.mark.smoke
@pytest.mark.waits
def test_copies_are_not_sent_back(nat, side):
    """Of two directors that do both, each announces what it serves: after a takeover the
    first packet makes a connection its own."""
    raw = Raw(nat)
    client = raw.client()
    record = record_of(client)
    with side.backup(), side.receiver() as receiver, side.master(), side.sender() as sender:
        wire = Heard(receiver)
        sender.records(record)
        wait_until(lambda: client.row(), 5)
        wire.silent(client, 0, 5)
        go_on(client)
        got = wire.wait(client, deadline=SWEPT)
        assert got == record.but(flags=record.flags | SYNCED)


@pytest.mark.waits
def test_removed_server(nat, side, wire):
    """Its connections get no packets, and no records."""
    raw = Raw(nat)
    client = raw.client()
    client.establish()
    raw.remove(1)
    wire.silent(client)


@pytest.mark.waits
def test_policy_timeouts(nat, side, wire):
    """The record has the timeout of its service."""
    raw = Raw(nat)
    set_policy(raw, tcp=1234)
    client = thrice(raw.client())
    assert wire.wait(client).timeout == 1234


@pytest.mark.waits
def test_without_a_daemon(nat, side):
    """Nothing is sent, nothing is marked; and nothing after it has stopped."""
    raw = Raw(nat)
    with side.receiver() as receiver:
        wire = Heard(receiver)
        first = thrice(raw.client())
        wire.silent(first)
        with side.master():
            wire.wait(first, deadline=SWEPT)
        second = thrice(raw.client())
        second.send(FIN | ACK)
        second.arrive()
        wire.silent(second)


