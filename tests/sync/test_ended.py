# SPDX-License-Identifier: GPL-2.0
"""A connection that a director ends before its time ends at the other directors, too."""

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


def told(receiver, raw, count):
    """COUNT connections of RAW that the group has heard of."""
    clients = [raw.client() for _ in range(count)]
    for client in clients:
        if raw.proto == UDP:
            client.open()
        else:
            client.establish()
        client.send(ACK, b"more")
        client.arrive()
    receiver.records(lambda r: r.vport == raw.port and not r.is_template, count)
    receiver.drain()
    return clients


@pytest.mark.smoke
@pytest.mark.parametrize("version", (0, 1))
def test_removed_server(lab, side_of, family, proto, version):
    """With expire_nodest_conn. ip_vs's copy ends in a second; version 0 cannot say that of
    datagrams, and has no IPv6."""
    side = side_of(lab)
    raw = Raw(lab, proto, family)
    tells = bool(version) or (family == 4 and proto != UDP)
    with setting(lab, "sync_version", version), setting(lab, "sync_threshold", "1 0"), \
            setting(lab, "expire_nodest_conn", 1), side.receiver() as receiver, side.master():
        if not version and family == 6:
            pytest.skip("nothing is told")
        clients = told(receiver, raw, 2)
        raw.remove(1)
        if not tells:
            time.sleep(SWEPT)
            assert receiver.drain() == []
            return
        got = receiver.records(lambda r: r.vport == raw.port, 2, SWEPT)
    assert {(r.client, r.cport) for r in got} == {(c.address, c.sport) for c in clients}
    for r in got:
        assert (r.state, r.timeout, bool(r.flags & INACTIVE), r.gone) == \
            (CLOSED[proto], version, True, False)


def test_dropped_entries(nat, side):
    """drop_entry=3 drops embryonic connections, which nobody knows: nothing is told."""
    raw = Raw(nat, TCP)
    with setting(nat, "drop_entry", 3), setting(nat, "sync_threshold", "1 0"), \
            side.receiver() as receiver, side.master():
        clients = [raw.client() for _ in range(40)]
        for client in clients:
            client.open()
        wait_until(lambda: not side.rows(vport=raw.port), 200, what="all dropped")
        assert receiver.drain() == []


def test_reset_on_loss(nat, side):
    """A client's packet to a removed server ends its connection: on_loss reset."""
    raw = Raw(nat, TCP)
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_policy(raw.service, on_loss=3)
    with setting(nat, "sync_threshold", "1 0"), side.receiver() as receiver, side.master():
        (client,) = told(receiver, raw, 1)
        raw.remove(1)
        client.send(ACK, b"hello", seq=5000, ack=7000)
        (record,) = receiver.records(lambda r: r.vport == raw.port, 1, SWEPT)
    assert (record.state, record.timeout) == (CLOSED[TCP], 1)


def test_time_is_no_reason(nat, side):
    """Other directors know when a connection's time is over; and those that both ends have closed
    end soon by themselves."""
    raw = Raw(nat, UDP)
    with genl.L4lb(nat.director.ns) as l4lb:
        l4lb.set_policy(raw.service, udp=10)
    with setting(nat, "sync_threshold", "1 0"), side.receiver() as receiver, side.master():
        told(receiver, raw, 1)
        wait_until(lambda: not side.rows(vport=raw.port), 60, what="its end")
        assert all(r.timeout == 10 for data in receiver.drain() for r in without_trailer(data))


# ---- peers

@pytest.fixture
def peers(side):
    with Peers(side.ns) as one:
        one.set(verify=0)
        one.add(PEER[4])
        yield one


def test_peers_are_told(nat, side, peers):
    """So that they end a copy, but no connection that has come to them."""
    raw = Raw(nat, TCP)
    with setting(nat, "sync_threshold", "1 0"), setting(nat, "expire_nodest_conn", 1), \
            daemons.running(side.ipvs, "master"), Fake(side.peer) as fake:
        fake.join()
        client = raw.client()
        client.establish()
        client.send(ACK, b"more")

        def of_it(tail, data):
            return not tail["flags"] and any(r.cport == client.sport and r.vport == raw.port
                                             for r in without_trailer(data))
        fake.until(of_it)
        raw.remove(1)
        _, data = fake.until(of_it)
        (record,) = [r for r in without_trailer(data) if r.vport == raw.port]
        assert (record.gone, record.timeout, record.state) == (True, 1, CLOSED[TCP])


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
