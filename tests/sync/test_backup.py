# SPDX-License-Identifier: GPL-2.0
"""What a backup does with the records that it receives."""

import contextlib
import ipaddress
import time

import pytest
from lab import daemons, flows, fwmark, genl, sync_wire
from lab.genl import PERSISTENT
from lab.ingress import at_ingress
from lab.netns import wait_until
from lab.packet import ACK, FIN, SCTP, TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.sync_group import GROUP, Sender
from lab.sync_wire import (
    DIRECT,
    INACTIVE,
    NAT,
    NO_OUTPUT,
    STATES,
    TEMPLATE,
    TUNNEL,
    Record,
    mark_address,
    message,
)

METHOD = {"nat": NAT, "dr": DIRECT, "tun": TUNNEL}
ESTABLISHED = {TCP: 1, UDP: 0, SCTP: 8}
FIN_WAIT = 4
CLOSE = 6
# Default timeouts by state, in seconds; a record that names none gets these.
TIMEOUT = {TCP: (2, 900, 120, 60, 120, 120, 10, 60, 30, 120, 120), UDP: (300,)}
NAMES = {TCP: "TCP", UDP: "UDP", SCTP: "SCTP"}


def record_of(client, number=1, **more):
    """The record of CLIENT's connection with server NUMBER, as its director would send it."""
    raw = client.raw
    given = {"proto": raw.proto, "state": ESTABLISHED[raw.proto], "timeout": 500,
             "flags": METHOD[raw.lab.shape] | (0 if raw.lab.shape == "nat" else NO_OUTPUT)}
    return Record(client.address, client.sport, raw.vip, raw.port, raw.address(number),
                  raw.dport or raw.port, **{**given, **more})


@pytest.fixture
def fed(side):
    """A backup and a sender of messages to it."""
    with side.backup(), side.sender() as sender:
        yield sender


def counts(raw, number=1):
    dest = raw.dest(number)
    return dest["active"], dest["inactive"], dest["persistent"]


@contextlib.contextmanager
def backup(lab, side_of, group=GROUP[4], **options):
    """(side, sender), for tests of several shapes."""
    side = side_of(lab)
    with side.backup(group=group, **options), side.sender(group) as sender:
        yield side, sender


# ---- connections

@pytest.mark.smoke
@pytest.mark.stock
@pytest.mark.parametrize(("family", "version"), [(4, 0), (4, 1), (6, 1)],
                         ids=("v4-0", "v4-1", "v6-1"))      # version 0 has no IPv6
def test_connection(lab, side_of, family, proto, version):
    """It is there as if its packets had been seen, and a client's next packet finds it."""
    raw = Raw(lab, proto, family, (1, 2))
    client = raw.client()
    record = record_of(client, 2)
    with backup(lab, side_of) as (side, sender):
        sender.records(record, version=version)
        row = side.row(record)
        assert (row["proto"], row["server"], row["dport"], row["origin"], row["state"]) == (
            NAMES[proto], raw.address(2), raw.dport, "SYNC", record.state_name)
        if version == 1:
            assert 496 <= row["expires"] <= 500
        assert counts(raw, 2) == (1, 0, 0) and counts(raw, 1) == (0, 0, 0)
    client.send(ACK, b"goes on")
    number, arrived = client.arrive()
    assert number == 2 and (arrived.inner() if arrived.is_tunnel else arrived).payload == \
        b"goes on"
    if lab.shape == "nat":
        client.reply(ACK, b"answer").answered()
    assert side.row(record)["state"] == record.state_name
    assert len(side.rows(client=client.address)) == 1


@pytest.mark.parametrize("version", (0, 1))
@pytest.mark.parametrize("kind", (TCP, UDP, SCTP), ids=("tcp", "udp", "sctp"))
def test_states(nat, side, fed, kind, version):
    """Every state, with the timeout that it has by default."""
    raw = Raw(nat, kind)
    for state, name in enumerate(STATES[kind]):
        record = record_of(raw.client(), state=state, timeout=0,
                           flags=INACTIVE if kind == TCP and state != 1 else 0)
        fed.records(record, version=version)
        row = side.row(record)
        assert row["state"] == name
        if kind in TIMEOUT:
            assert TIMEOUT[kind][state] - 4 <= row["expires"] <= TIMEOUT[kind][state], name


def test_timeouts_follow_the_settings(nat, side, fed):
    nat.ipvs.timeouts(tcp=200, fin=50, udp=20)
    for proto, state, seconds in ((TCP, 1, 200), (TCP, FIN_WAIT, 50), (UDP, 0, 20)):
        record = record_of(Raw(nat, proto).client(), state=state, timeout=0)
        fed.records(record)
        assert seconds - 4 <= side.row(record)["expires"] <= seconds


@pytest.mark.parametrize("seconds", (1 << 21, 43_000_000, 0x7fffffff, 0xffffffff))
def test_long_timeout(only_l4lb, nat, side, fed, seconds):
    """It is cut off: never negative, never at once."""
    record = record_of(Raw(nat).client(), timeout=seconds)
    fed.records(record)
    assert 1 << 20 <= side.row(record)["expires"] <= seconds


@pytest.mark.timer
def test_short_timeout(nat, side, fed):
    """The copy dies by its own timer, and counts no longer."""
    raw = Raw(nat)
    record = record_of(raw.client(), timeout=2)
    fed.records(record)
    assert counts(raw) == (1, 0, 0) or side.row(record)
    wait_until(lambda: not side.rows(client=record.client), 70, what="the copy's end")
    wait_until(lambda: counts(raw) == (0, 0, 0), 5)


@pytest.mark.smoke
def test_later_records(nat, side, fed, family):
    """State, timeout and activity follow; the server's counters with them."""
    raw = Raw(nat, TCP, family)
    record = record_of(raw.client())
    steps = [(record, (1, 0, 0)),
             (record.but(state=FIN_WAIT, flags=INACTIVE, timeout=60), (0, 1, 0)),
             (record.but(timeout=100), (1, 0, 0)),
             (record.but(timeout=90), (1, 0, 0)),
             (record.but(state=6, flags=INACTIVE, timeout=9), (0, 1, 0)),
             (record.but(state=6, flags=INACTIVE, timeout=8), (0, 1, 0))]
    for step, expected in steps:
        fed.records(step)
        wait_until(lambda: [(r["state"], step.timeout - 4 <= r["expires"] <= step.timeout)
                            for r in side.rows(client=record.client)] ==
                   [(step.state_name, True)], 5)
        assert counts(raw) == expected


def test_state_machine_goes_on(nat, side, fed):
    """From the state received: a FIN ends a connection that this director never saw begin."""
    raw = Raw(nat)
    client = raw.client()
    record = record_of(client)
    fed.records(record)
    side.row(record)
    client.send(FIN | ACK)
    client.arrive()
    wait_until(lambda: client.state == "CLOSE_WAIT", 5)
    client.reply(FIN | ACK).answered()
    wait_until(lambda: client.state == "TIME_WAIT", 5)
    assert counts(raw) == (0, 1, 0)


@pytest.mark.parametrize("size", (1472, 8000))
def test_many_in_a_message(nat, side, size):
    """Also in a datagram of several fragments."""
    raw = Raw(nat, UDP)
    address = nat.client_address()
    records = [record_of(raw.client(address, 2000 + n)) for n in range((size - 8) // 36)]
    with side.backup(maxlen=size), side.sender() as sender:
        sender.records(*records)
        wait_until(lambda: len(side.rows(client=address)) == len(records), 5)
    assert counts(raw) == (len(records), 0, 0)


def test_longer_than_maxlen(nat, side):
    """It arrives cut off, and nothing in it counts."""
    raw = Raw(nat, UDP)
    address = nat.client_address()
    records = [record_of(raw.client(address, 2000 + n)) for n in range(60)]
    last = record_of(raw.client())
    with side.backup(), side.sender() as sender:
        sender.records(*records).records(last)
        side.row(last)
        assert side.rows(client=address) == []


def test_mixed_versions_and_families(nat, side, fed):
    """One backup takes both versions; one message has records of both families."""
    four, six = (Raw(nat, TCP, family).client() for family in (4, 6))
    records = [record_of(four), record_of(six, pe_name=b""),
               record_of(four.raw.client(), pe_name=b"odd")]
    fed.records(*records)
    old = record_of(four.raw.client())
    fed.records(old, version=0)
    for record in (*records, old):
        assert side.row(record)["origin"] == "SYNC"


def test_unknown_option(nat, side, fed):
    """One that calls itself optional is skipped; another one spoils its record alone."""
    raw = Raw(nat)
    first, second, third = (record_of(raw.client()) for _ in range(3))
    fed.send(message([first.v1(sync_wire.option(0x49, b"news")),
                      second.v1(sync_wire.option(9, b"news")), third]))
    side.row(third)
    side.row(first)
    assert side.rows(client=second.client) == []


# ---- what a backup listens to

@pytest.mark.parametrize(("mine", "sent", "taken"), [
    (0, 5, True), (0, 0, True), (5, 5, True), (5, 6, False), (5, 0, False), (255, 255, True),
    (256, 0, False)])
def test_id(nat, side, mine, sent, taken):
    raw = Raw(nat)
    record, after = record_of(raw.client()), record_of(raw.client())
    with side.backup(sync_id=mine), side.sender() as sender:
        sender.records(record, sync_id=sent).records(after, sync_id=mine & 255)
        if mine < 256:
            side.row(after)
        else:
            wait_until(lambda: side.unread() == 0, 5)
        assert bool(side.rows(client=record.client)) == taken


@pytest.mark.smoke
@pytest.mark.parametrize("group", (GROUP[6], "ff05::77", "239.9.9.9"))
def test_group(nat, side, group):
    raw = Raw(nat)
    record = record_of(raw.client())
    with side.backup(group=group, port=9100), side.sender(group, 9100) as sender:
        sender.records(record)
        assert side.row(record)["origin"] == "SYNC"


def test_other_addresses(nat, side, fed):
    """Neither another group, nor another port, nor a datagram to the director itself."""
    raw = Raw(nat)
    wrong = [record_of(raw.client()) for _ in range(3)]
    with side.sender("224.0.0.82") as group, side.sender(port=8849) as port, \
            side.sender("172.31.0.1") as own:
        group.records(wrong[0])
        port.records(wrong[1])
        own.records(wrong[2])
    right = record_of(raw.client())
    fed.records(right)
    side.row(right)
    assert [side.rows(client=r.client) for r in wrong] == [[], [], []]


def test_other_device(nat, side, fed):
    """The daemon listens on its own device alone."""
    raw = Raw(nat)
    record, right = record_of(raw.client()), record_of(raw.client())
    with sender_of_clients(nat) as sender:
        sender.records(record)
    fed.records(right)
    side.row(right)
    assert side.rows(client=record.client) == []


def sender_of_clients(lab):
    """A sender on the clients' network."""
    return Sender(lab.client.ns, device="eth0")


def test_ports(nat, side):
    """With sync_ports 4 there are four ports; records may come by any of them."""
    raw = Raw(nat)
    records = [record_of(raw.client()) for _ in range(4)]
    with setting(nat, "sync_ports", 4), side.backup():
        for n, record in enumerate(records):
            with side.sender(port=sync_wire.PORT + n) as sender:
                sender.records(record)
        for record in records:
            side.row(record)


def test_stopped(nat, side):
    """Nothing is received any more; what was, stays."""
    raw = Raw(nat)
    first, second = record_of(raw.client()), record_of(raw.client())
    with side.sender() as sender:
        with side.backup():
            sender.records(first)
            side.row(first)
        sender.records(second)
        with side.backup():
            third = record_of(raw.client())
            sender.records(third)
            side.row(third)
    assert side.row(first) and side.rows(client=second.client) == []


@pytest.mark.smoke
def test_conn_sync_file(nat, side, fed, family):
    """The lines of ip_vs_conn_sync, to the byte."""
    raw = Raw(nat, TCP, family)
    mine, record = raw.client(), record_of(raw.client())
    mine.establish()
    fed.records(record)
    side.row(record)
    lines = side.ns.read("/proc/net/ip_vs_conn_sync").splitlines()
    assert lines[0] == ("Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Origin "
                        "Expires")
    for client, origin in ((mine, "LOCAL"), (record, "SYNC")):
        address, port = (mine.address, mine.sport) if client is mine else (record.client,
                                                                           record.cport)
        (line,) = [n for n in lines if n.split()[1] == hexed(address)]
        ends = " ".join(f"{hexed(a)} {p:04X}" for a, p in (
            (address, port), (raw.vip, raw.port), (raw.address(1), raw.dport)))
        expires = line.split()[-1]
        assert line == f"TCP {ends} ESTABLISHED {origin:6} {expires:>7}"


def hexed(address):
    """As in the files in /proc/net."""
    value = ipaddress.ip_address(address)
    return f"{int(value):08X}" if value.version == 4 else value.exploded


# ---- connections that this director has itself

@pytest.mark.waits
def test_other_server(nat, side, fed):
    """An active record of another server replaces a connection at rest."""
    raw = Raw(nat, UDP, 4, (1, 2))
    client = raw.client()
    mine = client.open()
    other = 3 - mine
    time.sleep(3)
    fed.records(record_of(client, other))
    wait_until(lambda: [r["server"] for r in side.rows(client=client.address)] ==
               [raw.address(other)], 5)
    assert counts(raw, other)[0] == 1
    wait_until(lambda: counts(raw, mine) == (0, 0, 0), 5)


def test_other_server_inactive(nat, side, fed):
    """An inactive one is the late end of a connection that was replaced."""
    raw = Raw(nat, TCP, 4, (1, 2))
    client = raw.client()
    mine = client.establish()
    fed.records(record_of(client, 3 - mine, state=FIN_WAIT, flags=INACTIVE))
    after = record_of(raw.client())
    fed.records(after)
    side.row(after)
    (row,) = side.rows(client=client.address)
    assert (row["server"], row["origin"], row["state"]) == (raw.address(mine), "LOCAL",
                                                            "ESTABLISHED")


def test_own_connection(nat, side, fed):
    """A record of the same connection changes its state, not its origin."""
    raw = Raw(nat)
    client = raw.client()
    client.establish()
    fed.records(record_of(client, state=FIN_WAIT, flags=INACTIVE, timeout=40))
    wait_until(lambda: client.state == "FIN_WAIT", 5)
    (row,) = side.rows(client=client.address)
    assert row["origin"] == "LOCAL" and 36 <= row["expires"] <= 40
    assert counts(raw) == (0, 1, 0)


@pytest.mark.waits
def test_own_connection_is_closed(only_l4lb, nat, side, fed, family):
    """It has moved to the other director, and ended there; its client's next SYN here is for a new
    one, although the fast path still has the old one."""
    raw = flows.ready(nat, TCP, family)
    client = flows.admitted(raw)
    flows.request_is(client, fast=1)
    time.sleep(1.5)
    fed.records(record_of(client, state=CLOSE, timeout=10))
    wait_until(lambda: client.state == "CLOSE", 5)
    # Elsewhere nobody looks SYNs up at ingress.
    with at_ingress(nat), flows.counted(raw, slow_opens=1):
        client.open()
    assert client.state == "SYN_RECV"



# ---- servers and services that are not configured here

@pytest.mark.parametrize("family", (4, 6), ids=("v4", "v6"))
def test_unknown_server(nat, side, fed, family):
    """The connection is kept; a record that comes after the server was added binds it."""
    raw = Raw(nat, UDP, family, (1,))
    client = raw.client()
    record = record_of(client, 2)
    fed.records(record)
    assert side.row(record)["server"] == raw.address(2)
    assert counts(raw) == (0, 0, 0)
    raw.add(2)
    fed.records(record)
    wait_until(lambda: counts(raw, 2) == (1, 0, 0), 5)
    client.send()
    assert client.arrive()[0] == 2


@pytest.mark.l4lb_differs("packets to a server that is not configured are dropped")
def test_relay(nat, side, fed):
    """A packet of a connection whose server is unknown goes to the record's address."""
    raw = Raw(nat, UDP, 4, (1,))
    nat.tap("rs2")
    raw.taps[2] = nat.tap("rs2")
    client = raw.client()
    fed.records(record_of(client, 2))
    wait_until(lambda: side.rows(client=client.address), 5)
    client.send()
    assert client.arrive()[0] == 2


def test_unknown_service(nat, side, fed):
    raw = Raw(nat, UDP)
    record = record_of(raw.client()).but(vport=raw.port + 1)
    fed.records(record)
    assert side.row(record)["origin"] == "SYNC"
    assert len(nat.ipvs.services()) == 1


def test_before_the_first_service(nat, side, fed):
    """A backup takes records although nothing was ever configured."""
    record = Record("10.200.0.1", 77, nat.raw_vip(), 8080, nat.phantom(1), 8080)
    fed.records(record)
    assert side.row(record)["state"] == "ESTABLISHED"
    assert nat.ipvs.services() == []


def test_server_is_removed(nat, side, fed):
    raw = Raw(nat, UDP, 4, (1, 2))
    client = raw.client()
    fed.records(record_of(client))
    wait_until(lambda: counts(raw) == (1, 0, 0), 5)
    raw.remove(1)
    client.send()
    client.nothing_arrives()


# ---- persistence

def template_of(raw, address, number, **more):
    given = {"flags": TEMPLATE, "state": 0, "timeout": 200, "proto": raw.proto}
    return Record(address, 0, raw.vip, raw.port, raw.address(number), raw.dport,
                  **{**given, **more})


@pytest.mark.smoke
def test_template(lab, side_of, family, proto):
    """A client that another director has assigned stays with its server."""
    raw = Raw(lab, proto, family, (1, 2), flags=PERSISTENT, timeout=300)
    address = lab.client_address(family)
    with backup(lab, side_of) as (side, sender):
        for number in (1, 2):
            record = template_of(raw, lab.client_address(family), number, state=1)
            sender.records(record)
            row = side.row(record)
            assert (row["origin"], row["state"], row["server"], row["proto"]) == (
                "SYNC", "ASSURED", raw.address(number), NAMES[proto])
            assert 196 <= row["expires"] <= 200
            assert counts(raw, number) == (0, 0, 1)
            assert {raw.client(record.client).open() for _ in range(3)} == {number}
        record = template_of(raw, address, 1, timeout=0)
        sender.records(record)
        row = side.row(record)
        assert row["state"] == "NONE" and 176 <= row["expires"] <= 180


@pytest.mark.smoke
def test_template_by_mark(nat, side, fed, family):
    """Its VIP is the mark."""
    mark = fwmark.fresh_mark()
    raw = fwmark.Marked(nat, mark, family, (1, 2), flags=PERSISTENT, timeout=300, proto=UDP)
    address = nat.client_address(family)
    record = Record(address, 0, mark_address(mark, family), 0, raw.address(2), 0, proto=0,
                    state=0, flags=TEMPLATE, mark=mark, timeout=100)
    fed.records(record)
    row = side.row(record)
    assert (row["proto"], row["origin"]) == ("IP", "SYNC")
    assert counts(raw, 2) == (0, 0, 1)
    with fwmark.marking(nat, mark, f"udp dport {raw.port}"):
        assert {raw.client(address).open() for _ in range(3)} == {2}


def test_connection_by_mark(nat, side, fed):
    """The record's mark finds the service."""
    mark = fwmark.fresh_mark()
    raw = fwmark.Marked(nat, mark, 4, (1, 2), proto=UDP)
    client = raw.client()
    record = Record(client.address, client.sport, raw.vip, raw.port, raw.address(2), raw.port,
                    proto=UDP, state=0, mark=mark, timeout=100)
    fed.records(record)
    side.row(record)
    assert counts(raw, 2) == (1, 0, 0)
    client.send()
    assert client.arrive()[0] == 2


@pytest.mark.waits
@pytest.mark.l4lb_differs("a template that no local packet has used for 2 s follows the record")
def test_template_keeps_its_server(nat, side, fed):
    raw = Raw(nat, UDP, 4, (1, 2), flags=PERSISTENT, timeout=300)
    address = nat.client_address()
    mine = raw.client(address).open()
    time.sleep(3)
    fed.records(template_of(raw, address, 3 - mine, timeout=250))
    wait_until(lambda: [r["expires"] <= 250 for r in side.rows(client=address, cport=0)] ==
               [True], 5)
    assert side.rows(client=address, cport=0)[0]["server"] == raw.address(mine)


# ---- beside traffic

@pytest.mark.parametrize("only", (0, 1))
def test_backup_only(nat, side, only):
    """With backup_only the director does not forward while it is a backup."""
    raw = Raw(nat, UDP)
    with setting(nat, "backup_only", only):
        with side.backup():
            client = raw.client()
            client.send()
            if only:
                client.nothing_arrives()
                assert client.row() is None
            else:
                client.arrive()
        raw.client().open()


def test_no_configuration_by_record(nat, side, fed):
    """Records make connections and nothing else."""
    raw = Raw(nat, UDP, 4, (1, 2))
    before = nat.director.ns.run("ipvsadm -Sn").stdout
    for n in range(20):
        fed.records(record_of(raw.client(), 1 + n % 2).but(vport=raw.port + n))
    last = record_of(raw.client())
    fed.records(last)
    side.row(last)
    assert nat.director.ns.run("ipvsadm -Sn").stdout == before
    assert [d["role"] for d in daemons.listed(side.ipvs)] == ["backup"]
    assert genl.MASQ == raw.dest(1)["method"]
