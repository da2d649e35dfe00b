# SPDX-License-Identifier: GPL-2.0
"""ipvsctl conn log --ipfix: a collector gets the log of connections as IPFIX (RFC 7011).

The messages are read here by the RFC's rules, and by scapy, which knows nothing of ipvsctl."""

import contextlib
import ipaddress
import signal
import socket
import struct
import subprocess
import time

import pytest
from lab import genl
from lab.ctl import IPVSCTL
from lab.netns import SLOW
from lab.packet import FIN, RST, SCTP, TCP, UDP
from lab.raw import Raw
from lab.rows import amount
from lab.tables import room_for
from test_conn_log import logged
from test_get_conns import many

pytestmark = pytest.mark.usefixtures("only_l4lb")
# IANA, "IPFIX Information Elements"
PROTOCOL, SPORT, DPORT, NAT_PORT, START, END, REASON = 4, 7, 11, 228, 152, 153, 136
SOURCE, DESTINATION = {4: 8, 6: 27}, {4: 12, 6: 28}
TRANSLATED, HOP = {4: 226, 6: 282}, {4: 15, 6: 62}
ADDRESSES = {*SOURCE.values(), *DESTINATION.values(), *TRANSLATED.values(), *HOP.values()}
IDLE, CLOSED, FORCED, NO_ROOM = 1, 3, 4, 5
AT = {4: "127.0.0.1", 6: "::1"}


class Collector:
    """Where ipvsctl sends, in namespace NS."""

    def __init__(self, ns, family=4, port=4739, words=()):
        self.templates, self.next, self.ns = {}, 0, ns
        with ns.enter():
            self.sock = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET,
                                      socket.SOCK_DGRAM)
            self.sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)      # SO_RCVBUFFORCE
            self.sock.bind((AT[family], port))
            to = f"[{AT[6]}]" if family == 6 else AT[4]
            self.process = subprocess.Popen(
                [IPVSCTL, "conn", "log", "--ipfix", to if port == 4739 else f"{to}:{port}", *words],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.sock.settimeout(10 * SLOW)
        assert self.process.stderr.readline().startswith("ipvsctl: sending to ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        out, self.said = self.process.communicate(timeout=30)
        self.sock.close()
        assert (self.process.returncode, out) == (0, "")

    def read(self):
        """The records of the next message: [{element: value}]"""
        data = self.sock.recv(65536)
        self.last = data
        version, length, stamp, sequence, domain = struct.unpack_from("!HHIII", data)
        assert (version, length, domain) == (10, len(data), 0) and length <= 1400
        assert abs(stamp - time.time()) < 60 * SLOW
        assert sequence == self.next
        records, at = [], 16
        while at < length:
            kind, size = struct.unpack_from("!HH", data, at)
            assert size >= 4 and at + size <= length
            self._set(kind, data[at + 4:at + size], records)
            at += size
        assert at == length
        self.next += len(records)
        return records

    def _set(self, kind, body, records):
        at = 0
        while at < len(body):
            if kind == 2:
                number, count = struct.unpack_from("!HH", body, at)
                fields = struct.unpack_from("!" + "HH" * count, body, at + 4)
                self.templates[number] = list(zip(fields[::2], fields[1::2]))
                at += 4 + 4 * count
                continue
            found = {}
            for element, size in self.templates[kind]:
                value = body[at:at + size]
                assert len(value) == size
                found[element] = str(ipaddress.ip_address(value)) if element in ADDRESSES else \
                    int.from_bytes(value, "big")
                at += size
            records.append(found)

    def one(self):
        record, = self.read()
        return record


def is_record_of(record, client, reason):
    raw = client.raw
    want = {PROTOCOL: raw.proto, SOURCE[raw.family]: client.address, SPORT: client.sport,
            DESTINATION[raw.family]: raw.vip, DPORT: raw.port, REASON: reason}
    server = raw.address(client.number or 1)
    if raw.lab.shape == "nat":
        want |= {TRANSLATED[raw.server_family]: server, NAT_PORT: raw.dport}
    else:
        want[HOP[raw.server_family]] = server
    assert {k: v for k, v in record.items() if k not in (START, END)} == want
    assert record[START] <= record[END] <= time.time() * 1000 + 1
    assert record[END] - record[START] < 60_000 * SLOW


@pytest.mark.smoke
def test_record(lab, family, proto):
    with genl.without_connections(lab.director.ns) as l4lb, Collector(lab.director.ns, family) as collector:
        client = logged(l4lb, Raw(lab, proto, family)).client()
        client.open()
        l4lb.kill()
        is_record_of(collector.one(), client, FORCED)


def test_all_forms_in_a_message(tun):
    with genl.without_connections(tun.director.ns) as l4lb, Collector(tun.director.ns) as collector:
        clients = {}
        for families in ((4, 6), (6, 4), (4, 4), (6, 6)):
            raw = logged(l4lb, Raw(tun, TCP, families[0], server_family=families[1]))
            client = raw.client()
            client.open()
            clients[client.sport] = client
        l4lb.kill()
        records = []
        while len(records) < len(clients):
            records += collector.read()
        for record in records:
            is_record_of(record, clients.pop(record[SPORT]), FORCED)


@pytest.mark.waits
def test_reasons(nat):
    """Whether it was idle, closed, or had to go."""
    with genl.without_connections(nat.director.ns) as l4lb, Collector(nat.director.ns, port=9999) as collector:
        def client(proto, **policy):
            return logged(l4lb, Raw(nat, proto), **policy).client()

        collector.sock.settimeout(300)
        idle = client(UDP, udp=2)
        idle.open()
        is_record_of(collector.one(), idle, IDLE)
        half = client(SCTP)
        half.establish()
        l4lb.kill()
        is_record_of(collector.one(), half, FORCED)
        reset = client(TCP)
        reset.establish()
        reset.send(RST)
        reset.arrive()
        is_record_of(collector.one(), reset, CLOSED)
        closed = client(TCP)
        closed.establish()
        closed.send(FIN)
        closed.arrive()
        closed.reply(FIN).answered()
        is_record_of(collector.one(), closed, CLOSED)
        with room_for(nat, 1):
            victim = client(UDP)
            victim.open()
            other = victim.raw.client()
            other.open()
            is_record_of(collector.one(), victim, NO_ROOM)


@pytest.mark.waits
def test_templates_come_again(nat):
    """A collector that begins later knows them after a minute."""
    with genl.without_connections(nat.director.ns) as l4lb, Collector(nat.director.ns) as collector:
        raw = logged(l4lb, Raw(nat, UDP))

        def comes_with_templates():
            client = raw.client()
            client.open()
            l4lb.kill()
            while client.sport not in [record[SPORT] for record in collector.read()]:
                pass
            return struct.unpack_from("!H", collector.last, 16)[0] == 2

        for pause, there in ((0, True), (30, False), (31, True), (1, False)):
            time.sleep(pause)
            assert comes_with_templates() == there
        assert len(collector.templates) == 8


def test_another_reader(nat):
    """scapy finds the same in a message as the reader above."""
    from scapy.layers.netflow import NetflowHeader, NetflowTemplateV9
    with genl.without_connections(nat.director.ns) as l4lb, Collector(nat.director.ns) as collector:
        client = logged(l4lb, Raw(nat, TCP)).client()
        client.open()
        l4lb.kill()
        collector.one()
    message = NetflowHeader(collector.last)
    found, at = {}, message
    while at := at.getlayer(NetflowTemplateV9):
        found[at.templateID] = [(f.fieldType, f.fieldLength) for f in at.template_fields]
        at = at.payload
    assert message.version == 10
    assert found and all(collector.templates[n] == fields for n, fields in found.items())


@pytest.mark.smoke
def test_nobody_collects(nat, family):
    """One line says so, once; when somebody does, records come."""
    ns, reader = nat.director.ns, None
    with genl.without_connections(nat.director.ns) as l4lb:
        raw = logged(l4lb, Raw(nat, UDP))
        with contextlib.ExitStack() as stack:
            collector = stack.enter_context(Collector(ns, family))
            collector.sock.close()
            for _ in range(4):
                raw.client().open()
                l4lb.kill()
                time.sleep(0.3)
            with ns.enter():
                reader = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET,
                                       socket.SOCK_DGRAM)
                reader.bind((AT[family], 4739))
            reader.settimeout(10 * SLOW)
            raw.client().open()
            l4lb.kill()
            assert reader.recv(2000)[:2] == b"\0\n"
    reader.close()
    assert collector.said.count("no collector takes records at") == 1


def test_many(backend, request):
    """Full messages, with each connection once; what is lost is told."""
    backend.need_scheduler("rr")
    number = amount(request.config, few=5000 // SLOW, all=50000 // SLOW)
    with many(number, 500, {"log": 1}) as ns, genl.L4lb(ns) as l4lb:
        with Collector(ns) as collector:
            l4lb.kill()
            seen, messages, full = set(), 0, 0
            collector.sock.settimeout(3 * SLOW)
            with contextlib.suppress(TimeoutError):
                while True:
                    records = collector.read()
                    messages += 1
                    full += len(collector.last) > 1300
                    seen |= {(r[DESTINATION[4]], r[DPORT]) for r in records}
        lost = sum(int(line.split()[2]) for line in collector.said.splitlines() if "lost" in line)
    assert len(seen) == collector.next
    assert len(seen) + lost == number + 500
    assert full > messages / 2
