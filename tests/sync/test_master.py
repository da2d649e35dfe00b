# SPDX-License-Identifier: GPL-2.0
"""What a master sends, and when, on both modules; test_send.py has what l4lb alone does."""

import collections
import contextlib
import time

import pytest
from lab import fwmark, sync_wire
from lab.genl import ONEPACKET, PERSISTENT
from lab.packet import ACK, FIN, RST, SCTP, TCP, UDP
from lab.raw import Raw
from lab.settings import setting
from lab.sync_group import DIRECTOR, GROUP
from lab.sync_wire import (
    DIRECT,
    INACTIVE,
    NAT,
    NO_OUTPUT,
    PORT,
    TEMPLATE,
    TUNNEL,
    Record,
    mark_address,
)

pytestmark = pytest.mark.waits

METHOD = {"nat": NAT, "dr": DIRECT | NO_OUTPUT, "tun": TUNNEL | NO_OUTPUT}
ESTABLISHED = {TCP: 1, UDP: 0, SCTP: 8}
TIMEOUT = {TCP: 900, UDP: 300, SCTP: 900}
CLOSE, CLOSE_WAIT = 6, 7
SENT = METHOD["dr"] | METHOD["tun"] | INACTIVE | TEMPLATE   # flags that are compared
LATEST = 4          # seconds after which ip_vs has sent everything


class Heard:
    """The records that arrive at the group."""

    def __init__(self, receiver, version):
        self.receiver, self.version = receiver, version

    def records(self, client, template=False):
        """All that came since the last call for CLIENT's connection or its templates; others
        are forgotten. The flags are those that a director looks at."""
        time.sleep(LATEST)
        got = [r for data in self.receiver.drain()
               for r in sync_wire.strict(data, 77, self.version)]
        return [r.but(flags=r.flags & SENT) for r in got if r.client == client.address
                and r.is_template == template and (template or r.cport == client.sport)]


@contextlib.contextmanager
def heard(lab, side_of, group=GROUP[4], version=1, *, port=PORT, **options):
    side = side_of(lab)
    with setting(lab, "sync_version", version), side.receiver(group, port) as receiver, \
            side.master(sync_id=77, group=group, port=port, **options):
        yield Heard(receiver, version)


@pytest.fixture
def wire(nat, side_of):
    with heard(nat, side_of) as one:
        yield one


def record_of(client, **more):
    raw = client.raw
    given = {"proto": raw.proto, "state": ESTABLISHED[raw.proto], "timeout": TIMEOUT[raw.proto],
             "flags": METHOD[raw.lab.shape]}
    return Record(client.address, client.sport, raw.vip, raw.port, raw.address(client.number),
                  raw.dport or raw.port, **{**given, **more})


def begin(raw):
    """A client with three packets, which is the threshold."""
    client = raw.client()
    if raw.proto == UDP:
        client.open()
        say(client, 1)
    else:
        client.establish()
    return say(client, 1)


def say(client, count):
    for _ in range(count):
        client.send(ACK, b"more")
        client.arrive()
    return client


@pytest.mark.smoke
@pytest.mark.parametrize("version", (0, 1))
def test_record(lab, side_of, family, proto, version):
    """Each kind, to the byte; version 0 has no IPv6 and no timeouts."""
    raw = Raw(lab, proto, family)
    with heard(lab, side_of, version=version) as wire:
        client = begin(raw)
        record = record_of(client)
        # A UDP connection counts as active or not by the replies that were seen.
        got = [r.but(flags=r.flags & ~INACTIVE) for r in wire.records(client)]
    assert got == ([record] if version else [record.but(timeout=0)] if family == 4 else [])


@pytest.mark.smoke
@pytest.mark.parametrize(("group", "ttl", "port"), [
    (GROUP[4], 1, PORT), (GROUP[6], 1, PORT), ("239.1.2.3", 7, 9005)])
def test_datagrams(nat, side_of, group, ttl, port):
    """Where they come from and how far they go."""
    with heard(nat, side_of, group, ttl=ttl, port=port) as wire:
        client = begin(Raw(nat))
        assert wire.records(client) == [record_of(client)]
        assert wire.receiver.ttl == ttl
        if ":" not in group:
            assert wire.receiver.source[0] == DIRECTOR[4]


EARLY = pytest.mark.l4lb_differs("packets are counted up to eight, the rest is a matter of time")


@pytest.mark.parametrize(("threshold", "counts"), [
    ("3 0", (3,)), ("1 0", (1,)), pytest.param("2 5", (2, 7, 12, 17), marks=EARLY),
    pytest.param("0 4", (4, 8, 12, 16), marks=EARLY)])
def test_threshold(nat, wire, threshold, counts):
    """The numbers of the client's packets at which a connection is announced."""
    with setting(nat, "sync_threshold", threshold):
        client = Raw(nat, UDP).client()
        client.open()
        said = 1
        for number in (*counts, 19):
            # ip_vs announces by the packet, so the one before must not have.
            if number > said + 1:
                say(client, number - 1 - said)
                said = number - 1
                assert wire.records(client) == [], f"packet {said}"
            if number > said:
                say(client, number - said)
                said = number
            assert len(wire.records(client)) == (number != 19), f"packet {number}"


@pytest.mark.l4lb_differs("a period above 8 is a period of time")
def test_default_threshold(nat, wire):
    """3 50: packets 3, 53 and 103."""
    client = Raw(nat, UDP).client()
    client.open()
    say(client, 2)
    assert len(wire.records(client)) == 1
    for _ in range(2):
        say(client, 49)
        assert wire.records(client) == []
        say(client, 1)
        assert len(wire.records(client)) == 1


def test_never(nat, wire):
    """A connection that is not established; datagrams without one."""
    syn = Raw(nat).client()
    for _ in range(5):
        syn.send()
        syn.arrive()
    one = Raw(nat, UDP, flags=ONEPACKET).client()
    say(one, 5)
    for client in (syn, one):
        assert wire.records(client) == []


@pytest.mark.smoke
@pytest.mark.parametrize(("flags", "state", "seconds"), [
    (FIN | ACK, CLOSE_WAIT, 60), (RST, CLOSE, 10)], ids=("fin", "rst"))
def test_client_ends(nat, wire, family, flags, state, seconds):
    """Announced at once, although the threshold was passed long ago."""
    client = begin(Raw(nat, TCP, family))
    say(client, 3)
    wire.records(client)
    client.send(flags)
    client.arrive()
    assert wire.records(client) == [record_of(client, state=state, timeout=seconds,
                                              flags=NAT | INACTIVE)]


@pytest.mark.l4lb_differs("it is announced at once")
def test_server_ends(nat, wire):
    """Its FIN is announced with the client's next packet."""
    client = begin(Raw(nat))
    wire.records(client)
    client.reply(FIN | ACK).answered()
    assert wire.records(client) == []
    say(client, 1)
    assert [r.state_name for r in wire.records(client)] == ["FIN_WAIT"]


@pytest.mark.l4lb_differs("one is announced a second after it was established")
def test_idle(nat, wire):
    """A connection of two packets is never announced."""
    client = Raw(nat).client()
    client.establish()
    assert wire.records(client) == []


@pytest.mark.l4lb_differs("it leaves after 20 ms")
def test_latency(nat, side_of):
    """A lone record waits two seconds for others."""
    with heard(nat, side_of) as wire:
        begin(Raw(nat))
        time.sleep(1)
        assert wire.receiver.drain() == []


@pytest.mark.parametrize("service", (None, "mark"), ids=("address", "mark"))
def test_template(nat, side_of, family, service):
    """A persistent client's template is announced with its connection."""
    mark = fwmark.fresh_mark()
    raw = fwmark.Marked(nat, mark, family, (1,), flags=PERSISTENT, timeout=300, proto=UDP) \
        if service else Raw(nat, UDP, family, flags=PERSISTENT, timeout=300)
    marks = fwmark.marking(nat, mark, f"udp dport {raw.port}") if service else \
        contextlib.nullcontext()
    with marks, heard(nat, side_of) as wire:
        client = raw.client()
        client.open()
        got = wire.records(client, template=True)
    wanted = Record(client.address, 0, raw.vip, raw.port, raw.address(1), raw.dport, UDP, 0,
                    TEMPLATE | INACTIVE, timeout=300)
    if service:
        wanted = wanted.but(proto=0, vip=mark_address(mark, family), vport=0, mark=mark)
    assert got[-1:] == [wanted]


@pytest.mark.l4lb_differs("when it is made, changes, or is renewed")
def test_template_by_packet(nat, wire):
    """With every packet of its client."""
    client = Raw(nat, UDP, flags=PERSISTENT, timeout=300).client()
    client.open()
    wire.records(client, template=True)
    say(client, 5)
    assert len(wire.records(client, template=True)) == 5


@pytest.mark.parametrize("mode", (0, 1))
def test_persist_mode(nat, side_of, mode):
    """With sync_persist_mode only the template is announced."""
    raw = Raw(nat, UDP, flags=PERSISTENT, timeout=300)
    with setting(nat, "sync_persist_mode", mode), heard(nat, side_of) as wire:
        assert len(wire.records(begin(raw))) == 1 - mode
        assert wire.records(begin(raw), template=True)


def test_version_changes(nat, side_of):
    """At any time; each message is of one version."""
    raw = Raw(nat)
    with heard(nat, side_of) as wire:
        for version in (0, 1, 0):
            nat.director.ns.sysctl("net/ipv4/vs/sync_version", version)
            wire.version = version
            client = begin(raw)
            assert wire.records(client) == [record_of(client, timeout=900 * version)]


def test_ports(nat, side_of):
    """With sync_ports 4 each connection has one of four ports, always the same."""
    side, raw = side_of(nat), Raw(nat, UDP)
    clients = [raw.client() for _ in range(60)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(setting(nat, "sync_ports", 4))
        stack.enter_context(setting(nat, "sync_threshold", "0 1"))
        receivers = [stack.enter_context(side.receiver(port=PORT + n)) for n in range(4)]
        stack.enter_context(side.master())
        for client in clients * 2:
            client.send()
            client.arrive()
        time.sleep(LATEST)
        ports = collections.defaultdict(set)
        for n, receiver in enumerate(receivers):
            for data in receiver.drain():
                for record in sync_wire.strict(data):
                    ports[record.client].add(n)
    assert len(ports) == len(clients)
    assert {len(found) for found in ports.values()} == {1}
    assert set.union(*ports.values()) == {0, 1, 2, 3}


@pytest.mark.parametrize(("maxlen", "records"), [(None, 40), (100, 2), (30, 1)])
def test_maxlen(nat, side_of, maxlen, records):
    """No message is longer; one record always has room."""
    raw = Raw(nat, UDP)
    with setting(nat, "sync_threshold", "0 1"), heard(nat, side_of, maxlen=maxlen) as wire:
        clients = [raw.client() for _ in range(100)]
        for client in clients:
            client.send()
        client.arrive()
        time.sleep(LATEST)
        got = wire.receiver.drain()
        assert max(map(len, got)) <= max(maxlen or 1472, 44)
        found = [sync_wire.strict(data) for data in got]
        assert max(map(len, found)) <= records
        assert {r.client for some in found for r in some} >= {c.address for c in clients}
