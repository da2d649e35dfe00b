# SPDX-License-Identifier: GPL-2.0
"""Floods from forged addresses: an honest client is served all the same, and nobody who
has had an answer loses a connection to them."""

import ipaddress
import itertools

import pytest
from lab.counters import counts
from lab.genl import PERSISTENT
from lab.packet import ACK, PSH, SYN, TCP, UDP
from lab.raw import Raw
from lab.rows import large
from lab.settings import setting
from lab.tables import forget, moved, room_for

ROOM = 300          # conn_max; a flood is twice that
LARGE = 50_000
HONEST = 100
FIRST = {4: ipaddress.ip_address("100.64.0.1"), 6: ipaddress.ip_address("2001:db8:64::1")}

pytestmark = pytest.mark.usefixtures("only_l4lb")


def strangers(raw, first):
    """Clients of RAW from number FIRST on, each with an address of its own that nobody has."""
    for number in itertools.count(first):
        yield raw.client(str(FIRST[raw.family] + number), 1024 + number % 60000)


def flood(raw, sends, count, first=0):
    """COUNT strangers, from number FIRST on, send what SENDS says: a list of TCP flags, or of
    datagrams. Yields now and then, so that an honest client comes in between."""
    for number, client in enumerate(itertools.islice(strangers(raw, first), count)):
        for what in sends:
            client.send(what) if raw.proto == TCP else client.send(payload=what)
        if number % (count // HONEST) == count // HONEST - 1:
            raw.fence()
            raw.drain()
            yield


def serves(raw):
    """Does an honest client get an answer? It opens, and asks for something."""
    client = raw.client()
    try:
        client.establish() if raw.proto == TCP else client.open()
        if raw.proto == TCP:
            client.send(ACK | PSH, b"request")
            client.arrive()
    except AssertionError:
        return None
    return client


def served_during(raw, other, sends, room=ROOM):
    """How many of HONEST clients of RAW and of another service are, while RAW is flooded;
    and whether those that had been proven before are there afterwards."""
    forget(raw.lab)
    with room_for(raw.lab, room):
        proven = [serves(r).prove() for r in (raw, other) for _ in range(10)]
        rounds = list(flood(raw, sends, room))      # until it is full
        assert rounds
        served = [0, 0]
        # Others than before, whose second time would make them well used.
        for _ in flood(raw, sends, 2 * room, first=room):
            for number, service in enumerate((raw, other)):
                served[number] += serves(service) is not None
        for client in proven:
            client.send(ACK) if client.raw.proto == TCP else client.send(payload=b"still here")
            client.arrive()
            assert client.row(), "a proven connection is gone"
        templates = [c for c in raw.lab.conns() if not c["cport"]]
        assert len(templates) <= max(room // 4, 64)
    return served


@pytest.mark.waits
@pytest.mark.parametrize("shape", ("nat", "dr"))
@pytest.mark.parametrize("sends", ([SYN], [SYN, ACK]), ids=("syn", "syn-ack"))
@pytest.mark.parametrize("persistent", (False, True), ids=("plain", "persistent"))
def test_forged_connections(shape, sends, persistent, family, request):
    """First packets, or handshakes whose second half is a guess; a persistent service gets
    a template for each."""
    lab = request.getfixturevalue(shape)
    options = {"flags": PERSISTENT, "timeout": 300} if persistent else {}
    raw, other = Raw(lab, TCP, family, **options), Raw(lab, TCP, family)
    before = counts(lab)
    served = served_during(raw, other, sends)
    assert min(served) >= HONEST * 99 // 100, served
    assert moved(lab, before)["evicted"] > ROOM


def test_forged_syns_and_bare_acks(nat, family):
    """A SYN outside the window makes a server send a bare ACK, and the connection established
    for the director; many of them prove no client."""
    forget(nat)
    raw = Raw(nat, TCP, family)
    forger = raw.client()
    forger.open()
    forger.reply(SYN | ACK).answered()
    for _ in range(9):
        forger.send(SYN)
        forger.arrive()
        forger.reply(ACK).answered()
    assert forger.state == "ESTABLISHED"
    before = counts(nat)
    with setting(nat, "conn_max", 1):
        raw.client().open()
    assert forger.row() is None
    assert moved(nat, before) == {"evicted": 1}


@pytest.mark.waits
@pytest.mark.parametrize("shape", ("nat", "dr"))
@pytest.mark.parametrize("datagrams", (1, 2, 8))
def test_forged_datagrams(shape, datagrams, family, request):
    lab = request.getfixturevalue(shape)
    raw, other = Raw(lab, UDP, family), Raw(lab, UDP, family)
    served = served_during(raw, other, [b"x"] * datagrams)
    assert min(served) >= HONEST * 99 // 100, served


@pytest.mark.parametrize("shape, proto, sends, persistent, room", (
    large("nat", TCP, [SYN, ACK], False, LARGE), large("dr", TCP, [SYN], True, LARGE),
    large("nat", UDP, [b"x"] * 2, False, LARGE), large("nat", TCP, [SYN, ACK], False, 7 * LARGE)),
    ids=("syn-ack", "templates", "datagrams", "a-million"))
def test_a_hundred_thousand(shape, proto, sends, persistent, room, request):
    """The floods above, from as many addresses, and from a million, with two packets each."""
    lab = request.getfixturevalue(shape)
    options = {"flags": PERSISTENT, "timeout": 300} if persistent else {}
    raw, other = Raw(lab, proto, **options), Raw(lab, proto)
    before = counts(lab)
    served = served_during(raw, other, sends, room)
    assert min(served) >= HONEST * 99 // 100, served
    # The second half of the flood began when the table was full.
    assert moved(lab, before)["evicted"] > room


def test_same_replies(nat, family):
    """One client socket reaches one server through many services: the replies of all have
    the same header. The newest gets them; one too many takes the place of one that may be
    forged, and is refused and counted if all are well used."""
    first = Raw(nat, UDP, family)
    raws = [first, *(Raw(nat, UDP, family, dport=first.dport) for _ in range(19))]
    before = counts(nat)
    clients = [raws[0].client()]
    clients += [raw.client(clients[0].address, clients[0].sport) for raw in raws[1:]]
    for client in clients[:16]:
        client.open()
    clients[16].open()
    assert moved(nat, before) == {"evicted": 1} and clients[0].row() is None
    for client in clients[1:17]:
        client.prove()
    for client in (clients[0], *clients[17:]):
        client.send()
        client.nothing_arrives()
    assert moved(nat, before) == {"evicted": 1, "same_replies": 4}
    newest = clients[16]
    newest.reply(number=1)
    assert newest.answered().sport == newest.raw.port
    # With one of them gone there is room for one.
    with setting(nat, "expire_nodest_conn", 1):
        clients[3].raw.remove(1)
    clients[17].open()
    clients[17].reply(number=1)
    assert clients[17].answered().sport == clients[17].raw.port
