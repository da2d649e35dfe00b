# SPDX-License-Identifier: GPL-2.0
"""What l4lb does with the records of other directors where in-tree ip_vs has no rule, or
another one: room in the table, conflicts, real servers that are not configured here."""

import contextlib
import ipaddress
import time

import pytest
from lab import daemons, fast, genl, packet, sync_wire
from lab.counters import counts as drops
from lab.genl import PERSISTENT
from lab.monitor import ConnLog
from lab.netns import Namespace, wait_until
from lab.packet import ACK, FIN, PSH, SYN, TCP, UDP
from lab.raw import Raw
from lab.rows import amount
from lab.settings import setting
from lab.sync_group import Sender, cable
from lab.sync_wire import DIRECT, INACTIVE, LOCAL, NAT, NO_OUTPUT, TEMPLATE, TUNNEL, Record, message
from lab.tables import room_for

pytestmark = pytest.mark.usefixtures("only_l4lb")

METHOD = {"nat": NAT, "dr": DIRECT, "tun": TUNNEL}
PLACEHOLDERS = 1024
STATE = {TCP: 1, UDP: 0}


class Backup:
    """A director that listens, and another one that it hears."""

    def __init__(self, side, sender):
        self.side, self.sender, self.lab = side, sender, side.lab

    def counters(self):
        lines = (line.split() for line in self.side.ns.read("/proc/net/l4lb").splitlines())
        return {name: int(value) for name, value in lines}

    def count(self, name):
        return self.counters()[name]

    def send(self, *records):
        """Send RECORDS, and return when they were read."""
        for at in range(0, len(records), 20):     # as many of IPv6 as a backup takes
            self.sender.records(*records[at:at + 20])
            if at % 1000 == 980:                  # as many as wait in a socket
                self.fence()
        self.fence()

    def fence(self):
        """Return when everything sent was read: of two messages that came when nothing was
        waiting, the first is counted before the second, and after everything earlier."""
        wait_until(lambda: self.side.unread() == 0, 30, what="an empty socket")
        for _ in range(2):
            before = self.count("sync_messages_in")
            self.sender.send(message([]))
            wait_until(lambda seen=before: self.count("sync_messages_in") > seen, 5)

    @contextlib.contextmanager
    def counted(self, **want):
        """Inside, these of the counters in /proc/net/l4lb rise by that much."""
        before = self.counters()
        yield
        after = self.counters()
        assert {k: after[k] - before[k] for k in want} == want

    def end(self, *records):
        """The copies end, and their placeholders with them."""
        self.send(*(r.but(timeout=1, flags=r.flags | INACTIVE) for r in records))
        wait_until(lambda: not {r["client"] for r in self.side.rows()} &
                   {r.client for r in records}, 30, what="the copies' end")


def record_of(client, number=1, **more):
    """The record of CLIENT's connection with server NUMBER."""
    raw = client.raw
    given = {"proto": raw.proto, "state": STATE[raw.proto], "timeout": 500,
             "flags": METHOD[raw.lab.shape] | (0 if raw.lab.shape == "nat" else NO_OUTPUT)}
    return Record(client.address, client.sport, raw.vip, raw.port, raw.address(number),
                  raw.dport or raw.port, **{**given, **more})


def template_of(raw, address, number, **more):
    given = {"flags": TEMPLATE, "state": 1, "timeout": 200, "proto": raw.proto}
    return Record(address, 0, raw.vip, raw.port, raw.address(number), raw.dport,
                  **{**given, **more})


def many(raw, count, **more):
    """Records of COUNT clients of one address."""
    address = raw.lab.client_address(raw.family)
    return [record_of(raw.client(address, 2000 + n), **more) for n in range(count)]


def strangers(raw, count):
    """Records of COUNT connections, each to a real server that nobody has configured."""
    first = ipaddress.ip_address("172.20.0.1" if raw.family == 4 else "2001:db8:20::1")
    return [r.but(server=str(first + n)) for n, r in enumerate(many(raw, count))]


def busy(raw, number=1):
    dest = raw.dest(number)
    return dest["active"], dest["inactive"], dest["persistent"]


@contextlib.contextmanager
def listening(lab, side_of, **options):
    side = side_of(lab)
    with side.backup(**options), side.sender() as sender:
        yield Backup(side, sender)


@pytest.fixture
def backup(nat, side_of):
    with listening(nat, side_of) as backup:
        yield backup


@pytest.mark.parametrize("why", ("killed", "replaced"))
def test_log(nat, backup, why):
    """The end of a copy is told like that of a local connection, and so is another director's
    choice of another real server."""
    raw = Raw(nat, UDP, numbers=(1, 2))
    client = raw.client()
    with genl.L4lb(backup.side.ns) as l4lb, ConnLog(backup.side.ns) as log:
        l4lb.set_policy(raw.service, log=1)
        backup.send(record_of(client))
        if why == "killed":
            assert l4lb.kill(client=client.address, client_port=client.sport) == 1
        else:
            backup.send(record_of(client, 2))
        said = log.next()
        assert (said["client_port"], said["server"], said["why"], said["copy"]) == \
            (client.sport, raw.address(1), why, True)
    backup.end(record_of(client, 2))


@pytest.mark.waits
def test_log_of_what_began_here(nat, backup):
    """It is no copy, though its client is with another director now, which tells of it."""
    raw = Raw(nat, UDP)
    client = raw.client()
    with genl.L4lb(backup.side.ns) as l4lb, ConnLog(backup.side.ns) as log:
        l4lb.set_policy(raw.service, log=1)
        client.open()
        time.sleep(60)
        backup.send(record_of(client))
        assert l4lb.kill(client=client.address, client_port=client.sport) == 1
        said = log.next()
        assert (said["client_port"], said["copy"]) == (client.sport, False)


# ---- takeover

@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
@pytest.mark.parametrize("mode", (1, 2), ids=("established", "all"))
def test_fast_path(lab, side_of, proto, family, mode):
    """The fast path takes a connection that came by a record, after its first packet."""
    with listening(lab, side_of) as backup, setting(lab, "fast_path", mode):
        raw = Raw(lab, proto, family, (1, 2))
        client = raw.client()
        backup.send(record_of(client, 2))
        client.send(ACK, b"first")
        client.arrive()
        with fast.counted(lab.director.ns, fast=3):
            for _ in range(3):
                client.send(ACK | PSH, b"more")
                assert client.arrive()[0] == 2
        if lab.shape == "nat":
            client.reply(ACK, b"answer").answered()
            client.reply(ACK, b"answer").answered()
        assert backup.side.row(record_of(client, 2))["server"] == raw.address(2)


def test_conntrack(nat, backup, family):
    """With net.ipv4.vs.conntrack, too, a connection goes on in both directions."""
    with setting(nat, "conntrack", 1):
        raw = Raw(nat, TCP, family)
        client = raw.client()
        backup.send(record_of(client))
        client.send(ACK | PSH, b"goes on")
        client.arrive()
        client.reply(ACK | PSH, b"answer").answered()
        client.send(FIN | ACK)
        client.arrive()
        client.reply(FIN | ACK).answered()
    wait_until(lambda: client.state == "TIME_WAIT", 5)


def test_a_syn_begins_anew(nat, backup):
    """A client that reuses the port of a connection that is over gets a new one."""
    raw = Raw(nat, TCP, 4, (1, 2))
    client = raw.client()
    backup.send(record_of(client, 2, state=5, flags=INACTIVE))
    client.send(SYN)
    client.arrive()
    (row,) = backup.side.rows(client=client.address)
    assert (row["origin"], row["state"]) == ("LOCAL", "SYN_RECV")


# ---- room

@pytest.mark.waits
@pytest.mark.smoke
def test_a_copy_takes_no_room_from_local_ones(lab, side_of, family):
    """In a full table of local connections, even half-open ones, none is given up for a
    record."""
    raw = Raw(lab, TCP, family)
    with listening(lab, side_of) as backup, room_for(lab, 6):
        clients = [raw.client() for _ in range(6)]
        for client in clients[:3]:
            client.establish()
        for client in clients[3:]:
            client.open()
        with backup.counted(sync_full=10, evicted=0):
            backup.send(*many(raw, 10))
        assert all(client.row() for client in clients)
        assert len(backup.side.rows()) == 6


@pytest.mark.waits
def test_copies_go_first(lab, side_of, family):
    """Local connections take the room of copies, of established ones, too; one whose client
    has come here is a copy no longer."""
    raw = Raw(lab, TCP, family)
    with listening(lab, side_of) as backup, room_for(lab, 12):
        copies = many(raw, 11)
        mine = raw.client()
        backup.send(*copies, record_of(mine))
        mine.send(ACK)
        mine.arrive()
        mine.prove()
        mine.send(ACK)      # a reply proves it after the client's acknowledgment
        mine.arrive()
        for number in range(1, 12):
            raw.client().establish()
            assert len(backup.side.rows(origin="SYNC")) == 12 - number
        assert mine.row()


@pytest.mark.waits
def test_new_copies_go_before_old_connections(lab, side_of, family):
    """Also before local ones that were idle for longer, and have proven nothing."""
    raw = Raw(lab, TCP, family)
    with listening(lab, side_of) as backup, room_for(lab, 12):
        clients = [raw.client() for _ in range(6)]
        for client in clients:
            client.establish()
        time.sleep(3)
        backup.send(*many(raw, 6))
        for _ in range(6):
            raw.client().establish()
        assert all(client.row() for client in clients)
        assert backup.side.rows(origin="SYNC") == []


@pytest.mark.waits
def test_copies_of_templates_go_first(nat, backup):
    """At the quota of templates (64 of a small table) a copy goes, no template whose client
    was answered; and no copy comes."""
    raw = Raw(nat, UDP, flags=PERSISTENT, timeout=300)
    with room_for(nat, 200):
        backup.send(*(template_of(raw, nat.client_address(), 1) for _ in range(32)))
        clients = [raw.client() for _ in range(50)]
        for client in clients:
            client.open()
            client.reply(payload=b"answer").answered()
        rows = backup.side.rows(cport=0)
        assert len(rows) == 64
        assert sum(r["origin"] == "SYNC" for r in rows) == 64 - 50
        with backup.counted(sync_full=5):
            backup.send(*(template_of(raw, nat.client_address(), 1) for _ in range(5)))
        assert sum(r["origin"] == "LOCAL" for r in backup.side.rows(cport=0)) == 50


def test_equal_replies(nat, backup):
    """Copies whose replies have the same header: 16, and none takes a local one's place."""
    first = Raw(nat, UDP)
    raws = [first, *(Raw(nat, UDP, dport=first.dport) for _ in range(19))]
    client = first.client()
    client.open()
    others = [raw.client(client.address, client.sport) for raw in raws[1:]]
    with backup.counted(sync_full=4, evicted=0):
        backup.send(*(record_of(other) for other in others))
    assert client.row() and len(backup.side.rows(client=client.address)) == 16


@pytest.mark.timer
def test_drop_entry(nat, backup):
    """Under memory pressure idle copies go, as ip_vs's do."""
    raw = Raw(nat)
    backup.send(*many(raw, 64, timeout=5000))
    time.sleep(61)
    with setting(nat, "drop_entry", 3):
        wait_until(lambda: len(backup.side.rows(vport=raw.port)) < 32, 120, what="half of them")


# ---- conflicts

@pytest.mark.waits
@pytest.mark.smoke
@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_a_client_that_is_here(lab, side_of, proto, family):
    """An established connection whose client's packets come here keeps its real server; a
    second later it follows the record."""
    raw = Raw(lab, proto, family, (1, 2))
    with listening(lab, side_of) as backup:
        client = raw.client()
        mine = client.establish() if proto == TCP else client.open()
        time.sleep(2)
        client.send(ACK, b"still here")
        client.arrive()
        with backup.counted(sync_conflict=1):
            backup.send(record_of(client, 3 - mine))
        (row,) = backup.side.rows(client=client.address)
        assert (row["server"], row["origin"]) == (raw.address(mine), "LOCAL")
        time.sleep(2)
        with backup.counted(sync_conflict=0):
            backup.send(record_of(client, 3 - mine))
        row = backup.side.row(record_of(client))
        assert (row["server"], row["origin"]) == (raw.address(3 - mine), "SYNC")
        assert busy(raw, mine) == (0, 0, 0) and busy(raw, 3 - mine)[0] == 1


def test_a_record_is_no_packet(nat, backup):
    """Of two records of one moment the later one counts: no client has come here."""
    raw = Raw(nat, TCP, 4, (1, 2))
    client = raw.client()
    with backup.counted(sync_conflict=0):
        for number in (1, 2, 1, 2):
            backup.send(record_of(client, number))
            assert backup.side.row(record_of(client))["server"] == raw.address(number)
    assert busy(raw, 1) == (0, 0, 0) and busy(raw, 2) == (1, 0, 0)


def test_a_late_end(nat, backup):
    """An inactive record of another server: what it ends was replaced long ago."""
    raw = Raw(nat, TCP, 4, (1, 2))
    client = raw.client()
    with backup.counted(sync_conflict=0):
        backup.send(record_of(client, 1), record_of(client, 2, state=5, flags=INACTIVE))
    row = backup.side.row(record_of(client))
    assert (row["server"], row["state"]) == (raw.address(1), "ESTABLISHED")
    assert busy(raw, 1) == (1, 0, 0) and busy(raw, 2) == (0, 0, 0)


@pytest.mark.waits
def test_records_of_the_same_server_are_no_packets(nat, backup):
    """A client that was here, and that another director goes on announcing: it is there."""
    raw = Raw(nat, TCP, 4, (1, 2))
    client = raw.client()
    mine = client.establish()
    time.sleep(2)
    with backup.counted(sync_conflict=0):
        backup.send(record_of(client, mine))
        backup.send(record_of(client, 3 - mine))
    assert backup.side.row(record_of(client))["server"] == raw.address(3 - mine)


@pytest.mark.waits
@pytest.mark.smoke
def test_a_template_in_use(nat, backup, family):
    """It keeps its real server for two seconds after its last connection began."""
    raw = Raw(nat, UDP, family, (1, 2), flags=PERSISTENT, timeout=300)
    address = nat.client_address(family)
    mine = raw.client(address).open()
    with backup.counted(sync_conflict=1):
        backup.send(template_of(raw, address, 3 - mine))
    assert backup.side.rows(client=address, cport=0)[0]["server"] == raw.address(mine)
    time.sleep(4)
    with backup.counted(sync_conflict=0):
        backup.send(template_of(raw, address, 3 - mine))
    (row,) = backup.side.rows(client=address, cport=0)
    assert (row["server"], row["origin"]) == (raw.address(3 - mine), "SYNC")
    assert raw.client(address).open() == 3 - mine


# ---- templates

@pytest.mark.timer
@pytest.mark.parametrize("first", ("template", "connection"))
def test_connections_hold_their_template(nat, backup, first):
    """It lives as long as they do: after a takeover the client's next one finds it."""
    nat.ipvs.timeouts(udp=20)
    raw = Raw(nat, UDP, 4, (1, 2), flags=PERSISTENT, timeout=10)
    address = nat.client_address()
    template = template_of(raw, address, 2, timeout=10)
    conn = record_of(raw.client(address), 2, timeout=60)
    backup.send(*((template, conn) if first == "template" else (conn, template, conn)))
    time.sleep(30)
    assert backup.side.rows(client=address, cport=0)
    assert raw.client(address).open() == 2
    wait_until(lambda: not backup.side.rows(client=address), 120, what="their end")
    wait_until(lambda: busy(raw, 2) == (0, 0, 0), 30)


@pytest.mark.timer
def test_what_is_over_holds_no_template(nat, backup):
    raw = Raw(nat, TCP, 4, (1, 2), flags=PERSISTENT, timeout=10)
    address = nat.client_address()
    client = raw.client(address)
    backup.send(template_of(raw, address, 2, timeout=10), record_of(client, 2, timeout=900),
                record_of(client, 2, timeout=900, state=5, flags=INACTIVE))
    wait_until(lambda: not backup.side.rows(client=address, cport=0), 120, what="its end")
    assert backup.side.rows(client=address)


# ---- real servers that are not configured here

@pytest.mark.smoke
@pytest.mark.dear
@pytest.mark.parametrize("proto", (TCP, UDP), ids=("tcp", "udp"))
def test_adopted(lab, side_of, proto, family):
    """Nothing is forwarded to a real server that was not added; once it is, its connections
    go on, without another record."""
    with listening(lab, side_of) as backup:
        raw = Raw(lab, proto, family, (1,))
        raw.taps[2] = lab.tap("rs2")
        client = raw.client()
        with backup.counted(sync_placeholder=1, sync_no_server=0):
            backup.send(record_of(client, 2), template_of(raw, lab.client_address(family), 2))
        before = drops(lab)["no_dest"]
        client.send(ACK, b"too early")
        client.nothing_arrives()
        assert drops(lab)["no_dest"] == before + 1
        assert [d["addr"] for d in raw.service.servers()] == [raw.address(1)]
        raw.add(2)
        assert busy(raw, 2) == (1, 0, 1)
        client.send(ACK, b"goes on")
        assert client.arrive()[0] == 2
        if lab.shape == "nat":
            client.reply(ACK, b"answer").answered()
        backup.end(record_of(client, 2))


def test_added_with_another_method(nat, backup):
    """The next record replaces a copy whose method is not the real server's here."""
    raw = Raw(nat, UDP, 4, (1,))
    client = raw.client()
    record = record_of(client, 2, flags=DIRECT | NO_OUTPUT)
    backup.send(record)
    raw.add(2)
    backup.send(record)
    client.send()
    number, arrived = client.arrive()
    assert number == 2 and arrived.dport == raw.dport
    client.reply(payload=b"answer").answered()
    backup.end(record)


def test_what_is_local_there(nat, backup):
    """Method local of an unknown real server: nothing is delivered to this host."""
    raw = Raw(nat, UDP, 4, (1,))
    record = record_of(raw.client(), 2, flags=LOCAL | NO_OUTPUT)
    backup.send(record)
    before = drops(nat)["no_dest"]
    client = raw.client(record.client, record.cport)
    client.send()
    client.nothing_arrives()
    assert drops(nat)["no_dest"] == before + 1
    backup.end(record)


def test_a_syn_leaves_the_placeholder(nat, backup):
    raw = Raw(nat, TCP, 4, (1,))
    client = raw.client()
    backup.send(record_of(client, 2))
    assert client.open() == 1
    assert [r["server"] for r in backup.side.rows(client=client.address)] == [raw.address(1)]


def test_service_is_added_later(nat, backup, family):
    """Real server and service unknown; both are added, and it goes on."""
    raw = Raw(nat, TCP, family)
    vip, port, dport = raw.vip, raw.port, raw.dport
    raw.service.delete()
    address, sport = nat.client_address(family), 5000
    record = Record(address, sport, vip, port, nat.phantom(2, family), dport)
    backup.send(record)
    assert nat.ipvs.services() == []
    raw = Raw(nat, TCP, family, (2,), port=port, dport=dport)
    client = raw.client(address, sport)
    client.send(ACK, b"goes on")
    assert client.arrive()[0] == 2


def test_a_removed_server(nat, backup):
    """Records of a real server that was removed: it is as with any connection of it."""
    raw = Raw(nat, UDP, 4, (1, 2))
    raw.remove(2)
    client = raw.client()
    with backup.counted(sync_placeholder=0):
        backup.send(record_of(client, 2))
    client.send()
    client.nothing_arrives()
    raw.add(2)
    client.send()
    assert client.arrive()[0] == 2


@pytest.mark.parametrize("port", ("vip's", "other"))
def test_a_server_of_any_port(nat, backup, port):
    """One without a port of its own gets the VIP's; a record cannot choose another."""
    raw = Raw(nat, UDP, 4, (1,), port=0, dport=0, flags=PERSISTENT, timeout=300)
    address, sport, vport = nat.client_address(), 5000, nat.fresh_port()
    record = Record(address, sport, raw.vip, vport, raw.address(1),
                    vport if port == "vip's" else 22, UDP, 0)
    backup.send(record)
    raw.client_tap.send(packet.udp_packet(address, sport, raw.vip, vport, b"x"))
    raw.fence()
    got = [p for p in raw.taps[1].take(lambda p: p.src == address)]
    assert [p.dport for p in got] == ([vport] if port == "vip's" else [])
    backup.end(record)
    raw.service.delete()


def placeholders(backup, records):
    """Send RECORDS of unknown servers: the first 1,024 find a place."""
    with backup.counted(sync_placeholder=PLACEHOLDERS, sync_full=0,
                        sync_no_server=len(records) - PLACEHOLDERS):
        backup.send(*records)
    assert len(backup.side.rows(vport=records[0].vport)) == PLACEHOLDERS


@pytest.mark.waits
def test_many_unknown_servers(request, nat, backup, family):
    """At most 1,024 placeholders, and their memory comes back with their last connection."""
    raw = Raw(nat, TCP, family)
    count = amount(request.config, all=20_000, pairs=3000, few=1500)
    for records in (strangers(raw, count), strangers(raw, PLACEHOLDERS + 100)[::-1]):
        placeholders(backup, records)
        backup.end(*records[:PLACEHOLDERS])
        time.sleep(63)       # the trash is emptied once a minute


@pytest.mark.waits
@pytest.mark.slow
def test_a_hundred_thousand_unknown_servers(nat, backup, family):
    """Each once more, so that a real server of this director is still found after them."""
    raw = Raw(nat, TCP, family)
    records = strangers(raw, 60_000)
    placeholders(backup, records)
    with backup.counted(sync_placeholder=0, sync_no_server=60_000 - PLACEHOLDERS):
        backup.send(*records)
    client = raw.client()
    backup.send(record_of(client))
    client.send(ACK)
    assert client.arrive()[0] == 1
    backup.end(*records[:PLACEHOLDERS])
    time.sleep(63)           # the placeholders' memory comes back for the next test


# ---- while the configuration changes

def test_counters_end_at_the_truth(request, nat, backup, family):
    """The same connections active, inactive, and moved from server to server."""
    raw = Raw(nat, TCP, family, (1, 2))
    turns = amount(request.config, all=8_000, pairs=400, few=100)
    clients = [raw.client() for _ in range(10)]
    cycle = [record_of(c, number, flags=flags) for number in (1, 2) for flags in (0, INACTIVE)
             for c in clients]
    halves = message(cycle[:20]), message(cycle[20:])       # each as long as a backup takes
    with backup.counted(sync_records_in=40 * turns):
        for turn in range(turns):
            for data in halves:
                backup.sender.send(data)
            if turn % 25 == 24:
                backup.fence()
    backup.send(*(record_of(c, 1) for c in clients), *(record_of(c, 1, flags=INACTIVE)
                                                        for c in clients[:4]))
    assert busy(raw, 1) == (6, 4, 0) and busy(raw, 2) == (0, 0, 0)


@pytest.mark.slow
def test_a_million_turns(nat, backup):
    raw = Raw(nat)
    record = record_of(raw.client())
    data = message([record, record.but(flags=INACTIVE)] * 20)
    for turn in range(25_000):
        backup.sender.send(data)
        if turn % 50 == 49:
            backup.fence()
    backup.send(record)
    assert busy(raw) == (1, 0, 0)


def test_namespaces_end_meanwhile(request):
    """With copies, templates and placeholders, while records are coming."""
    for turn in range(amount(request.config, all=20, few=2)):
        ns = Namespace(f"ends{turn}")
        try:
            ns.ip("link set lo up")
            with cable(ns) as peer, genl.Ipvs(ns) as ipvs, Sender(peer) as sender:
                ipvs.service("198.51.100.1", 80, sched="rr", flags=PERSISTENT,
                             timeout=60).server("172.31.0.9", 80)
                daemons.start(ipvs, "backup")
                records = [Record(f"10.1.{n}.1", 1024 + n, "198.51.100.1", 80,
                                  f"172.31.0.{n + 9}", 80) for n in range(40)]
                records += [r.but(cport=0, flags=TEMPLATE) for r in records[:20]]
                for _ in range(20):
                    sender.records(*records[:30]).records(*records[30:])
                wait_until(lambda: genl.conns(ns), 5, what="copies")
                if turn % 2:
                    daemons.stop(ipvs, "backup")
        finally:
            ns.destroy()


# ---- what is not for this director

@pytest.mark.parametrize("name", ("no-cport", "bypass", "pe", "delta", "esp", "invalid-template",
                                  "multicast-client", "no-client", "multicast-server",
                                  "no-server-address", "port-0"))
def test_unsupported(nat, backup, name):
    raw = Raw(nat)
    good = record_of(raw.client())
    delta = (sync_wire.Sequence(1, 5, 0), sync_wire.Sequence())
    bad = {
        "no-cport": good.but(flags=sync_wire.NO_CPORT),
        "bypass": good.but(flags=sync_wire.BYPASS),
        "pe": template_of(raw, good.client, 1, pe_name=b"sip", pe_data=b"x"),
        "delta": good.but(flags=sync_wire.SEQUENCE, sequence=delta),
        "esp": good.but(proto=sync_wire.ESP, state=0),
        "invalid-template": template_of(raw, good.client, 1, state=0).but(vport=0xffff,
                                                                          dport=0xffff),
        "multicast-client": good.but(client="224.0.0.9"),
        "no-client": good.but(client="0.0.0.0"),
        "multicast-server": good.but(server="239.0.0.1"),
        "no-server-address": good.but(server="0.0.0.0"),
        "port-0": good.but(dport=0),
    }[name]
    with backup.counted(sync_unsupported=1):
        backup.send(bad)
    assert backup.side.rows(client=bad.client) == []
    with backup.counted(sync_unsupported=0):
        backup.send(good)
    assert backup.side.row(good)


def test_sequence_without_delta(nat, backup):
    """A helper that has changed nothing yet: the connection is taken."""
    record = record_of(Raw(nat).client(), flags=sync_wire.SEQUENCE,
                       sequence=(sync_wire.Sequence(7), sync_wire.Sequence(9)))
    backup.send(record)
    assert backup.side.row(record)["origin"] == "SYNC"
