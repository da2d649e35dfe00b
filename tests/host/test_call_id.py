# SPDX-License-Identifier: GPL-2.0
"""kernel/base/call_id.c, which reads what anyone may send, as a program under sanitizers."""

import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lab.sip_cases import CASES, OURS  # noqa: E402

TOP = Path(__file__).resolve().parents[2]
MOST = 255
WORD = rb"[A-Za-z0-9\-.!%*_+`'~()<>:\\\"/\[\]?{}]+"
WHITE = rb"[ \t]*(?:(?:\r\n|\r|\n)[ \t]+)?"
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)?")
FIELD = re.compile(rb"(?i:call-id|i)" + WHITE + b":" + WHITE)
VALUE = re.compile(b"(" + WORD + b"(?:@" + WORD + b")?)[\r\n]")


def expected(message):
    """By another way: regular expressions."""
    text = message.lstrip(b"\r\n")
    at = LINE.match(text).end()
    while at < len(text) and text[at] not in b"\r\n":
        field = FIELD.match(text, at)
        if field:
            value = VALUE.match(text, field.end())
            return value[1] if value and len(value[1]) <= MOST else None
        at = LINE.match(text, at).end()
    return None


@pytest.fixture(scope="module")
def find(tmp_path_factory):
    folder = tmp_path_factory.mktemp("call_id")
    (folder / "linux").mkdir()
    for name in ("types.h", "string.h"):
        (folder / "linux" / name).touch()
    program = folder / "call_id"
    subprocess.run(["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=all", "-include", "stdbool.h", "-include", "stdint.h",
                    "-include", "string.h", "-Du8=uint8_t", "-I", folder, "-iquote", TOP / "kernel",
                    "-o", program, TOP / "tests/unit/call_id.c", TOP / "kernel/base/call_id.c"],
                   check=True, timeout=120)

    def run(messages):
        done = subprocess.run([program], input="".join(m.hex() + "\n" for m in messages),
                              capture_output=True, text=True, check=False, timeout=200)
        assert not done.returncode, done.stderr[-2000:]
        return [None if line == "-" else bytes.fromhex(line) for line in done.stdout.splitlines()]
    return run


def test_cases(find):
    """As ip_vs, but for those of OURS."""
    names = list(CASES)
    for name, found in zip(names, find([CASES[name][0] for name in names]), strict=True):
        assert found == OURS.get(name, CASES[name][1]), name


def test_every_length(find):
    """Each message cut at each byte, and a Call-ID around the longest."""
    whole = [message for message, _ in CASES.values() if len(message) < 600]
    cut = [message[:n] for message in whole for n in range(len(message) + 1)]
    cut += [b"A b\r\nCall-ID: " + b"x" * n + b"\r\n" for n in (1, 253, 254, 255, 256, 257, 511)]
    assert find(cut) == [expected(message) for message in cut]


PIECES = (b"Call-ID", b"call-id", b"i", b"I", b"iX", b":", b" ", b"\t", b"\r\n", b"\n", b"\r", b"@", b"abc",
          b"\0", b"\xff", b",", b"x" * 254, b"Via: x", b"INVITE sip:b SIP/2.0", b"<>", b"[::1]:5060")


@pytest.mark.parametrize("seed", (1, 2))
def test_any_bytes(find, seed):
    """What is put together from pieces, and what is changed at random, is read as by the
    regular expressions."""
    chance = random.Random(seed)
    messages = [b"".join(chance.choices(PIECES, k=chance.randrange(1, 14))) for _ in range(20000)]
    for message, _ in list(CASES.values()) * 40:
        changed = bytearray(message)
        for _ in range(chance.randrange(1, 5)):
            changed[chance.randrange(len(changed))] = chance.choice(b"\r\n \t:@iI\0\xffa-")
        messages.append(bytes(changed))
    found = find(messages)
    assert found == [expected(message) for message in messages]
    assert sum(f is not None for f in found) > 500


def test_takes_linear_time(find):
    """The dearest messages: many short lines, folds, names that nearly fit."""
    for piece in (b"i\r\n ", b"\r\n i", b"Call-I", b"i :", b"\n\t", b"call-id\r\n "):
        seconds = []
        for size in (1 << 12, 1 << 16):
            message = (b"X\r\n" + piece * size)[:size]
            begin = time.monotonic()
            find([message] * ((1 << 22) // size))
            seconds.append(time.monotonic() - begin)
        assert seconds[1] < 3 * seconds[0] + 1, (piece, seconds)
