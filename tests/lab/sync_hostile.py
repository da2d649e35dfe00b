# SPDX-License-Identifier: GPL-2.0
"""Hostile synchronisation messages by name, each with the counter that has to rise and
the records that count all the same; and messages that were damaged at random."""

import dataclasses
import random
import struct

from . import sync_wire
from .packet import ESP, SCTP, TCP, UDP
from .sync_wire import (
    BYPASS,
    HASHED,
    NO_CPORT,
    ONE_PACKET,
    SEQUENCE,
    SIZE,
    TEMPLATE,
    V1_HEAD,
    Sequence,
    message,
    option,
)

ID = 5              # of the director that receives
LONGEST = 65507     # bytes of a datagram
SECONDS = (0, 1, 0x7fffffff, 0xffffffff)
UNSUPPORTED = "unsupported"


@dataclasses.dataclass(frozen=True)
class Case:
    """A hostile message. COUNTER: the one that rises by one, if any does; APPLIED: the
    records that a director with ip_vs's rules applies."""
    item: int
    name: str
    data: bytes
    counter: str = ""
    applied: tuple = ()


class Maker:
    """Makes the cases with valid records: GOOD (TCP), AFTER, which comes behind the
    defect, and SIX, one of IPv6."""

    def __init__(self, good, after, six):
        self.good, self.after, self.six = good, after, six
        self.cases = []

    def add(self, item, name, data, counter="", *applied):
        self.cases.append(Case(item, f"{item}-{name}", data, counter, applied))

    def record(self, item, name, raw, counter="record"):
        """A record that spoils the rest of its message."""
        self.add(item, name, message([raw, self.after], ID), counter)

    def skipped(self, item, name, record, counter):
        """A record that is left out, and no other."""
        self.add(item, name, message([record, self.after], ID), counter, self.after)

    def taken(self, item, name, record, read=None):
        self.add(item, name, message([record, self.after], ID), "", read or record, self.after)

    def envelopes(self):
        whole = message([self.good], ID)
        for size in (0, 3):
            self.add(1, f"{size}-bytes", whole[:size], "short")
        for size in (len(whole) - 1, len(whole) + 1, 0, 65535):
            self.add(2, f"size-{size}", message([self.good], ID, size=size), "size")
        for other in (ID + 1, 0):
            self.add(3, f"id-{other}", message([self.good], other), "id")
        self.add(4, "longest", message([self.good], ID, count=255, behind=bytes(
            LONGEST - len(whole))), "size")
        for version in (2, 0, 255):
            self.add(5, f"version-{version}", whole[:5] + bytes([version]) + whole[6:], "version")
        for at in (6, 7):
            self.add(5, f"reserved-{at}", whole[:at] + b"\1" + whole[at + 1:], "version")
        self.add(6, "count-255", message([self.good], ID, count=255), "record", self.good)
        self.add(7, "count-0", message([], ID, behind=bytes(1464)), "trailing")
        self.add(8, "count-1", message([self.good] + [self.after] * 39, ID, count=1), "trailing",
                 self.good)
        self.add(8, "v0-count-1", message([self.good, self.after], ID, 0, count=1), "trailing",
                 self.good.but(timeout=0))
        self.add(6, "v0-count-9", message([self.good], ID, 0, count=9), "record",
                 self.good.but(timeout=0))

    def headers(self):
        good, six = self.good, self.six
        for length in (0, 35, 4095):
            self.record(9, f"length-{length}", good.v1(length=length))
        self.record(10, "v6-36-bytes", six.v1(length=36))
        self.add(10, "v6-in-44", message([six.v1()[:36]], ID), "record")
        for kind in (2, 0x80):
            self.record(11, f"type-{kind:#x}", good.v1(kind=kind))
        self.add(11, "type-0xff", message([six.v1(kind=0xff), self.after], ID), "", six,
                 self.after)
        for version in range(1, 16):
            self.record(12, f"record-version-{version}", good.v1(version=version))

    def options(self):
        good = self.good
        for name, raw in (("length-0", b"\1\0"), ("past-the-end", b"\1\x18" + bytes(23)),
                          ("lone-byte", b"\1")):
            self.record(13, name, good.v1(raw), "option")
        self.skipped(13, "200-unknown", good.v1(option(9, b"x") * 200), "option")
        self.taken(13, "200-optional", good.v1(option(0x49, b"x") * 200), good)
        for size in (23, 25):
            self.record(14, f"sequence-{size}", good.v1(option(1, bytes(size))), "option")
        self.record(14, "sequence-twice", good.v1(option(1, bytes(24)) * 2), "option")
        whole = good.but(flags=good.flags | SEQUENCE, sequence=(
            Sequence(1, 0xffffffff, 0xffffffff),) * 2)
        self.add(14, "deltas", message([whole, self.after], ID), UNSUPPORTED, whole, self.after)
        self.skipped(15, "unknown", good.v1(option(9, b"news")), "option")
        # Nobody reads on in a record that is left out.
        self.skipped(15, "unknown-first", good.v1(option(9, b"x") + b"\1\0"), "option")
        self.taken(15, "optional", good.v1(option(0x49, b"news")), good)
        self.names()

    def names(self):
        good = self.good
        self.taken(16, "name-16", good.but(pe_name=b"n" * 16))
        for size in (17, 255):
            self.record(16, f"name-{size}", good.v1(option(3, b"n" * size)), "option")
        for name, text in (("nul", b"si\0p"), ("format", b"%s%n%s%n"), ("path", b"../x"),
                           ("unknown", b"nosuch")):
            self.taken(16, f"name-{name}", good.but(pe_name=text))
            self.skipped(16, f"data-{name}", good.but(pe_name=text, pe_data=b"x"), UNSUPPORTED)
        self.skipped(16, "data-alone", good.but(pe_data=b"x" * 255), "option")

    def meanings(self):
        good, skipped = self.good, self.skipped
        template = good.but(flags=TEMPLATE, cport=0, state=0)
        for name, flags in (("all", 0xffffffff), ("template-no-cport", TEMPLATE | NO_CPORT),
                            ("one-packet", ONE_PACKET)):
            skipped(17, f"flags-{name}", good.but(flags=flags, state=0), "flags")
        self.taken(17, "flags-hashed", good.but(flags=good.flags | HASHED))
        bypass = good.but(flags=BYPASS)
        self.add(17, "flags-bypass", message([bypass, self.after], ID), UNSUPPORTED, bypass,
                 self.after)
        for name, record in (("tcp-11", good.but(state=11)), ("tcp-0x7fff", good.but(state=0x7fff)),
                             ("tcp-65535", good.but(state=65535)),
                             ("udp-1", good.but(proto=UDP, state=1)),
                             ("sctp-14", good.but(proto=SCTP, state=14)),
                             ("template-2", template.but(state=2)),
                             ("template-65535", template.but(state=65535)),
                             ("esp-1", good.but(proto=ESP, state=1))):
            skipped(18, name, record, "state")
        for proto in (0, 1, 41, 255):
            skipped(19, f"protocol-{proto}", good.but(proto=proto, state=0), "protocol")
        self.taken(19, "template-of-any-vip", template.but(
            proto=0, vip="255.254.253.252", vport=0, dport=0, mark=0xfffefdfc))
        for seconds in SECONDS:
            self.taken(20, f"timeout-{seconds}", good.but(timeout=seconds))

    def all(self):
        for part in (self.envelopes, self.headers, self.options, self.meanings):
            part()
        return self.cases


ITEMS = (*range(1, 21),)


def cases(good, after, six):
    """Every Case. GOOD and SIX: valid TCP records of IPv4 and IPv6; AFTER: another one."""
    assert (good.proto, good.family, six.family) == (TCP, 4, 6)
    return Maker(good, after, six).all()


STRANGE = {4: ("0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"),
           6: ("::", "::1", "ff02::1", "::ffff:10.0.0.1", "::10.0.0.1")}


def strange_ends(record, own):
    """{name: record} with addresses that no director announces (item 21); OWN: an address
    of the director itself."""
    found = {"client-is-vip": record.but(client=record.vip),
             "ports-0": record.but(cport=0, vport=0, dport=0)}
    for address in (*STRANGE[record.family], own):
        found[f"server-{address}"] = record.but(server=address)
        found[f"client-{address}"] = record.but(client=address)
    return found


# ---- damaged messages

NUMBERS = (0, 1, 2, 35, 36, 37, 71, 72, 127, 128, 254, 255)


def mutants(seed, count, sources):
    """COUNT datagrams: messages of SOURCES, damaged. Most of them say their right size, so
    that they are not all given up at the first look."""
    chance = random.Random(seed)
    for _ in range(count):
        yield mutant(chance, bytearray(chance.choice(sources)))


def mutant(chance, data):
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        chance.choice((flip, number, cut, more, word, again))(chance, data)
    if len(data) >= 4:
        if chance.random() < 0.95:
            struct.pack_into("!H", data, 2, len(data) & 0xffff)
        if chance.random() < 0.97:
            data[1] = ID
    return bytes(data)


def at(chance, data):
    return chance.randrange(len(data)) if data else 0


def flip(chance, data):
    if data:
        data[at(chance, data)] ^= 1 << chance.randrange(8)


def number(chance, data):
    if data:
        data[at(chance, data)] = chance.choice(NUMBERS)


def word(chance, data):
    """Overwrites a field of a record's header."""
    place = V1_HEAD + 2 * chance.randrange(SIZE[6] // 2)
    if place + 4 <= len(data):
        how = chance.choice("HI")
        struct.pack_into("!" + how, data, place, chance.choice(
            (*NUMBERS, 0x7fff, 0x8000, 0xffff, chance.getrandbits(16))))


def cut(chance, data):
    del data[at(chance, data):]


def more(chance, data):
    place = at(chance, data)
    data[place:place] = chance.randbytes(chance.choice((1, 2, 3, 4, 24, 36, 255)))


def again(chance, data):
    """Repeats a part, counts more records."""
    place = at(chance, data)
    data += data[place:place + chance.choice((4, 36, 72))]
    if len(data) > 4:
        data[4] = chance.choice((data[4] + 1 & 255, chance.randrange(256)))


def sources(good, after, six):
    """Messages to begin with: whole ones of both versions, and the hostile ones."""
    rich = good.but(flags=good.flags | SEQUENCE, sequence=(Sequence(1), Sequence(2)),
                    pe_name=b"sip")
    template = good.but(flags=TEMPLATE, cport=0, state=1)
    whole = [message(records, ID, version) for version, records in (
        (1, [good]), (1, [six]), (1, [good, six, rich, template]), (1, [rich.but(pe_data=b"id")]),
        (0, [good]), (0, [good, rich.but(pe_name=b""), template]))]
    return whole * 8 + [case.data for case in cases(good, after, six)
                        if len(case.data) <= sync_wire.MAXLEN[4]]
