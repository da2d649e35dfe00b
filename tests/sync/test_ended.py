# SPDX-License-Identifier: GPL-2.0
"""A connection that a director ends before its time ends at the other directors, too."""

import contextlib
import time

import pytest
from lab import daemons, genl
from lab.netns import wait_until
from lab.packet import ACK, SCTP, TCP, UDP
from lab.peers import AGAIN, Fake, Peers, without_trailer
from lab.raw import Raw
from lab.settings import setting
from lab.sync_group import PEER
from lab.sync_wire import INACTIVE, TEMPLATE, Record

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]
CLOSED = {TCP: 6, UDP: 0, SCTP: 13}
SWEPT = 3               # seconds until the sweep or the work that removes has come


@pytest.fixture
def peers(side):
    with Peers(side.ns) as one:
        one.set(verify=0)
        one.add(PEER[4])
        yield one


class Heard:
    """What a peer of a director hears of connections."""

    def __init__(self, lab, side, fake):
        self.lab, self.side, self.fake = lab, side, fake

    def of(self, raw, count):
        """The next COUNT records of RAW's connections."""
        got = []

        def enough(tail, data):
            if not tail["flags"]:
                got.extend(r for r in without_trailer(data)
                           if r.vport == raw.port and not r.is_template)
            return len(got) >= count
        self.fake.until(enough)
        return got

    def nothing_ended(self, raw, seconds=SWEPT):
        """No record says that a connection has ended."""
        end = time.monotonic() + seconds

        def over(tail, data):
            if not tail["flags"]:
                assert not any(r.gone or (r.proto, r.state) == (TCP, CLOSED[TCP])
                               for r in without_trailer(data) if r.vport == raw.port)
            return time.monotonic() >= end
        self.fake.until(over, seconds + 5)

    def told(self, raw, count):
        """COUNT connections that the peer has heard of."""
        clients = [raw.client() for _ in range(count)]
        for client in clients:
            if raw.proto == UDP:
                client.open()
            else:
                client.establish()
            client.send(ACK, b"more")
            client.arrive()
        assert not any(r.gone for r in self.of(raw, count))
        return clients


@contextlib.contextmanager
def heard(lab, side_of):
    side = side_of(lab)
    with setting(lab, "sync_threshold", "1 0"), Peers(side.ns) as peers, \
            daemons.running(side.ipvs, "master"):
        peers.set(verify=0)
        peers.add(PEER[4])
        with Fake(side.peer) as fake:
            fake.join()
            yield Heard(lab, side, fake)


@pytest.mark.smoke
def test_removed_server(lab, side_of, family, proto):
    """With expire_nodest_conn."""
    raw = Raw(lab, proto, family)
    with setting(lab, "expire_nodest_conn", 1), heard(lab, side_of) as peer:
        clients = peer.told(raw, 2)
        raw.remove(1)
        got = peer.of(raw, 2)
    assert {(r.client, r.cport) for r in got} == {(c.address, c.sport) for c in clients}
    for r in got:
        assert (r.state, r.timeout, bool(r.flags & INACTIVE), r.gone) == \
            (CLOSED[proto], 1, True, True)


def test_version_0(nat, side_of):
    """It cannot say so."""
    raw = Raw(nat, TCP)
    with setting(nat, "sync_version", 0), setting(nat, "expire_nodest_conn", 1), \
            heard(nat, side_of) as peer:
        peer.told(raw, 2)
        raw.remove(1)
        peer.nothing_ended(raw)


def test_not_without_peers(nat, side):
    """ip_vs, and directors without peers, would take it for the state of a connection that may
    be theirs by now."""
    raw = Raw(nat, TCP)
    with setting(nat, "expire_nodest_conn", 1), setting(nat, "sync_threshold", "1 0"), \
            side.receiver() as receiver, side.master():
        client = raw.client()
        client.establish()
        client.send(ACK, b"more")
        client.arrive()
        receiver.records(lambda r: r.vport == raw.port)
        receiver.drain()
        raw.remove(1)
        time.sleep(SWEPT)
        assert receiver.drain() == []
        assert side.rows(vport=raw.port) == []


def test_dropped_entries(nat, side_of):
    """drop_entry=3 drops embryonic connections, which nobody knows: nothing is told."""
    raw = Raw(nat, TCP)
    with setting(nat, "drop_entry", 3), heard(nat, side_of) as peer:
        for _ in range(40):
            raw.client().open()
        peer.nothing_ended(raw, 100)
        assert not peer.side.rows(vport=raw.port)


def test_reset_on_loss(nat, side_of):
    """A client's packet to a removed server ends its connection: on_loss reset."""
    raw = Raw(nat, TCP)
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_policy(raw.service, on_loss=3)
    with heard(nat, side_of) as peer:
        (client,) = peer.told(raw, 1)
        raw.remove(1)
        client.send(ACK, b"hello", seq=5000, ack=7000)
        (record,) = peer.of(raw, 1)
    assert (record.state, record.timeout, record.gone) == (CLOSED[TCP], 1, True)


def test_time_is_no_reason(nat, side_of):
    """Other directors know when a connection's time is over."""
    raw = Raw(nat, UDP)
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_policy(raw.service, udp=10)
    with heard(nat, side_of) as peer:
        peer.told(raw, 1)
        peer.nothing_ended(raw, 20)
        assert not peer.side.rows(vport=raw.port)


# ---- a peer says so

class World:
    def __init__(self, side, fake, peers):
        self.side, self.fake, self.peers = side, fake, peers
        self.raw, self.sequence = Raw(side.lab, TCP, 4), 0

    def record(self, n, **more):
        return Record(f"10.9.7.{n}", self.raw.port, self.raw.vip, self.raw.port,
                      self.raw.address(1), self.raw.dport or self.raw.port,
                      **{"timeout": 300, **more})

    def tell(self, *records, sequence=None, **more):
        before = self.peers.count("records_in")
        if sequence is None:
            self.sequence += 1
        self.fake.records(*records, sequence=sequence or self.sequence, **more)
        wait_until(lambda: self.peers.count("records_in") == before + len(records), 5,
                   what="records")

    def known(self):
        return {r["client"] for r in self.side.rows(vport=self.raw.port)}


@pytest.fixture
def world(nat, side, peers):
    with Fake(side.peer) as fake:
        yield World(side, fake.join(), peers)


def gone(record):
    return record.but(gone=True, timeout=1, **(
        {} if record.is_template else {"state": CLOSED[record.proto], "flags": INACTIVE}))


@pytest.mark.parametrize("more", [{}, {"proto": UDP, "state": 0}, {"proto": SCTP, "state": 8},
                                  {"flags": TEMPLATE, "cport": 0}],
                         ids=["tcp", "udp", "sctp", "template"])
def test_copies_end(world, more):
    if "proto" in more:
        world.raw = Raw(world.side.lab, more["proto"], 4)
    records = [world.record(n).but(**more) for n in (1, 2)]
    world.tell(*records)
    assert len(world.known()) == 2
    world.tell(gone(records[0]))
    wait_until(lambda: world.known() == {records[1].client}, 4, what="one copy's end")


def test_what_is_used_here_lives(world):
    """A connection of this director, and one of which nothing is known here."""
    client = world.raw.client()
    client.establish()
    mine = Record(client.address, client.sport, world.raw.vip, world.raw.port,
                  world.raw.address(1), world.raw.dport or world.raw.port)
    world.tell(gone(mine), gone(world.record(9)))
    time.sleep(SWEPT)
    (row,) = world.side.rows(vport=world.raw.port)
    assert (row["client"], row["state"]) == (client.address, "ESTABLISHED")


def test_another_server(world):
    """The copy is of a later connection."""
    other = world.record(1)
    world.tell(other)
    world.tell(gone(other.but(server="10.77.0.9")))
    time.sleep(SWEPT)
    assert world.known() == {other.client}


def test_too_late(world):
    """A message that was lost and comes again: the flow may have begun again since."""
    world.tell(world.record(1), sequence=1)
    world.tell(world.record(2), sequence=3)
    world.tell(gone(world.record(1)), sequence=2, flags=AGAIN)
    time.sleep(SWEPT)
    assert world.known() == {world.record(n).client for n in (1, 2)}
