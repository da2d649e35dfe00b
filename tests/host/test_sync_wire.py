# SPDX-License-Identifier: GPL-2.0
"""The codec of the synchronisation protocol against bytes written by hand."""

import ipaddress
import random
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lab import sync_hostile, sync_wire  # noqa: E402
from lab.packet import AH, ESP, SCTP, TCP, UDP  # noqa: E402
from lab.sync_wire import (  # noqa: E402
    INACTIVE,
    NO_CPORT,
    ONE_PACKET,
    SEQUENCE,
    TEMPLATE,
    Record,
    Sequence,
    message,
    option,
    read,
)

WEB = Record("10.0.0.2", 3101, "10.0.0.100", 80, "10.1.0.2", 80)
SIX = Record("2001:db8::2", 40000, "2001:db8::64", 53, "2001:db8:1::2", 5353, UDP, 0,
             flags=0x80, mark=7, timeout=300)
FTP = WEB.but(flags=SEQUENCE, sequence=(Sequence(1, 2, 3), Sequence(4, 5, 0xfffffffb)))
CALL = WEB.but(flags=TEMPLATE, proto=UDP, cport=0, pe_name=b"sip", pe_data=b"id")

WEB1 = "00060024 00000000 0001 0c1d 0050 0050 00000000 00000384 0a000002 0a000064 0a010002"
SIX1 = "01110048 00000080 0000 9c40 0035 14e9 00000007 0000012c" \
    "20010db8000000000000000000000002 20010db8000000000000000000000064" \
    "20010db8000100000000000000000002"
FTP1 = "0006003e 00000600 0001 0c1d 0050 0050 00000000 00000384 0a000002 0a000064 0a010002" \
    "0118 00000001 00000002 00000003 00000004 00000005 fffffffb"
CALL1 = "0011002d 00001000 0001 0000 0050 0050 00000000 00000384 0a000002 0a000064 0a010002" \
    "02026964 0303736970"
WEB0 = "0006 0c1d 0050 0050 0a000002 0a000064 0a010002 0000 0001"
HOST = struct.pack("=IIIIII", 1, 2, 3, 4, 5, 0xfffffffb).hex()
FTP0 = f"0006 0c1d 0050 0050 0a000002 0a000064 0a010002 0600 0001 {HOST}"

# {name: (bytes of a message with sync id 5, version, records)}
GOLDEN = {
    "tcp": (f"00 05 002c 01 01 0000 {WEB1}", 1, [WEB]),
    "ipv6": (f"00 05 0050 01 01 0000 {SIX1}", 1, [SIX]),
    "sequence": (f"00 05 0046 01 01 0000 {FTP1}", 1, [FTP]),
    # Padding is before the next record, never behind the last one.
    "padding": (f"00 05 009c 03 01 0000 {FTP1} 0000 {CALL1} 000000 {WEB1}", 1,
                [FTP, CALL, WEB]),
    "nothing": ("00 05 0008 00 01 0000", 1, []),
    "v0-tcp": (f"01 05 001c {WEB0}", 0, [WEB.but(timeout=0)]),
    "v0-sequence": (f"02 05 004c {FTP0} {WEB0}", 0, [FTP.but(timeout=0), WEB.but(timeout=0)]),
    "v0-nothing": ("00 05 0004", 0, []),
}


def raw(text):
    return bytes.fromhex(text)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    text, version, records = GOLDEN[name]
    data = raw(text)
    length = int.from_bytes(data[2:4], "big")
    assert length == len(data), "the example itself is wrong"
    assert message(records, 5, version) == data
    found = read(data, 5)
    assert (found.records, found.errors, found.version, found.sync_id) == \
        (records, [], version, 5)
    assert sync_wire.strict(data, 5, version) == records


def test_mark_address():
    assert sync_wire.mark_address(0x01020304) == "1.2.3.4"
    assert sync_wire.mark_address(0x20010db8, 6) == "2001:db8::"


ONE = message([WEB], 5)
# {name: (datagram, errors, records that count)}, for a director with id 5
WRONG = {
    "empty": (b"", ["short"], []),
    "three": (ONE[:3], ["short"], []),
    "longer": (ONE + b"\0", ["size"], []),
    "shorter": (ONE[:-1], ["size"], []),
    # The size is looked at before the id, the id before the version.
    "size-first": (message([WEB], 6, size=1), ["size"], []),
    "id-first": (message([WEB], 6, version=2), ["id"], []),
    "id": (message([WEB], 6), ["id"], []),
    "version": (message([WEB], 5, version=2), ["version"], []),
    "version-minus": (message([WEB], 5, version=-1), ["version"], []),
    "reserved": (ONE[:6] + b"\0\1" + ONE[8:], ["version"], []),
    "count-more": (message([WEB], 5, count=2), ["record"], [WEB]),
    "count-255": (message([WEB], 5, count=255), ["record"], [WEB]),
    "count-less": (message([WEB, SIX], 5, count=1), ["trailing"], [WEB]),
    "behind": (message([WEB], 5, behind=b"\0"), ["trailing"], [WEB]),
    "none-but-bytes": (message([], 5, behind=bytes(1464)), ["trailing"], []),
    "v0-count": (message([WEB.v0()[:-1]], 5, 0), ["record"], []),
    "v0-sequence": (message([FTP.v0()[:-1]], 5, 0), ["record"], []),
    "record-35": (message([WEB.v1()[:35]], 5), ["record"], []),
    "length-0": (message([WEB.v1(length=0), WEB], 5), ["record"], []),
    "length-35": (message([WEB.v1(length=35), WEB], 5), ["record"], []),
    "length-4095": (message([WEB.v1(length=4095), WEB], 5), ["record"], []),
    "length-v6": (message([SIX.v1(length=36), WEB], 5), ["record"], []),
    "v6-cut": (message([SIX.v1()[:36]], 5), ["record"], []),
    "record-version": (message([WEB, WEB.v1(version=1), WEB], 5), ["record"], [WEB]),
    "type-2": (message([WEB.v1(kind=2), WEB], 5), ["record"], []),
    "type-0x80": (message([WEB.v1(kind=0x80), WEB], 5), ["record"], []),
    "type-0xff": (message([SIX.v1(kind=0xff)], 5), [], [SIX]),
    "option-length-0": (message([WEB.v1(b"\1\0"), WEB], 5), ["option"], []),
    "option-past": (message([WEB.v1(option(9, b"ab", 3)), WEB], 5), ["option"], []),
    "option-lone": (message([WEB.v1(b"\1"), WEB], 5), ["option"], []),
    "sequence-23": (message([WEB.v1(option(1, bytes(23))), WEB], 5), ["option"], []),
    "sequence-25": (message([WEB.v1(option(1, bytes(25))), WEB], 5), ["option"], []),
    "sequence-twice": (message([FTP.v1(option(1, bytes(24))), WEB], 5), ["option"], []),
    "name-17": (message([WEB.v1(option(3, b"n" * 17)), WEB], 5), ["option"], []),
    "name-16": (message([WEB.but(pe_name=b"n" * 16)], 5), [], [WEB.but(pe_name=b"n" * 16)]),
    "option-unknown": (message([WEB.v1(option(9, b"x")), WEB], 5), ["option"], [WEB]),
    "option-optional": (message([WEB.v1(option(0x49, b"x")), WEB], 5), [], [WEB, WEB]),
    # The bit does not make another option of a known one.
    "option-0x41": (message([WEB.v1(option(0x41, bytes(4)))], 5), ["option"], []),
    "template-no-cport": (message([WEB.but(flags=TEMPLATE | NO_CPORT), WEB], 5), ["flags"],
                          [WEB]),
    "one-packet": (message([WEB.but(flags=ONE_PACKET), WEB], 5), ["flags"], [WEB]),
    "data-without-name": (message([WEB.but(pe_data=b"x"), WEB], 5), ["option"], [WEB]),
    "flags-first": (message([WEB.but(flags=TEMPLATE | NO_CPORT, state=9)], 5), ["flags"], []),
    "protocol": (message([WEB.but(proto=41), WEB], 5), ["protocol"], [WEB]),
    "protocol-first": (message([WEB.but(proto=0, state=99)], 5), ["protocol"], []),
    "template-any": (message([WEB.but(proto=0, flags=TEMPLATE)], 5), [],
                     [WEB.but(proto=0, flags=TEMPLATE)]),
    "two-errors": (message([WEB.but(proto=1), WEB.but(state=11), WEB], 5, count=4),
                   ["protocol", "state", "record"], [WEB]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name):
    data, errors, records = WRONG[name]
    found = read(data, 5)
    assert (found.errors, found.records) == (errors, records)
    assert set(errors) <= set(sync_wire.ERRORS)
    if errors:
        with pytest.raises(AssertionError):
            sync_wire.strict(data, 5)


@pytest.mark.parametrize(("proto", "flags", "count"), [
    (TCP, 0, 11), (UDP, 0, 1), (SCTP, 0, 14), (AH, 0, 1), (ESP, 0, 1), (TCP, TEMPLATE, 2),
    (99, TEMPLATE, 2)])
@pytest.mark.parametrize("version", [0, 1])
def test_states(proto, flags, count, version):
    for state in (*range(16), 255, 65535):
        record = WEB.but(proto=proto, flags=flags, state=state, timeout=9 * version)
        found = read(message([record], version=version))
        expected = ([record], []) if state < count else ([], ["state"])
        assert (found.records, found.errors) == expected, state


def test_id_0_takes_all():
    for sync_id in (0, 5, 255):
        assert read(message([WEB], sync_id)).records == [WEB]
    assert read(message([WEB], 0), 5).errors == ["id"]


def test_strict_about_padding():
    """A sender pads with zeros and not behind the last record."""
    data = message([FTP, WEB])
    at = 8 + len(FTP.v1())
    sync_wire.strict(data)
    with pytest.raises(AssertionError):
        sync_wire.strict(data[:at] + b"\1" + data[at + 1:])
    with pytest.raises(AssertionError):
        sync_wire.strict(message([FTP], behind=b"\0\0"))


@pytest.mark.parametrize(("record", "is_unsupported"), [
    (WEB, False), (SIX, False), (WEB.but(flags=INACTIVE), False),
    (WEB.but(flags=NO_CPORT), True),
    (WEB.but(flags=sync_wire.BYPASS), True), (CALL, True), (FTP, True),
    (FTP.but(sequence=(Sequence(5), Sequence(6))), False), (WEB.but(proto=ESP, state=0), True),
    (WEB.but(flags=TEMPLATE, proto=0), False),
    (WEB.but(flags=TEMPLATE, vport=0xffff, dport=0xffff), True),
    (WEB.but(vport=0xffff, dport=0xffff), False), (WEB.but(client="224.0.0.1"), True),
    (WEB.but(server="0.0.0.0"), True), (SIX.but(server="ff02::1"), True),
    (SIX.but(client="::"), True)])
def test_unsupported(record, is_unsupported):
    assert sync_wire.unsupported(record) == is_unsupported


def test_round_trip():
    chance = random.Random(1)

    def ends(family):
        size = 16 if family == 6 else 4
        return [x for _ in range(3) for x in (
            str(ipaddress.ip_address(chance.randbytes(size))), chance.randrange(65536))]

    for _ in range(300):
        version = chance.randrange(2)
        records = [Record(*ends(4 if not version else chance.choice((4, 6))),
                          proto=TCP, state=chance.randrange(11),
                          flags=chance.choice((0, 2, 3, INACTIVE)),
                          mark=version * chance.getrandbits(32),
                          timeout=version * chance.getrandbits(32),
                          pe_name=chance.choice((b"", b"abc")) if version else b"")
                   for _ in range(chance.randrange(20))]
        assert sync_wire.strict(message(records, 9, version), 9, version) == records


# ---- hostile messages

AFTER = WEB.but(client="10.0.0.3")
V6 = SIX.but(proto=TCP, state=1)
HOSTILE = sync_hostile.cases(WEB, AFTER, V6)


def test_every_hostile_item():
    assert {case.item for case in HOSTILE} == set(sync_hostile.ITEMS)
    assert len({case.name for case in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.name)
def test_hostile(case):
    """The reader says the same as the list, which was written beside it."""
    found = read(case.data[:1472], sync_hostile.ID)
    left_out = [r for r in found.records if sync_wire.unsupported(r)]
    applied = tuple(r for r in found.records if not r.pe_data)
    assert applied == case.applied
    errors = found.errors + ["unsupported"] * len(left_out)
    assert errors == [case.counter] * bool(case.counter)


def test_mutants():
    """They are reproducible, and many get past the header."""
    sources = sync_hostile.sources(WEB, AFTER, V6)
    made = list(sync_hostile.mutants(7, 2000, sources))
    assert made == list(sync_hostile.mutants(7, 2000, sources))
    seen = {error for data in made for error in read(data, sync_hostile.ID).errors}
    assert seen == set(sync_wire.ERRORS) - {"unsupported"}
    assert sum(bool(read(data, sync_hostile.ID).records) for data in made) > 500
