# SPDX-License-Identifier: GPL-2.0
"""FTP through NAT when the director that has had it dies: control and data connections go on at
the one that knows them from records, and open new data connections there."""

import time

import pytest
from lab.ftp import DPORT, PORT, Control, Ftp
from lab.genl import MASQ, PERSISTENT, L4lb, batch_entry, batch_server
from lab.packet import ACK, PSH, tcp_packet
from lab.sync_wire import NAT, Record

PASSIVE, SOURCE = 50000, 33333
# Entries of ip_vs's connections hold its module, and their namespace goes last.
pytestmark = pytest.mark.usefixtures("held_connections", "ftp_helper")


def control_record(raw, client, number):
    return Record(client.address, client.sport, raw.vip, raw.port, raw.address(number), raw.dport, timeout=500,
                  flags=NAT)


def data_record(raw, client, vport=PASSIVE, dport=PASSIVE):
    return control_record(raw, client, 1).but(cport=SOURCE, vport=vport, dport=dport)


def taken_over(side, raw, *data, number=1):
    """The control connection of a client, and others DATA, as the other director had told of
    them before it died."""
    client = raw.client()
    records = control_record(raw, client, number), *(make(raw, client) for make in data)
    with side.backup(), side.sender() as sender:
        sender.records(*records)
        for record in records:
            side.row(record)
    control = Control(raw, client, open_it=False)
    control.number = client.number = number
    return control


def goes_on(control, port):
    """A data connection of which both ends are in the middle."""
    raw, client = control.raw, control.client.address
    raw.client_tap.send(tcp_packet(client, SOURCE, raw.vip, port, ACK | PSH, payload=b"data", seq=9001, ack=71))
    raw.fence()
    got = [p for tap in raw.taps.values() for p in tap.take(lambda p: p.src == client and p.sport == SOURCE)]
    if not got:
        return None
    (p,) = got
    raw.taps[1].send(tcp_packet(p.dst, p.dport, client, SOURCE, ACK, seq=71, ack=9005))
    back = raw.client_tap.expect(lambda p: p.dst == client and p.dport == SOURCE)
    assert (back.src, back.sport) == (raw.vip, port)
    return p.dst, p.dport


@pytest.mark.smoke
@pytest.mark.parametrize("number", (1, 2))
def test_control(nat, side_of, family, number):
    """The client's first request is another one; then data connections in both ways."""
    control = taken_over(side_of(nat), Ftp(nat, family), number=number)
    for _ in range(2):
        control.talk()
        control.passive(PASSIVE)
        assert control.data(PASSIVE) == (number, PASSIVE)
        control.talk()
        control.announce(40000)
        assert control.connect(40000) == (control.raw.vip, 20)


@pytest.mark.smoke
def test_passive_at_once(nat, side_of, family):
    control = taken_over(side_of(nat), Ftp(nat, family))
    control.passive(PASSIVE)
    assert control.data(PASSIVE) == (1, PASSIVE)
    control.talk()


def test_active_at_once(nat, side_of, family):
    control = taken_over(side_of(nat), Ftp(nat, family))
    control.announce(40000)
    assert control.connect(40000) == (control.raw.vip, 20)
    control.talk()


def test_sent_again_at_once(nat, side_of, family):
    """The first request is lost behind the director, as long as nothing has been answered."""
    control = taken_over(side_of(nat), Ftp(nat, family))
    request = b"EPSV\r\n" if family == 6 else b"PASV\r\n"
    control.say(request)
    control.mine -= len(request)
    control.passive(PASSIVE)
    assert control.data(PASSIVE) == (1, PASSIVE)


def test_server_is_first(nat, side_of, family):
    """A transfer has ended meanwhile: the client has not sent anything yet."""
    control = taken_over(side_of(nat), Ftp(nat, family))
    control.tell(b"226 Transfer complete.\r\n")
    control.passive(PASSIVE)
    assert control.data(PASSIVE) == (1, PASSIVE)
    control.announce(40000)
    assert control.connect(40000) == (control.raw.vip, 20)
    control.talk()


def test_repeated_text(nat, side_of, only_l4lb):
    """As soon as a line has been seen, text within another one is no answer, as without a
    takeover, though the client says that it has had all before."""
    control = taken_over(side_of(nat), Ftp(nat))
    control.talk()
    control.tell(b"500 what is ")
    control.say(b"PASV\r\n")
    control.tell(b"227 (%s,195,80)\r\n" % control.server.replace(".", ",").encode())
    assert control.data(PASSIVE) == (None, None)


def test_shifted(nat, side_of, family):
    """Records do not tell how far sequence numbers have been shifted: what the client sends
    reaches its own server, which cannot make sense of it, and no other. New ones work."""
    raw = Ftp(nat, family, numbers=(2, 1))
    control = taken_over(side_of(nat), raw)
    control.client.send(ACK | PSH, b"NOOP\r\n", seq=control.mine, ack=control.theirs + 6)
    number, p = control.client.arrive()
    assert (number, p.ack) == (1, control.theirs + 6)
    other = raw.control(raw.client(control.client.address))
    other.passive(PASSIVE)
    assert other.data(PASSIVE) == (other.number, PASSIVE)


def test_passive_data(nat, side_of, family):
    """A transfer goes on, though there is no service on its port."""
    raw = Ftp(nat, family, numbers=(2, 1))
    control = taken_over(side_of(nat), raw, data_record)
    assert goes_on(control, PASSIVE) == (control.server, PASSIVE)
    control.talk()


def active(raw, client):
    return data_record(raw, client, PORT - 1, DPORT - 1)


def test_active_data(nat, side_of, family):
    raw = Ftp(nat, family, numbers=(2, 1))
    control = taken_over(side_of(nat), raw, active)
    assert goes_on(control, PORT - 1) == (control.server, DPORT - 1)


def test_counted(nat, side_of, family, only_l4lb):
    """Data connections count for the real server of the service, and take no room of those that
    are not configured here."""
    raw = Ftp(nat, family)
    before = raw.dest(1)["active"]
    taken_over(side_of(nat), raw, *(lambda raw, client, n=n: data_record(raw, client, PASSIVE + n, PASSIVE + n)
                                    for n in range(5)))
    assert raw.dest(1)["active"] == before + 6


@pytest.mark.parametrize("vport, dport", ((PASSIVE, 22), (22, 22), (PORT - 1, 22), (PORT - 1, DPORT), (PASSIVE, DPORT)))
def test_chosen_port(nat, side_of, family, only_l4lb, vport, dport):
    """A record does not choose a real server's port, though the real server has FTP."""
    control = taken_over(side_of(nat), Ftp(nat, family), lambda raw, client: data_record(raw, client, vport, dport))
    assert goes_on(control, vport) is None


def test_other_servers(nat, side_of, family, only_l4lb):
    """A record for an address that is no real server of the service, or for another VIP."""
    raw = Ftp(nat, family, numbers=(1,))
    before = raw.dest(1)["active"]

    def foreign(raw, client):
        return data_record(raw, client).but(server=nat.phantom(2, family))

    def apart(raw, client):
        return data_record(raw, client).but(vip=nat.raw_vip(family, 1), vport=PASSIVE + 1, dport=PASSIVE + 1)
    control = taken_over(side_of(nat), raw, foreign, apart)
    raw.taps[2] = nat.tap("rs2")
    assert goes_on(control, PASSIVE) is None
    assert raw.dest(1)["active"] == before + 1


def test_other_service(nat, side_of, family, only_l4lb):
    """A real server that was removed from another service of the VIP, or never was in it, does not
    come back because it has FTP."""
    raw = Ftp(nat, family)
    web = Ftp(nat, family, numbers=(2,), port=8080, dport=8080)
    before = raw.dest(1)["active"]

    def surfing(raw, client):
        return data_record(raw, client, web.port, web.port)
    control = taken_over(side_of(nat), raw, surfing)
    assert goes_on(control, web.port) is None
    assert raw.dest(1)["active"] == before + 1


def test_any_port(nat, side_of, family):
    """A service for all ports is that of both."""
    raw = Ftp(nat, family, port=0, dport=DPORT, flags=PERSISTENT, timeout=60)
    raw.port = PORT
    control = taken_over(side_of(nat), raw, active)
    assert goes_on(control, PORT - 1) == (control.server, DPORT - 1)
    control.announce(40000)
    assert control.connect(40000) == (raw.vip, PORT - 1)


def test_without_module(nat, side_of, family, only_l4lb, backend):
    """The control: a data connection belongs to no service here."""
    backend.remove("ftp")
    control = taken_over(side_of(nat), Ftp(nat, family), data_record)
    assert goes_on(control, PASSIVE) is None
    control.talk()


def enlarge(side, raw, count):
    """The service of FTP gets COUNT real servers, each with another port."""
    servers = [batch_server(f"10.77.{n >> 8}.{n & 255}", 3000 + n, method=MASQ) for n in range(count)]
    with L4lb(side.ns) as l4lb:
        for at in range(0, count, 500):
            l4lb.set_services([batch_entry(raw.vip, PORT, servers[at:at + 500])])


def took(side, raw, count):
    """Seconds until records for data connections of no real server are dealt with."""
    client = raw.client()
    foreign = [data_record(raw, client, PASSIVE + n, PASSIVE + n).but(server="198.51.100.99") for n in range(1000)]
    best = float("inf")
    enlarge(side, raw, count)
    with side.backup(), side.sender() as sender:
        for n in range(5):
            last = control_record(raw, client, 1).but(cport=2000 + n)
            began = time.perf_counter()
            for at in range(0, len(foreign), 25):
                sender.records(*foreign[at:at + 25])
            sender.records(last)
            side.row(last)
            best = min(best, time.perf_counter() - began)
    return best


def test_cost_with_many_servers(nat, side_of, only_l4lb):
    """A record costs about the same, however many real servers FTP has."""
    side, raw = side_of(nat), Ftp(nat)
    few, many = took(side, raw, 2), took(side, raw, 10_000)
    print(f"{few:.4f} s, {many:.4f} s")
    assert many < 5 * few
