# SPDX-License-Identifier: GPL-2.0
"""Peers: directors that know each other by address, and check what they tell each other."""

import errno
import hashlib
import itertools
import time

import pytest
from lab import daemons, packet
from lab.genl import is_refused
from lab.netns import wait_until
from lab.peers import BULK, KEYED, NACK, OTHER, PORT, Fake, Peers, trailer, with_trailer
from lab.sync_group import DIRECTOR, PEER
from lab.sync_wire import INACTIVE, Record, message

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
BY = {4: ("10.9.0.{}", "10.9.1.1", "10.9.2.1"),
      6: ("2001:db8:9::{:x}", "2001:db8:9:1::1", "2001:db8:9:2::1")}


# The VIP's port in records of the present test: connections stay when it ends.
ports = itertools.count(20000)
port = [0]


pytestmark = pytest.mark.waits


@pytest.fixture(autouse=True)
def own_port():
    port[0] = next(ports)


def record(n, family=4):
    """A connection whose client is number N. No two tests' have the same replies: of these
    only 16 are kept."""
    client, vip, server = BY[family]
    return Record(client.format(n), 1000 + n + 20 * (port[0] - 20000), vip, port[0], server, 80, timeout=300)


def mine(side):
    return side.rows(vport=port[0])


@pytest.fixture
def peers(side):
    with Peers(side.ns) as one:
        yield one


@pytest.fixture
def fake(side, peers, family):
    peers.add(PEER[family])
    with Fake(side.peer, family) as one:
        yield one.join()


def arrives(side, *numbers, family=4):
    for n in numbers:
        side.row(record(n, family))


def stays_away(side, peers, counter, before):
    """The message was counted as COUNTER, and had no other effect."""
    wait_until(lambda: peers.count(counter) > before, 5, what=f"sync_{counter}")
    assert mine(side) == []


# ---- commands ----

REFUSED = {
    "multicast": ("224.0.0.81", "EINVAL"), "zero": ("0.0.0.0", "EINVAL"),
    "broadcast": ("255.255.255.255", "EINVAL"), "loopback": ("127.0.0.1", "EINVAL"),
    "link-local": ("fe80::1", "EINVAL"), "multicast6": ("ff02::51", "EINVAL"),
    "any6": ("::", "EINVAL"), "loopback6": ("::1", "EINVAL"), "mapped": ("::ffff:10.0.0.1", "EINVAL"),
    "link-local4": ("169.254.1.1", "EINVAL"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(peers, name):
    addr, why = REFUSED[name]
    is_refused(lambda: peers.add(addr), getattr(errno, why))
    assert peers.list() == {}


def test_list(side, peers):
    peers.add("10.1.1.1")
    peers.add("2001:db8::1", port=9000, hops=True)
    nothing = {"state": "absent", "sender": None, "heard": None, "gaps": 0, "repaired": 0,
               "lost": 0, "resent": 0}
    assert peers.list() == {"10.1.1.1": {"port": 8912, "hops": False, **nothing},
                            "2001:db8::1": {"port": 9000, "hops": True, **nothing}}
    is_refused(lambda: peers.add("10.1.1.1", port=1), errno.EEXIST)
    is_refused(lambda: peers.delete("10.1.1.2"), errno.ESRCH)
    is_refused(lambda: peers.set(port=9000), errno.EBUSY)
    for n in range(6):
        peers.add(f"10.1.2.{n}")
    is_refused(lambda: peers.add("10.1.1.3"), errno.E2BIG)
    peers.delete("10.1.1.1")
    assert len(peers.list()) == 7


def test_settings(peers):
    assert {k: v for k, v in peers.settings().items() if k in ("rate", "multicast", "port", "key_id")} == {
        "rate": 20000, "multicast": True, "port": 8912, "key_id": None}
    for length in (1, 16, 31):
        is_refused(lambda: peers.set(rate=5, key=bytes(length)), errno.EINVAL)    # noqa: B023
    is_refused(lambda: peers.set(port=0), errno.EINVAL)
    assert peers.settings()["rate"] == 20000, "all or none"
    ids = []
    for key in (KEY, OTHER_KEY, KEY):
        peers.set(key=key)
        ids.append(peers.settings()["key_id"])
    assert ids[0] == ids[2] != ids[1]
    peers.set(key=b"")
    assert peers.settings()["key_id"] is None


# ---- what is believed ----

@pytest.mark.smoke
def test_peer_is_believed(side, peers, fake, family):
    fake.records(record(1, family), sequence=1)
    arrives(side, 1, family=family)
    assert fake.ttl == 255
    one = peers.list()[PEER[family]]
    assert one["state"] == "joining"
    assert one["sender"] == fake.sender


def test_same_message_again(side, peers, fake):
    before = peers.count("records_in")
    for _ in range(3):
        fake.records(record(1), sequence=1)
    fake.records(record(2), sequence=2)
    arrives(side, 1, 2)
    assert peers.count("records_in") - before == 2
    assert peers.count("repeated") >= 2


def test_before_it_proves_that_it_is_there(side, peers):
    """Its messages do not count until it has sent back the director's random number; an old
    HELLO is no proof."""
    peers.add(PEER[4])
    with Fake(side.peer) as one:
        one.next_hello()
        before = peers.count("replay")
        one.records(record(1), sequence=1)
        stays_away(side, peers, "replay", before)
        good = one.echo
        one.echo = good ^ 1
        one.hello()
        one.records(record(1), sequence=1)
        stays_away(side, peers, "replay", before + 1)
        assert peers.list()[PEER[4]]["state"] == "absent"
        one.join()
        one.records(record(1), sequence=1)
        arrives(side, 1)


def test_recorded_messages_of_a_sender_before(side, peers):
    """A peer starts again. What it sent before, sent by somebody else, does not count, and its
    own messages still do."""
    peers.set(key=KEY)
    peers.add(PEER[4])
    with Fake(side.peer, key=KEY) as one:
        one.next_hello()
        old = [one.hello()]
        one.join()
        old += [one.message(message([record(9)]), 1), one.message(message([record(9)]), 2 ** 40)]
        one.sender, one.control = one.sender ^ 2, 0
        one.join()
        before = peers.count("replay")
        for _ in range(3):
            for data in old:
                one.raw(data)
        stays_away(side, peers, "replay", before + 8)
        one.records(record(1), sequence=1)
        arrives(side, 1)
        assert peers.list()[PEER[4]]["sender"] == one.sender


def test_recorded_hello_of_the_same_sender(side, peers):
    """It does not take the window back."""
    peers.set(key=KEY)
    peers.add(PEER[4])
    with Fake(side.peer, key=KEY) as one:
        one.join()
        hello = one.hello()
        wait_until(lambda: peers.list()[PEER[4]]["sender"] == one.sender, 5, what="it is heard")
        live = one.message(message([record(1)]), 1)
        one.raw(live)
        arrives(side, 1)
        before, applied = peers.count("repeated"), peers.count("records_in")
        one.raw(hello)
        one.raw(live)
        wait_until(lambda: peers.count("repeated") > before, 5, what="sync_repeated")
        assert peers.count("records_in") == applied


FORGED = {
    "other-port": ({"port": 8913}, {}, "source"),
    "other-address": ({"addr": "172.31.0.77"}, {}, "source"),
    "hop-limit": ({"hops": 254}, {}, "source"),
    "hop-limit-1": ({"hops": 1}, {}, "source"),
    "no-key": ({"key": None}, {}, "mac"),
    "wrong-key": ({"key": OTHER_KEY}, {}, "mac"),
    "zero-key": ({"key": bytes(32)}, {}, "mac"),
    "other-sender": ({}, {"sender": 77}, "replay"),
}


@pytest.mark.smoke
@pytest.mark.parametrize("name", FORGED)
def test_forged(side, peers, name):
    """Only the counter rises, and the true peer is believed as before."""
    how, what, counter = FORGED[name]
    peers.set(key=KEY)
    peers.add(PEER[4])
    side.peer.ip("addr add 172.31.0.77/24 dev sync0")
    try:
        with Fake(side.peer, key=KEY) as one:
            one.join()
            sender = one.sender
            if how:
                one.sock.close()
            with Fake(side.peer, **{"key": KEY, **how}) if how else one as other:
                other.sender = sender
                before = peers.count(counter)
                other.records(record(1), sequence=5, **what)
                stays_away(side, peers, counter, before)
                assert peers.count(counter) == before + 1
    finally:
        side.peer.ip("addr del 172.31.0.77/24 dev sync0")


def test_each_byte_is_signed(side, peers):
    peers.set(key=KEY)
    peers.add(PEER[4])
    with Fake(side.peer, key=KEY) as one:
        one.join()
        good = one.message(message([record(1)]), 1)
        before = peers.count("mac")
        for at in range(len(good)):
            one.raw(good[:at] + bytes([good[at] ^ 4]) + good[at + 1:])
        stays_away(side, peers, "mac", before + len(good) - 1)
        one.raw(good)
        arrives(side, 1)


def test_own_messages_come_back(side, peers):
    """Somebody sends the director what it has sent itself."""
    peers.set(key=KEY)
    peers.add(PEER[4])
    with Fake(side.peer, key=KEY) as one:
        tail, data = one.next_hello()
        own = tail["sender"]
        one.join()
        before = peers.count("replay")
        one.raw(with_trailer(data, trailer(
            own, tail["sequence"], tail["flags"] | KEYED, tail["stream"]), KEY))
        one.records(record(1), sequence=1, sender=own)
        stays_away(side, peers, "replay", before + 1)
        assert peers.count("replay") == before + 2
        one.records(record(2), sequence=1)
        arrives(side, 2)


def test_recorded_before_the_receiver_started(side, peers):
    """The director has forgotten all of its peer: what was recorded is believed no more."""
    peers.set(key=KEY)
    peers.add(PEER[4])
    with Fake(side.peer, key=KEY) as one:
        one.join()
        old = [one.hello(), one.message(message([record(1)]), 1), one.hello()]
        peers.delete(PEER[4])
        peers.add(PEER[4])
        before = peers.count("replay")
        for data in old:
            one.raw(data)
        stays_away(side, peers, "replay", before)
        assert peers.list()[PEER[4]]["state"] == "absent"
        one.join().records(record(2), sequence=1)
        arrives(side, 2)


def damaged_trailers(good):
    """{name: (message, counter)}; GOOD has a trailer that is signed with KEY."""
    def tail(at, data):
        """Signed again."""
        body = good[:len(good) - 64 + at] + data + good[len(good) - 64 + at + len(data):]
        return body[:-32] + hashlib.blake2s(body[:-32] + bytes(32), key=KEY).digest()
    return {
        "length-255": tail(5, b"\xff"), "length-0": tail(5, b"\0"), "version-2": tail(4, b"\2"),
        "unknown-flag": tail(6, b"\x80"), "sender-0": tail(8, bytes(8)),
        "sequence-0": tail(16, bytes(8)), "sequence-2^64-1": tail(16, b"\xff" * 8),
        "stream-64": tail(24, b"\x40"), "mac-of-zeros": good[:-32] + bytes(32),
        "beyond-the-end": good[:-8], "alone": good[-64:],
    }


@pytest.mark.parametrize("name", damaged_trailers(bytes(200)))
def test_damaged_trailer(side, peers, name):
    """Even if it is signed: nothing of it counts, and no window moves."""
    peers.set(key=KEY)
    peers.add(PEER[4])
    with Fake(side.peer, key=KEY) as one:
        one.join()
        before = peers.count("mac")
        one.raw(damaged_trailers(one.message(message([record(1)]), 1))[name])
        stays_away(side, peers, "mac", before)
        assert peers.count("mac") == before + 1
        one.records(record(2), sequence=1)
        arrives(side, 2)


def test_from_another_interface(nat, side, peers, family):
    """A client forges the address and port of a peer, and knows its hop limit: it does not know
    the number of its sender."""
    peers.add(PEER[family])
    tap = nat.tap("client")
    with Fake(side.peer, family) as one:
        one.join()
        before = peers.count("replay")
        data = with_trailer(message([record(1, family)]), trailer(one.sender ^ 2, 1))
        tap.send(packet.udp_packet(PEER[family], PORT, DIRECTOR[family], PORT, data, ttl=255))
        stays_away(side, peers, "replay", before)
        one.records(record(2, family), sequence=1)
        arrives(side, 2, family=family)


def test_hops(side, peers):
    """A peer that was added with it may be further away."""
    peers.add(PEER[4], hops=True)
    with Fake(side.peer, hops=3) as one:
        one.join().records(record(1), sequence=1)
        arrives(side, 1)


def test_key_before_is_accepted(side, peers):
    """Until the key is set again."""
    peers.set(key=KEY)
    peers.add(PEER[4])
    with Fake(side.peer, key=KEY) as one:
        one.join()
        peers.set(key=OTHER_KEY)
        one.records(record(1), sequence=1)
        arrives(side, 1)
        peers.set(key=OTHER_KEY)
        before = peers.count("mac")
        one.records(record(2), sequence=2)
        wait_until(lambda: peers.count("mac") > before, 5, what="sync_mac")
        one.key = OTHER_KEY
        one.records(record(3), sequence=3)
        arrives(side, 3)


def test_largest_numbers(side, peers, fake):
    """They are taken once, and a peer whose numbers are wrong recovers with the next HELLO."""
    fake.records(record(1), sequence=2 ** 63 - 1)
    arrives(side, 1)
    before = peers.count("repeated")
    fake.records(record(2), sequence=5)
    wait_until(lambda: peers.count("repeated") > before, 5, what="sync_repeated")
    fake.sender ^= 4
    fake.join()
    fake.records(record(2), sequence=5)
    arrives(side, 2)


test_largest_numbers = pytest.mark.parametrize("family", [4])(test_largest_numbers)


# ---- multicast ----

def test_group_with_key(side, peers):
    """Signed messages of a sender that is no peer count, in their order, once."""
    peers.set(key=KEY)
    with side.backup(), side.sender() as group:
        def send(n, sequence, key=KEY, sender=5):
            group.send(with_trailer(message([record(n)]), trailer(sender, sequence,
                                                                  KEYED if key else 0), key))
        send(1, 10)
        arrives(side, 1)
        before = peers.count("replay")
        send(2, 10)
        send(2, 9)
        send(2, 10, sender=5)
        wait_until(lambda: peers.count("replay") >= before + 3, 5, what="sync_replay")
        before = peers.count("mac")
        send(2, 11, key=None)
        send(2, 11, key=OTHER_KEY)
        group.send(message([record(2)]))
        wait_until(lambda: peers.count("mac") >= before + 3, 5, what="sync_mac")
        send(3, 11)
        arrives(side, 3)
        assert len(mine(side)) == 2


def test_group_without_key_or_peers(side, peers):
    """A trailer is ignored, as by ip_vs: no byte of it is an error."""
    with side.backup(), side.sender() as group:
        for flags, stream in ((0, 0), (BULK, OTHER)):
            group.send(with_trailer(message([record(1)]), trailer(5, 1, flags, stream)))
        arrives(side, 1)
        wait_until(lambda: peers.count("records_in") >= 2, 5, what="two records")
        assert peers.count("trailing") == 0


def test_forged_numbers_of_the_group(side, peers):
    """Without a key: a number far ahead keeps nothing away that the peer sends later."""
    peers.add(PEER[4])
    with Fake(side.peer) as fake, side.backup(), side.sender() as group:
        fake.join()
        fake.records(record(1), sequence=1)
        arrives(side, 1)
        group.send(with_trailer(message([record(9)]), trailer(fake.sender, 2 ** 62)))
        arrives(side, 9)
        fake.records(record(2), sequence=2)
        arrives(side, 1, 2)


# ---- repair ----

@pytest.mark.parametrize("family", [4])
def test_missing_messages_are_asked_for(side, peers, fake):
    fake.records(record(1), sequence=1)
    fake.records(record(5), sequence=5)
    tail, data = fake.until(lambda t, d: d[8] == 2 and t["flags"] & 8)
    assert data[12:] == bytes(4) + (2).to_bytes(8, "big") + (4).to_bytes(8, "big")
    for n in (4, 2, 3):
        fake.records(record(n), sequence=n, flags=4)
    arrives(side, 1, 2, 3, 4, 5)
    wait_until(lambda: peers.list()[PEER[4]]["repaired"] == 3, 5, what="repaired")
    one = peers.list()[PEER[4]]
    assert (one["gaps"], one["lost"]) == (3, 0)


CLOSE, FIN_WAIT = 6, 4


@pytest.mark.parametrize("family", [4])
@pytest.mark.parametrize("again", (4, 0), ids=("repaired", "overtaken"))
def test_late_messages_take_nothing_back(side, peers, fake, again):
    """A connection that is over stays so, and one stays with its server; but it goes on to
    a later phase of its life, and what is not known is created."""
    over = record(1).but(state=CLOSE, flags=INACTIVE, timeout=60)
    moved = record(2).but(server="10.1.0.9")
    fake.records(over, moved, record(3), sequence=1)
    fake.records(over, moved, record(3), sequence=4)
    for one in (over, moved, record(3)):
        side.row(one)
    fake.records(record(1), record(2), record(4), sequence=2, flags=again)
    side.row(record(4))
    fake.records(record(3).but(state=FIN_WAIT, flags=INACTIVE, timeout=120), record(5), sequence=3,
                 flags=again)
    side.row(record(5))
    rows = {row["client"]: row for row in mine(side)}
    assert rows[record(1).client]["state"] == "CLOSE"
    assert rows[record(2).client]["server"] == "10.1.0.9"
    assert rows[record(3).client]["state"] == "FIN_WAIT"


@pytest.mark.parametrize("family", [4])
def test_what_is_sent_again_is_old(side, peers, fake):
    """Also if it is the newest that has come: after the wire was cut, it tells of the time before,
    and takes no connection to another server."""
    moved = record(1).but(server="10.1.0.9")
    fake.records(record(1), sequence=1)
    side.row(record(1))
    for flags, server in ((4, record(1).server), (0, moved.server)):
        fake.records(moved, record(2 + flags), sequence=2 + (not flags), flags=flags)
        side.row(record(2 + flags))
        assert side.row(record(1))["server"] == server


@pytest.mark.parametrize("family", [4])
def test_recorded_messages_use_up_nothing(side, peers, fake):
    """More of them than a peer may send in a second; its next ones are taken."""
    many = bytearray(message([record(1)]))
    many[4] = 255           # records, so it says
    data, hello = fake.message(bytes(many), 1), fake.hello([(0, 1)])
    fake.raw(data)
    arrives(side, 1)
    before, replays = peers.count("repeated"), peers.count("replay")
    for _ in range(1000):
        fake.raw(data)
    wait_until(lambda: peers.count("repeated") >= before + 1000, 10, step=0.001)
    fake.records(record(2), sequence=2)
    arrives(side, 2)
    for _ in range(100):
        fake.raw(hello)
    wait_until(lambda: peers.count("replay") > replays, 10, step=0.001)
    fake.hello([(5, 1)])
    fake.until(lambda t, d: d[8] == NACK and t["flags"] & 8, 0.5)


@pytest.mark.parametrize("family", [4])
def test_messages_that_are_gone(side, peers, fake):
    fake.records(record(1), sequence=1)
    fake.records(record(5), sequence=5)
    arrives(side, 1, 5)
    fake.hello([(5, 4)])
    wait_until(lambda: peers.list()[PEER[4]]["lost"] == 2, 5, what="two messages lost")
    fake.until(lambda t, d: d[8] == 2 and t["flags"] & 8 and d[16:24] == (4).to_bytes(8, "big"))


@pytest.mark.parametrize("family", [4])
def test_last_message_is_missing(side, peers, fake):
    """Only a HELLO tells of it."""
    fake.hello([(3, 1)])
    fake.until(lambda t, d: d[8] == 2 and t["flags"] & 8)


@pytest.mark.parametrize("family", [4])
def test_too_many_nacks(side, peers, fake):
    """20,000 NACKs for all numbers there are: the director answers few, and still listens."""
    before = peers.count("rate_limited")
    begin = time.monotonic()
    for _ in range(20000):
        fake.nack((0, 1, 2 ** 64 - 1), (63, 1, 2 ** 64 - 1))
    assert time.monotonic() - begin < 60
    wait_until(lambda: peers.count("rate_limited") > before + 1000, 10, what="sync_rate_limited")
    fake.records(record(1), sequence=1)
    arrives(side, 1)
    assert peers.list()[PEER[4]]["resent"] == 0


# ---- byte for byte ----

def test_without_peers_nothing_is_added(nat, side, peers):
    """No trailer, no datagram for anybody."""
    before = peers.settings()["counters"]
    with side.master(), side.receiver() as group:
        service = nat.ipvs.service(nat.vip(4), nat.fresh_port(), sched="rr")
        service.server(nat.rip(1, 4), 80, method=nat.method)
        del group
    after = peers.settings()["counters"]
    assert after["sync_peer_out"] == before["sync_peer_out"]


def test_daemons_and_peers_end_in_any_order(side, peers):
    for first in ("peer", "daemon"):
        daemons.start(side.ipvs, "master")
        peers.add(PEER[4])
        if first == "peer":
            peers.delete(PEER[4])
            daemons.stop(side.ipvs, "master")
        else:
            daemons.stop(side.ipvs, "master")
            peers.delete(PEER[4])
