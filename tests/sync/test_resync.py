# SPDX-License-Identifier: GPL-2.0
"""A peer that joins gets all connections, and both sides are compared: a director, and a peer
that is a program of the test."""

import itertools
import random
import struct
import time

import pytest
from lab import daemons
from lab.genl import is_refused
from lab.netns import wait_until
from lab.packet import RST, SCTP, TCP, UDP
from lab.peers import (
    BULK_BEGIN,
    BULK_END,
    DIGEST,
    DIGEST_ASK,
    OTHER,
    RESYNC,
    SLICE_COUNT,
    SLICES,
    SUMS,
    Events,
    Fake,
    Peers,
    hash_of,
    sums_of,
    without_trailer,
)
from lab.raw import Raw
from lab.rows import amount
from lab.sync_group import PEER
from lab.sync_wire import INACTIVE, SYNCED, TEMPLATE, Record

pytestmark = [pytest.mark.usefixtures("only_l4lb"), pytest.mark.waits]

ports = itertools.count(23000)


class World:
    """A service of the director, a peer that is believed, and records of connections."""

    def __init__(self, side, peers, fake, family):
        self.side, self.peers, self.fake, self.family = side, peers, fake, family
        lab = side.lab
        self.vip, self.port, self.server = lab.vip(family), next(ports), lab.rip(1, family)
        self.service = side.ipvs.service(self.vip, self.port, sched="rr")
        self.service.server(self.server, 80, method=lab.method)
        self.sequence = 0

    def record(self, n, **more):
        n += 1
        client = f"10.9.{n >> 8}.{n & 255}" if self.family == 4 else f"2001:db8:9::{n:x}"
        given = {"timeout": 300, **more}
        # No two connections have the same replies.
        return Record(client, self.port, self.vip, self.port, self.server, 80, **given)

    def template(self, n, **more):
        return self.record(n, flags=TEMPLATE, **more).but(cport=0)

    def tell(self, *records):
        """Live records; returns when they were applied."""
        before = self.peers.count("records_in")
        for at in range(0, len(records), 20):
            self.sequence += 1
            self.fake.records(*records[at:at + 20], sequence=self.sequence)
            if at % 600 == 580:
                self.applied(before + at + 20)
        self.applied(before + len(records))

    def applied(self, count):
        wait_until(lambda: self.peers.count("records_in") >= count, 10, what="records")

    def row(self, record):
        return self.side.row(record)

    def keys(self, records):
        return {(r.client, r.cport, r.vip, r.vport, r.server, r.dport, r.proto, r.is_template)
                for r in records if r.vport == self.port}

    def key(self, nonce):
        return nonce, self.fake.sender + self.peers.settings()["sender"] & 2 ** 64 - 1


@pytest.fixture
def world(side, family):
    with Peers(side.ns) as peers:
        peers.set(verify=0)
        peers.add(PEER[family])
        with Fake(side.peer, family) as fake:
            yield World(side, peers, fake.join(), family)


ipv4 = pytest.mark.parametrize("family", [4])


# ---- the director is asked

@pytest.mark.smoke
def test_all_are_sent(world):
    """Templates first, and each with the time that it has left; also copies."""
    told = [world.record(n) for n in range(100)] + [world.template(n) for n in range(20)] + \
        [world.record(200 + n, state=4, flags=INACTIVE, timeout=60) for n in range(5)]
    world.tell(*told)
    world.fake.ask(7)
    expected, got, number = world.fake.bulk_in(7)
    assert number == len(got) >= len(told)
    assert expected >= len(told)
    sent = [r for r in got if r.vport == world.port]
    assert len(sent) == len(told), "each once"
    assert world.keys(sent) == world.keys(told)
    kinds = ["template" if r.is_template else r.flags & INACTIVE != 0 for r in sent]
    assert [k for k, _ in itertools.groupby(kinds)] == ["template", False, True]
    for r in sent:
        full = 60 if r.flags & INACTIVE and not r.is_template else 300
        assert r.timeout == full
        assert full - 10 <= r.left <= full


@ipv4
def test_what_cannot_be_told(world):
    """Half-open connections, and those of real servers that are not configured."""
    known = world.record(1)
    world.tell(known, world.record(2, state=3), world.record(3).but(server="10.77.0.1"))
    world.fake.ask(7)
    _, got, _ = world.fake.bulk_in(7)
    assert world.keys(got) == world.keys([known])


@ipv4
def test_asked_again(world):
    """The same number: the answer is repeated. Another one: not within a second."""
    world.tell(*[world.record(n) for n in range(30)])
    world.fake.ask(7)
    _, _, number = world.fake.bulk_in(7)
    before = world.peers.count("bulk_out")
    world.fake.ask(7)
    assert world.fake.bulk_in(7) == (None, [], number)
    assert world.peers.count("bulk_out") == before
    time.sleep(1.1)
    world.fake.ask(8)
    assert len(world.fake.bulk_in(8)[1]) == number
    limited = world.peers.count("rate_limited")
    world.fake.ask(9)
    wait_until(lambda: world.peers.count("rate_limited") == limited + 1, 5, what="a refusal")


@ipv4
def test_flood_of_requests(world):
    """10,000 requests cost the director a counter each, but for one in a second."""
    world.tell(*[world.record(n) for n in range(30)])
    before, limited = world.peers.count("bulk_out"), world.peers.count("rate_limited")
    begin = time.monotonic()
    for n in range(10000):
        world.fake.ask(1000 + n)
    wait_until(lambda: world.peers.count("rate_limited") > limited + 1000, 10, what="refusals")
    seconds = time.monotonic() - begin
    total = world.peers.list() and world.side.rows()
    assert world.peers.count("bulk_out") - before <= (seconds + 2) * len(total)
    world.tell(world.record(900))


@ipv4
def test_flood_of_a_stranger(world):
    """10,000 requests from another port: a counter each, and no record."""
    world.tell(*[world.record(n) for n in range(30)])
    before, source = world.peers.count("bulk_out"), world.peers.count("source")
    with Fake(world.side.peer, port=8999) as other:
        other.sender = world.fake.sender
        for n in range(10000):
            other.ask(1000 + n)
            if n % 100 == 99:       # as many as wait in a socket
                wait_until(lambda n=n: world.peers.count("source") == source + n + 1, 10,
                           step=0.001)
    assert world.peers.count("bulk_out") == before
    world.tell(world.record(900))


@ipv4
def test_sums_of_chance(world, seed):
    """32 KiB: unasked they are ignored; as an answer they cost one request for what differs."""
    chance = random.Random(seed)
    sums = [chance.getrandbits(64) for _ in range(SLICE_COUNT)]
    world.fake.answer()
    world.peers.in_step(PEER[4])
    world.tell(world.record(1))
    world.fake.send_sums(1, sums)
    world.tell(world.record(2))
    assert world.peers.progress(PEER[4])["verified"] == 0
    world.peers.verify(PEER[4])
    (nonce,) = struct.unpack(">Q", world.fake.body(DIGEST_ASK))
    world.fake.send_sums(nonce, sums)
    assert world.fake.slices(nonce) == set(range(SLICE_COUNT))
    assert world.peers.progress(PEER[4])["difference"] == SLICE_COUNT
    world.tell(world.record(3))
    assert len(world.side.rows(vport=world.port)) == 3


@ipv4
def test_who_may_ask(world):
    """Not one that has not proved that it is there, and no other address."""
    world.tell(world.record(1))
    before = world.peers.count("bulk_out")
    world.fake.sender ^= 2
    replay = world.peers.count("replay")
    world.fake.ask(5)
    wait_until(lambda: world.peers.count("replay") > replay, 5, what="sync_replay")
    with Fake(world.side.peer, port=8999) as other:
        source = world.peers.count("source")
        other.ask(5)
        wait_until(lambda: world.peers.count("source") > source, 5, what="sync_source")
    assert world.peers.count("bulk_out") == before


@ipv4
def test_rate(world):
    world.peers.set(rate=50)
    told = [world.record(n) for n in range(100)]
    world.tell(*told)
    begin = time.monotonic()
    world.fake.ask(7)
    _, got, _ = world.fake.bulk_in(7, 30)
    seconds = time.monotonic() - begin
    assert seconds >= 0.9 * (len(got) - 3) / 50
    assert world.keys(got) == world.keys(told)


@ipv4
@pytest.mark.parametrize("kind", [RESYNC, DIGEST_ASK, BULK_BEGIN, BULK_END, DIGEST, SLICES])
def test_malformed(world, kind):
    """Bodies of each length up to 40 bytes, and of chance: counted, or without effect."""
    before = world.peers.count("control")
    for n in range(41):
        world.fake.send_control(kind, bytes([255]) * n)
    wait_until(lambda: world.peers.count("control") > before + 20, 5, what="sync_control")
    world.tell(world.record(1))


# ---- the director asks

@pytest.mark.smoke
def test_joining(world, family):
    """It asks at once, and is in step when all has come."""
    addr, told = PEER[family], [world.record(n, left=100) for n in range(50)]
    assert world.peers.list()[addr]["state"] == "joining"
    world.fake.answer(*told)
    world.peers.in_step(addr)
    progress = world.peers.progress(addr)
    assert (progress["bulk_in"], progress["expected"], progress["resyncs"]) == (50, 50, 1)
    for record in told:
        row = world.row(record)
        assert (row["origin"], row["state"]) == ("SYNC", "ESTABLISHED")
        assert 85 <= row["expires"] <= 100
    assert world.peers.count("trailing") == 0


def test_events(side, family):
    """A listener hears of each change of a peer's state."""
    with Peers(side.ns) as peers, Events(side.ns) as events:
        peers.set(verify=0)
        peers.add(PEER[family])
        with Fake(side.peer, family) as fake:
            fake.join()
            assert events.next() == (PEER[family], "joining")
            fake.answer()
            assert events.next() == (PEER[family], "in step")
        assert events.next() == (PEER[family], "absent")


@ipv4
def test_request_is_repeated(world):
    """With the same number, while nothing comes."""
    numbers = {world.fake.body(RESYNC) for _ in range(3)}
    assert len(numbers) == 1


@ipv4
def test_resync_by_command(world):
    world.fake.answer()
    world.peers.in_step(PEER[4])
    for addr in (PEER[4], None):
        world.peers.resync(addr)
        assert world.peers.list()[PEER[4]]["state"] == "joining"
        world.fake.answer(world.record(1))
        world.peers.in_step(PEER[4])
    assert world.peers.progress(PEER[4])["resyncs"] == 3


def test_refused(side):
    with Peers(side.ns) as peers:
        peers.add("10.1.1.1")
        for call in (peers.resync, peers.verify):
            is_refused(lambda: call("10.1.1.2"), 3)     # noqa: B023; ESRCH
        peers.delete("10.1.1.1")
        for call in (peers.resync, peers.verify):
            is_refused(call, 3)
        is_refused(lambda: peers.resync(push=True), 3)


@ipv4
def test_lost_messages(world):
    """What is lost for good makes the director ask again."""
    world.fake.answer()
    world.peers.in_step(PEER[4])
    world.fake.records(world.record(1), sequence=1)
    world.fake.records(world.record(5), sequence=5)
    world.fake.hello([(5, 4)])
    wait_until(lambda: world.peers.list()[PEER[4]]["lost"] == 2, 5, what="two messages lost")
    assert world.peers.list()[PEER[4]]["state"] == "joining"
    world.fake.records(world.record(4), sequence=4)
    world.fake.answer(world.record(2))
    world.peers.in_step(PEER[4])


@ipv4
def test_another_sender(world):
    """A peer that starts again is asked again."""
    world.fake.answer()
    world.peers.in_step(PEER[4])
    world.fake.sender, world.fake.control = world.fake.sender ^ 2, 0
    world.fake.join()
    world.fake.answer(world.record(1))
    world.peers.in_step(PEER[4])


@ipv4
def test_live_records_overtake(world):
    """What a resync says is older than a record that came meanwhile."""
    closed = world.record(1, state=6, flags=INACTIVE, timeout=50)
    world.tell(closed)
    world.fake.answer(world.record(1, left=300), world.record(2, left=300))
    world.peers.in_step(PEER[4])
    assert world.row(closed)["state"] == "CLOSE"
    assert world.row(world.record(2))["state"] == "ESTABLISHED"


@ipv4
def test_an_end_is_known(world):
    """A connection that has ended elsewhere has ended, though it was heard of later here."""
    world.tell(world.record(1))
    world.fake.answer(world.record(1, state=4, flags=INACTIVE, timeout=120, left=100))
    world.peers.in_step(PEER[4])
    assert world.row(world.record(1))["state"] == "FIN_WAIT"


@ipv4
def test_copies_of_another_director(world):
    """They come while this one joins; afterwards what is not known here may have ended here."""
    world.fake.answer(world.record(1, left=200, flags=SYNCED))
    world.peers.in_step(PEER[4])
    world.row(world.record(1))
    world.fake.bulk(world.record(2, left=200, flags=SYNCED), world.record(3, left=200))
    world.row(world.record(3))
    assert {row["client"] for row in world.side.rows(vport=world.port)} == \
        {world.record(n).client for n in (1, 3)}


@ipv4
def test_own_connections_stay_own(world):
    """A resync of a director that has heard of them from this one changes nothing."""
    raw = Raw(world.side.lab, TCP)
    client = raw.client()
    number = client.establish()
    time.sleep(3)
    copy = Record(client.address, client.sport, raw.vip, raw.port, raw.address(number),
                  raw.dport or raw.port, timeout=900, left=900, flags=SYNCED)
    world.fake.answer(copy, world.record(1, left=200))
    world.peers.in_step(PEER[4])
    (row,) = world.side.rows(client=client.address, vport=raw.port)
    assert row["origin"] == "LOCAL" and row["expires"] <= 898


# Is the sender's number the lower one; seconds left by its record, of 300; who is right.
TIES = {"lower": (True, 297, True), "higher": (False, 297, False),
        "lower-older": (True, 280, False), "higher-later": (False, 300, True)}


@pytest.mark.parametrize("name", TIES)
def test_both_were_master(world, family, name):
    """Two directors have chosen different real servers for one client. The later choice is
    right; of two at the same time it is that of the director with the lower number."""
    lower, left, taken = TIES[name]
    own = world.peers.settings()["sender"]
    world.fake.sender, world.fake.control = own + (-1 if lower else 1), 0
    world.fake.join()
    (nonce,) = struct.unpack(">Q", world.fake.body(RESYNC))
    raw = Raw(world.side.lab, UDP, family, (1, 2))
    client = raw.client()
    mine = client.open()
    world.fake.listen(2.5)
    world.fake.bulk_control(BULK_BEGIN, nonce, 1)
    world.fake.bulk(Record(client.address, client.sport, raw.vip, raw.port, raw.address(3 - mine),
                           raw.dport, UDP, 0, INACTIVE, timeout=300, left=left))
    world.fake.bulk_control(BULK_END, nonce, 1)
    world.peers.in_step(PEER[family])
    (row,) = world.side.rows(client=client.address, vport=raw.port)
    assert row["server"] == raw.address(3 - mine if taken else mine)


@ipv4
def test_announced_late(world):
    """A live record that says how long ago its last packet came takes no client away that came
    here later."""
    raw = Raw(world.side.lab, UDP, 4, (1, 2))
    client = raw.client()
    mine = client.open()
    world.fake.listen(2.5)
    record = Record(client.address, client.sport, raw.vip, raw.port, raw.address(3 - mine),
                    raw.dport, UDP, 0, INACTIVE, timeout=300)
    for left, number in ((290, mine), (299, 3 - mine)):
        world.tell(record.but(left=left))
        (row,) = world.side.rows(client=client.address, vport=raw.port)
        assert row["server"] == raw.address(number), left


@ipv4
def test_the_sweep_tells_how_long_ago(world):
    """The last packet of a connection came, when no packet is the reason of its record."""
    client = Raw(world.side.lab, TCP).client()
    client.establish()
    world.fake.listen(3)

    def told(tail, data):
        return tail["stream"] != OTHER and [r for r in without_trailer(data)
                                            if r.client == client.address]
    with daemons.running(world.side.ipvs, "master"):
        (record,) = told(*world.fake.until(told))
    client.send(RST)            # other tests do not count it
    client.arrive()
    assert record.timeout == 900
    assert 890 < record.left < 899


@ipv4
def test_time_left_is_not_prolonged(world):
    """However often two directors send it to each other."""
    world.tell(world.record(1, timeout=100))
    world.fake.answer(world.record(1, timeout=300, left=60))
    world.peers.in_step(PEER[4])
    assert 85 <= world.row(world.record(1))["expires"] <= 100


# ---- comparison

@pytest.mark.smoke
def test_sums(world):
    """They are those of the same connections here; half-open and ended ones do not count."""
    told = [world.record(n) for n in range(40)] + [world.template(n) for n in range(10)]
    world.tell(*told, world.record(500, state=3), world.record(501, state=4, flags=INACTIVE))
    sums = world.fake.digest(5)
    assert sums == world_sums(world, world.key(5))
    assert any(sums_of(told, world.key(5)))
    # The same question has the same answer, though there is another connection now.
    world.tell(world.record(600))
    assert world.fake.digest(5) == sums
    time.sleep(4.2)
    assert world.fake.digest(6) == world_sums(world, world.key(6))


@ipv4
def test_slices(world):
    """Those that are asked for are sent, and no others."""
    told = [world.record(n) for n in range(60)]
    world.tell(*told)
    world.fake.digest(5)
    wanted = {hash_of(r, world.key(5)) % SLICE_COUNT for r in told[:7]}
    world.fake.ask_for_slices(5, wanted)
    _, got, number = world.fake.bulk_in(5)
    assert number == len(got)
    assert world.keys(got) == world.keys(
        r for r in told if hash_of(r, world.key(5)) % SLICE_COUNT in wanted)


@ipv4
def test_all_slices(world):
    """In one message: each connection comes once."""
    told = [world.record(n) for n in range(60)]
    world.tell(*told)
    world.fake.digest(5)
    world.fake.ask_for_slices(5, range(SLICE_COUNT))
    _, got, number = world.fake.bulk_in(5)
    sent = [r for r in got if r.vport == world.port]
    assert number == len(got) and len(sent) == len(told)
    assert world.keys(sent) == world.keys(told)


@ipv4
def test_slices_of_another_comparison(world):
    """They mean nothing."""
    world.tell(*[world.record(n) for n in range(10)])
    world.fake.digest(5)
    before = world.peers.count("bulk_out")
    world.fake.ask_for_slices(4, range(SLICE_COUNT))
    world.fake.hello()
    time.sleep(2)
    assert world.peers.count("bulk_out") == before


@ipv4
def test_an_end_is_told(world):
    """A peer that asks for a slice hears of connections that have ended, too; a peer that
    joins does not."""
    closed = world.record(1, state=6, flags=INACTIVE, timeout=50)
    world.tell(world.record(2), closed)
    world.fake.digest(5)
    world.fake.ask_for_slices(5, range(SLICE_COUNT))
    _, got, _ = world.fake.bulk_in(5)
    assert {(r.client, r.state) for r in got if r.vport == world.port} == \
        {(closed.client, 6), (world.record(2).client, 1)}
    world.fake.ask(7)
    _, got, _ = world.fake.bulk_in(7)
    assert [r.client for r in got if r.vport == world.port] == [world.record(2).client]


@ipv4
def test_an_end_creates_nothing(world):
    world.fake.answer()
    world.peers.in_step(PEER[4])
    world.tell(world.record(1))
    over = {"state": 6, "flags": INACTIVE, "timeout": 50, "left": 40}
    world.fake.bulk(world.record(1, **over), world.record(2, **over), world.record(3, left=40))
    world.row(world.record(3))
    assert {(row["client"], row["state"]) for row in world.side.rows(vport=world.port)} == \
        {(world.record(1).client, "CLOSE"), (world.record(3).client, "ESTABLISHED")}


@ipv4
def test_too_many_digests(world):
    world.fake.digest(5)
    before = world.peers.count("rate_limited")
    for n in range(20):
        world.fake.send_control(DIGEST_ASK, struct.pack(">Q", 100 + n))
    wait_until(lambda: world.peers.count("rate_limited") == before + 20, 5, what="refusals")


@ipv4
def test_differences_are_asked_for(world):
    """SYNC_VERIFY counts them, and asks for the slices."""
    world.fake.answer()
    world.peers.in_step(PEER[4])
    world.peers.verify(PEER[4])
    (nonce,) = struct.unpack(">Q", world.fake.body(DIGEST_ASK))
    key = world.key(nonce)
    more = [world.record(n) for n in range(700, 705)]
    theirs, before = world_sums(world, key), len(established(world))
    mine = [a + b & 2 ** 64 - 1 for a, b in zip(theirs, sums_of(more, key))]
    world.fake.send_sums(nonce, mine)
    slices = world.fake.slices(nonce)
    assert slices == {hash_of(r, key) % SLICE_COUNT for r in more}
    progress = world.peers.progress(PEER[4])
    assert (progress["verified"], progress["difference"]) == (1, len(slices))
    world.fake.bulk(*(r.but(left=100) for r in more))
    world.fake.bulk_control(BULK_END, nonce, len(more))
    for r in more:
        world.row(r)
    assert progress["compared"] == before


def established(world):
    return [r for r in world.side.rows(origin="SYNC")
            if r["cport"] == 0 or r["state"] in ("ESTABLISHED", "UDP")]


def world_sums(world, key):
    """Sums of what the director has."""
    kinds = {"TCP": TCP, "SCTP": SCTP, "UDP": UDP}
    return sums_of([Record(r["client"], r["cport"], r["vip"], r["vport"], r["server"], r["dport"],
                           proto=kinds[r["proto"]],
                           flags=0 if r["cport"] else TEMPLATE)
                    for r in established(world)], key)


@ipv4
def test_missing_records_lead_to_a_comparison(world):
    """A resync of which something was lost is not all; when the sums are equal, it is."""
    world.fake.answer(world.record(1, left=100), missing=1)
    (nonce,) = struct.unpack(">Q", world.fake.body(DIGEST_ASK))
    assert world.peers.list()[PEER[4]]["state"] == "joining"
    world.fake.send_sums(nonce, world_sums(world, world.key(nonce)))
    world.peers.in_step(PEER[4])
    assert world.peers.progress(PEER[4])["difference"] == 0


@ipv4
def test_sums_of_another_comparison(world):
    """They are not compared; those that were lost are asked for again."""
    world.fake.answer()
    world.peers.in_step(PEER[4])
    world.tell(world.record(1))
    world.peers.verify(PEER[4])
    (nonce,) = struct.unpack(">Q", world.fake.body(DIGEST_ASK))
    right = world_sums(world, world.key(nonce))
    world.fake.send_sums(nonce ^ 1, [n + 1 for n in right])
    assert world.fake.body(DIGEST_ASK) == struct.pack(">Q", nonce)
    world.fake.send_sums(nonce, right[:SLICE_COUNT - SUMS])
    assert world.fake.body(DIGEST_ASK) == struct.pack(">Q", nonce)
    assert world.peers.progress(PEER[4])["verified"] == 0
    world.fake.send_sums(nonce, right)
    wait_until(lambda: world.peers.progress(PEER[4])["verified"] == 1, 5, what="a comparison")
    assert world.peers.progress(PEER[4])["difference"] == 0


@ipv4
def test_silent_peer(world):
    """One that answers no question is asked less and less often, and after a while still."""
    world.fake.answer()
    world.peers.in_step(PEER[4])
    world.peers.verify(PEER[4])
    begins, nonces = [], set()
    while len(begins) < 6:
        nonce = world.fake.body(DIGEST_ASK, 100)
        if nonce not in nonces:
            begins.append(time.monotonic())
            nonces.add(nonce)
    gaps = [b - a for a, b in itertools.pairwise(begins)]
    assert all(a <= b + 1.5 for a, b in itertools.pairwise(gaps)), gaps
    assert 9 <= gaps[0] <= 13 and 78 <= gaps[-1] <= 83, gaps


@ipv4
def test_compared_by_itself(world):
    """As often as the setting says."""
    world.peers.set(verify=6)
    world.fake.answer()
    for _ in range(2):
        (nonce,) = struct.unpack(">Q", world.fake.body(DIGEST_ASK, 12))
        world.fake.send_sums(nonce, world_sums(world, world.key(nonce)))
    assert world.peers.settings()["verify"] == 6


# ---- the group

def test_push(nat, side):
    """All connections are announced to the group, once, as ip_vs would."""
    with Peers(side.ns) as peers, side.receiver() as group, daemons.running(side.ipvs, "master"):
        peers.add(PEER[4])
        with Fake(side.peer) as fake:
            world = World(side, peers, fake.join(), 4)
            told = [world.record(n) for n in range(50)] + [world.template(1)]
            world.tell(*told)
            peers.delete(PEER[4])
            peers.resync(push=True)
            got = group.records(lambda r: r.vport == world.port, len(told))
            assert world.keys(got) == world.keys(told)
            assert len(got) == len(told)
            assert not any(r.left for r in got)


# ---- many

@ipv4
def test_many(world, request):
    """A whole table, without a limit."""
    count = amount(request.config, few=1500, all=20000)
    world.peers.set(rate=0)
    for at in range(0, count, 10000):
        world.tell(*[world.record(n) for n in range(at, min(at + 10000, count))])
    begin = time.monotonic()
    world.fake.ask(7)
    _, got, number = world.fake.bulk_in(7, 60)
    assert time.monotonic() - begin < 8
    assert len(got) == number
    assert len(world.keys(got)) == count


