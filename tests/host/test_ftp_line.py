# SPDX-License-Identifier: GPL-2.0
"""kernel/ftp/command.c, which reads what anyone may send, as a program under sanitizers."""

import random
import re
import subprocess
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
OTHER, PORT, EPRT, PASV, EPSV, PASSIVE, EXTENDED = range(7)
END = rb" *\r?\n"
SIX = rb"(\d{1,5}),(\d{1,5}),(\d{1,5}),(\d{1,5}),(\d{1,5}),(\d{1,5})"
DELIMITER = rb"([!-/:-~])"


def limited(numbers, most=255):
    return all(int(n) <= most for n in numbers)


def six(match):
    """Address and port of six numbers; None: they are none."""
    numbers = [int(n) for n in match.groups()]
    port = numbers[4] << 8 | numbers[5]
    return (".".join(map(str, numbers[:4])), port) if limited(numbers) and port else None


def client(line):
    """By another way: regular expressions. What the first line says, without its length."""
    if re.fullmatch(rb"(?i:PASV)" + END, line):
        return (PASV,)
    if re.fullmatch(rb"(?i:EPSV)(?: [12])?" + END, line):
        return (EPSV,)
    match = re.fullmatch(rb"(?i:PORT) " + SIX + END, line)
    if match and six(match):
        address, port = six(match)
        return (PORT, port, address)
    match = re.match(rb"(?i:EPRT) " + DELIMITER + rb"(0{0,4}[12])" + DELIMITER.replace(b"(", b"(?=", 1), line)
    if match:
        c = re.escape(match[1])
        match = re.fullmatch(rb"(?i:EPRT) " + c + rb"(\d+)" + c + rb"((?:(?!" + c + rb")[^\n])*)" + c +
                             rb"(\d{1,5})" + c + END, line)
        if match and 0 < int(match[3]) <= 65535:
            return (EPRT, int(match[3]), int(match[1]), match.start(2), match[2])
    return (OTHER,)


def server(line):
    match = re.match(rb"227 [^0-9\n]*", line)
    if match:
        numbers = re.compile(SIX + rb"(?![0-9,])").match(line, match.end())
        if numbers and six(numbers):
            address, port = six(numbers)
            return (PASSIVE, port, address, numbers.start(), numbers[0])
    match = re.match(rb"229 [^(\n]*\(" + DELIMITER + rb"\1\1(\d{1,5})\1\)", line)
    if match and 0 < int(match[2]) <= 65535:
        return (EXTENDED, int(match[2]), match.start(2), match[2])
    return (OTHER,)


def expected(side, text):
    line = text[:text.find(b"\n") + 1]
    return (len(line), *(client if side == "c" else server)(line)) if line else (0, OTHER)


def parsed(printed):
    words = printed.split(" ")
    out = [int(words[0]), int(words[1])]
    rest = words[2:]
    if rest:
        out.append(int(rest.pop(0)))
    if out[1] in (PORT, PASSIVE):
        out.append(rest.pop(0))
    if out[1] == EPRT:
        out.append(int(rest.pop(0)))
    if rest:
        out += [int(rest[0]), bytes.fromhex(rest[1])]
    return tuple(out)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ftp_line")
    (folder / "linux").mkdir()
    (folder / "linux/types.h").touch()
    program = folder / "ftp_line"
    subprocess.run(["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=all", "-include", "stdbool.h", "-include", "stdint.h",
                    "-Du8=uint8_t", "-Du16=uint16_t", "-I", folder, "-iquote", TOP / "kernel",
                    "-o", program, TOP / "tests/unit/ftp_line.c", TOP / "kernel/ftp/command.c"],
                   check=True, timeout=120)

    def run(texts):
        done = subprocess.run([program], input="".join(f"{side}{text.hex()}\n" for side, text in texts),
                              capture_output=True, text=True, check=False, timeout=200)
        assert not done.returncode, done.stderr[-2000:]
        return [parsed(line) for line in done.stdout.splitlines()]
    return run


CASES = {
    ("c", b"PORT 10,1,2,3,4,5\r\n"): (19, PORT, 1029, "10.1.2.3"),
    ("c", b"port 255,255,255,255,255,255\n"): (29, PORT, 65535, "255.255.255.255"),
    ("c", b"PORT 10,1,2,3,4,5"): (0, OTHER),
    ("c", b"PORT 10,1,2,3,0,0\r\n"): (19, OTHER),
    ("c", b"PORT 10,1,2,3,256,5\r\n"): (21, OTHER),
    ("c", b"PORT 10,1,2,3,4294967296,5\r\n"): (28, OTHER),
    ("c", b"PORT 10,1,2,3,4,5,6\r\n"): (21, OTHER),
    ("c", b"EPRT |1|10.1.2.3|6275|\r\n"): (24, EPRT, 6275, 1, 8, b"10.1.2.3"),
    ("c", b"EPRT |2|2001:db8::1|5282|\r\n"): (27, EPRT, 5282, 2, 8, b"2001:db8::1"),
    ("c", b"EPRT |3|x|5282|\r\n"): (17, OTHER),
    ("c", b"EPRT |1|10.1.2.3|65536|\r\n"): (25, OTHER),
    ("c", b"EPRT |1|10.1.2.3|\r\n"): (19, OTHER),
    ("c", b"PASV\r\nEPSV\r\n"): (6, PASV),
    ("c", b"PASVX\r\n"): (7, OTHER),
    ("c", b"epsv 2\r\n"): (8, EPSV),
    ("c", b"EPSV ALL\r\n"): (10, OTHER),
    ("c", b"\n"): (1, OTHER),
    ("c", b""): (0, OTHER),
    ("a", b"227 Entering Passive Mode (10,1,2,3,4,5).\r\n"): (43, PASSIVE, 1029, "10.1.2.3", 27, b"10,1,2,3,4,5"),
    ("a", b"227 =10,1,2,3,4,5\r\n"): (19, PASSIVE, 1029, "10.1.2.3", 5, b"10,1,2,3,4,5"),
    ("a", b"227 (10,1,2,3,4,5,6)\r\n"): (22, OTHER),
    ("a", b"227 (10,1,2,3,4)\r\n"): (18, OTHER),
    ("a", b"227-(10,1,2,3,4,5)\r\n"): (20, OTHER),
    ("a", b"229 Entering (|||6446|)\r\n"): (25, EXTENDED, 6446, 17, b"6446"),
    ("a", b"229 (|||0|)\r\n"): (13, OTHER),
    ("a", b"229 (||!6446|)\r\n"): (16, OTHER),
}


def test_cases(read):
    for text, found in zip(CASES, read(CASES), strict=True):
        assert found == CASES[text] == expected(*text), text


def test_every_length(read):
    """Each line cut at each byte."""
    cut = [(side, text[:n]) for side, text in CASES for n in range(len(text) + 1)]
    assert read(cut) == [expected(*text) for text in cut]


PIECES = (b"PORT ", b"EPRT ", b"PASV", b"EPSV", b"227 ", b"229 ", b"|", b"||", b"|||", b"(", b")", b",", b"1",
          b"255", b"256", b"0", b"65535", b"65536", b"10,1,2,3", b"10,1,2,3,4,5", b"10.1.2.3", b"::1", b"x", b" ",
          b"\r\n", b"\n", b"\0", b"\xff", b"9" * 12, b"|1|", b"|2|", b"(|||6446|)")


@pytest.mark.parametrize("seed", (1, 2))
def test_any_bytes(read, seed):
    """What is put together from pieces, and what is changed at random."""
    chance = random.Random(seed)
    texts = [(chance.choice("ca"), b"".join(chance.choices(PIECES, k=chance.randrange(1, 12)))) for _ in range(20000)]
    for side, text in list(CASES) * 400:
        changed = bytearray(text)
        for _ in range(chance.randrange(1, 3) if changed else 0):
            changed[chance.randrange(len(changed))] = chance.choice(b"\r\n ,|()019.\0\xff")
        texts.append((side, bytes(changed)))
    found = read(texts)
    wrong = [(text, got) for text, got in zip(texts, found, strict=True) if got != expected(*text)]
    assert not wrong, wrong[:5]
    assert sum(got[1] != OTHER for got in found) > 500


def test_takes_linear_time(read):
    """The dearest texts, of any length."""
    for side, head, piece in (("c", b"EPRT |1|", b"1"), ("a", b"227 ", b"x"), ("a", b"229 ", b" "),
                              ("c", b"PORT ", b"0")):
        seconds = []
        for size in (1 << 12, 1 << 16):
            begin = time.monotonic()
            read([(side, (head + piece * size)[:size])] * ((1 << 22) // size))
            seconds.append(time.monotonic() - begin)
        assert seconds[1] < 3 * seconds[0] + 1, (piece, seconds)
