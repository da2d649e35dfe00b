# SPDX-License-Identifier: GPL-2.0
"""Trailers, windows and control messages of kernel/sync, compiled as a program (tests/unit/peer.c),
against models and against bytes written by hand."""

import random
import struct
import subprocess

import pytest
from simulator import ROOT, UNIT, compiled, linked, stubs

SYNC = ROOT / "kernel/sync"
SOURCES = [SYNC / name for name in ("trailer.c", "window.c", "control.c")]
HEADERS = [SYNC / name for name in ("trailer.h", "window.h", "control.h", "wire.h")]
WINDOW = 1024
LARGEST = 2**63 - 1
NEW, LATE, REPEATED = range(3)
KEYED, BULK, AGAIN, CONTROL = 1, 2, 4, 8
HEADER = "00050008 00010000"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """program(["take 1", ...]) -> its lines."""
    build = tmp_path_factory.mktemp("peer")
    texts = [path.read_text() for path in [*SOURCES, *HEADERS]]
    linked(build / "peer", compiled(
        build, [UNIT / "peer.c", *SOURCES],
        ["-include", "tests/unit/peer_shim.h", "-I", stubs("peer", texts)]))

    def run(commands):
        done = subprocess.run([build / "peer"], input="\n".join(commands) + "\n", text=True,
                              timeout=300, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.split("\n")[:-1]
        assert len(lines) == len(commands)
        return [line.strip() for line in lines]
    return run


def trailer(flags=0, sender=0x1122334455667788, sequence=5, stream=0, backlog=3):
    return b"l4lb" + struct.pack(">BBHQQB3xI32x", 1, 64, flags, sender, sequence, stream, backlog)


def plain(text):
    return text.replace(" ", "")


# ---- trailers ----

def test_trailer_is_written(program):
    message = plain(HEADER) + "aabb"
    (out,) = program([f"trailer {0x1122334455667788} 5 3 4 0 {message}"])
    want = bytes.fromhex(message + "0000") + trailer(AGAIN)
    want = want[:2] + len(want).to_bytes(2, "big") + want[4:]
    assert bytes.fromhex(out) == want


@pytest.mark.parametrize("kind", [
    {}, {"flags": KEYED}, {"flags": AGAIN}, {"flags": KEYED | AGAIN, "stream": 63},
    {"flags": BULK, "stream": 255}, {"flags": CONTROL, "stream": 255},
    {"sequence": LARGEST, "sender": 2**64 - 1, "backlog": 2**32 - 1}])
def test_trailer_is_read(program, kind):
    one = {"flags": 0, "sender": 7, "sequence": 5, "stream": 0, "backlog": 3} | kind
    (out,) = program([f"read {plain(HEADER)}{trailer(**one).hex()}"])
    assert out == "{sender} {sequence} {backlog} {flags} {stream}".format(**one)


BROKEN = {
    "magic": (0, b"L"), "version": (4, b"\2"), "length": (5, b"\x3c"), "unknown-flag": (7, b"\x10"),
    "high-flag": (6, b"\1"), "no-sender": (8, bytes(8)), "no-sequence": (16, bytes(8)),
    "sequence-too-large": (16, b"\x80"), "stream-64": (24, b"\x40"), "stream-254": (24, b"\xfe"),
    "other-without-kind": (24, b"\xff"), "not-zero": (27, b"\1"), "bulk-in-a-stream": (7, b"\2"),
    "control-in-a-stream": (7, b"\x08"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_no_trailer(program, name):
    at, change = BROKEN[name]
    good = trailer()
    bad = good[:at] + change + good[at + len(change):]
    outs = program([f"read {plain(HEADER)}{t.hex()}" for t in (good, bad)])
    assert outs[0] != "none"
    assert outs[1] == "none"


def test_other_stream_has_one_kind(program):
    both = trailer(BULK | CONTROL, stream=255)
    again = trailer(BULK | AGAIN, stream=255)
    assert program([f"read {plain(HEADER)}{t.hex()}" for t in (both, again)]) == ["none"] * 2


def test_short_messages_have_no_trailer(program):
    """Of any length, and where a multiple of 4 does not end."""
    whole = bytes.fromhex(plain(HEADER)) + trailer()
    outs = program([f"read {whole[n:].hex()}" for n in range(len(whole) + 1)])
    assert [n for n, out in enumerate(outs) if out != "none"] == [0, 4]


# ---- control messages ----

def control(body, kind=1):
    data = bytes.fromhex(plain(HEADER)) + struct.pack(">BBH", kind, 0, len(body)) + body
    data = bytes(2) + data[2:] + bytes(-len(data) % 4) + trailer(CONTROL, stream=255)
    return data[:2] + len(data).to_bytes(2, "big") + data[4:]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 1279, 1280])
def test_control_round_trip(program, length):
    body = random.Random(length).randbytes(length)
    (put,) = program([f"control 200 {body.hex()}"])
    (whole,) = program([f"trailer 7 1 0 {CONTROL} 255 {put}"])
    assert bytes.fromhex(whole)[2:4] == (len(whole) // 2).to_bytes(2, "big")
    assert program([f"body {whole}"]) == [f"200 {body.hex()}".strip()]


CHANGED = {
    "size": (2, b"\0\0"), "records": (4, b"\1"), "version": (5, b"\2"), "not-zero": (9, b"\1"),
    "version-0": (0, b"\1"), "longer": (10, b"\0\x0c"), "shorter": (10, b"\0\4"), "huge": (10, b"\xff\xff"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_malformed_control(program, name):
    at, change = CHANGED[name]
    good = control(b"12345678")
    bad = good[:at] + change + good[at + len(change):]
    outs = program([f"body {message.hex()}" for message in (good, bad)])
    assert outs == [f"1 {b'12345678'.hex()}", "none"]


def test_longest_body(program):
    outs = program([f"body {control(bytes(n)).hex()}" for n in (1280, 1281, 1284, 2000)])
    assert [out == "none" for out in outs] == [False, True, True, True]


def test_control_is_never_read_beyond_its_end(program):
    whole = control(b"x" * 20)
    outs = program([f"body {whole[:n].hex()}" for n in range(len(whole) + 1)])
    assert [n for n, out in enumerate(outs) if out != "none"] == [len(whole)]


@pytest.mark.parametrize("streams", [0, 1, 64])
def test_hello_round_trip(program, streams):
    rng = random.Random(streams)
    numbers = [rng.getrandbits(64), rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(8)]
    for _ in range(streams):
        newest = rng.getrandbits(62)
        numbers += [newest, newest + rng.choice((1, 0, -7))]
    text = " ".join(map(str, numbers))
    (body,) = program([f"hello {text}"])
    short, long, right = (f"hello? {x}" for x in (body[:-2], body + "00", body))
    assert program([short, long, right]) == ["none", "none", text]


def test_hello_numbers_are_limited(program):
    (body,) = program([f"hello 1 2 3 4 {2**64 - 1} 0 5 {2**64 - 1}"])
    assert program([f"hello? {body}"]) == [f"1 2 3 4 {LARGEST} 0 5 6"]


def test_hello_of_65_streams(program):
    body = struct.pack(">QQIBBH", 1, 2, 3, 4, 65, 0) + bytes(65 * 16)
    assert program([f"hello? {body.hex()}"]) == ["none"]


@pytest.mark.parametrize("n", [1, 32])
def test_nack_round_trip(program, n):
    text = " ".join(f"{i} {i + 1} {2**64 - 1 - i}" for i in range(n))
    (body,) = program([f"nack {text}"])
    assert program([f"nack? {body}", f"nack? {body}00"]) == [text, "none"]


@pytest.mark.parametrize("one", [(64, 1, 1), (0, 0, 1), (0, 5, 4)])
def test_refused_nack(program, one):
    body = struct.pack(">B3xQQ", *one)
    good = struct.pack(">B3xQQ", 0, 1, 1)
    assert program([f"nack? {(good + x).hex()}" for x in (body, good)])[0] == "none"
    assert program([f"nack? {(good * 33).hex()}", "nack? "]) == ["none", "none"]


def test_random_bytes(program):
    """No reader goes beyond the end, whatever comes (the program has a sanitizer)."""
    rng = random.Random(1)
    commands = []
    for _ in range(4000):
        data = bytearray(control(rng.randbytes(rng.randrange(64)), rng.randrange(9)))
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.getrandbits(8)
        data = data[:rng.choice((len(data), rng.randrange(len(data))))]
        commands += [f"{what} {data.hex()}" for what in ("read", "body", "hello?", "nack?")]
    program(commands)


# ---- windows ----

class Model:
    """A window as sets of numbers."""

    def __init__(self, newest):
        self.came, self.gone, self.start, self.known = set(), set(), newest, newest

    def missing(self):
        return [n for n in range(max(self.start, self.known - WINDOW) + 1, self.known + 1)
                if n not in self.came and n not in self.gone]

    def extend(self, newest):
        before = set(self.missing())
        skipped = max(0, newest - WINDOW - max(self.known, self.start)) if newest > self.known else 0
        self.known = max(self.known, newest)
        return len(before - set(self.missing())) + skipped

    def take(self, n):
        if n <= max(self.start, self.known - WINDOW) or n in self.gone or n in self.came:
            return f"{REPEATED} 0"
        kind = NEW if n > self.known else LATE
        lost = self.extend(n)
        self.came.add(n)
        return f"{kind} {lost}"

    def give_up(self, oldest):
        lost = [n for n in self.missing() if n < oldest]
        self.gone |= set(lost)
        # All before a number that is given up count as given up.
        self.start = max(self.start, min(oldest - 1, self.known))
        return str(len(lost))

    def gaps(self, first, last):
        out = []
        for n in self.missing():
            if not first <= n <= last:
                continue
            if out and out[-1] == n - 1:
                out[-1] = n
            else:
                out += [n, n]
        return " ".join(map(str, out))


@pytest.mark.parametrize("seed", range(8))
def test_window_at_random(program, seed):
    rng = random.Random(seed)
    newest = rng.choice((0, 1, 1023, 1024, 2**40))
    model = Model(newest)
    commands, wanted = [f"window {newest}"], [""]
    for _ in range(3000):
        near = model.known + rng.choice((1, 1, 1, 2, 3, -1, -5, rng.randrange(-1100, 30),
                                         rng.randrange(-5, 5), rng.choice((0, 0, 0, 700, 5000))))
        near = max(near, 1)
        what = rng.choice(("take",) * 12 + ("extend", "give_up", "gaps"))
        if what == "gaps":
            last = near + rng.randrange(50)
            commands.append(f"gaps {near} {last}")
            wanted.append(model.gaps(near, last))
        else:
            if what == "give_up":
                near = max(1, min(near - 900, model.known + 1))
            commands.append(f"{what} {near}")
            wanted.append(str(getattr(model, what)(near)))
    assert program(commands) == wanted


def test_window_without_loss(program):
    """In any order within 1,024, each message counts once, and then nothing is missing."""
    rng = random.Random(5)
    numbers = sorted(range(1, 5001), key=lambda n: n + rng.randrange(500))
    outs = program(["window 0", *(f"take {n}" for n in numbers), "gaps 1 5000",
                    *(f"take {n}" for n in numbers)])
    kinds = [line.split() for line in outs[1:5001]]
    assert {lost for _, lost in kinds} == {"0"}
    assert {kind for kind, _ in kinds} == {str(NEW), str(LATE)}
    assert outs[5001] == ""
    assert set(outs[5002:]) == {f"{REPEATED} 0"}


def test_window_ends(program):
    """The largest numbers, and jumps between smallest and largest."""
    assert program(["window 0", f"take {LARGEST}", f"take {LARGEST}", f"take {LARGEST - 1}",
                    f"gaps 1 {LARGEST}", f"extend {LARGEST}", f"give_up {LARGEST + 1}",
                    f"gaps 1 {LARGEST}", "take 5"]) == [
        "", f"{NEW} {LARGEST - WINDOW}", f"{REPEATED} 0", f"{LATE} 0",
        f"{LARGEST - 1023} {LARGEST - 2}", "0", "1022", "", f"{REPEATED} 0"]
