# SPDX-License-Identifier: GPL-2.0
"""What the readers of ipvsctl do with files that nobody has thought of: what files_fuzz.c asserts,
for the fuzzer's corpus and what is made of it. `make fuzz-files` goes further."""

import random
import re
import subprocess
from pathlib import Path

import pytest
from test_ipvsctl import IPVSCTL

ROOT = Path(__file__).resolve().parents[2]
CORPUS = sorted((ROOT / "tests/corpus/files").iterdir())
SAN = ["-fsanitize=address,undefined"] if Path(IPVSCTL).name == "ipvsctl-san" else []


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """play(files): the program that reads each ends well. How many it took as JSON, YAML and rules."""
    program = tmp_path_factory.mktemp("files") / "play"
    makefile = (ROOT / "tools/ipvsctl/Makefile").read_text("utf-8")
    libraries = next(line.split()[2:] for line in makefile.splitlines() if line.startswith("PKGS "))
    found = subprocess.run(["pkg-config", "--cflags", "--libs", *libraries, "ncursesw"], check=True,
                           capture_output=True, text=True, timeout=60).stdout.split()
    objects = [Path(f"{IPVSCTL}.obj/{file.stem}.o") for file in (ROOT / "tools/ipvsctl").glob("*.c")
               if file.stem != "main"]
    subprocess.run(["gcc", "-std=gnu11", "-g", *SAN, "-DPLAY", "-Wl,--wrap=key_from_file", "-iquote", "tools/ipvsctl",
                    "-iquote", "kernel", "-o", program, "tests/unit/files_fuzz.c", *objects, *found, "-lm"],
                   cwd=ROOT, check=True, timeout=120)

    def run(files):
        done = subprocess.run([program, *files], capture_output=True, text=True, timeout=120, check=False)
        lines = done.stdout.splitlines()
        assert done.returncode == 0, f"{lines[-1]}\n{done.stderr}"
        return [int(number) for number in lines[-1].split()]
    return run


def changed(chance, text):
    """TEXT with a few of its lines, words and letters changed."""
    other = chance.choice(CORPUS).read_text("ascii")
    for _ in range(chance.randrange(1, 3)):
        parts = chance.choice((lambda t: re.split(r"(?<=\n)", t), lambda t: re.split(r"([\s,{}:]+)", t), list))
        pieces, strange = parts(text) or [""], parts(other)
        at = chance.randrange(len(pieces))
        match chance.randrange(4):
            case 0:
                del pieces[at]
            case 1:
                pieces.insert(at, chance.choice(strange))
            case 2:
                pieces[at] = chance.choice((*strange, "", "\t", "0", "-1", "65536", "4294967296", "\x80", "{", "'"))
            case 3:
                there = chance.randrange(len(pieces))
                pieces[at], pieces[there] = pieces[there], pieces[at]
        text = "".join(pieces)
    return text


def test_the_corpus(play):
    bad = [file for file in CORPUS if file.name.startswith("bad-")]
    assert play(bad) == [0, 0, 0]
    assert all(any(play([file])) for file in CORPUS if file not in bad)


def test_any_text(play, tmp_path):
    chance = random.Random(1)
    for number in range(8000):
        text = changed(chance, chance.choice(CORPUS).read_text("ascii"))
        (tmp_path / str(number)).write_text(text, encoding="utf-8", errors="surrogateescape")
    assert min(play(sorted(tmp_path.iterdir()))) >= 200
