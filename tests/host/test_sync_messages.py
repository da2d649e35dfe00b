# SPDX-License-Identifier: GPL-2.0
"""The reader and the writer of synchronisation messages (kernel/sync), compiled unchanged as
a user-space program with sanitizers (tests/unit/wire.c), beside the codec of the tests."""

import random
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from simulator import ROOT, UNIT, compiled, linked, stubs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lab import sync_hostile, sync_wire  # noqa: E402
from lab.packet import AH, ESP, SCTP, TCP, UDP  # noqa: E402
from lab.sync_wire import (  # noqa: E402
    HASHED,
    ONE_PACKET,
    SEQUENCE,
    TEMPLATE,
    Record,
    Sequence,
    message,
    option,
)

SYNC = ROOT / "kernel/sync"
CORPUS = ROOT / "tests/corpus/sync"
STATES = ROOT / "kernel/conn/state.h"
SOURCES = [SYNC / name for name in ("wire_read.c", "wire_write.c", "wire_state.c")]
HEADERS = [STATES, *(SYNC / name for name in ("wire.h", "wire_read.h", "wire_write.h",
                                              "wire_state.h"))]
ERRORS = ("ok", *sync_wire.ERRORS)

WEB = Record("10.0.0.2", 3101, "10.0.0.100", 80, "10.1.0.2", 80)
AFTER = WEB.but(client="10.0.0.3")
SIX = Record("2001:db8::2", 40000, "2001:db8::64", 53, "2001:db8:1::2", 5353, TCP, 1,
             flags=0x80, mark=7, timeout=300)
FTP = WEB.but(flags=SEQUENCE, sequence=(Sequence(1, 2, 3), Sequence(4, 5, 0xfffffffb)))
NOTHING = (0,) * 6


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """program(["read 5 00"]) -> the lines of its answer."""
    build = tmp_path_factory.mktemp("wire")
    texts = [source.read_text() for source in [*SOURCES, *HEADERS]]
    linked(build / "wire", compiled(
        build, [UNIT / "wire.c", UNIT / "wire_fuzz.c", *SOURCES],
        ["-include", "tests/unit/wire_shim.h", "-I", stubs("wire", texts)]))

    def run(commands):
        done = subprocess.run([build / "wire"], text=True, timeout=300, check=False,
                              input="".join(f"{c}\n" for c in commands), capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
    return run


def fields(record):
    """RECORD as the program reads and prints it."""
    af = socket.AF_INET6 if record.family == 6 else socket.AF_INET
    sequence = [n for s in record.sequence for n in s] or NOTHING
    return ",".join(map(str, (
        int(af), record.proto, record.state, record.flags, record.cport, record.vport,
        record.dport, record.mark, record.timeout, record.client, record.vip, record.server,
        *sequence, int(bool(record.pe_data)), record.left, int(record.gone))))


def reads(program, datagrams, sync_id=5):
    """[(records as text, names of errors)], one for each of DATAGRAMS."""
    found = [([], [])]
    for line in program([f"read {sync_id} {data.hex()}" for data in datagrams]):
        what, _, value = line.partition(" ")
        if what == ".":
            found.append(([], []))
        elif what == "record":
            found[-1][0].append(value)
        else:
            found[-1][1].append(ERRORS[int(value)])
    return found[:-1]


def codec(data, sync_id=5):
    found = sync_wire.read(data, sync_id)
    return [fields(r) for r in found.records], found.errors


def write(program, records, version=1, size=1472, sync_id=5):
    """(records that there was room for, the message)"""
    number, raw = program([" ".join([f"write {version} {sync_id} {size}",
                                     *map(fields, records)])])[0].split()
    return int(number), bytes.fromhex(raw)


# ---- reading

HOSTILE = sync_hostile.cases(WEB, AFTER, SIX)


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.name)
def test_hostile(program, case):
    (records, errors), = reads(program, [case.data[:1472]], sync_hostile.ID)
    # Those with data of a persistence engine are for whoever uses the records.
    applied = [record for record in records if record.split(",")[-3] == "0"]
    assert applied == [fields(record) for record in case.applied]
    if case.counter == "unsupported":
        assert not errors
    else:
        assert errors == [case.counter] * bool(case.counter)


@pytest.mark.parametrize("name", ("records", "sequence", "pe", "name-only", "v0", "v0-sequence"))
def test_valid(program, name):
    """Whole records, and their padding: the reader says what the codec has written."""
    pe = WEB.but(pe_name=b"sip", pe_data=b"id")
    data = {"records": message([WEB, SIX, WEB], 5), "sequence": message([FTP, SIX, FTP, WEB], 5),
            "pe": message([pe, WEB], 5), "name-only": message([WEB.but(pe_name=b"sip"), SIX], 5),
            "v0": message([WEB, AFTER], 5, 0),
            "v0-sequence": message([FTP, WEB], 5, 0)}[name]
    expected = sync_wire.strict(data)
    assert reads(program, [data]) == [([fields(r) for r in expected], [])]


def test_two_defects(program):
    """Each defect counts once, and no record is lost by another's."""
    bad = [WEB.but(state=11), WEB.but(proto=41), WEB.v1(option(9, b"x"))]
    data = message([WEB, *bad, AFTER], 5)
    assert reads(program, [data]) == [
        ([fields(WEB), fields(AFTER)], ["state", "protocol", "option"])]


@pytest.mark.parametrize("options", (b"\x49", b"\x49\x02x", b"\x49\x01x\x49"),
                         ids=("lone-type", "cut-off", "second-lone"))
def test_options_at_the_end(program, options):
    """Nothing is behind the last record, which the reader must not read."""
    data = message([WEB, WEB.v1(options)], 5)
    assert reads(program, [data]) == [([fields(WEB)], ["option"])]


@pytest.mark.parametrize("kind", (2, 3, 0x49))
def test_empty_option(program, kind):
    """An option has at least a byte: the rest of the message is dropped."""
    data = message([WEB, WEB.v1(option(kind, b"")), AFTER], 5)
    assert reads(program, [data]) == [([fields(WEB)], ["option"])]


def test_longest_record(program):
    """A length has 12 bits; with a 13th, the record is of another version."""
    longest = WEB.v1(option(0x49, bytes(255)) * 15 + option(0x49, bytes(202)))
    longer = WEB.v1(option(0x49, bytes(255)) * 15 + option(0x49, bytes(203)), version=1)
    assert (len(longest), len(longer)) == (4095, 4096)
    assert reads(program, [message([one], 5) for one in (longest, longer)]) == [
        ([fields(WEB)], []), ([], ["record"])]


def test_trailing_byte(program):
    for version in (0, 1):
        whole = message([WEB], 5, version, behind=b"\0")
        assert reads(program, [whole])[0][1] == ["trailing"]


@pytest.mark.parametrize("length", range(4, 9))
def test_short_messages(program, length):
    """Which version it is depends on what has arrived: the rest of a header is missing."""
    data = message([], 5)[:2] + bytes([0, length]) + message([], 5)[4:length]
    assert reads(program, [data])[0] == ([], ["trailing"] if 4 < length < 8 else [])


@pytest.mark.parametrize("version", (0, 1))
@pytest.mark.parametrize(("proto", "flags", "n"), [
    (TCP, 0, 11), (UDP, 0, 1), (SCTP, 0, 14), (AH, 0, 1), (ESP, 0, 1), (TCP, TEMPLATE, 2),
    (0, TEMPLATE, 2)])
def test_states(program, version, proto, flags, n):
    for state in (0, n - 1, n, 255, 256, 65535):
        record = WEB.but(proto=proto, flags=flags, state=state, timeout=9 * version)
        expected = ([fields(record)], []) if state < n else ([], ["state"])
        assert reads(program, [message([record], 5, version)]) == [expected]


def test_id_0_takes_all(program):
    data = [message([WEB], n) for n in (0, 5, 255)]
    assert [errors for _, errors in reads(program, data, 0)] == [[], [], []]
    assert [errors for _, errors in reads(program, data, 255)] == [["id"], ["id"], []]


# ---- writing

@pytest.mark.parametrize(("version", "text"), [
    (1, "0005002c01010000 0006002400000000 0001 0c1d 0050 0050 00000000 00000384"
        "0a000002 0a000064 0a010002"),
    (0, "0105001c 0006 0c1d 0050 0050 0a000002 0a000064 0a010002 0000 0001")])
def test_golden(program, version, text):
    assert write(program, [WEB], version) == (1, bytes.fromhex(text))


@pytest.mark.parametrize("version", (0, 1))
def test_written_as_the_codec_does(program, version):
    """Byte for byte: sequence data and the padding behind it, IPv6, a template."""
    template = WEB.but(flags=TEMPLATE, cport=0, vport=0, proto=0, vip="0.0.0.7", mark=7 * version)
    records = [WEB, FTP, template, FTP]
    if version:
        records += [SIX, SIX.but(left=1), WEB.but(left=2 ** 32 - 1), FTP.but(left=7), WEB,
                    SIX.but(gone=True), FTP.but(gone=True)]
    assert write(program, records, version) == (len(records), message(records, 5, version))


def test_version_0_leaves_ipv6_out(program):
    assert write(program, [SIX, WEB, SIX], 0) == (3, message([WEB], 5, 0))
    assert program([f"size 0 {fields(SIX)}"]) == ["0"]


@pytest.mark.parametrize("version", (0, 1))
def test_flags(program, version):
    """A record never says "hashed", and has flags of 16 bits."""
    sent = WEB.but(flags=0x10000 | HASHED | ONE_PACKET | 0x923)
    assert write(program, [sent], version)[1] == \
        message([WEB.but(flags=ONE_PACKET | 0x923)], 5, version)


@pytest.mark.parametrize(("record", "version", "head"), [
    (WEB, 1, 8), (SIX, 1, 8), (FTP, 1, 8), (WEB, 0, 4), (FTP, 0, 4)])
def test_room(program, record, version, head):
    """The last byte is used, and none beyond it."""
    length = len(record.v1() if version else record.v0())
    size = head + (length + 3 & ~3) + length
    assert write(program, [record] * 3, version, size)[0] == 2
    assert write(program, [record] * 3, version, size - 1)[0] == 1
    assert int(program([f"size {version} {fields(record)}"])[0]) == length + 3


def test_time_left(program):
    """An option that ip_vs skips. Of a wrong length it says nothing; it is always optional."""
    late = WEB.but(left=77)
    assert reads(program, [message([late, AFTER], 5)]) == [([fields(late), fields(AFTER)], [])]
    over = WEB.but(gone=True)
    assert reads(program, [message([over, AFTER], 5)]) == [([fields(over), fields(AFTER)], [])]
    odd = [WEB.v1(option(0x44, bytes(n))) for n in (1, 3, 5)]
    assert reads(program, [message(odd, 5)]) == [([fields(WEB)] * 3, [])]
    assert reads(program, [message([WEB.v1(option(4, bytes(4))), AFTER], 5)]) == [
        ([fields(AFTER)], ["option"])]
    assert int(program([f"size 1 {fields(late)}"])[0]) == len(late.v1()) + 3
    assert write(program, [late], 0) == (1, message([WEB], 5, 0))


@pytest.mark.parametrize(("version", "size"), [(1, 36), (0, 24)])
def test_255_records(program, version, size):
    """The number of records has eight bits."""
    number, data = write(program, [WEB] * 300, version, 65507)
    assert number == 255
    assert len(data) == (8 if version else 4) + 255 * size
    assert len(sync_wire.strict(data)) == 255


# ---- states

@pytest.mark.parametrize("proto", (TCP, UDP, SCTP))
def test_states_are_translated(program, proto):
    """By their names, in both directions."""
    text = re.search(r"enum l4lb_state \{(.*?)\}", STATES.read_text(), re.S)[1]
    ours, value = {}, -1
    for name, same in re.findall(r"L4LB_(\w+)(?: = L4LB_(\w+))?,", text):
        value = ours[same] if same else value + 1
        ours[name] = value
    kind = {TCP: "TCP_", SCTP: "SCTP_", UDP: ""}[proto]
    long = {"C-": "COOKIE_", "S-": "SHUTDOWN_"}
    names = [re.sub(r"^[CS]-", lambda m: long[m[0]], name) for name in sync_wire.STATES[proto]]
    numbers = [ours[kind + name.replace("-", "_")] for name in names]
    assert len(set(numbers)) == len(numbers)
    got = program([f"state_of {proto} {n}" for n in (*range(len(numbers) + 1), 65535)] +
                  [f"state_to {proto} {n}" for n in numbers])
    assert got == [*map(str, numbers), "-1", "-1", *map(str, range(len(numbers)))]
    others = set(range(256)) - set(numbers)
    assert set(program([f"state_to {proto} {n}" for n in others])) == {"0"}


def test_other_protocols_have_no_states(program):
    assert program([f"state_of {p} 0" for p in (0, ESP, AH, 255)]) == ["-1"] * 4
    assert program([f"state_to {ESP} 1"]) == ["0"]


# ---- at random

@pytest.mark.parametrize("seed", range(4))
def test_as_the_codec_reads(program, seed):
    """Damaged messages: the same records and the same errors as the codec finds."""
    data = [d[:1472] for d in sync_hostile.mutants(
        seed, 5000, sync_hostile.sources(WEB, AFTER, SIX))]
    found = reads(program, data)
    for one, got in zip(data, found, strict=True):
        assert got == codec(one), one.hex()
    assert {e for _, errors in found for e in errors} == \
        set(sync_wire.ERRORS) - {"unsupported"}
    assert sum(bool(records) for records, _ in found) > 1000


@pytest.mark.parametrize("version", (0, 1))
def test_as_the_codec_writes(program, version):
    """Random records, with random room."""
    chance = random.Random(version)
    for _ in range(50):
        records = [chance.choice((WEB, FTP, *(SIX,) * version)).but(
            cport=chance.getrandbits(16), state=chance.randrange(11),
            mark=version * chance.getrandbits(32), timeout=version * chance.getrandbits(32))
            for _ in range(chance.randrange(1, 40))]
        number, data = write(program, records, version, chance.randrange(100, 2000))
        assert data == message(records[:number], 5, version)


def test_any_bytes(program):
    """What wire_fuzz.c asserts, for the fuzzer's corpus and what is made of it."""
    files = " ".join(map(str, sorted(CORPUS.iterdir())))
    assert program([f"fuzz {seed} 20000 {files}" for seed in (1, 2)]) == [".", "."]
