# SPDX-License-Identifier: GPL-2.0
"""Netlink messages that are truncated, oversized, have wrong lengths, or are very many."""

import collections
import contextlib
import errno
import itertools
import random
import socket
import struct
import threading

import pytest
from lab import bodies, fuzz, genl, packet, peers, ranges
from lab.bodies import Bodies
from lab.genl import attr, attributes
from lab.netns import join_all, wait_until
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


def answer(l4lb, message):
    """Sends raw bytes; the error that was answered, 0 if it was none, None without an answer."""
    l4lb.sock.send(message)
    l4lb.sock.setblocking(False)
    code = None
    with contextlib.suppress(BlockingIOError):
        while True:
            data = l4lb.sock.recv(1 << 20)
            while len(data) >= 20:
                length, kind = struct.unpack("=IH", data[:6])
                if kind in (2, 3):
                    code = -struct.unpack("=i", data[16:20])[0]
                data = data[(length + 3) & ~3:]
    l4lb.sock.settimeout(15)
    return code


class Surroundings:
    """The services that random messages are about, and a body for each command."""

    def __init__(self, lab, l4lb, chance):
        self.lab, self.l4lb = lab, l4lb
        server = lab.phantom(1)
        names = [genl.ident(UDP, lab.raw_vip(), 80), genl.ident(TCP, ADDRESS, 80),
                 genl.ident(fwmark=7), ranges.ident(ranges.PREFIX[4], 8000, 8099, UDP)]
        self.services = [*names[:2], *names]
        self.entries = [attr(genl.L_ENTRY, [
            attr(genl.L_SERVICE, name + genl.service_options(2, "lblcr")),
            attr(genl.L_POLICY, genl.policy_values({"latency": n < 2})),
            attr(genl.L_DESTS, [genl.batch_server(server, 0 if n > 1 else 80)]),
            *genl.claim(protected=0, shadow="wlc" if n < 3 else None)]) for n, name in enumerate(names)]
        addresses = [packet.packed(a) for a in (server, server, lab.phantom(2))]
        self.put_back()
        client = lab.client_address()
        lab.tap("client").send(packet.udp_packet(client, 9, lab.raw_vip(), 80, b"x"))
        wait_until(lambda: lab.conns(), 5, what="a connection to hand over")
        self.bodies = Bodies(chance, self.services, **{
            "addr": addresses, "server": addresses, "port": (0, 80, 80), "vport": (80,),
            "vip": [packet.packed(lab.raw_vip())], "client": [packet.packed(client)],
            "first": [packet.packed(lab.dip())], "last": [packet.packed(lab.dip())],
            "message": [one["message"] for one in l4lb.export()]})

    def put_back(self):
        """What other messages have removed."""
        self.l4lb.set_services(self.entries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Services that are protected would outlive the test, and peers hold the module."""
        for _, payload in self.l4lb.dump(genl.GET_SYNC):
            found = dict(attributes(dict(attributes(payload))[genl.L_PEER]))
            self.l4lb.request(genl.DEL_PEER, attr(genl.L_PEER, [attr(peers.ADDR, found[peers.ADDR])]))
        for name in self.l4lb.policies():
            self.l4lb.request(genl.SET_POLICY, [attr(genl.L_SERVICE, [name]), *genl.claim(protected=0)])

    def complete(self, done, modes):
        """Requests that no random message has done, until one has: damaged, a few are rare."""
        for name, mode in modes:
            for turn in range(0 if done[name, mode] else 300):
                if turn % 20 == 0:
                    self.put_back()
                flags = genl.F_DUMP if mode == "dump" else genl.F_ACK
                request = self.l4lb.message(genl.L4LB.request(name), self.bodies.body(name, mode), flags)
                if answer(self.l4lb, request) == 0:
                    done[name, mode] += 1
                    break

    def check(self):
        """Options and policies are within their ranges."""
        for found in self.l4lb.policies().values():
            check_policy(list(found.values()))
        for name in self.services[2:]:
            reply = self.l4lb.request(genl.GET_OPTIONS, attr(genl.L_SERVICE, name))
            found = genl.decode_scheduler(dict(attributes(reply[0][1]))[genl.L_SCHEDULER])
            for o in found["options"].values():
                assert o["min"] <= o["value"] <= o["max"]


@pytest.mark.smoke
def test_random_messages_of_the_other_family(nat, backend, seed):
    """The same for family L4LB, all commands of which are there, and done at least once."""
    if not backend.is_l4lb:
        pytest.skip("ip_vs has no netlink family L4LB; runs with --backend l4lb")
    chance, done = random.Random(seed), collections.Counter()
    modes = [(name, mode) for name in genl.L4LB.commands for mode in genl.L4LB.modes(name)]
    with backend.preloaded(bodies.SCHEDULERS), genl.L4lb(nat.director.ns) as l4lb, \
            peers.Peers(nat.director.ns), Surroundings(nat, l4lb, chance) as around:
        for turn in range(4000):
            if turn % 100 == 0:
                around.put_back()
            name, mode = chance.choice(modes)
            number = genl.L4LB.request(name) if chance.random() < 0.98 else \
                chance.choice((0, len(genl.L4LB.commands) + 1, 255))
            flags = genl.F_DUMP if (mode == "dump") == (chance.random() < 0.98) else genl.F_ACK
            body = damage(chance, around.bodies.body(name, mode))
            if answer(l4lb, l4lb.message(number, body, flags)) == 0:
                done[name, mode] += 1
        around.complete(done, modes)
        around.put_back()
        around.check()
    assert all(done[m] for m in modes), [m for m in modes if not done[m]]
    check_usable(nat)


class Whole(Bodies):
    """Each attribute with a value that is known, those of bodies.RARE if MORE; without attribute
    LESS, or its part (of its set, its name)."""
    more, less = False, None

    def often(self, share):
        return share > (0.05 if self.more else 0.2)

    def attributes(self, nest, names):
        return super().attributes(nest, [name for name in names if (nest, name) != self.less])


@pytest.mark.smoke
def test_each_attribute_is_missing(nat, seed, only_l4lb):
    """One after the other, of each command of family L4LB, in the deepest nest, too."""
    chance, refused = random.Random(seed), 0
    modes = [(name, mode) for name in genl.L4LB.commands for mode in genl.L4LB.modes(name)]
    parts = [None, *((nest, name) for nest, known in bodies.SETS.items() for name in known)]
    with genl.L4lb(nat.director.ns) as l4lb, peers.Peers(nat.director.ns), \
            Surroundings(nat, l4lb, chance) as around:
        whole = Whole(chance, around.services)
        whole.known = around.bodies.known
        for (name, mode), more in itertools.product(modes, (False, True)):
            around.put_back()
            whole.more, seen = more, set()
            for whole.less in parts:
                chance.seed(seed)       # the same request but for what is missing
                body = whole.body(name, mode)
                if body not in seen:
                    flags = genl.F_DUMP if mode == "dump" else genl.F_ACK
                    refused += answer(l4lb, l4lb.message(genl.L4LB.request(name), body, flags)) != 0
                seen.add(body)
        around.put_back()
        around.check()
    assert refused > 100
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
