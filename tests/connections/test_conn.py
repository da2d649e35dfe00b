# SPDX-License-Identifier: GPL-2.0
"""The life of a connection: states, timeouts, counters, and removal of its server."""

import random

import pytest
from lab import genl, packet
from lab.netns import wait_until
from lab.packet import ACK, FIN, RST, SCTP, SYN, TCP, UDP
from lab.raw import Raw
from lab.tcp import CL, DRESSED, ES, FW, SR, TW, Walker

WALKS = {
    "server-closes": [("out", SYN), ("in", ACK), ("out", FIN), ("in", ACK), ("in", FIN),
                      ("out", ACK)],
    "client-closes": [("out", SYN), ("in", ACK), ("in", FIN), ("out", ACK), ("out", FIN),
                      ("in", ACK)],
    "client-resets": [("out", SYN), ("in", ACK), ("in", RST)],
    "server-refuses": [("out", RST)],
    "server-resets": [("out", SYN), ("in", ACK), ("out", RST), ("in", SYN)],
    "reopened": [("out", SYN), ("in", ACK), ("in", FIN), ("out", FIN), ("in", SYN),
                 ("out", SYN), ("in", ACK)],
}


@pytest.mark.smoke
@pytest.mark.parametrize("walk", WALKS)
def test_tcp_states_nat(nat, family, walk):
    w = Walker(nat, family)
    for direction, event in WALKS[walk]:
        w.step(direction, event)


def test_nothing_begins_from_the_port_of_ftp_data(nat, family, proto):
    """From port 20 an FTP server opens its data connections: a packet from there is no first
    one of a client. Its neighbours are like any port."""
    raw = Raw(nat, proto, family)
    for sport in (19, 20, 21):
        client = raw.client(sport=sport)
        client.send()
        raw.fence()
        assert len(client.arrivals()) == (sport != 20)
        assert bool(client.row()) == (sport != 20)


def test_only_its_port_is_served(nat, family):
    """Of 200 ports beside that of a service, some share its place where packets look first."""
    raw = Raw(nat, UDP, family)
    client = raw.client()
    for port in range(raw.port - 100, raw.port + 101):
        raw.client_tap.send(packet.udp_packet(client.address, client.sport, raw.vip, port, b"%d" % port))
    raw.fence()
    assert [p.payload for _, p in client.arrivals()] == [b"%d" % raw.port]


@pytest.mark.parametrize("shape", ("dr", "tun"))
def test_tcp_states_without_replies(topologies, shape, family, request):
    lab = request.getfixturevalue(shape)
    w = Walker(lab, family)
    for event in (ACK, SYN, ACK, FIN, ACK, SYN, ACK, RST, SYN, FIN):
        w.step("in", event)


@pytest.mark.parametrize("shape", ("nat", "dr"))
@pytest.mark.parametrize("seed", (1, 2))
def test_tcp_states_random(shape, seed, request):
    """Random events: the connection follows the model, Walker's state table."""
    lab = request.getfixturevalue(shape)
    chance = random.Random(seed)
    w = Walker(lab, 4)
    for _ in range(60):
        direction = chance.choice(("in", "out")) if shape == "nat" else "in"
        event = chance.choice((SYN, SYN, FIN, ACK, ACK, RST, 0))
        w.step(direction, event, chance.choice(DRESSED[event]))


@pytest.mark.smoke
def test_udp_state(lab, family):
    raw = Raw(lab, UDP, family)
    client = raw.client()
    client.open()
    row = client.row()
    assert (row["proto"], row["state"]) == ("UDP", "UDP")
    assert 296 <= row["expires"] <= 300
    assert (row["server"], row["dport"]) == (raw.address(1), raw.dport)
    assert (raw.dest(1)["active"], raw.dest(1)["inactive"]) == (0, 1)


@pytest.mark.timer
def test_expiry(nat, family, proto):
    """An idle connection expires after its timeout, a busy one stays; the server's
    counts follow."""
    raw = Raw(nat, proto, family)
    nat.ipvs.timeouts(tcp=1, fin=1, udp=1)
    idle, busy = raw.client(), raw.client()
    for client in (idle, busy):
        client.open()
        if proto != SCTP:       # SCTP: only the first state has a short timeout
            client.reply().answered()
        client.send(ACK)
        client.arrive()
    assert idle.row() and busy.row()

    def gone():
        busy.send(ACK)
        busy.arrive()
        return idle.row() is None

    wait_until(gone, 10, step=0.2)
    assert busy.row()
    wait_until(lambda: busy.row() is None, 10, step=0.2)
    wait_until(lambda: raw.dest(1)["active"] + raw.dest(1)["inactive"] == 0, 5)
    busy.send(ACK)
    if proto == UDP:
        busy.arrive()
    elif proto == TCP:
        assert busy.answered().flags & RST
    else:
        busy.nothing_arrives()


@pytest.mark.timer
def test_fin_timeout(nat):
    nat.ipvs.timeouts(fin=2)
    raw = Raw(nat, TCP)
    client = raw.client()
    client.establish()
    client.reply(FIN).answered()
    assert client.state == FW
    wait_until(lambda: client.row() is None, 10, step=0.2)


def test_timeouts_of_old_connections(nat):
    """New values apply from a connection's next packet."""
    raw = Raw(nat, UDP)
    client = raw.client()
    client.open()
    nat.ipvs.timeouts(udp=77)
    client.send()
    client.arrive()
    assert 74 <= client.row()["expires"] <= 77


@pytest.mark.smoke
def test_weight_zero(lab, family, proto):
    """Weight 0: no new connections, the old ones go on. No server left: refused."""
    raw = Raw(lab, proto, family, (1, 2))
    first = {}
    for _ in range(2):
        client = raw.client()
        first[client.open()] = client
    assert set(first) == {1, 2}
    raw.edit(1, weight=0)
    for _ in range(3):
        assert raw.client().open() == 2
    first[1].send(ACK)
    assert first[1].arrive()[0] == 1
    raw.edit(2, weight=0)
    refused = raw.client()
    refused.send()
    refused.icmp()
    first[2].send(ACK)
    assert first[2].arrive()[0] == 2
    raw.edit(1, weight=1)
    assert raw.client().open() == 1


@pytest.mark.smoke
def test_server_deleted_and_back(lab, family, proto):
    """Packets for a deleted server are dropped silently; when it is added again, it
    has its connections, counts and statistics back."""
    raw = Raw(lab, proto, family, (1, 2))
    clients = {}
    for _ in range(2):
        client = raw.client()
        number = client.establish() if proto == TCP else client.open()
        clients[number] = client
    before = raw.dest(1)
    raw.remove(1)
    clients[1].send(ACK)
    clients[1].nothing_arrives()
    assert raw.client_tap.take(lambda p: p.dst == clients[1].address) == []
    clients[2].send(ACK)
    assert clients[2].arrive()[0] == 2
    assert raw.client().open() == 2
    assert clients[1].row()
    raw.add(1)
    clients[1].send(ACK)
    assert clients[1].arrive()[0] == 1
    after = raw.dest(1)
    assert (after["active"], after["inactive"]) == (before["active"], before["inactive"])
    assert [d["addr"] for d in raw.service.servers()] == [raw.address(1), raw.address(2)]


def test_service_deleted_and_back(nat, family):
    """As for servers: while another service exists, packets of a deleted service's
    connections are dropped; added again, the service has its connections back."""
    other = Raw(nat, TCP, family)
    raw = Raw(nat, TCP, family)
    client = raw.client()
    client.establish()
    raw.service.delete()
    client.send(ACK)
    client.nothing_arrives()
    raw.service.add()
    raw.add(1)
    client.send(ACK)
    assert client.arrive()[0] == 1
    assert client.state == ES
    assert other.client().open() == 1


@pytest.mark.timer
def test_thresholds_on_edit(lab, family):
    """An edit applies the thresholds at once to the server's present connections."""
    raw = Raw(lab, UDP, family)
    for _ in range(4):
        raw.client().open()
    for upper, lower, overloaded in ((4, 2, True), (5, 0, True), (8, 0, False),
                                     (5, 0, False), (4, 4, True), (0, 0, False)):
        raw.edit(1, upper=upper, lower=lower)
        client = raw.client()
        client.send()
        if overloaded:
            client.icmp()
        else:
            # Take the connection back so that every case starts with four.
            client.arrive()
            expire(lab, raw, [client])


def expire(lab, raw, clients):
    """Let CLIENTS' connections expire now, and only theirs."""
    lab.ipvs.timeouts(udp=1)
    for client in clients:
        client.send()
        client.arrive()
    lab.ipvs.timeouts(udp=300)
    left = raw.dest(1)["inactive"] - len(clients)
    # A row may go a moment before the count does.
    wait_until(lambda: not any(c.row() for c in clients), 10, step=0.1)
    wait_until(lambda: raw.dest(1)["inactive"] == left, 5, step=0.1)


@pytest.mark.timer
@pytest.mark.smoke
def test_thresholds_by_count(nat):
    """A server gets no connections from its upper threshold u on, until the count
    falls below its lower threshold l, or below three quarters of u without an l."""
    cases = {(4, 0): 2, (4, 2): 1, (4, 4): 3, (1, 0): 0, (2, 1): 0}
    raws = {case: Raw(nat, UDP, server={"upper": case[0], "lower": case[1]})
            for case in cases}
    open_ = {case: [raws[case].client() for _ in range(case[0])] for case in cases}
    for case, clients in open_.items():
        for client in clients:
            client.open()
        refused = raws[case].client()
        refused.send()
        refused.icmp()
    # Down to one above the mark: still closed.
    drop(nat, raws, open_, {case: clear + 1 for case, clear in cases.items()})
    for case in cases:
        refused = raws[case].client()
        refused.send()
        refused.icmp()
    drop(nat, raws, open_, cases)
    for case in cases:
        assert raws[case].client().open() == 1, case


def drop(lab, raws, open_, keep):
    lab.ipvs.timeouts(udp=1)
    dying = []
    for case, count in keep.items():
        while len(open_[case]) > count:
            client = open_[case].pop()
            client.send()
            client.arrive()
            dying.append(client)
    lab.ipvs.timeouts(udp=300)
    wait_until(lambda: not any(c.row() for c in dying), 10, step=0.1)
    for case, count in keep.items():
        wait_until(lambda c=case, n=count: raws[c].dest(1)["inactive"] == n, 5)


@pytest.mark.smoke
def test_overloaded_server_is_skipped(nat):
    raw = Raw(nat, UDP, numbers=(1, 2, 3))
    raw.edit(2, upper=1)
    got = [raw.client().open() for _ in range(7)]
    assert got.count(2) == 1
    assert got[3:] in ([1, 3, 1, 3], [3, 1, 3, 1])


@pytest.mark.smoke
def test_port_reuse(nat, family):
    """A SYN on a closed connection opens a new one, which is scheduled again; a SYN
    on an open connection does not."""
    raw = Raw(nat, TCP, family, (1, 2))
    client = raw.client()
    first = client.establish()
    client.send(SYN)
    assert client.arrive()[0] == first
    client.reply(FIN).answered()
    client.send(FIN | ACK)
    client.arrive()
    assert client.state == TW
    client.send(SYN)
    assert client.arrive()[0] == 3 - first
    wait_until(lambda: len(client.rows()) == 1, 3)
    assert client.state == SR


def test_sysctl_conn_reuse_mode(nat):
    path = "net/ipv4/vs/conn_reuse_mode"
    raw = Raw(nat, TCP, 4, (1, 2))
    nat.director.ns.sysctl(path, 0)
    try:
        client = raw.client()
        first = client.establish()
        client.reply(RST).answered()
        assert client.state == CL
        client.send(SYN)
        assert client.arrive()[0] == first
    finally:
        nat.director.ns.sysctl(path, 1)


@pytest.mark.smoke
def test_one_packet_scheduling(dr, family, backend):
    """-o: every datagram is scheduled by itself and leaves no connection."""
    raw = Raw(dr, UDP, family, (1, 2), flags=genl.ONEPACKET)
    client = raw.client()
    got = [client.send(payload=b"%d" % i).arrive()[0] for i in range(6)]
    assert got == ([1, 2] if backend.is_l4lb else [2, 1]) * 3
    assert dr.conns(client=client.address) == []
    wait_until(lambda: raw.service.stats["conns"] == 6, 5)
    assert {d["inactive"] for d in raw.service.servers()} == {0}


def test_many_connections(nat):
    """Many flows: each is found again and counted, none is mixed up."""
    raw = Raw(nat, UDP, 4, (1, 2, 3, 4))
    source = nat.client_address()
    total = 800
    for sport in range(10000, 10000 + total):
        raw.client_tap.send(packet.udp_packet(source, sport, raw.vip, raw.port, b"1"))
    chosen = {}

    def all_there():
        for n, tap in raw.taps.items():
            for p in tap.take(lambda p: p.src == source):
                chosen.setdefault(p.sport, n)
        return len(chosen) == total

    wait_until(all_there, 30)
    assert sorted(list(chosen.values()).count(n) for n in raw.taps) == [total // 4] * 4
    assert len(nat.conns(client=source)) == total
    for sport in range(10000, 10000 + total):
        raw.client_tap.send(packet.udp_packet(source, sport, raw.vip, raw.port, b"2"))
    again = {}

    def all_again():
        for n, tap in raw.taps.items():
            for p in tap.take(lambda p: p.src == source and p.payload == b"2"):
                again[p.sport] = n
        return len(again) == total

    wait_until(all_again, 30)
    assert again == chosen
    assert sum(d["inactive"] for d in raw.service.servers()) == total
