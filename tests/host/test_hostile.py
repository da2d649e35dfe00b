# SPDX-License-Identifier: GPL-2.0
"""The program that damages inputs: it compiles without a warning, overruns nothing, and
gives the same bytes for the same seed."""

import json
import subprocess

import pytest
from lab import fuzz, genl, packet
from torture import hostile
from torture.program import FLAGS
from torture.program import program as built

COUNT = 5000
SOUND = [*FLAGS, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FLOW = {4: ("10.77.0.7", 5000, "198.51.100.102", 7001),
        6: ("2001:db8:c:77::7", 5000, "2001:db8:1::102", 7001)}
HEAD = bytes(12)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return built(SOUND, tmp_path_factory.mktemp("hostile") / "hostile")


def frames():
    for family, ether in ((4, b"\x08\0"), (6, b"\x86\xdd")):
        for proto in hostile.PORTS:
            about = hostile.segment(proto, FLOW[family], hostile.kinds(proto)[0], b"data")
            for p in (*hostile.transport(proto, FLOW[family]),
                      *hostile.errors(FLOW[family][2], about),
                      *hostile.tunnelled(FLOW[family][0], FLOW[family][2], about)):
                yield HEAD + ether + p


def messages():
    for seq, command in enumerate(fuzz.Generator(1).commands(200)):
        number, body, _ = fuzz.pack(command)
        yield genl.struct.pack("=IHHII", 20 + len(body), 30, 5, seq, 0) + \
            genl.struct.pack("=BBH", number, 1, 0) + body


@pytest.fixture
def damaged(program, tmp_path):
    """damaged("packets", bases, "-s", "1") -> (inputs, counts)"""
    def run(mode, bases, *options):
        given = hostile.write(tmp_path / "bases", bases)
        device = ["lo"] if mode == "packets" else []
        done = subprocess.run([program, mode, given, *device, "-o", tmp_path / "out", *options],
                              capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        return hostile.read(tmp_path / "out"), json.loads(done.stdout)
    return run


@pytest.mark.parametrize(("mode", "bases"), [("packets", frames), ("messages", messages)])
def test_same_seed_same_bytes(damaged, mode, bases):
    given = list(bases())
    one, said = damaged(mode, given, "-s", "7", "-n", str(COUNT))
    assert len(one) == said["sent"] == said["next"] == COUNT
    assert damaged(mode, given, "-s", "7", "-n", str(COUNT))[0] == one
    assert damaged(mode, given, "-s", "8", "-n", str(COUNT))[0] != one
    # One input alone, for a replay.
    assert damaged(mode, given, "-s", "7", "-f", "4711", "-n", "1")[0] == one[4711:4712]
    # Damage is frequent, but some inputs stay whole.
    whole = sum(i in given for i in one)
    assert COUNT / 100 < whole < COUNT / 3
    assert len(set(one)) > COUNT / 2


def test_half_of_the_checksums_are_right(damaged):
    """The program's own arithmetic agrees with that of lab.packet."""
    given = [f for f in frames() if len(f) > 60]
    found, _ = damaged("packets", given, "-s", "3", "-n", "5000")
    good = bad = 0
    for frame in found:
        try:
            p = packet.Packet(frame[14:])
            if p.mf or p.offset or p.hlen > len(p.raw) or p.proto not in hostile.PORTS:
                continue
            good, bad = (good + 1, bad) if p.bad_checksum() is None else (good, bad + 1)
        except (ValueError, genl.struct.error, IndexError):
            continue
    assert good > 700
    assert bad > 100
    assert 0.4 < good / (good + bad) < 0.95


def test_ends_in_time(program, tmp_path):
    given = hostile.write(tmp_path / "bases", messages())
    done = subprocess.run([program, "messages", given, "-o", "/dev/null", "-t", "1"],
                          capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(done.stdout)["seconds"] < 5


@pytest.mark.parametrize(("words", "says"), [
    ((), "say 'packets BASES DEVICE' or 'messages BASES'"),
    (("packets", "bases"), "say 'packets BASES DEVICE' or 'messages BASES'"),
    (("messages", "/nowhere"), "/nowhere: No such file or directory"),
    (("messages", "/dev/null"), "/dev/null is empty"),
    (("messages", "x", "-n", "many"), "'many' is not a number")])
def test_wrong_arguments(program, words, says):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"hostile: {says}\n")
