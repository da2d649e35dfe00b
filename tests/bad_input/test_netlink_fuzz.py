# SPDX-License-Identifier: GPL-2.0
"""Netlink messages that are truncated, oversized, have wrong lengths, or are very many."""

import contextlib
import errno
import random
import socket
import struct
import threading

import pytest
from lab import fuzz, genl
from lab.genl import attr, u32
from lab.netns import join_all
from lab.packet import TCP, UDP
from lab.raw import Raw
from lab.rows import amount

ADDRESS, SERVER = "198.51.100.160", "192.0.2.20"


def send(ipvs, message):
    """Send raw bytes, and discard the answers that are there at once."""
    ipvs.sock.send(message)
    ipvs.sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            ipvs.sock.recv(1 << 20)
    ipvs.sock.settimeout(15)


def damage(chance, data):
    data = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 3))):
        at = chance.randrange(len(data)) if data else 0
        how = chance.randrange(5)
        if how == 0 and data:
            data[at] = chance.randrange(256)
        elif how == 1:
            del data[at:]
        elif how == 2:
            data += bytes(chance.randrange(256) for _ in range(chance.randrange(64)))
        elif how == 3 and len(data) > at + 4:
            at &= ~3
            struct.pack_into("=H", data, at, chance.choice((0, 1, 3, 4, 5, 0x7fff, 0xffff)))
        elif len(data) > at + 4:
            at &= ~3
            struct.pack_into("=H", data, at + 2, chance.choice((0, 12, 13, 16, 0x8000, 0xffff)))
    return bytes(data)


@pytest.mark.smoke
def test_random_messages(nat, backend, seed):
    """The commands of test_config_fuzz, their bytes damaged."""
    generator = fuzz.Generator(seed)
    ipvs = nat.ipvs
    with backend.preloaded(("rr", "wrr", "lc", "wlc", "sh", "mh", "lblc")):
        for command in generator.commands(4000):
            number, body, dump = fuzz.pack(command)
            send(ipvs, ipvs.message(number, damage(generator.chance, body),
                                    genl.F_DUMP if dump else genl.F_ACK))
    check_usable(nat)


def check_usable(nat):
    nat.flush()
    assert nat.ipvs.services() == []
    raw = Raw(nat, UDP)
    assert raw.client().open() == 1


def check_policy(values):
    """Every value is valid for its attribute, and the ends of bands ascend."""
    attributes = list(genl.L4LB.sets["policy"].values())
    for a, value in zip(attributes, values, strict=True):
        if a.enum:
            assert value < len(genl.L4LB.enums[a.enum]), a.name
        elif a.name.startswith("timeout-"):
            assert value <= 1209600, a.name
    ends = [v for a, v in zip(attributes, values) if a.name.startswith("las-bytes-")]
    given = [v for v in ends if v]
    assert given == ends[:len(given)] and given == sorted(set(given)), ends


@pytest.mark.smoke
def test_random_messages_of_the_other_family(nat, backend, seed):
    """The same for family L4LB; options and policies stay within their
    ranges."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs has no netlink family L4LB; runs with --backend l4lb")
    chance = random.Random(seed)
    service = nat.ipvs.service(ADDRESS, 80, sched="lblcr")
    names = ("expire", "entries", "shrink", "x", "", "e" * 16)

    def body():
        out = [attr(genl.L_SERVICE, service.ident)] if chance.random() < 0.9 else []
        if chance.random() < 0.7:
            out.append(attr(genl.L_OPTIONS, [
                genl.option(chance.choice(names), chance.choice((0, 1, 9, 1 << 31)))
                for _ in range(chance.randrange(5))]))
        if chance.random() < 0.5:
            out.append(attr(genl.L_POLICY, [
                attr(chance.randrange(1, len(genl.POLICY) + 2), u32(chance.choice(
                    (0, 1, 2, 3, 4, 1209600, 1209601)))) for _ in range(chance.randrange(5))]))
        if chance.random() < 0.2:
            out.append(attr(genl.L_SCHEDULER, [attr(genl.SC_NAME, genl.text(
                chance.choice(("rr", "lblcr", "nosuch"))))]))
        if chance.random() < 0.3:
            # Filters of GET_CONNS, with and without the attributes above.
            out = out * chance.randrange(2) + [attr(genl.L_CONN, [
                attr(chance.randrange(1, len(genl.CONN) + 2), chance.choice(
                    (b"\2\0", b"\n\0", b"\x11\0", b"\x80", bytes(4), bytes(16), u32(1),
                     genl.text("UDP"), b""))) for _ in range(chance.randrange(5))])]
        return b"".join(out)
    with genl.L4lb(nat.director.ns) as l4lb:
        for _ in range(3000):
            command = chance.randrange(10)
            flags = genl.F_DUMP if chance.random() < 0.1 or command == genl.GET_CONNS and \
                chance.random() < 0.9 else genl.F_ACK
            send(l4lb, l4lb.message(command, damage(chance, body()), flags))
        for o in l4lb.options(service)["options"].values():
            assert o["min"] <= o["value"] <= o["max"]
        check_policy(list(l4lb.policy(service).values()))
    check_usable(nat)


@pytest.mark.smoke
def test_truncated_everywhere(nat):
    """A complete NEW_SERVICE and NEW_DEST, cut after every byte, with right
    and wrong lengths."""
    ipvs = nat.ipvs
    service = attr(genl.SERVICE, genl.ident(TCP, ADDRESS, 80)
                   + genl.service_options(socket.AF_INET))
    dest = attr(genl.DEST, genl.dest_ident(SERVER, 80) + genl.dest_options())
    for command, body in ((genl.NEW_SERVICE, service), (genl.NEW_DEST, service + dest)):
        for size in range(len(body)):
            send(ipvs, ipvs.message(command, body[:size]))
            send(ipvs, ipvs.message(command, body[:size], length=20 + len(body)))
            nested = bytearray(body[:size])
            if len(nested) >= 4:
                struct.pack_into("=H", nested, 0, len(nested))
            send(ipvs, ipvs.message(command, bytes(nested)))
    check_usable(nat)


def test_oversized(nat):
    """Messages filled by one large unknown attribute, and one with 200 services."""
    ipvs = nat.ipvs
    for size in (1 << 10, 1 << 14, 60000):
        body = attr(genl.SERVICE, attr(50, bytes(size - 8)))
        genl.is_refused(lambda b=body: ipvs.request(genl.NEW_SERVICE, b), errno.EINVAL)
    many = b"".join(attr(genl.SERVICE, genl.ident(TCP, ADDRESS, n)
                         + genl.service_options(socket.AF_INET)) for n in range(200))
    with contextlib.suppress(genl.NetlinkError):
        ipvs.request(genl.NEW_SERVICE, many)
    check_usable(nat)


def test_many_messages_in_one_send(nat):
    """300 requests in one buffer, each answered."""
    ipvs = nat.ipvs
    first = ipvs.seq + 1
    batch = b"".join(ipvs.message(genl.NEW_SERVICE, attr(
        genl.SERVICE, genl.ident(TCP, ADDRESS, port)
        + genl.service_options(socket.AF_INET))) for port in range(1, 301))
    ipvs.sock.send(batch)
    seen = set()
    while len(seen) < 300:
        data = ipvs.sock.recv(1 << 20)
        while data:
            length, kind, _, seq, _ = struct.unpack("=IHHII", data[:16])
            assert kind == 2 and struct.unpack("=i", data[16:20])[0] == 0
            seen.add(seq)
            data = data[(length + 3) & ~3:]
    assert seen == set(range(first, first + 300))
    assert len(ipvs.services()) == 300


@pytest.mark.emulated
def test_concurrent_writers_and_dumpers(nat, request):
    """Several clients change and list at once; in the end the table is what
    the last acknowledged requests made it."""
    wrong = []
    turns = amount(request.config, few=12, all=300)
    writers, readers = amount(request.config, few=(3, 2), all=(8, 8))

    def write(number):
        try:
            with genl.Ipvs(nat.director.ns) as ipvs:
                for turn in range(turns):
                    s = ipvs.service(ADDRESS, 1000 + number)
                    for n in range(4):
                        s.server(f"192.0.2.{20 + n}", 80, weight=turn)
                    s.edit(sched=("rr", "wlc", "wrr", "lc")[turn % 4])
                    s.delete_server("192.0.2.21", 80)
                    if turn < turns - 1:
                        s.delete()
        except Exception as e:  # noqa: BLE001 - any failure is the finding
            wrong.append(e)

    def dump():
        try:
            with genl.Ipvs(nat.director.ns) as ipvs:
                for _ in range(turns):
                    for s in ipvs.services():
                        if "port" in s:
                            ipvs.service(s["addr"], s["port"], add=False).servers()
        except Exception as e:  # noqa: BLE001
            wrong.append(e)

    # Sockets are opened inside the namespace by the thread itself.
    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)] + \
        [threading.Thread(target=dump) for _ in range(readers)]
    for t in threads:
        t.start()
    join_all(*threads, seconds=120)
    assert not wrong, wrong
    assert sorted(s["port"] for s in nat.ipvs.services()) == \
        [1000 + n for n in range(writers)]
    for number in range(writers):
        s = nat.ipvs.service(ADDRESS, 1000 + number, add=False)
        assert [d["addr"] for d in s.servers()] == ["192.0.2.23", "192.0.2.22", "192.0.2.20"]


def test_closed_before_the_answer(nat):
    """A client that closes its socket without reading does no harm."""
    for _ in range(50):
        with genl.Ipvs(nat.director.ns) as ipvs:
            ipvs.sock.send(ipvs.message(genl.GET_SERVICE, flags=genl.F_DUMP))
            ipvs.sock.send(ipvs.message(genl.GET_INFO))
    check_usable(nat)
