# SPDX-License-Identifier: GPL-2.0
"""EXPORT_CONNS, IMPORT_CONNS and ipvsctl conn export and import: connections outlive the
module that has them. tests/teardown/test_reload.py exchanges the module."""

import json
import subprocess
import time

import pytest
from lab import fwmark, genl
from lab.cost import bounded
from lab.ctl import IPVSCTL
from lab.flows import set_policy
from lab.genl import PERSISTENT, attr, is_refused
from lab.netns import SLOW
from lab.packet import ACK, FIN, RST, SYN, TCP, UDP, packed
from lab.raw import Raw
from lab.rows import amount
from lab.settings import setting
from lab.sync_wire import read
from test_get_conns import many

pytestmark = pytest.mark.usefixtures("only_l4lb")
ONE_PACKET = 4          # flag of a service
PERSIST = {"flags": PERSISTENT, "timeout": 360}
ELSEWHERE = "10.99.99.99"
ZERO = {"no_server": 0, "full": 0, "unsupported": 0}


@pytest.fixture
def l4lb(nat):
    with genl.without_connections(nat.director.ns) as sock:
        yield sock


def ctl(lab, *words, code=0):
    with lab.director.ns.enter():
        done = subprocess.run([IPVSCTL, *words], capture_output=True, text=True, check=False,
                              timeout=60)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def swap(l4lb, count):
    """Export COUNT connections, end them all, import them."""
    parts = l4lb.export()
    assert sum(p["records"] for p in parts) == count
    assert l4lb.kill() >= count
    tally = [l4lb.import_(p["message"]) for p in parts]
    assert [t["records"] for t in tally] == [p["records"] for p in parts]


def elsewhere(data, raw):
    """DATA with another real server in the place of the first."""
    return data.replace(packed(raw.address(1)), packed(ELSEWHERE))


def seen(client):
    row = client.row()
    return {name: row[name] for name in ("server", "dport", "state")}, row["expires"]


def goes_on(client):
    """In both directions, with the real server that it had."""
    client.send(ACK, b"more")
    assert client.arrive()[0] == client.number
    if client.raw.lab.shape == "nat":
        client.reply(ACK, b"again").answered()


@pytest.mark.smoke
def test_connections_come_back(lab, family, proto):
    """Real server, state and the time that is left."""
    with genl.without_connections(lab.director.ns) as l4lb:
        come_back(lab, family, proto, l4lb)


def come_back(lab, family, proto, l4lb):
    raw = Raw(lab, proto, family, (1, 2))
    clients = [raw.client() for _ in range(6)]
    for client in clients:
        client.open() if proto == UDP else client.establish()
    before = [seen(client) for client in clients]
    counts = [(raw.dest(n)["active"], raw.dest(n)["inactive"]) for n in (1, 2)]
    swap(l4lb, 6)
    for client, (row, left) in zip(clients, before):
        now = seen(client)
        assert now[0] == row and abs(now[1] - left) <= 2 * SLOW
    assert [(raw.dest(n)["active"], raw.dest(n)["inactive"]) for n in (1, 2)] == counts
    for client in clients:
        goes_on(client)
    assert raw.client().open() in (1, 2)


@pytest.mark.timer
def test_the_time_that_is_left(nat, l4lb):
    """A connection that was silent for long does not begin anew."""
    client = Raw(nat, TCP).client()
    client.establish()
    time.sleep(600)
    swap(l4lb, 1)
    assert 290 <= client.row()["expires"] <= 300
    time.sleep(305)
    assert client.row() is None


def test_persistent_clients(lab, family):
    """The template is there before its connections, which hold it."""
    with genl.without_connections(lab.director.ns) as l4lb:
        persistent_clients(lab, family, l4lb)


def persistent_clients(lab, family, l4lb):
    raw = Raw(lab, TCP, family, (1, 2), **PERSIST)
    clients = [raw.client(raw.lab.client_address(family)) for _ in range(3)]
    for client in clients:
        client.establish()
    swap(l4lb, 6)
    found = l4lb.conns(flags=genl.F_TEMPLATE)
    assert sorted(t["holders"] for t in found) == [1, 1, 1]
    for client in clients:
        goes_on(client)
        assert raw.client(client.address).open() == client.number


def test_service_by_mark(nat, family, l4lb):
    mark = fwmark.fresh_mark()
    raw = fwmark.Marked(nat, mark, family, **PERSIST)
    kind = "ip" if family == 4 else "ip6"
    with fwmark.marking(nat, mark, f"{kind} daddr {raw.vip} tcp dport {raw.port}"):
        client = raw.client()
        client.establish()
        swap(l4lb, 2)
        goes_on(client)
        assert raw.client(client.address).open() == client.number


def test_which(nat, l4lb):
    """Open or half closed: not those that are beginning, over, or of one packet."""
    raw = Raw(nat, TCP)
    states = {}
    for name, flags in (("SYN_RECV", ()), ("CLOSE_WAIT", (FIN | ACK,)), ("CLOSE", (RST,))):
        client = raw.client()
        if flags:
            client.establish()
            client.send(*flags)
            client.arrive()
        else:
            client.open()
            client.reply(SYN | ACK).answered()
        states[name] = client
    once = Raw(nat, UDP, flags=ONE_PACKET).client()
    once.open()
    swap(l4lb, 1)
    assert states["CLOSE_WAIT"].state == "CLOSE_WAIT"
    assert [c.row() for c in (states["SYN_RECV"], states["CLOSE"])] == [None, None]


@pytest.mark.parametrize("how", ("off", "persist_mode"))
def test_what_other_directors_are_not_told(nat, l4lb, how):
    """It is this director's own."""
    raw = Raw(nat, TCP, **PERSIST)
    if how == "off":
        set_policy(raw, sync=1)
    with setting(nat, "sync_persist_mode", int(how == "persist_mode")):
        client = raw.client()
        client.establish()
        swap(l4lb, 2)
    goes_on(client)


def test_of_a_removed_server(nat, l4lb, tmp_path):
    """No record can tell these; their number is told."""
    raw = Raw(nat, TCP, numbers=(1, 2))
    clients = [raw.client() for _ in range(4)]
    for client in clients:
        client.establish()
    with setting(nat, "expire_nodest_conn", 0):
        raw.remove(1)
        parts = l4lb.export()
        assert [sum(p[name] for p in parts) for name in ("records", "left_out")] == [2, 2]
        said = ctl(nat, "conn", "export", str(tmp_path / "conns"), code=8)
    assert "2 connections are not in the file: their real server was removed" in said
    assert "exported 2 connections" in said


def test_of_another_family(tun):
    """A tunnel can lead to real servers of another family than the client's."""
    with genl.without_connections(tun.director.ns) as sock:
        Raw(tun, TCP, 4, server_family=6).client().establish()
        parts = sock.export()
    assert [(p["records"], p["left_out"]) for p in parts] == [(0, 1)]


def test_no_real_server(nat, l4lb):
    """Without its real server a connection is not made, and none is foreseen; it comes with
    the next import."""
    raw = Raw(nat, TCP)
    client = raw.client()
    client.establish()
    message, = (p["message"] for p in l4lb.export())
    l4lb.kill()
    other = elsewhere(message, raw)
    assert l4lb.import_(other) == {"records": 0, **ZERO, "no_server": 1}
    assert l4lb.conns() == []
    raw.service.server(ELSEWHERE, raw.dport, method=raw.method)
    assert l4lb.import_(other) == {"records": 1, **ZERO}
    assert [c["server"] for c in l4lb.conns()] == [ELSEWHERE]
    raw.service.delete_server(ELSEWHERE, raw.dport)


def test_a_removed_server_gets_none(nat, l4lb):
    """Though it is still known, for the connections that it has."""
    raw = Raw(nat, TCP, numbers=(1, 2))
    clients = [raw.client() for _ in range(4)]
    for client in clients:
        client.establish()
    parts = l4lb.export()
    l4lb.kill(client=clients[0].address, client_port=clients[0].sport)
    raw.remove(clients[0].number)
    assert [l4lb.import_(p["message"]) for p in parts] == [
        {"records": 3, **ZERO, "no_server": 1}]


def test_a_connection_in_use_stays(nat, l4lb):
    """The client went on before the import, with another server."""
    raw = Raw(nat, TCP, numbers=(1, 2))
    client = raw.client()
    first = client.establish()
    parts = l4lb.export()
    l4lb.kill()
    assert client.establish() == 3 - first
    assert [l4lb.import_(p["message"]) for p in parts] == [{"records": 1, **ZERO}]
    goes_on(client)


def test_twice(nat, l4lb):
    client = Raw(nat, TCP).client()
    client.establish()
    message, = (p["message"] for p in l4lb.export())
    for _ in range(2):
        assert l4lb.import_(message) == {"records": 1, **ZERO}
    assert len(l4lb.conns()) == 1
    goes_on(client)


def test_no_room(nat, l4lb):
    raw = Raw(nat, TCP)
    clients = [raw.client() for _ in range(20)]
    for client in clients:
        client.establish()
    message, = (p["message"] for p in l4lb.export())
    l4lb.kill()
    with setting(nat, "conn_max", 10):
        tally = l4lb.import_(message)
    assert tally["full"] > 0 and tally["records"] + tally["full"] == 20
    assert len(l4lb.conns()) == tally["records"]


def test_damaged_messages(nat, l4lb):
    """Cut anywhere, or with one more byte: refused with one sentence, and nothing changes."""
    raw = Raw(nat, TCP)
    for _ in range(3):
        raw.client().establish()
    message, = (p["message"] for p in l4lb.export())
    assert len(read(message).records) == 3
    l4lb.kill()
    for length in range(8, len(message)):
        said = is_refused(lambda n=length: l4lb.import_(message[:n]), 22)
        assert "this message is damaged, or of a later version of l4lb" in said
    is_refused(lambda: l4lb.import_(message + b"\0"), 22)
    is_refused(lambda: l4lb.import_(message[:7]), 34)
    is_refused(lambda: l4lb.import_(bytes(4097)), 34)
    assert "MESSAGE is missing" in is_refused(lambda: l4lb.request(genl.IMPORT_CONNS), 22)
    assert "MESSAGE is missing" in is_refused(
        lambda: l4lb.request(genl.IMPORT_CONNS, attr(genl.L_HANDOVER, [])), 22)
    assert l4lb.conns() == []


# ---- ipvsctl


def test_ipvsctl(nat, l4lb, tmp_path):
    raw = Raw(nat, TCP, numbers=(1, 2))
    clients = [raw.client() for _ in range(4)]
    for client in clients:
        client.establish()
    file = tmp_path / "conns"
    # Left by a run that was killed.
    file.with_suffix(".new").write_text("half", encoding="ascii")
    assert ctl(nat, "conn", "export", str(file)) == ""
    assert file.stat().st_mode & 0o777 == 0o600
    l4lb.kill()
    assert "would import 4 connections" in ctl(nat, "-n", "conn", "import", str(file))
    assert l4lb.conns() == []
    assert ctl(nat, "conn", "import", str(file)) == "imported 4 connections\n"
    for client in clients:
        goes_on(client)
    file.write_bytes(elsewhere(file.read_bytes(), raw))
    l4lb.kill()
    said = ctl(nat, "conn", "import", str(file), code=8)
    assert "2 connections are missing" in said and "restore the services first" in said
    l4lb.kill()
    said = ctl(nat, "-j", "conn", "import", str(file), code=8)
    assert json.loads(said)["error"]["code"] == 8


def test_file_is_whole_or_refused(nat, l4lb, tmp_path):
    """Cut at any byte: nothing is imported."""
    Raw(nat, TCP).client().establish()
    file, cut = tmp_path / "conns", tmp_path / "cut"
    ctl(nat, "conn", "export", str(file))
    whole = file.read_bytes()
    l4lb.kill()
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        said = ctl(nat, "conn", "import", str(cut), code=2)
        assert ("is no file of ipvsctl conn export" in said) == (length < 19), said
    cut.write_bytes(whole + b"\0")
    assert "damaged or not whole" in ctl(nat, "conn", "import", str(cut), code=2)
    assert l4lb.conns() == []
    ctl(nat, "conn", "import", str(file))
    assert len(l4lb.conns()) == 1


def test_a_refused_message_keeps_no_other(nat, l4lb, tmp_path):
    """As of a later version: what can be imported is."""
    client = Raw(nat, TCP).client()
    client.establish()
    message, = (p["message"] for p in l4lb.export())
    l4lb.kill()
    file = tmp_path / "conns"
    file.write_bytes(b"l4lb connections 1\n" + b"".join(
        len(m).to_bytes(2, "big") + m for m in (message[:-1], message)) + bytes(2 + 7) + b"\2")
    said = ctl(nat, "conn", "import", str(file), code=8)
    assert "damaged, or of a later version" in said and "imported 1 connections; keep the file" in said
    goes_on(client)


def test_many(backend, request):
    """100,000 come and go, each at about the cost of one of a few."""
    backend.need_scheduler("rr")
    half = amount(request.config, few=10_000 // SLOW, all=50_000 // SLOW)

    def seconds(number):
        with many(number, number) as ns, genl.L4lb(ns) as l4lb:
            count = 2 * number + 2
            start = time.monotonic()
            parts = l4lb.export()
            l4lb.kill()
            done = sum(l4lb.import_(p["message"])["records"] for p in parts)
            took = time.monotonic() - start
            assert done == count == len(l4lb.conns())
            print(f"{count} in {took * 1000:.1f} ms")
            return took / number

    bounded(4, lambda: seconds(half), lambda: seconds(500))


@pytest.mark.smoke
def test_a_dump_that_is_given_up(backend):
    """The walk ends with its socket; conftest.py finds what is left behind."""
    backend.need_scheduler("rr")
    with many(5000 // SLOW) as ns:
        for _ in range(20):
            with genl.L4lb(ns) as sock:
                sock.sock.send(sock.message(genl.EXPORT_CONNS, b"", genl.F_DUMP, 1))
                assert sock.sock.recv(1 << 16)
